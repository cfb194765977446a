"""Where a job's rows come from, which of them validate, and what their inputs go through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.losses import CLASS_LOSSES
from texelgrad.spec_fields import Strict
from texelgrad.spec_forms import DATASET_ID

_Row = Annotated[int, Field(ge=0, lt=2**31)]
_Range = Annotated[list[_Row], Field(min_length=2, max_length=2)]


class Synthetic(Strict):
    """Made-up data, the same for the same seed everywhere."""

    kind: Literal["two_class_points", "spirals", "xor", "regression"]
    rows: Annotated[int, Field(ge=1, le=1_000_000)]
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0


class Validation(Strict):
    """Which rows are kept from training: a share of the shuffled ones, or those that are named. See splits.py."""

    fraction: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = Field(
        default=0.0, description="floor(rows * fraction) rows, the last of the seed's permutation."
    )
    stratify: bool = Field(default=False, description="Each class gives the same share.")
    rows: Annotated[list[_Row | _Range], Field(min_length=1, max_length=100_000)] | None = Field(
        default=None,
        description="Row numbers from 0, and ranges [first, stop) of them, instead of a fraction.",
    )

    def ranges(self) -> list[tuple[int, int]]:
        """The named rows as [first, stop) each, in the order of the spec."""
        return [(row, row + 1) if isinstance(row, int) else (row[0], row[1]) for row in self.rows or ()]


class Data(Strict):
    """Where the rows come from; in a page they are handed over instead, and both are null."""

    dataset: Annotated[str, Field(pattern=DATASET_ID)] | None = None
    synthetic: Synthetic | None = None
    validation: Validation = Field(default_factory=Validation)
    normalize: Literal["none", "standard", "minmax", "inherit"] = Field(
        default="none",
        description="Of every input whose numbers are not looked up; fitted on the training rows, each feature or channel by itself; inherit: as the weights that fine_tune begins with say.",
    )


def split_faults(validation: Validation, loss: str | None) -> Iterator[Fault]:
    """What is wrong with a split whatever the data."""
    if validation.rows is not None and validation.fraction > 0:
        legal = "fraction or rows"
        yield Fault("data.validation", "takes one of fraction and rows", None, legal)
    if validation.stratify and validation.fraction == 0:
        legal = "false, or a fraction above 0"
        yield Fault("data.validation.stratify", "needs a fraction to share among the classes", True, legal)
    if validation.stratify and loss is not None and loss not in CLASS_LOSSES:
        yield Fault("data.validation.stratify", "needs a loss over classes", True, f"false with {loss}")
    last = -1
    for (first, stop), index in sorted((rows, index) for index, rows in enumerate(validation.ranges())):
        field = f"data.validation.rows.{index}"
        if first >= stop:
            yield Fault(field, "is an empty range", [first, stop], "[first, stop] with first below stop")
        elif first <= last:
            yield Fault(field, f"names row {first} again", first, "each row once")
        last = max(last, stop - 1)
