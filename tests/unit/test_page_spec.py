"""The job spec in the page (nn/spec.js) and in Python (texelgrad.spec): the same defaults, the same refusals."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelgrad.config import Settings
from texelgrad.errors import Invalid
from texelgrad.shapes import limit_faults
from texelgrad.spec import parse_spec

from ..node import call

PROBE = "/tests/unit/spec_probe.js"
Spec = dict[str, Any]


def validate(*specs: Any) -> list[dict[str, Any]]:
    return call(PROBE, "validateAll", list(specs))


# ---- specs that are right -------------------------------------------------------------------------------------------

INITS = [
    None,
    "glorot_uniform",
    "glorot_normal",
    "he_uniform",
    "he_normal",
    "xavier_uniform",
    "lecun_truncated_normal",
    "orthogonal",
    "zeros",
    0.5,
    -1,
    "xavier_normal",
]
RATE = st.floats(1e-6, 10)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Spec]:
    """Any of these fields, or none."""
    return st.fixed_dictionaries({}, optional=fields)


def with_fields(fixed: Spec, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Spec]:
    return optional(**fields).map(lambda chosen: fixed | chosen)


WARM = {"warmup_steps": st.integers(0, 1000)}
SCHEDULE = st.one_of(
    with_fields({"type": "constant"}, **WARM),
    with_fields({"type": "step", "every_steps": 7}, gamma=st.floats(0.1, 1), **WARM),
    with_fields({"type": "exponential", "gamma": 0.99}, **WARM),
    with_fields({"type": "cosine"}, min_lr=st.floats(0, 1e-6), **WARM),
    with_fields({"type": "linear"}, min_lr=st.floats(0, 1e-6), **WARM),
    with_fields(
        {"type": "one_cycle"},
        pct_start=st.floats(0.1, 0.9),
        div_factor=st.floats(1, 100),
        final_div_factor=st.floats(1, 1e5),
    ),
)
ANY_OPTIMIZER = {"l1": st.floats(0, 1), "l2": st.floats(0, 1), "schedule": SCHEDULE}
BETA, DECAY = st.floats(0, 0.99), st.floats(0, 1)
ADAM = {"lr": RATE, "beta1": BETA, "beta2": BETA, "eps": RATE, **ANY_OPTIMIZER}
OPTIMIZER = st.one_of(
    st.tuples(RATE, optional(momentum=BETA, weight_decay=DECAY, **ANY_OPTIMIZER)).map(
        lambda parts: {"type": "sgd", "lr": parts[0], **parts[1]}
    ),
    with_fields({"type": "sgd", "lr": 0.1, "momentum": 0.9}, nesterov=st.booleans()),
    with_fields({"type": "adam"}, **ADAM),
    with_fields({"type": "adamw"}, weight_decay=DECAY, **ADAM),
    with_fields({"type": "rmsprop"}, lr=RATE, alpha=BETA, eps=RATE, momentum=BETA, **ANY_OPTIMIZER),
    with_fields({"type": "adagrad"}, lr=RATE, eps=RATE, **ANY_OPTIMIZER),
    with_fields({"type": "adadelta"}, lr=RATE, rho=BETA, eps=RATE, **ANY_OPTIMIZER),
    with_fields({"type": "lion"}, lr=RATE, beta1=BETA, beta2=BETA, weight_decay=DECAY, **ANY_OPTIMIZER),
)

VALIDATION = st.one_of(
    optional(fraction=st.floats(0, 0.99), stratify=st.just(False), rows=st.none()),
    with_fields({"rows": [3, [5, 9], [9, 10], 0]}, fraction=st.just(0)),
)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Specs that are legal, with more or less left out."""
    loss = draw(st.sampled_from(["bce", "mse", "softmax_cross_entropy", "mae", "huber", "hinge"]))
    units = draw(st.integers(2, 30))
    weights = st.lists(st.floats(0, 9), min_size=units, max_size=units)
    options: dict[str, dict[str, st.SearchStrategy[Any]]] = {
        "bce": {"pos_weight": st.one_of(st.none(), st.floats(0, 9), weights), "label_smoothing": DECAY.filter(lambda s: s < 1)},
        "softmax_cross_entropy": {"class_weights": st.one_of(st.none(), weights), "label_smoothing": DECAY.filter(lambda s: s < 1)},
        "huber": {"delta": st.floats(0.1, 9)},
    }  # fmt: skip
    hidden = with_fields(
        {"type": "dense"},
        activation=st.sampled_from(["linear", "relu", "sigmoid", "tanh"]),
        init=st.sampled_from(INITS),
        bias_init=st.one_of(st.sampled_from(["zeros", "ones"]), st.floats(-1, 1), st.integers(-2, 2)),
        use_bias=st.booleans(),
        trainable=st.booleans(),
        lr_multiplier=st.floats(0.1, 10),
    )
    layers = [layer | {"units": draw(st.integers(1, 300))} for layer in draw(st.lists(hidden, max_size=3))]
    last = {"type": "dense", "units": units} | draw(optional(init=st.sampled_from(INITS)))
    # 12^4 inputs of 300 units are about as many weights as orthogonal takes.
    sample = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    flatten = [{"type": "flatten"}] if len(sample) > 1 or draw(st.booleans()) else []
    length = draw(st.sampled_from(["epochs", "steps"]))
    train = draw(
        optional(
            batch_size=st.one_of(st.none(), st.integers(1, 1000)),
            seed=st.integers(0, 2**53 - 1),
            shuffle=st.booleans(),
            accumulate_steps=st.integers(1, 9),
            clip=st.one_of(
                st.none(),
                st.tuples(st.sampled_from(["value", "global_norm"]), st.floats(0.1, 10)).map(
                    lambda limit: {limit[0]: limit[1]}
                ),
            ),
        )
    )
    sections = optional(
        name=st.text("abc äß🎲", max_size=20),
        tags=st.dictionaries(st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,9}", fullmatch=True), st.text("abc", max_size=9), max_size=4),
        metrics=st.sampled_from([[], ["mae", {"type": "r2"}]] if loss in ("mse", "mae", "huber") else [[], ["accuracy"], [{"type": "f1", "average": "macro"}, "auc"]]),
        data=with_fields({}, validation=VALIDATION, normalize=st.sampled_from(["none", "standard", "minmax"])),
        backend=st.sampled_from(["auto", "webgl2"]),
        allow_software=st.sampled_from([None, True, False]),
        numerics=optional(on_nonfinite=st.sampled_from(["stop", "continue"])),
        diagnostics=st.sampled_from(["none", "basic", "full"]),
        telemetry=optional(gradient_norm=st.booleans()),
        checkpoint=optional(every_steps=st.one_of(st.none(), st.integers(1, 10**6))),
        limits=optional(wall_s=st.integers(1, 1000), max_attempts=st.integers(1, 10)),
        spec_version=st.just(1),
        fine_tune=st.none(),
    )  # fmt: skip
    return {
        "model": {"input": sample, "layers": [*flatten, *layers, last]},
        "loss": draw(st.one_of(st.just(loss), with_fields({"type": loss}, **options.get(loss, {})))),
        "optimizer": draw(OPTIMIZER),
        "train": {length: draw(st.integers(1, 10**6)), **train},
        **draw(sections),
    }


def test_defaults_of_early_stopping():
    """Best weights are restored unless the spec says otherwise; only what is measured can be watched."""
    spec: Spec = base() | {"data": {"validation": {"fraction": 0.5}}, "metrics": ["auc"]}
    spec["train"] |= {"early_stopping": {"patience": 2, "metric": "val_auc"}, "evaluate_every": 7}
    filled = validate(spec)[0]["spec"]
    assert filled == parse_spec(spec).model_dump(mode="json")
    assert filled["train"]["early_stopping"]["restore_best"] is True
    spec["train"]["early_stopping"]["metric"] = "val_f1"
    (answer,) = validate(spec)
    assert answer["error"]["field"] == "train.early_stopping.metric"
    assert "val_loss, val_auc" in answer["error"]["message"]
    with pytest.raises(Invalid, match="val_f1|is not measured"):
        parse_spec(spec)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(specs())
def test_defaults_are_the_same(spec: Spec):
    """Whatever is left out, both sides fill in the same: the plan key and the record depend on it."""
    given_spec = copy.deepcopy(spec)
    (answer,) = validate(spec)
    assert "error" not in answer, answer
    assert answer["spec"] == parse_spec(given_spec).model_dump(mode="json")


def test_a_filled_in_spec_stays_as_it_is():
    """The worker hands over specs whose defaults are there already."""
    filled = parse_spec(base()).model_dump(mode="json")
    assert validate(filled)[0]["spec"] == filled


def test_characters_are_counted_alike():
    """200 emoji are 200 characters in Python and 400 units in JavaScript."""
    spec = base() | {"name": "🎲" * 200}
    assert "spec" in validate(spec)[0]
    assert parse_spec(spec).name == spec["name"]


# ---- specs that are wrong -------------------------------------------------------------------------------------------


def base() -> Spec:
    return {
        "model": {"input": [4], "layers": [{"type": "dense", "units": 5, "activation": "relu"}, {"type": "dense", "units": 3}]},
        "loss": "softmax_cross_entropy",
        "optimizer": {"type": "sgd", "lr": 0.1},
        "train": {"epochs": 2},
    }  # fmt: skip


MISSING = object()

BAD: list[tuple[str, Any, str, str]] = [
    # path to change, value, field that the error names, part of the legal values that it lists
    ("colour", "red", "colour", "loss, metrics, model"),
    ("model.color", 1, "model.color", "input, layers"),
    ("model.layers.0.color", 1, "model.layers.0.color", "type, units"),
    ("loss", "l7", "loss", "softmax_cross_entropy"),
    ("loss", {"type": "l7"}, "loss.type", "huber"),
    ("loss", {"type": "softmax_cross_entropy", "label_smoothing": 1}, "loss.label_smoothing", "below 1"),
    ("loss", {"type": "softmax_cross_entropy", "class_weights": [1, 2]}, "loss.class_weights", "3"),
    ("loss", {"type": "bce", "pos_weight": [1.0]}, "loss.pos_weight", "3"),
    ("loss", {"type": "bce", "pos_weight": -1.0}, "loss.pos_weight", "0"),
    ("loss", MISSING, "loss", ""),
    ("model", MISSING, "model", ""),
    ("train", MISSING, "train", ""),
    ("model.input", [], "model.input", "1"),
    ("model.input", [0], "model.input.0", "1"),
    ("model.input", [2.5], "model.input.0", "integer"),
    ("model.input", "4", "model.input", ""),
    ("model.input", [4, 4], "model.layers.0", "flatten"),
    ("model.layers", [], "model.layers", "1"),
    ("model.layers.0.type", "conv9d", "model.layers.0.type", "dense"),
    ("model.layers.0.units", 0, "model.layers.0.units", "1"),
    ("model.layers.0.units", "5", "model.layers.0.units", "integer"),
    ("model.layers.0.units", 65537, "model.layers.0.units", "65536"),
    ("model.layers.0.activation", "swish", "model.layers.0.activation", "tanh"),
    ("model.layers.0.init", "uniform", "model.layers.0.init", "he_normal"),
    ("model.layers.0.bias_init", "twos", "model.layers.0.bias_init", "ones"),
    ("model", {"input": [2048], "layers": [{"type": "dense", "units": 2048, "init": "orthogonal"}, {"type": "dense", "units": 3}]}, "model.layers.0.init", "2147483648"),
    ("model.layers.0.use_bias", 0, "model.layers.0.use_bias", "boolean"),
    ("model.layers.0.name", "a b", "model.layers.0.name", "up to 63 letters"),
    ("model.layers.0.name", "dense_2", "model.layers.0.name", ""),
    ("model.layers.1.activation", "sigmoid", "model.layers.1.activation", "linear"),
    ("model.layers.1.units", 1, "model.layers.1.units", "at least 2"),
    ("optimizer.type", "lamb", "optimizer.type", "lion, rmsprop, sgd"),
    ("optimizer.nesterov", True, "optimizer.nesterov", "momentum above 0"),
    ("optimizer.l1", -1, "optimizer.l1", "0"),
    ("model.layers.0.lr_multiplier", 0, "model.layers.0.lr_multiplier", "above 0"),
    ("model.layers.0.trainable", 1, "model.layers.0.trainable", "boolean"),
    ("optimizer.lr", 0, "optimizer.lr", ""),
    ("optimizer.lr", "0.1", "optimizer.lr", "number"),
    ("optimizer.lr", 1e39, "optimizer.lr", ""),
    ("optimizer.momentum", 1.0, "optimizer.momentum", "1"),
    ("optimizer.beta1", 0.5, "optimizer.beta1", "momentum"),
    ("optimizer.schedule", {"type": "poly"}, "optimizer.schedule.type", "constant, cosine"),
    ("optimizer.schedule", {"type": "step"}, "optimizer.schedule.every_steps", ""),
    ("optimizer.schedule", {"type": "exponential", "gamma": 1.5}, "optimizer.schedule.gamma", "1"),
    ("optimizer.schedule", {"type": "linear", "min_lr": 0.2}, "optimizer.schedule.min_lr", "0 to"),
    ("optimizer.schedule", {"type": "cosine", "min_lr": 0.2}, "optimizer.schedule.min_lr", "0 to"),
    ("train.epochs", MISSING, "train", "epochs"),
    ("train.steps", 3, "train", "epochs"),
    ("train.epochs", 0, "train.epochs", "1"),
    ("train.epochs", 2**31, "train.epochs", "2147483647"),
    ("train.batch_size", -1, "train.batch_size", "1"),
    ("train.seed", 2**53, "train.seed", ""),
    ("train.seed", -1, "train.seed", "0"),
    ("train.shuffle", "yes", "train.shuffle", "boolean"),
    ("train.clip", 1.0, "train.clip", "an object"),
    ("train.clip", {}, "train.clip", "value"),
    ("train.clip", {"value": 1, "global_norm": 1}, "train.clip", "one of value and global_norm"),
    ("train.clip", {"value": 0}, "train.clip.value", "above 0"),
    ("metrics", ["f2"], "metrics.0", "accuracy"),
    ("metrics", [{"type": "f2"}], "metrics.0.type", "accuracy"),
    ("metrics", [{"type": "top_k_accuracy", "k": 0}], "metrics.0.k", "1"),
    ("metrics", ["accuracy", {"type": "accuracy"}], "metrics.1", "once"),
    ("metrics", ["top_k_accuracy"], "metrics.0.k", "1 to 2"),
    ("metrics", ["mae"], "metrics.0", "values"),
    ("metrics", [{"type": "auc", "k": 1}], "metrics.0.k", "null"),
    ("metrics", [{"type": "auc", "average": "macro"}], "metrics.0.average", "null"),
    ("metrics", [{"type": "f1", "average": "binary"}], "metrics.0.average", "macro"),
    ("train.evaluate_every", 5, "train.evaluate_every", "validation"),
    ("train.early_stopping", {"patience": 5}, "train.early_stopping", "validation"),
    ("train.early_stopping", {"patience": 0}, "train.early_stopping.patience", "1"),
    ("train.early_stopping", {"patience": 1, "metric": "loss"}, "train.early_stopping.metric", "val_"),
    ("data", {"validation": {"fraction": 1.0}}, "data.validation.fraction", "1"),
    ("data", {"validation": {"fraction": 0.2, "rows": [1]}}, "data.validation", "one of fraction and rows"),
    ("data", {"validation": {"stratify": True}}, "data.validation.stratify", "fraction above 0"),
    ("data", {"validation": {"rows": []}}, "data.validation.rows", "1"),
    ("data", {"validation": {"rows": [-1]}}, "data.validation.rows.0", "0"),
    ("data", {"validation": {"rows": [1.5]}}, "data.validation.rows.0", "integer"),
    ("data", {"validation": {"rows": [[1, 2, 3]]}}, "data.validation.rows.0", "2"),
    ("data", {"validation": {"rows": [[1, 2], [7, 7]]}}, "data.validation.rows.1", "first below stop"),
    ("data", {"validation": {"rows": [[1, 4], 9, 3]}}, "data.validation.rows.2", "each row once"),
    ("data", {"normalize": "robust"}, "data.normalize", "minmax"),
    ("data", {"dataset": "digits"}, "data.dataset", "ds_"),
    ("data", {"dataset": "ds_" + "a" * 26, "synthetic": {"kind": "two_class_points", "rows": 9}}, "data", "dataset"),
    ("backend", "cpu", "backend", "webgl2"),
    ("backend", "cuda", "backend", "webgl2"),
    ("numerics", {"storage": "float16"}, "numerics.storage", "float32"),
    ("diagnostics", "all", "diagnostics", "basic"),
    ("telemetry", {"gradient_norm": 1}, "telemetry.gradient_norm", "a boolean"),
    ("checkpoint", {"every_steps": 0}, "checkpoint.every_steps", "1"),
    ("limits", {"max_attempts": 11}, "limits.max_attempts", "10"),
    ("fine_tune", {"job": "job_1"}, "fine_tune.job", "job_"),
    ("fine_tune", {"job": "job_" + "0" * 26, "weights": "art_" + "0" * 26}, "fine_tune", "one of job and weights"),
    ("fine_tune", {"layers": ["dense_1", "dense_3"]}, "fine_tune.layers.1", "dense_1, dense_2"),
    ("predict", {}, "predict.job", ""),
    ("data", {"normalize": "inherit"}, "data.normalize", "fine_tune"),
    ("spec_version", 2, "spec_version", "1"),
    ("name", "x" * 201, "name", "200"),
    ("name", "a\nb", "name", ""),
    ("tags", {"1": "x"}, "tags.1", ""),
]  # fmt: skip


def changed(path: str, value: Any) -> Spec:
    spec: Any = base()
    at = spec
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        at = at[part]
    if value is MISSING:
        del at[last]
    else:
        at[last] = value
    return spec


def place(field: str) -> str:
    """Pydantic gives an unknown tag the place of what it tags, and marks the keys of a map."""
    return field.removesuffix(".type").removesuffix(".[key]")


@pytest.mark.parametrize(("path", "value", "field", "legal"), BAD, ids=lambda item: str(item)[:40])
def test_bad_specs_are_refused(path: str, value: Any, field: str, legal: str):
    """The error names the field, the value and what is legal; Python names the same fields, as often."""
    spec = changed(path, value)
    error = validate(spec)[0]["error"]
    assert (error["name"], error["code"], error["field"]) == ("EngineError", "spec_invalid", field)
    assert field in error["message"]
    assert legal in error["message"]
    with pytest.raises(Invalid) as caught:
        parse_spec(spec)
    ours, theirs = caught.value.faults, error["faults"]
    assert [place(fault.field) for fault in ours] == [place(fault["field"]) for fault in theirs]


def test_numbers_that_json_has_not_are_told_as_they_are():
    """Not as null."""
    spec = {
        "model": {"input": [2], "layers": [{"type": "dense", "units": math.nan}]},
        "loss": "mse",
        "optimizer": {"type": "sgd", "lr": -math.inf},
        "train": {"steps": 1},
    }
    (found,) = validate(spec)
    assert "model.layers.0.units: must be an integer, not NaN" in found["error"]["message"]
    assert "not -Infinity" in found["error"]["message"]
    assert [fault["value"] for fault in found["error"]["faults"]] == ["NaN", "-Infinity"]


def test_every_fault_at_once():
    """One answer names all there is to mend."""
    spec = changed("optimizer.lr", -1)
    spec["train"]["batch_size"] = 0
    spec["model"]["layers"][0]["units"] = None
    error = validate(spec)[0]["error"]
    assert {fault["field"] for fault in error["faults"]} == {
        "optimizer.lr",
        "train.batch_size",
        "model.layers.0.units",
    }


def test_every_fault_of_a_page_at_once():
    """What only the service sees to is told with what is wrong for the service too; a field has one fault."""
    of_the_service = {"data": {"synthetic": {"kind": "xor", "rows": 20}}, "limits": {"wall_s": 60}}
    error = call(
        PROBE, "validateForTrain", base() | of_the_service | {"deadline": "soon", "backend": "cuda"}
    )["error"]
    told = {fault["field"]: fault["value"] for fault in error["faults"]}
    assert told == {
        "deadline": "soon",
        "backend": "cuda",
        "data.synthetic": {"kind": "xor", "rows": 20},
        "limits.wall_s": 60,
    }
    assert len(error["faults"]) == 4
    assert "limits.wall_s: only the service watches this clock" in error["message"]
    assert "legal here: null, not 60" in error["message"]
    error = call(
        PROBE, "validateForTrain", base() | {"limits": {"wall_s": 60}, "data": {}, "metrics": ["accuracy"]}
    )["error"]
    assert [fault["field"] for fault in error["faults"]] == ["limits.wall_s", "metrics"]


def test_the_page_takes_as_many_layers_as_the_service_does_by_default():
    """One more is refused in the same words."""
    most = Settings().max_layers
    layer = {"type": "dense", "units": 3}
    longest, longer = (
        changed("model", {"input": [4], "layers": [layer] * count}) for count in (most, most + 1)
    )
    taken, refused = validate(longest, longer)
    assert "spec" in taken
    assert not list(limit_faults(dict(parse_spec(longest)), Settings()))
    (ours,) = limit_faults(dict(parse_spec(longer)), Settings())
    (theirs,) = refused["error"]["faults"]
    assert theirs == {
        "field": ours.field,
        "value": ours.value,
        "message": f"{ours.message}; legal: {ours.legal}",
    }


@pytest.mark.parametrize("spec", [None, [], "digits", 7])
def test_what_is_no_object(spec: Any):
    """A spec that is no object at all."""
    assert validate(spec)[0]["error"]["code"] == "spec_invalid"
