"""Losses and their options. Formulas: docs/numerics.md, browser_runtime/reference/losses.js."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.spec_fields import Float32, Strict

LossName = Literal["bce", "softmax_cross_entropy", "mse", "mae", "huber", "hinge"]
CLASS_LOSSES = frozenset({"bce", "softmax_cross_entropy", "hinge"})
"""Their targets are classes, and they apply the last activation themselves."""

_Weight = Annotated[Float32, Field(ge=0)]
_Weights = Annotated[list[_Weight], Field(min_length=1, max_length=65536)]
_Smoothing = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]


class Bce(Strict):
    """Binary cross-entropy of each output."""

    type: Literal["bce"]
    pos_weight: _Weight | _Weights | None = Field(
        default=None, description="Of the targets' share of 1: of all outputs, or of each."
    )
    label_smoothing: _Smoothing = Field(default=0.0, description="Moves targets y to (1 - s) y + s / 2.")


class SoftmaxCrossEntropy(Strict):
    """Cross-entropy of the classes of a row."""

    type: Literal["softmax_cross_entropy"]
    class_weights: _Weights | None = Field(default=None, description="Of each class.")
    label_smoothing: _Smoothing = Field(
        default=0.0, description="Moves targets y to (1 - s) y + s / classes."
    )


class Mse(Strict):
    """Mean squared error."""

    type: Literal["mse"]


class Mae(Strict):
    """Mean absolute error."""

    type: Literal["mae"]


class Huber(Strict):
    """Squared error near 0, absolute error beyond delta."""

    type: Literal["huber"]
    delta: Annotated[Float32, Field(gt=0)] = 1.0


class Hinge(Strict):
    """Of two classes, 0 or -1 and 1, for each output."""

    type: Literal["hinge"]


LossOptions = Annotated[Bce | SoftmaxCrossEntropy | Mse | Mae | Huber | Hinge, Field(discriminator="type")]
Loss = LossName | LossOptions
"""A loss, or its name where the defaults will do."""


def loss_type(loss: Any) -> LossName | None:
    """The loss's name; None where there is no valid one."""
    return getattr(loss, "type", loss)


def loss_faults(loss: Loss, output: Sequence[int], field: str) -> Iterator[Fault]:
    """What is wrong between a loss and the shape of what the last layer, at `field`, gives."""
    outputs = 1
    for extent in output:
        outputs *= extent
    if loss_type(loss) == "softmax_cross_entropy":
        if len(output) != 1:
            message = f"softmax_cross_entropy takes a row of logits, not {list(output)}"
            yield Fault(field, message, list(output), "a dense layer, or another loss")
            return
        if outputs < 2:
            yield Fault(
                f"{field}.units", "softmax over one class is always 1", outputs, "at least 2, or loss bce"
            )
    for name in ("class_weights", "pos_weight"):
        weights = getattr(loss, name, None)
        if isinstance(weights, list) and len(weights) != outputs:
            legal = f"{outputs} numbers"
            yield Fault(f"loss.{name}", f"has {len(weights)} numbers for {outputs} outputs", None, legal)
