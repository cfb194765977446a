"""Shape inference: what a spec needs and costs, and whether data fits it. No arrays are touched; statistics suffice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from texelgrad import engine_limits
from texelgrad.config import Settings
from texelgrad.errors import Fault
from texelgrad.inputs import INPUT, TARGET, WEIGHT, array_of, arrays_of, field_of, inputs_of
from texelgrad.layers.base import LayerShape
from texelgrad.layers.embedding import number_faults
from texelgrad.losses import CLASS_LOSSES, loss_type
from texelgrad.memory import MAX_HELD_BYTES, Sizes, texture_bytes
from texelgrad.network import lookups
from texelgrad.spec import JobSpec, Limits, Model, Train
from texelgrad.spec_data import Data, Validation
from texelgrad.spec_fields import MAX_STEPS
from texelgrad.spec_metrics import score_faults, unmeasured_faults
from texelgrad.splits import split_rows

Sections = Mapping[str, Any]
"""Fields of a spec by name, validated; those that are wrong by themselves are not there (spec.check_spec)."""


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
    classes: list[str] | None = None  # names of the classes by number, where folders or a table gave them
    columns: list[str] | None = None  # names of the columns of a table's inputs
    warnings: list[str] | None = None  # what was lost when the values became float32
    # min, max, mean and std of each feature or channel, where there are few
    features: dict[str, list[float]] | None = None


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


Arrays = Mapping[str, ArrayInfo]
"""A data set's arrays by name: those of the inputs, y where there are targets, and w where rows count differently."""


def inputs_among(arrays: Arrays) -> dict[str, ArrayInfo]:
    """Those that are neither targets nor weights of rows."""
    return {name: array for name, array in arrays.items() if name not in (TARGET, WEIGHT)}


def rows_of(arrays: Arrays) -> int:
    """How many rows they have, all of them the same."""
    return next(iter(arrays.values())).rows


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


def estimate(spec: JobSpec, arrays: Arrays | None) -> Estimate:
    """What the job takes with data of these shapes; what depends on the data is None without it."""
    layers = spec.model.network.layers
    parameters = _count(layers)
    output = list(spec.model.network.output)
    softmax = loss_type(spec.loss) == "softmax_cross_entropy"
    products = sum(layer.products for layer in layers)
    if spec.predict and arrays:
        # Compiled for one row, without batches or a split (browser_runtime/train/predicting.js); a step is a row.
        data = spec.data.model_copy(update={"validation": Validation()})
        one = spec.model_copy(update={"data": data})
        held = _texture_bytes(one, layers, 1, 1, numbered=softmax, weighted=False)
        return Estimate(parameters, output, 0, 0, 0, rows_of(arrays), 2 * products, held)
    if not arrays or TARGET not in arrays:
        return Estimate(parameters, output, None, None, None, None, None, None)
    y = arrays[TARGET]
    train_rows, validation_rows = split_rows(y.rows, spec.data.validation)
    numbered = softmax and len(y.shape) == 1
    batch, taken, per_epoch = _batches(spec, train_rows)
    # Forward, the gradient of weights that are trained, and of what is read where it depends on such weights.
    backward = sum(layer.products * (layer.trained + (not layer.frozen)) for layer in layers)
    flops = 2 * batch * (products + backward) * taken
    return Estimate(
        parameters=parameters,
        output_shape=output,
        train_rows=train_rows,
        validation_rows=validation_rows,
        steps_per_epoch=per_epoch,
        total_steps=total_steps(spec, arrays),
        flops_per_step=flops,
        texture_bytes=_texture_bytes(
            spec, layers, y.rows, batch, numbered=numbered, weighted=WEIGHT in arrays
        ),
    )


def total_steps(spec: JobSpec, arrays: Arrays) -> int | None:
    """Steps that the job takes, of a job that predicts its rows; None where they depend on data that are not there."""
    if spec.predict:
        return rows_of(arrays)
    if TARGET not in arrays:
        return None
    train_rows, _ = split_rows(arrays[TARGET].rows, spec.data.validation)
    _, _, per_epoch = _batches(spec, train_rows)
    return spec.train.steps or per_epoch * (spec.train.epochs or 0)


def _batches(spec: JobSpec, train_rows: int) -> tuple[int, int, int]:
    """Rows of a batch, batches of a step, steps of an epoch."""
    batch = min(spec.train.batch_size or train_rows, train_rows)
    in_epoch = math.ceil(train_rows / batch)
    taken = min(spec.train.accumulate_steps, in_epoch)
    return batch, taken, math.ceil(in_epoch / taken)


def _texture_bytes(
    spec: JobSpec, layers: Sequence[LayerShape], rows: int, batch: int, *, numbered: bool, weighted: bool
) -> int:
    """Upper bound of what the engine holds in textures at once; `numbered`: targets are class numbers."""
    output = spec.model.network.held_output
    train_rows, validation_rows = split_rows(rows, spec.data.validation)
    return texture_bytes(
        Sizes(
            inputs=spec.model.network.held_inputs,
            layers=layers,
            output=output,
            softmax=loss_type(spec.loss) == "softmax_cross_entropy",
            states=spec.optimizer.states,
            accumulates=spec.train.accumulate_steps > 1,
            target=(1,) if numbered else output,
            rows=rows,
            train_rows=train_rows,
            validation_rows=validation_rows,
            batch=batch,
            weighted=weighted,
        )
    )


def limit_faults(spec: Sections, settings: Settings) -> Iterator[Fault]:
    """What the job asks for beyond the limits of the service and of the engine."""
    if model := cast(Model | None, spec.get("model")):
        if len(model.layers) > settings.max_layers:
            legal = f"at most {settings.max_layers} layers"
            yield Fault("model.layers", "has too many layers", len(model.layers), legal)
        if shapes := _shapes(model):
            parameters = _count(shapes)
            if parameters > settings.max_parameters:
                legal = f"at most {settings.max_parameters}"
                yield Fault("model.layers", "has too many parameters", parameters, legal)
            yield from engine_limits.model_faults(model.layers, shapes, loss_type(spec.get("loss")))
    limits = cast(Limits | None, spec.get("limits"))
    if limits and limits.wall_s is not None and limits.wall_s > settings.max_wall_s:
        legal = f"at most {settings.max_wall_s}"
        yield Fault("limits.wall_s", "is above the service's limit", limits.wall_s, legal)


def data_faults(spec: Sections, arrays: Arrays) -> Iterator[Fault]:
    """Where the data, which has targets, and the spec don't fit each other."""
    y, rows = arrays[TARGET], rows_of(arrays)
    if model := cast(Model | None, spec.get("model")):
        yield from _input_faults(model, arrays)
        if _shapes(model) and "loss" in spec:
            output = model.network.output
            field = f"model.layers.{len(model.layers) - 1}" + (".units" if len(output) == 1 else "")
            yield from _target_faults(cast(str, loss_type(spec["loss"])), field, output, y)
    yield from held_faults("data", arrays)
    if data := cast(Data | None, spec.get("data")):
        yield from _split_faults(data.validation, rows)
        if data.validation.stratify and loss_type(spec.get("loss")) in ("bce", "hinge"):
            yield from _class_faults(y)
        train_rows, validation_rows = split_rows(rows, data.validation)
        if not validation_rows and not data.validation.fraction:
            yield from unmeasured_faults(spec.get("metrics", ()))
        if model and _shapes(model):
            units = math.prod(model.network.output)
            yield from score_faults(spec.get("metrics", ()), validation_rows, units)
        if train_rows > 0 and (train := cast(Train | None, spec.get("train"))):
            yield from _train_faults(train, train_rows)
            yield from _variance_faults(train, train_rows, _shapes(model) if model else ())


def held_faults(field: str, arrays: Arrays) -> Iterator[Fault]:
    """Whether a page can hold the data."""
    held = 4 * sum(math.prod(array.shape) for array in arrays.values())
    if held > MAX_HELD_BYTES:
        yield Fault(field, f"has {held} bytes, more than a page holds", held, f"at most {MAX_HELD_BYTES}")


def _input_faults(model: Model, arrays: Arrays) -> Iterator[Fault]:
    """Whether the data set's arrays are the model's inputs."""
    given, wanted = inputs_among(arrays), arrays_of(model.input)
    if (extra := {*given} - {*wanted}) and {*wanted} - {*given}:  # other names, hence one fault
        message = f"takes {', '.join(wanted)}, but the data set has {', '.join(given)}"
        legal = "a shape" if array_of(INPUT) in given else f"a map with {', '.join(given)}"
        yield Fault("model.input", message, None, legal)
        return
    if extra:
        message = f"has no {', '.join(name for name in given if name in extra)}, which the data set has"
        yield Fault("model.input", message, None, f"a map with {', '.join(given)}")
    for name, shape in inputs_of(model.input).items():
        array = given.get(array_of(name))
        if array is None:
            message = f"is of an array {array_of(name)} that the data set lacks"
            yield Fault(field_of(name), message, list(shape), f"inputs named {', '.join(given)}")
        elif array.shape[1:] != shape:
            row = list(array.shape[1:])
            message = f"is {list(shape)}, but the data's rows are {row}"
            yield Fault(field_of(name), message, list(shape), str(row))
    for name, places in lookups(model.input, model.layers).items():
        if array := given.get(array_of(name)):
            stats, array_name = array.stats, array_of(name)
            yield from number_faults(
                model.layers, places, array_name, stats.min, stats.max, whole=stats.integral
            )


def _count(layers: Sequence[LayerShape]) -> int:
    """Parameters of all the layers."""
    return sum(layer.parameters for layer in layers)


def _shapes(model: Model) -> Sequence[LayerShape]:
    """Those of the layers; none where they don't fit each other."""
    return () if model.network.faults else model.network.layers


def _split_faults(validation: Validation, rows: int) -> Iterator[Fault]:
    """Whether the rows kept for validation, and those that are left, are some."""
    fraction = validation.fraction
    outside = [
        Fault(
            f"data.validation.rows.{index}", f"names row {stop - 1} of {rows}", stop - 1, f"0 to {rows - 1}"
        )
        for index, (_, stop) in enumerate(validation.ranges())
        if stop > rows
    ]
    train_rows, validation_rows = split_rows(rows, validation)
    if outside:
        yield from outside
    elif train_rows < 1:
        field, value, legal = ("fraction", fraction, "a smaller fraction")
        if validation.rows is not None:
            field, value, legal = ("rows", None, f"at most {rows - 1} rows")
        yield Fault(f"data.validation.{field}", f"leaves none of {rows} rows to train on", value, legal)
    elif fraction > 0 and validation_rows < 1:
        shares = (part / 1e6 for part in range(10**6 // rows, 10**6))
        least = next((share for share in shares if math.floor(rows * share)), None)
        message = f"keeps none of {rows} rows for validation: {rows} * {fraction:g} is below 1"
        yield Fault(
            "data.validation.fraction", message, fraction, f"0, or at least {least:g}" if least else "0"
        )


def _class_faults(y: ArrayInfo) -> Iterator[Fault]:
    """Whether each row has one class, 0 or 1, of which a stratified split takes the same share."""
    if math.prod(y.shape[1:]) > 1 or not y.stats.integral:
        several = math.prod(y.shape[1:]) > 1
        message = f"needs one class a row, but y has {'several values a row' if several else 'values between 0 and 1'}"
        yield Fault("data.validation.stratify", message, True, "false, or a column y of 0 and 1")


def _train_faults(train: Train, train_rows: int) -> Iterator[Fault]:
    """Whether batches and epochs suit the rows that train."""
    batch = train.batch_size
    if batch is not None and batch > train_rows:
        message = f"is above the {train_rows} training rows"
        yield Fault("train.batch_size", message, batch, f"1 to {train_rows}, or null for all of them")
    taken = min(batch or train_rows, train_rows)
    yield from engine_limits.batch_faults(taken, batch)
    per_epoch = math.ceil(math.ceil(train_rows / taken) / train.accumulate_steps)
    if train.epochs is not None and train.epochs * per_epoch > MAX_STEPS:
        message = f"makes {train.epochs * per_epoch} steps of {per_epoch} an epoch"
        yield Fault("train.epochs", message, train.epochs, f"at most {MAX_STEPS // per_epoch}")


def _variance_faults(train: Train, train_rows: int, shapes: Sequence[LayerShape]) -> Iterator[Fault]:
    """Batch normalization needs a variance: of at least 2 values of each channel, in the last batch too."""
    batch = min(train.batch_size or train_rows, train_rows)
    last = train_rows % batch or batch
    of_rows = (shape for shape in shapes if shape.sums and shape.sums.sets == 0 and shape.sums.pixels == 1)
    if last == 1 and not all(shape.frozen for shape in of_rows):
        message = (
            f"leaves a batch of 1 of the {train_rows} training rows, of which batch_norm has no variance"
        )
        legal = "one that leaves at least 2 rows" if train_rows > 1 else "at least 2 training rows"
        yield Fault("train.batch_size", message, train.batch_size, legal)


def _target_faults(loss: str, field: str, output: Sequence[int], y: ArrayInfo) -> Iterator[Fault]:
    """Whether the targets suit the loss and what the last layer gives."""
    units = math.prod(output)
    row, stats = list(y.shape[1:]), y.stats
    if stats.classes and loss not in CLASS_LOSSES:
        names = ", ".join(name[:50] for name in stats.classes[:5]) + (", ..." if stats.classes[5:] else "")
        legal = "softmax_cross_entropy; of two classes bce or hinge too"
        yield Fault("loss", f"takes numbers, but the targets are names of classes: {names}", loss, legal)
    elif loss == "softmax_cross_entropy" and not row:
        legal = f"0 to {units - 1}"
        if not stats.integral:
            yield Fault("data", "y has class numbers that are not whole", None, legal)
        elif stats.min < 0:
            yield Fault("data", "y has a class number below 0", stats.min, legal)
        elif stats.max > units - 1:
            message = f"gives {units} classes, but y goes up to {stats.max:.0f}"
            yield Fault(field, message, units, f"at least {stats.max + 1:.0f}")
    elif math.prod(row) != units:
        message = f"gives rows of {list(output)}, but y has rows of {row}"
        legal = str((row or [1])[0]) if len(row) < 2 else None
        yield Fault(field, message, units if len(output) == 1 else list(output), legal)
    elif loss == "softmax_cross_entropy" and not (stats.min >= 0 and stats.row_sums_one):
        legal = "rows of probabilities that sum to 1, or one class number a row"
        yield Fault("data", "y has rows that are no probabilities", None, legal)
    elif loss == "bce" and not (stats.min >= 0 and stats.max <= 1):
        outside = stats.min if stats.min < 0 else stats.max
        yield Fault("data", "y has values outside 0 to 1, which bce can't take", outside, "0 to 1")
    elif loss == "hinge" and not (stats.integral and stats.min >= -1 and stats.max <= 1):
        legal = "one class of 0 or -1, the other of 1"
        yield Fault("data", "y has values that are no classes", None, legal)
