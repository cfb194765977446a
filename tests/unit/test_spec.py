"""The job spec: its defaults, every fault with its field and what would be legal, and its schema for the page."""

from __future__ import annotations

import copy
import json
import math
import subprocess
from collections.abc import Iterator
from typing import Any, cast

import jsonschema
import pytest

from scripts.write_schema import TARGET, render
from texelgrad.errors import Fault, Invalid
from texelgrad.spec import JobSpec, parse_spec

from tests.node import node_program

GOOD: dict[str, Any] = {
    "name": "digits",
    "tags": {"team": "edge"},
    "model": {
        "input": [8, 8, 1],
        "layers": [
            {"type": "flatten"},
            {"type": "dense", "units": 64, "activation": "relu"},
            {"type": "dense", "units": 10},
        ],
    },
    "loss": "softmax_cross_entropy",
    "metrics": ["accuracy"],
    "optimizer": {"type": "adam", "lr": 0.001, "schedule": {"type": "cosine"}},
    "data": {"dataset": "ds_" + "0" * 26, "validation": {"fraction": 0.2}},
    "train": {"epochs": 30, "batch_size": 128, "seed": 7},
}
MISSING = object()


def with_value(path: str, value: Any) -> dict[str, Any]:
    """A copy of GOOD with one value put in, or taken out."""
    raw = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    place: Any = raw
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
    if value is MISSING:
        del place[last]
    elif isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    return raw


def faults_of(raw: Any) -> list[Fault]:
    """The faults of a spec that must have some."""
    with pytest.raises(Invalid) as caught:
        parse_spec(raw)
    return list(caught.value.faults)


def test_defaults_are_filled_in():
    """The dump names everything that the page needs, layer names and initialisers included."""
    dumped = parse_spec(GOOD).model_dump()
    assert dumped["spec_version"] == 1
    names = [layer["name"] for layer in dumped["model"]["layers"]]
    assert names == ["flatten_1", "dense_1", "dense_2"]
    assert [layer["init"] for layer in dumped["model"]["layers"][1:]] == ["he_uniform", "glorot_uniform"]
    assert dumped["optimizer"] == {
        "type": "adam",
        "lr": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "l1": 0.0,
        "l2": 0.0,
        "schedule": {"type": "cosine", "min_lr": 0.0, "warmup_steps": 0},
    }
    assert dumped["train"]["shuffle"] is True
    assert dumped["train"]["steps"] is None
    assert dumped["numerics"] == {"accumulation": "blocked", "storage": "float32", "on_nonfinite": "stop"}
    assert dumped["limits"] == {"wall_s": None, "max_attempts": 3}
    assert dumped["allow_software"] is None
    assert dumped["data"]["normalize"] == "none"


def test_a_dump_is_a_spec_and_stays_the_same():
    """What is stored can be sent again."""
    dumped = parse_spec(GOOD).model_dump()
    assert parse_spec(json.loads(json.dumps(dumped))).model_dump() == dumped


def test_xavier_is_glorot():
    """Two names of one initialiser; the page gets one."""
    dumped = parse_spec(with_value("model.layers.1.init", "xavier_normal")).model_dump()
    assert dumped["model"]["layers"][1]["init"] == "glorot_normal"


@pytest.mark.parametrize(
    ("path", "value", "field", "legal"),
    [
        ("nonsense", 1, "nonsense", "one of spec_version, name"),
        ("spec_version", 2, "spec_version", "1"),
        ("spec_version", True, "spec_version", "1"),
        ("tags", {"a b": "x"}, "tags.a b", "a letter, then up to 63 letters, digits, _ or -"),
        (
            "model.layers.1",
            {"type": "conv2d", "filters": 1, "kernel": "3"},
            "model.layers.1.kernel",
            "a list of 2 integers, or an integer, 1 <= kernel <= 1024",
        ),
        (
            "model.layers.1",
            {"type": "conv2d", "filters": 1, "kernel": [1, 0]},
            "model.layers.1.kernel.1",
            "1 <= value <= 1024",
        ),
        (
            "model.layers.1",
            {"type": "conv2d", "filters": 1, "kernel": 1, "padding": "full"},
            "model.layers.1.padding",
            "valid or same, or a list of 2 elements",
        ),
        ("name", "a\x00b", "name", "text without control characters, at most 200 characters"),
        ("name", "cod\u202egpj", "name", "text without control characters"),
        ("name", "a\u2067b", "name", "text without control characters"),
        ("tags", {"a": "\u200f"}, "tags.a", "text without control characters"),
        ("name", "x" * 201, "name", "at most 200 characters"),
        ("tags", {"a": 1}, "tags.a", "text without control characters, at most 200"),
        ("tags", {f"t{i}": "x" for i in range(33)}, "tags", "an object of at most 32 fields"),
        ("model", MISSING, "model", "an object with input, layers"),
        ("model.input", [], "model.input", "a list of 1 to 4 integers"),
        ("model.input", [1, 1, 1, 1, 1], "model.input", "a list of 1 to 4 integers"),
        ("model.input", [0], "model.input.0", "1 <= value <= 16777216"),
        ("model.input", ["64"], "model.input.0", "an integer, 1 <= value <= 16777216"),
        ("model.layers", [], "model.layers", "a list of at least 1 elements"),
        ("model.layers.1.type", "conv9d", "model.layers.1.type", "dense"),
        ("model.layers.1.type", MISSING, "model.layers.1.type", "dense"),
        ("model.layers.1", 7, "model.layers.1", "an object with a type: "),
        ("model.layers.1.units", 0, "model.layers.1.units", "1 <= units <= 65536"),
        ("model.layers.1.units", 1.5, "model.layers.1.units", "an integer"),
        ("model.layers.1.units", True, "model.layers.1.units", "an integer"),
        ("model.layers.1.units", MISSING, "model.layers.1.units", "an integer, 1 <= units <= 65536"),
        (
            "model.layers.1.activation",
            "swish",
            "model.layers.1.activation",
            "hard_sigmoid, hard_swish or softmax",
        ),
        (
            "model.layers.1.init",
            "uniform",
            "model.layers.1.init",
            "glorot_uniform, glorot_normal, glorot_truncated",
        ),
        ("model.layers.1.bias_init", "twos", "model.layers.1.bias_init", "zeros or ones, or a number"),
        ("model.layers.1.bias_init", -1e39, "model.layers.1.bias_init", "-3.40282e+38 <= bias_init"),
        ("model.layers.1.use_bias", 0, "model.layers.1.use_bias", "true or false"),
        ("model.layers.1.name", "a b", "model.layers.1.name", "a letter, then up to 63 letters"),
        (
            "model.layers.1.unit",
            3,
            "model.layers.1.unit",
            "one of name, inputs, trainable, lr_multiplier, activation, init, bias_init, use_bias, type, units",
        ),
        ("model.layers.0.units", 3, "model.layers.0.units", "one of name, inputs, type"),
        ("loss", "l7", "loss", "softmax_cross_entropy, mse, mae, huber or hinge, or an object with a type"),
        ("loss", MISSING, "loss", "bce, softmax_cross_entropy"),
        ("loss", {"type": "l7"}, "loss.type", "bce, hinge, huber"),
        (
            "loss",
            {"type": "softmax_cross_entropy", "label_smoothing": 1},
            "loss.label_smoothing",
            "0 <= label_smoothing < 1",
        ),
        (
            "loss",
            {"type": "softmax_cross_entropy", "pos_weight": 1},
            "loss.pos_weight",
            "one of type, class_weights",
        ),
        (
            "loss",
            {"type": "softmax_cross_entropy", "class_weights": [-1] + [1] * 9},
            "loss.class_weights.0",
            "0 <= value",
        ),
        ("metrics", ["f2"], "metrics.0", "accuracy, top_k_accuracy"),
        ("metrics", ["f1"] * 11, "metrics", "a list of at most 10"),
        ("metrics", [{"type": "f2"}], "metrics.0.type", "accuracy, top_k_accuracy"),
        ("metrics", [{"type": "f1", "beta": 2}], "metrics.0.beta", "one of type, k, average"),
        ("train.evaluate_every", 0, "train.evaluate_every", "1 <= evaluate_every"),
        ("train.early_stopping", {"patience": 0}, "train.early_stopping.patience", "1 <= patience"),
        ("train.early_stopping", 5, "train.early_stopping", "an object with patience"),
        ("optimizer", MISSING, "optimizer", "an object with a type: ada"),
        ("optimizer.type", "lamb", "optimizer.type", "lion, rmsprop, sgd"),
        ("optimizer.lr", 0, "optimizer.lr", "1.17549e-38 <= lr <= 3.40282e+38"),
        ("optimizer.lr", -1.0, "optimizer.lr", "1.17549e-38 <= lr <= 3.40282e+38"),
        ("optimizer.lr", math.nan, "optimizer.lr", "a number, 1.17549e-38 <= lr"),
        ("optimizer.lr", 1e39, "optimizer.lr", "lr <= 3.40282e+38"),
        ("optimizer.lr", "0.1", "optimizer.lr", "a number"),
        ("optimizer.beta1", 1, "optimizer.beta1", "0 <= beta1 < 1"),
        ("optimizer.eps", 1e-46, "optimizer.eps", "1.17549e-38 <= eps"),
        ("optimizer.momentum", 0.9, "optimizer.momentum", "one of lr, l1, l2, schedule, "),
        ("optimizer.l2", -1.0, "optimizer.l2", "0 <= l2 <="),
        (
            "optimizer.schedule.type",
            "poly",
            "optimizer.schedule.type",
            "constant, cosine, exponential, linear",
        ),
        (
            "optimizer.schedule",
            {"type": "step", "every_steps": 0},
            "optimizer.schedule.every_steps",
            "1 <= every_steps <=",
        ),
        ("optimizer.schedule.warmup_steps", -1, "optimizer.schedule.warmup_steps", "0 <= warmup_steps <="),
        (
            "optimizer.schedule",
            {"type": "exponential", "gamma": 0},
            "optimizer.schedule.gamma",
            "0 < gamma <= 1",
        ),
        (
            "optimizer.schedule",
            {"type": "one_cycle", "pct_start": 1},
            "optimizer.schedule.pct_start",
            "0 < pct_start < 1",
        ),
        (
            "optimizer.schedule",
            {"type": "one_cycle", "warmup_steps": 1},
            "optimizer.schedule.warmup_steps",
            "one of type, pct_start",
        ),
        ("model.layers.1.trainable", 0, "model.layers.1.trainable", "true or false"),
        ("model.layers.1.lr_multiplier", 0, "model.layers.1.lr_multiplier", "0 < lr_multiplier"),
        ("optimizer.schedule.min_lr", -1, "optimizer.schedule.min_lr", "0 <= min_lr <="),
        ("data.dataset", "digits", "data.dataset", "the id of a data set, ds_..."),
        ("data.validation.fraction", 1, "data.validation.fraction", "0 <= fraction < 1"),
        ("data.validation.fraction", -0.1, "data.validation.fraction", "0 <= fraction < 1"),
        ("data.normalize", "robust", "data.normalize", "none, standard, minmax or inherit"),
        ("data.synthetic", {"kind": "moons", "rows": 5}, "data.synthetic.kind", "two_class_points"),
        ("train", MISSING, "train", "an object with epochs, steps"),
        ("train.epochs", 0, "train.epochs", "1 <= epochs <= 2147483647"),
        ("train.batch_size", 0, "train.batch_size", "1 <= batch_size <= 16777216"),
        ("train.seed", 2**53, "train.seed", "0 <= seed < 9007199254740992"),
        ("train.seed", -1, "train.seed", "0 <= seed < 9007199254740992"),
        ("train.shuffle", 1, "train.shuffle", "true or false"),
        ("train.clip", 1.0, "train.clip", "an object with value"),
        ("train.clip", {"value": 0}, "train.clip.value", "0 < value"),
        ("train.clip", {"global_norm": -1}, "train.clip.global_norm", "0 < global_norm"),
        ("train.accumulate_steps", 0, "train.accumulate_steps", "1 <= accumulate_steps <= 65536"),
        ("backend", "cpu", "backend", "auto, webgl2"),
        ("backend", "cuda", "backend", "auto, webgl2"),
        ("allow_software", "yes", "allow_software", "true or false"),
        ("numerics.accumulation", "naive", "numerics.accumulation", "blocked"),
        ("numerics.storage", "float16", "numerics.storage", "float32"),
        ("numerics.on_nonfinite", "ignore", "numerics.on_nonfinite", "stop or continue"),
        ("diagnostics", "some", "diagnostics", "none, basic or full"),
        ("telemetry.gradient_norm", "yes", "telemetry.gradient_norm", "true or false"),
        ("checkpoint.every_steps", 0, "checkpoint.every_steps", "1 <= every_steps <= 2147483647"),
        ("limits.wall_s", 0, "limits.wall_s", "1 <= wall_s"),
        ("limits.max_attempts", 11, "limits.max_attempts", "1 <= max_attempts <= 10"),
        ("throttle", 1, "throttle", "null, or leave it out"),
        ("inspect", 1, "inspect", "null, or leave it out"),
        ("deadline", 1, "deadline", "a time with an offset"),
        ("deadline", "2027-01-31", "deadline", "a time with an offset"),
    ],
)
def test_one_fault(path: str, value: Any, field: str, legal: str):
    """Each wrong value is named with its plain dotted path and with what would be right, in plain words."""
    (fault,) = faults_of(with_value(path, value))
    assert fault.field == field
    assert legal in (fault.legal or "")
    assert (fault.message == "is missing") == (value is MISSING)
    for jargon in ("input", "valid dictionary", "instance", "tag", "discriminator", "after", "literal"):
        assert jargon not in fault.message.split()


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("optimizer.lr", math.nan, "NaN"),
        ("optimizer.lr", math.inf, "Infinity"),
        ("loss", [True, None, math.nan], [True, None, "NaN"]),
        ("loss", ["x" * 300], json.dumps(["x" * 300])[:200] + "..."),
        ("train.shuffle", 1.5, 1.5),
    ],
)
def test_the_value_is_told_as_json(path: str, value: Any, shown: Any):
    """Not as Python writes it; long ones are cut."""
    (fault,) = faults_of(with_value(path, value))
    assert fault.value == shown


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("train.epochs", None, "train"),
        ("train.steps", 5, "train"),
        ("data.synthetic", {"kind": "two_class_points", "rows": 5}, "data"),
        ("optimizer.schedule.min_lr", 0.5, "optimizer.schedule.min_lr"),
        ("optimizer", {"type": "sgd", "lr": 0.1, "nesterov": True}, "optimizer.nesterov"),
        ("train.clip", {}, "train.clip"),
        ("train.clip", {"value": 1, "global_norm": 1}, "train.clip"),
        ("loss", "mse", "metrics.0"),
        ("model.layers.0", {"type": "dense", "units": 4}, "model.layers.0"),
        ("model.layers", [{"type": "conv2d", "filters": 3, "kernel": 3}], "model.layers.0"),
        ("loss", {"type": "softmax_cross_entropy", "class_weights": [1, 2]}, "loss.class_weights"),
        ("model.layers.2.activation", "tanh", "model.layers.2.activation"),
        ("model.layers.2.units", 1, "model.layers.2.units"),
    ],
)
def test_one_fault_between_fields(path: str, value: Any, field: str):
    """What no field shows alone is found too."""
    assert [fault.field for fault in faults_of(with_value(path, value))] == [field]


def test_layers_of_one_name():
    """Each layer that shares a name is told; a default name counts."""
    raw = with_value("model.layers.1.name", "dense_2")
    assert [fault.field for fault in faults_of(raw)] == ["model.layers.1.name", "model.layers.2.name"]


def test_all_faults_at_once():
    """Wrong fields, and what is wrong between right ones, come in one answer."""
    raw = with_value("model.layers.0", {"type": "dense", "units": 4})
    raw["optimizer"] = {"type": "sgd", "lr": 0.1, "momentum": 2, "schedule": {"type": "cosine"}}
    raw["train"] = {"seed": 1}
    raw["backend"] = "cpu"
    raw["more"] = 1
    fields = {fault.field for fault in faults_of(raw)}
    assert fields == {"model.layers.0", "optimizer.momentum", "train", "backend", "more"}


@pytest.mark.parametrize("raw", [None, [], 3, "spec", {}])
def test_what_is_no_spec_at_all(raw: Any):
    """No input makes it fail with anything but faults."""
    assert faults_of(raw)


def test_a_long_value_is_cut():
    """An answer does not repeat a megabyte of what was wrong."""
    (fault,) = faults_of(with_value("loss", "x" * 100_000))
    assert len(fault.value) < 300


def test_the_schema_file_is_in_sync():
    """The page's copy is what scripts/write_schema.py makes of the spec."""
    assert TARGET.read_text() == render()


def test_the_schema_file_is_a_module():
    """JavaScript can import it, and reads the schema that Python has."""
    script = f"import {{ specSchema }} from {json.dumps(TARGET.as_uri())}; console.log(JSON.stringify(specSchema));"
    command = [node_program(), "--input-type=module", "--eval", script]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(output) == JobSpec.model_json_schema()


def test_the_schema_agrees_with_validation():
    """A validator that knows only the schema takes what we take, and refuses an unknown field."""
    validator = jsonschema.Draft202012Validator(JobSpec.model_json_schema())
    assert not list(validator.iter_errors(parse_spec(GOOD).model_dump()))
    assert list(validator.iter_errors(with_value("model.layers.1.unit", 3)))


def test_a_metric_of_the_other_kind_of_loss_names_those_that_go_with_it():
    (fault,) = faults_of({**GOOD, "metrics": ["r2"]})
    assert fault.message == "r2 measures values, but softmax_cross_entropy is a loss over classes"
    assert fault.legal == "accuracy, top_k_accuracy, precision, recall, f1, auc, confusion_matrix"


def test_every_pattern_has_words():
    """Whoever is told what is legal need not read regular expressions."""
    from texelgrad.spec_forms import WORDS

    def patterns(schema: Any) -> Iterator[str]:
        if isinstance(schema, dict):
            fields = cast(dict[str, Any], schema)
            yield from fields.get("patternProperties", {})
            for name, value in fields.items():
                if name == "pattern" and isinstance(value, str):
                    yield value
                yield from patterns(value)
        elif isinstance(schema, list):
            for item in cast(list[Any], schema):
                yield from patterns(item)

    assert {*patterns(JobSpec.model_json_schema())} == {*WORDS}


@pytest.mark.parametrize("name", ["naïve", "مرحبا", "👩\u200d🔬", "می\u200cخواهم"])
def test_names_in_any_script(name: str):
    """Joiners belong to the writing of many; only what turns the text around it is refused."""
    assert parse_spec({**GOOD, "name": name}).name == name
