"""Which metrics a job measures, how it stops early, and what is wrong with either. The same as browser_runtime/nn/spec_measures.js."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.losses import CLASS_LOSSES
from texelgrad.spec_fields import Float32, Strict
from texelgrad.spec_forms import MEASURED

MAX_CONFUSION_CLASSES = 100
DEFAULT_K = 5
MAX_SCORES = 1 << 24
"""That auc keeps, 128 MiB; browser_runtime/train/metrics.js refuses the same."""

MetricName = Literal[
    "accuracy",
    "top_k_accuracy",
    "precision",
    "recall",
    "f1",
    "auc",
    "confusion_matrix",
    "mae",
    "mse",
    "r2",
]
_OF_VALUES = frozenset({"mae", "mse", "r2"})
_AVERAGED = frozenset({"precision", "recall", "f1"})
SMALLER_IS_BETTER = frozenset({"loss", "mae", "mse"})


class MetricOptions(Strict):
    """A metric with options; its name alone stands for the defaults."""

    type: MetricName
    k: Annotated[int, Field(ge=1, le=2**24)] | None = Field(
        default=None, description="For top_k_accuracy; null: 5."
    )
    average: Literal["binary", "macro"] | None = Field(
        default=None,
        description="For precision, recall and f1: of class 1, or the mean over classes. null: macro where there are several outputs.",
    )


Metrics = Annotated[list[MetricName | MetricOptions], Field(max_length=10)]


class EarlyStopping(Strict):
    """Stops once a metric of the validation rows has not improved for `patience` validations."""

    metric: Annotated[str, Field(pattern=MEASURED)] = "val_loss"
    patience: Annotated[int, Field(ge=1, le=2**31 - 1)]
    min_delta: Annotated[Float32, Field(ge=0)] = Field(
        default=0.0, description="A change of no more than this is no improvement."
    )
    restore_best: bool = Field(
        default=True, description="The run ends with the weights of its best validation."
    )


def options_of(metric: MetricName | MetricOptions) -> MetricOptions:
    """A metric's options, also where only its name is given."""
    return MetricOptions(type=metric) if isinstance(metric, str) else metric


def metric_faults(
    metrics: Sequence[MetricName | MetricOptions], loss: str | None, units: int | None
) -> Iterator[Fault]:
    """What is wrong with the metrics for a loss and a number of outputs, where these are known."""
    seen: Counter[str] = Counter()
    for index, metric in enumerate(map(options_of, metrics)):
        field, kind = f"metrics.{index}", metric.type
        seen[kind] += 1
        if seen[kind] > 1:
            yield Fault(field, f"{kind} is named twice", kind, "each metric once")
        if metric.k is not None and kind != "top_k_accuracy":
            yield Fault(f"{field}.k", f"is no option of {kind}", metric.k, "null")
        if metric.average is not None and kind not in _AVERAGED:
            yield Fault(f"{field}.average", f"is no option of {kind}", metric.average, "null")
        if loss is not None:
            yield from _loss_faults(field, metric, loss, units)


def _legal(loss: str) -> Iterator[str]:
    """The metrics that go with a loss."""
    for kind in get_args(MetricName):
        fits = (loss in CLASS_LOSSES) != (kind in _OF_VALUES)
        if fits and (kind != "top_k_accuracy" or loss == "softmax_cross_entropy"):
            yield kind


def _loss_faults(field: str, metric: MetricOptions, loss: str, units: int | None) -> Iterator[Fault]:
    kind = metric.type
    if (loss in CLASS_LOSSES) == (kind in _OF_VALUES):
        measures, over = ("values", "classes") if kind in _OF_VALUES else ("classes", "values")
        message = f"{kind} measures {measures}, but {loss} is a loss over {over}"
        yield Fault(field, message, kind, ", ".join(_legal(loss)))
        return
    if kind == "top_k_accuracy" and loss != "softmax_cross_entropy":
        yield Fault(field, f"{kind} needs softmax_cross_entropy", kind, ", ".join(_legal(loss)))
    elif units is None:
        return
    elif kind == "top_k_accuracy" and (metric.k or DEFAULT_K) >= units:
        message = f"is no choice among {units} classes"
        yield Fault(f"{field}.k", message, metric.k or DEFAULT_K, f"1 to {units - 1}")
    elif metric.average == "binary" and units != (2 if loss == "softmax_cross_entropy" else 1):
        yield Fault(f"{field}.average", f"binary needs two classes, not {units} outputs", "binary", "macro")
    elif kind == "confusion_matrix" and loss != "softmax_cross_entropy" and units > 1:
        yield Fault(field, "confusion_matrix needs one class a row", kind, "none of it with several outputs")
    elif kind == "confusion_matrix" and units > MAX_CONFUSION_CLASSES:
        legal = f"at most {MAX_CONFUSION_CLASSES} classes"
        yield Fault(field, f"confusion_matrix of {units} classes is too large", kind, legal)


def score_faults(
    metrics: Sequence[MetricName | MetricOptions], validation_rows: int, units: int
) -> Iterator[Fault]:
    """Whether auc would have to keep more scores than a page does."""
    scores = validation_rows * units
    for index, metric in enumerate(map(options_of, metrics)):
        if metric.type == "auc" and scores > MAX_SCORES:
            message = f"auc keeps a score for each of {validation_rows} validation rows and {units} outputs"
            yield Fault(f"metrics.{index}", message, scores, f"at most {MAX_SCORES} scores, or none of it")


def unmeasured_faults(metrics: Sequence[MetricName | MetricOptions]) -> Iterator[Fault]:
    """Metrics where no row is kept for validation. Of a new job only: stored ones measure nothing, and run."""
    if metrics:
        names = [options_of(metric).type for metric in metrics]
        legal = "[], or data.validation with a fraction or rows"
        yield Fault("metrics", "are measured on validation rows, and there are none", names, legal)


def stopping_faults(
    stopping: EarlyStopping, metrics: Sequence[MetricName | MetricOptions]
) -> Iterator[Fault]:
    """What is wrong with early stopping beside these metrics."""
    field = "train.early_stopping"
    known = ["val_loss"] + [
        f"val_{kind}" for kind in (options_of(m).type for m in metrics) if kind != "confusion_matrix"
    ]
    if stopping.metric not in known:
        yield Fault(f"{field}.metric", "is not measured", stopping.metric, ", ".join(known))
