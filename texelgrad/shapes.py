"""Shape inference: what a spec needs and costs, and whether data fits it. No arrays are touched; statistics suffice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from texelgrad.config import Settings
from texelgrad.errors import Fault
from texelgrad.memory import Sizes, texture_bytes
from texelgrad.network import LayerShape, trace
from texelgrad.spec import MAX_STEPS, Adam, JobSpec


@dataclass(frozen=True)
class Stats:
    """What is stored of an array's values, so that later checks need not read them."""

    min: float
    max: float
    integral: bool  # every value is whole
    row_sums_one: bool  # every row sums to 1 within 1e-5; false for a plain column
    mean: float | None = None  # of all values; None: stored before there were means
    std: float | None = None  # from that mean, over all values
    counts: dict[str, int] | None = None  # rows of each class number, where there are few
    classes: list[str] | None = None  # names of the classes by number, where folders gave them


@dataclass(frozen=True)
class ArrayInfo:
    """What is known of an array without its bytes; `shape` has the rows first."""

    dtype: str  # float32 | int32
    shape: tuple[int, ...]
    stats: Stats

    @property
    def rows(self) -> int:
        """Length of the first axis."""
        return self.shape[0]


@dataclass(frozen=True)
class Estimate:
    """What a job will take, before anything runs."""

    parameters: int
    output_shape: list[int]  # of one sample
    train_rows: int | None  # None without data
    validation_rows: int | None
    steps_per_epoch: int | None
    total_steps: int | None
    flops_per_step: int | None  # a multiply-add counts 2; forward, both gradients
    texture_bytes: int | None  # an upper bound

    def as_dict(self) -> dict[str, Any]:
        """The estimate as JSON shows it."""
        return asdict(self)


def split_rows(rows: int, fraction: float) -> tuple[int, int]:
    """Rows that train, and rows that validate: floor(rows * fraction), as the page computes it."""
    validation = math.floor(rows * fraction)
    return rows - validation, validation


def estimate(spec: JobSpec, x: ArrayInfo | None, y: ArrayInfo | None) -> Estimate:
    """What the job takes with data of these shapes; what depends on the data is None without it."""
    layers = trace(spec.model.input, spec.model.layers)
    parameters = sum(layer.parameters for layer in layers)
    output = list(layers[-1].output)
    if x is None or y is None:
        return Estimate(parameters, output, None, None, None, None, None, None)
    train_rows, validation_rows = split_rows(x.rows, spec.data.validation.fraction)
    batch = min(spec.train.batch_size or train_rows, train_rows)
    per_epoch = math.ceil(train_rows / batch)
    total = spec.train.steps or per_epoch * (spec.train.epochs or 0)
    products = sum(layer.products for layer in layers)
    # Forward and weight gradient for every layer; the gradient of its input for all but the first that has weights.
    first = next(layer.products for layer in layers if layer.weights)
    flops = 2 * batch * (3 * products - first)
    return Estimate(
        parameters=parameters,
        output_shape=output,
        train_rows=train_rows,
        validation_rows=validation_rows,
        steps_per_epoch=per_epoch,
        total_steps=total,
        flops_per_step=flops,
        texture_bytes=_texture_bytes(spec, layers, x, y, batch),
    )


def _texture_bytes(spec: JobSpec, layers: list[LayerShape], x: ArrayInfo, y: ArrayInfo, batch: int) -> int:
    """Upper bound of what the engine holds in textures at once."""
    classes = spec.loss == "softmax_cross_entropy" and len(y.shape) == 1
    train_rows, validation_rows = split_rows(x.rows, spec.data.validation.fraction)
    return texture_bytes(
        Sizes(
            layers=layers,
            softmax=spec.loss == "softmax_cross_entropy",
            states=2 if isinstance(spec.optimizer, Adam) else int(spec.optimizer.momentum > 0),
            target_columns=1 if classes else layers[-1].output[-1],
            rows=x.rows,
            train_rows=train_rows,
            validation_rows=validation_rows,
            batch=batch,
        )
    )


def limit_faults(spec: JobSpec, settings: Settings) -> Iterator[Fault]:
    """What the job asks for beyond the service's limits."""
    if len(spec.model.layers) > settings.max_layers:
        legal = f"at most {settings.max_layers} layers"
        yield Fault("model.layers", "has too many layers", len(spec.model.layers), legal)
    parameters = sum(layer.parameters for layer in trace(spec.model.input, spec.model.layers))
    if parameters > settings.max_parameters:
        yield Fault(
            "model.layers", "has too many parameters", parameters, f"at most {settings.max_parameters}"
        )
    if spec.limits.wall_s is not None and spec.limits.wall_s > settings.max_wall_s:
        legal = f"at most {settings.max_wall_s}"
        yield Fault("limits.wall_s", "is above the service's limit", spec.limits.wall_s, legal)


def data_faults(spec: JobSpec, x: ArrayInfo, y: ArrayInfo) -> Iterator[Fault]:
    """Where the data and the spec don't fit each other."""
    expected = tuple(spec.model.input)
    if x.shape[1:] != expected:
        message = f"is {list(expected)}, but the data's rows are {list(x.shape[1:])}"
        yield Fault("model.input", message, list(expected), str(list(x.shape[1:])))
    last = len(spec.model.layers) - 1
    yield from _target_faults(
        spec.loss, f"model.layers.{last}.units", trace(spec.model.input, spec.model.layers)[-1].output[-1], y
    )

    train_rows, _ = split_rows(x.rows, spec.data.validation.fraction)
    if train_rows < 1:
        message = f"leaves none of {x.rows} rows to train on"
        yield Fault("data.validation.fraction", message, spec.data.validation.fraction, "a smaller fraction")
        return
    batch = spec.train.batch_size
    if batch is not None and batch > train_rows:
        message = f"is above the {train_rows} training rows"
        yield Fault("train.batch_size", message, batch, f"1 to {train_rows}, or null for all of them")
    per_epoch = math.ceil(train_rows / min(batch or train_rows, train_rows))
    if spec.train.epochs is not None and spec.train.epochs * per_epoch > MAX_STEPS:
        message = f"makes {spec.train.epochs * per_epoch} steps of {per_epoch} an epoch"
        yield Fault("train.epochs", message, spec.train.epochs, f"at most {MAX_STEPS // per_epoch}")


def _target_faults(loss: str, field: str, units: int, y: ArrayInfo) -> Iterator[Fault]:
    """Whether the targets suit the loss and the last layer's units."""
    row, stats = list(y.shape[1:]), y.stats
    if loss == "softmax_cross_entropy" and not row:
        legal = f"0 to {units - 1}"
        if not stats.integral:
            yield Fault("data", "y has class numbers that are not whole", None, legal)
        elif stats.min < 0:
            yield Fault("data", "y has a class number below 0", stats.min, legal)
        elif stats.max > units - 1:
            message = f"gives {units} classes, but y goes up to {stats.max:.0f}"
            yield Fault(field, message, units, f"at least {stats.max + 1:.0f}")
    elif (row or [1]) != [units]:
        message = f"gives rows of [{units}], but y has rows of {row}"
        yield Fault(field, message, units, str((row or [1])[0]) if len(row) < 2 else None)
    elif loss == "softmax_cross_entropy" and not (stats.min >= 0 and stats.row_sums_one):
        legal = "rows of probabilities that sum to 1, or one class number a row"
        yield Fault("data", "y has rows that are no probabilities", None, legal)
    elif loss == "bce" and not (stats.min >= 0 and stats.max <= 1):
        outside = stats.min if stats.min < 0 else stats.max
        yield Fault("data", "y has values outside 0 to 1, which bce can't take", outside, "0 to 1")
