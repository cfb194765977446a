"""Jobs that begin with weights which are there already: fine-tuning and predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.spec_fields import Name, Strict
from texelgrad.spec_forms import JOB_ID, WEIGHTS_ID

_Job = Annotated[str, Field(pattern=JOB_ID)]


class FineTune(Strict):
    """Initial weights by the names of layers; all other layers begin as the seed gives them."""

    job: _Job | None = Field(default=None, description="An earlier job that has succeeded.")
    weights: Annotated[str, Field(pattern=WEIGHTS_ID)] | None = Field(
        default=None, description="A file that POST /v1/weights took."
    )
    layers: Annotated[list[Name], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="null: every layer of which the file has tensors."
    )


class Predict(Strict):
    """The outputs of a trained model for the rows of the data set, instead of training."""

    job: _Job = Field(description="The job that trained it.")


def weights_faults(
    fine_tune: FineTune | None, predict: Predict | None, names: set[str], normalize: str | None
) -> Iterator[Fault]:
    """What is wrong whatever the files; `names` are the layers'."""
    if fine_tune is None:
        if normalize == "inherit":
            legal = "none, standard or minmax; or fine_tune"
            yield Fault("data.normalize", "needs weights to begin with", normalize, legal)
        return
    if predict is not None:
        yield Fault("fine_tune", "a job trains or predicts", None, "null with predict")
    if fine_tune.job is not None and fine_tune.weights is not None:
        yield Fault("fine_tune", "takes one of job and weights", None, "job or weights")
    for index, name in enumerate(fine_tune.layers or ()):
        if names and name not in names:
            legal = ", ".join(sorted(names))
            yield Fault(f"fine_tune.layers.{index}", "is no layer of this model", name, legal)
