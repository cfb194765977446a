"""The job spec: the one schema of API, worker, client and page (its JSON Schema: browser_runtime/nn/spec_schema.js).

Validation reports every fault at once. A validated spec has all defaults filled in: layer names, initialisers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    Field,
    ValidationError,
    model_validator,
)

from texelgrad.errors import Fault, Invalid
from texelgrad.inputs import MAX_INPUTS
from texelgrad.layers import Layer
from texelgrad.losses import CLASS_LOSSES, Loss, loss_faults, loss_type
from texelgrad.network import Network, infer_network, normalize_faults
from texelgrad.optimizers import Optimizer, OptimizerBase
from texelgrad.spec_data import Data, split_faults
from texelgrad.spec_faults import faults_of
from texelgrad.spec_fields import MAX_STEPS, Float32, Label, Later, Name, NullMeans, Strict, Whole, available
from texelgrad.spec_forms import TIME
from texelgrad.spec_metrics import EarlyStopping, Metrics, metric_faults, stopping_faults
from texelgrad.spec_weights import FineTune, Predict, weights_faults

SPEC_VERSION = 1


_Shape = Annotated[list[Annotated[int, Field(ge=1, le=2**24)]], Field(min_length=1, max_length=4)]
_Inputs = Annotated[dict[Name, _Shape], Field(min_length=1, max_length=MAX_INPUTS)]


class Model(Strict):
    """Layers in their order; the last one gives logits."""

    input: _Shape | _Inputs = Field(description="Shape of one row; of several inputs by name.")
    layers: Annotated[list[Layer], Field(min_length=1)]

    @model_validator(mode="after")
    def _name_layers(self) -> Self:
        seen: Counter[str] = Counter()
        for layer in self.layers:
            seen[layer.type] += 1
            layer.name = layer.name or f"{layer.type}_{seen[layer.type]}"
        return self

    @cached_property
    def network(self) -> Network:
        """The shapes that follow from the layers."""
        return infer_network(self.input, self.layers)


class Clip(Strict):
    """Limits of the gradient before each update."""

    value: Annotated[Float32, Field(gt=0)] | None = Field(None, description="Of each element, by size.")
    global_norm: Annotated[Float32, Field(gt=0)] | None = Field(None, description="Of the whole gradient.")


class Train(Strict):
    """How long, and in which batches."""

    epochs: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None
    batch_size: Annotated[int, Field(ge=1, le=2**24)] | None = Field(
        None, description="null: all training rows."
    )
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    shuffle: bool = True
    evaluate_every: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = Field(
        None, description="Steps between validations, besides those after each epoch."
    )
    early_stopping: EarlyStopping | None = None
    clip: Clip | None = Field(None, description="At most one of value and global_norm.")
    accumulate_steps: Annotated[int, Field(ge=1, le=65_536), NullMeans(1)] = Field(
        1, description="Batches whose gradients make one step; null: 1."
    )


class Numerics(Strict):
    """How numbers are kept and summed."""

    accumulation: Literal["blocked"] = "blocked"
    storage: Literal["float32"] = "float32"
    on_nonfinite: Literal["stop", "continue"] = "stop"


class Telemetry(Strict):
    """What is measured at each step besides the loss."""

    gradient_norm: bool = Field(
        default=False,
        description="The norm of the whole gradient, before it is limited; free with clip.global_norm.",
    )


class Checkpoint(Strict):
    """How often the state is saved; null: only the final weights."""

    every_steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None


class Limits(Strict):
    """What the job may use; null leaves it to the service."""

    wall_s: Annotated[int, Field(ge=1)] | None = None
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3


class JobSpec(Strict):
    """One training run."""

    spec_version: Annotated[Literal[1], Whole] = SPEC_VERSION
    name: Label = ""
    tags: Annotated[dict[Name, Label], Field(max_length=32)] = Field(default_factory=dict)
    model: Model
    loss: Loss
    metrics: Metrics = Field(default_factory=list)
    optimizer: Optimizer
    data: Data = Field(default_factory=Data)
    train: Train
    backend: Annotated[Literal["auto", "webgl2", "cpu"], available("auto", "webgl2")] = "auto"
    allow_software: bool | None = Field(default=None, description="null leaves it to the worker's settings.")
    numerics: Numerics = Field(default_factory=Numerics)
    diagnostics: Literal["none", "basic", "full"] = "basic"
    telemetry: Telemetry = Field(default_factory=Telemetry)
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    limits: Limits = Field(default_factory=Limits)
    fine_tune: FineTune | None = None
    predict: Predict | None = Field(
        default=None, description="Instead of training; POST /v1/jobs/{id}/predictions makes it."
    )
    throttle: Later = None
    inspect: Later = None
    deadline: Annotated[str, Field(pattern=TIME)] | None = Field(
        default=None, description="Aborted if still queued then; with an offset: 2027-01-31T18:00:00Z."
    )


def parse_spec(raw: Any) -> JobSpec:
    """Validate a spec as it came from JSON. Raises Invalid with every fault, those between fields included."""
    spec, _, faults = check_spec(raw)
    if spec is None:
        raise Invalid(faults)
    return spec


def check_spec(raw: Any) -> tuple[JobSpec | None, dict[str, Any], list[Fault]]:
    """Answer the spec, or None where it is wrong; its fields that are right by themselves; and every fault.

    What is right can be checked further, so that one answer names all there is to mend.
    """
    try:
        spec = JobSpec.model_validate(raw)
    except ValidationError as error:
        right = _right_sections(cast(dict[str, Any], raw)) if isinstance(raw, dict) else {}
        return None, right, [*faults_of(error, JobSpec), *_between_fields(right)]
    right = dict(spec)
    faults = list(_between_fields(right))
    return None if faults else spec, right, faults


def _right_sections(raw: dict[str, Any]) -> dict[str, Any]:
    """The top-level fields of a wrong spec that are right by themselves, validated."""
    right: dict[str, Any] = {}
    for name in JobSpec.model_fields:
        if name in raw:
            try:
                checked = JobSpec.__pydantic_validator__.validate_assignment(
                    JobSpec.model_construct(), name, raw[name]
                )
            except ValidationError:
                continue
            right[name] = getattr(checked, name)
    return right


def _between_fields(sections: dict[str, Any]) -> Iterator[Fault]:
    """Faults that no field has alone, of the sections that are there."""
    if model := cast(Model | None, sections.get("model")):
        yield from _layer_faults(model, sections.get("loss"))
    train = cast(Train | None, sections.get("train"))
    if train and (train.epochs is None) == (train.steps is None):
        both = None if train.epochs is None else {"epochs": train.epochs, "steps": train.steps}
        yield Fault("train", "needs exactly one of epochs and steps", both, "epochs or steps")
    if train and train.clip and (train.clip.value is None) == (train.clip.global_norm is None):
        yield Fault("train.clip", "needs one of value and global_norm", None, "value or global_norm")
    if data := cast(Data | None, sections.get("data")):
        if data.dataset and data.synthetic:
            yield Fault("data", "takes one of dataset and synthetic", None, "dataset or synthetic")
        yield from split_faults(data.validation, loss_type(sections.get("loss")))
        if model:
            yield from normalize_faults(model.input, model.layers, data.normalize)
    if optimizer := cast(OptimizerBase | None, sections.get("optimizer")):
        yield from optimizer.faults()
    names = {str(layer.name) for layer in model.layers} if model else set[str]()
    normalize = data.normalize if data and ("fine_tune" in sections) else None
    yield from weights_faults(sections.get("fine_tune"), sections.get("predict"), names, normalize)
    if metrics := sections.get("metrics"):
        yield from metric_faults(metrics, loss_type(sections.get("loss")), _outputs(model))
    if train and train.early_stopping and "metrics" in sections:
        yield from stopping_faults(train.early_stopping, sections["metrics"])
    if train and data and not data.validation.fraction and data.validation.rows is None:
        for field in ("evaluate_every", "early_stopping"):
            if (value := getattr(train, field)) is not None:
                legal = "null, or data.validation with a fraction or rows"
                shown = value if isinstance(value, int) else None
                yield Fault(f"train.{field}", "needs validation rows", shown, legal)


def _outputs(model: Model | None) -> int | None:
    """Numbers that the last layer gives for a row; None where the layers don't fit each other."""
    return None if model is None or model.network.faults else math.prod(model.network.output)


def _layer_faults(model: Model, loss: Loss | None) -> Iterator[Fault]:
    names = Counter(layer.name for layer in model.layers)
    for index, layer in enumerate(model.layers):
        if names[layer.name] > 1:
            field = f"model.layers.{index}.name"
            yield Fault(field, "is the name of several layers", layer.name, "a name of its own")
    yield from model.network.faults
    last = model.layers[-1]
    field = f"model.layers.{len(model.layers) - 1}"
    activation = getattr(last, "activation", "linear")
    if loss_type(loss) in CLASS_LOSSES and activation != "linear":
        message = f"{loss_type(loss)} takes logits: the loss applies the last activation itself"
        yield Fault(f"{field}.activation", message, activation, "linear")
    if loss is not None and not model.network.faults:
        yield from loss_faults(loss, model.network.held_output, field)
