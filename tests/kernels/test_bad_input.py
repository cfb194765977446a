"""What a page gives wrongly to the engine: each call says which field, which value, and what is legal; nothing is ignored."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from .harness import BrowserPage
from .specs import Spec, data_for, mlp

PAGE = "/tests/kernels/bad_input_page.js"
LOSS = "softmax_cross_entropy"
X, Y = data_for(20, 4, 3, LOSS)
SPEC = mlp((4, 5, 3), LOSS)
DATA: Spec = {"x": X, "y": Y}
JOINED = {"type": "concat", "inputs": ["left", "right"]}
TWO: Spec = SPEC | {
    "model": {"input": {"left": [3], "right": [1]}, "layers": [JOINED, *SPEC["model"]["layers"]]}
}
BY_NAME: Spec = {"x": {"left": X[:, :3], "right": X[:, 3:]}, "y": Y}

ARRAY = "must be {shape, data}, {shape, read(start, count)} or {shape, dtype, url}, not "
DATA_IS = "must be {x, y}, and weight where rows count differently, not "
TENSORS = 'must be tensors by name, {"dense_1.kernel": {shape, data}, ...}, not '
FILE = "not a safetensors file of float32 or float64 tensors: its bytes come as a Uint8Array, not as "
LENGTHS = "; legal: whole numbers, rows first"
DEVICE = "; legal: an object with any of format, fetch, maxDrawBuffers, convolution, residentBytes, rows"
CALLBACK = "1 is not legal; legal: a function, which gets points of the curve"
LIMIT = "undefined is not legal; legal: a positive whole number, as in the record that probe() gives"
STEPS = " is not legal; legal: a positive number of whole steps"
COMPILE = "data, shaderUrl, thread, device, backend, initialWeights, allowSoftware, signal"
RUN = "steps, onTelemetry, signal"
THREADS = "; legal: auto, worker, inline"
ADDRESS = "; legal: an address, as a string or a URL"
NUMBERS = "; legal: an array of numbers"

SAID: dict[str, tuple[str, str, str]] = {
    # call: code, field, what follows it in the message
    "compile: options null": ("spec_invalid", "options", f"null is not legal; legal: an object with any of {COMPILE}"),
    "compile: options a signal": ("spec_invalid", "options", f"AbortSignal is not legal; legal: an object with any of {COMPILE}"),
    "compile: unknown": ("spec_invalid", "options.allowSofware", f"is unknown; legal: {COMPILE}"),
    "compile: data 5": ("data_invalid", "data", DATA_IS + "5"),
    "compile: data null": ("data_invalid", "data", DATA_IS + "null"),
    "compile: data text": ("data_invalid", "data", DATA_IS + '"rows"'),
    "compile: no data": ("data_invalid", "data", "{x, y} is needed"),
    "compile: x null": ("data_invalid", "data.x", ARRAY + "null"),
    "compile: x 5": ("data_invalid", "data.x", ARRAY + "5"),
    "compile: x a Float32Array": ("data_invalid", "data.x", ARRAY + "Float32Array"),
    "compile: x without shape": ("data_invalid", "data.x", "needs a shape, [rows, ...], not undefined"),
    "compile: x of half a row": ("data_invalid", "data.x", "its shape is [2.5,4]" + LENGTHS),
    "compile: x of text lengths": ("data_invalid", "data.x", 'its shape is ["20",4]' + LENGTHS),
    "compile: x both ways": ("data_invalid", "data.x", ARRAY + '{"shape":[20,4],"data":"Float32Array","read":"a function"}'),
    "compile: x.data text": ("data_invalid", "data.x", f'its data is "{"7" * 80}"{NUMBERS}'),
    "compile: x.data null": ("data_invalid", "data.x", "its data is null" + NUMBERS),
    "compile: x.data with null": ("data_invalid", "data.x", "rows 0 to 19: value 0 is null; legal: numbers"),
    "compile: x.data bigints": ("data_invalid", "data.x", "its data is BigInt64Array" + NUMBERS),
    "compile: x.read 5": ("data_invalid", "data.x", "its read is 5; legal: a function of (start, count), both in rows"),
    "compile: x.read gives nothing": ("data_invalid", "data.x", "0 values came for rows 0 to 19; needed: 80, 4 a row"),
    "compile: x.read gives text": ("data_invalid", "data.x", 'read(0, 20) failed: value 0 is "1"; legal: numbers'),
    "compile: x.read gives bigints": ("data_invalid", "data.x", "read(0, 20) failed: value 0 is 0n; legal: numbers"),
    "compile: x.url unreachable": ("internal", "data.x", "http://127.0.0.1:9/x can't be fetched"),
    "compile: x.url 5": ("data_invalid", "data.x", "its url is 5" + ADDRESS),
    "compile: x.url none": ("data_invalid", "data.x", 'its url is "http://"' + ADDRESS),
    "compile: x.url with dtyp": ("data_invalid", "data.x.dtyp", "is unknown; legal: shape, dtype, url"),
    "compile: weight null": ("data_invalid", "data.weight", ARRAY + "null"),
    "compile: backend 0": ("spec_invalid", "options.backend", "0 is not legal; legal: auto, webgl2"),
    "compile: shaderUrl empty": ("spec_invalid", "options.shaderUrl", '"" is not legal' + ADDRESS),
    "compile: shaderUrl none": ("spec_invalid", "options.shaderUrl", '"http://" is no address'),
    "compile: initialWeights 7": ("data_invalid", "initialWeights", TENSORS + "7"),
    "compile: initialWeights null": ("data_invalid", "initialWeights", TENSORS + "null"),
    "compile: initialWeights a promise": ("data_invalid", "initialWeights", TENSORS + "Promise"),
    "compile: initialWeights of null": ("data_invalid", "dense_1.kernel", "must be {shape, data}, not null"),
    "compile: allowSoftware yes": ("spec_invalid", "options.allowSoftware", '"yes" is not legal; legal: true, false'),
    "compile: signal 3": ("spec_invalid", "options.signal", "3 is not legal; legal: an AbortSignal"),
    "compile: signal null": ("spec_invalid", "options.signal", "null is not legal; legal: an AbortSignal"),
    "compile: thread x": ("spec_invalid", "options.thread", '"x" is not legal' + THREADS),
    "compile: device 3": ("spec_invalid", "options.device", "3 is not legal" + DEVICE),
    "compile: device null": ("spec_invalid", "options.device", "null is not legal" + DEVICE),
    "compile: device.rows 3": ("spec_invalid", "options.device.rows", "3 is not legal; legal: an object, see fragment_rows.js"),
    "compile: device.residentBytes NaN": ("spec_invalid", "options.device.residentBytes", "NaN is not legal; legal: a number of bytes"),
    "compile: spec 5": ("spec_invalid", "", "the spec must be an object, not 5"),
    "compile: spec a promise": ("spec_invalid", "", "the spec must be an object, not Promise"),
    "compile: spec a list": ("spec_invalid", "", "the spec must be an object, not [1,2]"),
    "compile: spec of bigints": ("spec_invalid", "train.steps", "must be an integer, not 5n"),
    "train: data given twice": ("spec_invalid", "options.data", "is unknown; legal: shaderUrl, thread, device, backend, initialWeights, allowSoftware, signal, onTelemetry"),
    "train: data null": ("data_invalid", "data", DATA_IS + "null"),
    "train: options null": ("spec_invalid", "options", "null is not legal"),
    "train: onTelemetry 1": ("spec_invalid", "options.onTelemetry", CALLBACK),
    "probe: thread null": ("spec_invalid", "options.thread", "null is not legal" + THREADS),
    "probe: allowSoftware": ("spec_invalid", "options.allowSoftware", "is unknown; legal: shaderUrl, thread, device"),
    "diagnose: no options": ("data_invalid", "data", "{x, y} is needed"),
    "diagnose: level deep": ("spec_invalid", "options.level", '"deep" is not legal; legal: basic, full'),
    "estimate: data null": ("data_invalid", "data", DATA_IS + "null"),
    "estimate: weight null": ("data_invalid", "data.weight", "needs a shape, [rows, ...], not undefined"),
    "estimate: half a row": ("data_invalid", "data.x", "its shape is [2.5,4]" + LENGTHS),
    "estimate: limits": ("spec_invalid", "limits.maxTextureSize", LIMIT),
    "estimate: limits null": ("spec_invalid", "limits.maxDrawBuffers", LIMIT),
    "run: 3": ("spec_invalid", "options", f"3 is not legal; legal: an object with any of {RUN}"),
    "run: null": ("spec_invalid", "options", f"null is not legal; legal: an object with any of {RUN}"),
    "run: unknown": ("spec_invalid", "options.step", f"is unknown; legal: {RUN}"),
    "run: steps x": ("spec_invalid", "options.steps", '"x"' + STEPS),
    "run: steps null": ("spec_invalid", "options.steps", "null" + STEPS),
    "run: signal 3": ("spec_invalid", "options.signal", "3 is not legal; legal: an AbortSignal"),
    "run: onTelemetry 1": ("spec_invalid", "options.onTelemetry", CALLBACK),
    "evaluate: 5": ("data_invalid", "data", DATA_IS + "5"),
    "evaluate: null": ("data_invalid", "data", DATA_IS + "null"),
    "evaluate: x alone": ("data_invalid", "data.y", ARRAY + "undefined"),
    "evaluate: y.url none": ("data_invalid", "data.y", 'its url is "http://"' + ADDRESS),
    "predict: nothing": ("data_invalid", "x", ARRAY + "undefined"),
    "predict: 5": ("data_invalid", "x", ARRAY + "5"),
    "predict: null": ("data_invalid", "x", ARRAY + "null"),
    "predict: rows without shape": ("data_invalid", "x", ARRAY + "Float32Array"),
    "predict: a function": ("data_invalid", "x", "its data is a function" + NUMBERS),
    "setWeights: nothing": ("data_invalid", "weights", TENSORS + "undefined"),
    "setWeights: null": ("data_invalid", "weights", TENSORS + "null"),
    "setWeights: a file": ("data_invalid", "weights", TENSORS + "Uint8Array"),
    "setWeights: text": ("data_invalid", "dense_1.bias", 'is "1" at 0; legal: numbers'),
    "setWeights: bigints": ("data_invalid", "dense_1.bias", "is 0n at 0; legal: numbers"),
    "setWeights: a function": ("data_invalid", "dense_1.bias", "must be {shape, data}, not a function"),
    "restore: nothing": ("data_invalid", "checkpoint", FILE + "undefined"),
    "restore: 5": ("data_invalid", "checkpoint", FILE + "5"),
    "restore: a promise": ("data_invalid", "checkpoint", FILE + "Promise"),
    "diagnose of a session: 3": ("spec_invalid", "level", "3 is not legal; legal: basic, full"),
}  # fmt: skip
SAID_BY_NAME: dict[str, tuple[str, str, str]] = {
    "compile: x 5": ("data_invalid", "data.x", "must be the arrays of the inputs by name, left, right, not 5"),
    "compile: x one array": ("data_invalid", "data.x.shape", "is no input of the model; legal: left, right"),
    "predict: functions": ("data_invalid", "x", 'must be the arrays of the inputs by name, left, right, not ["a function"]'),
    "predict: one null": ("data_invalid", "x.left", ARRAY + "null"),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(browser_page: BrowserPage) -> dict[bool, Any]:
    """What every call said, for a model of one input and one of several."""
    nets = {False: (SPEC, DATA), True: (TWO, BY_NAME)}
    return {several: browser_page.call(PAGE, "everyCall", *net, several) for several, net in nets.items()}


def check(outcome: dict[str, Any] | None, code: str, field: str, message: str) -> None:
    """An EngineError that names the field first."""
    assert outcome is not None, "it was accepted"
    assert (outcome["name"], outcome["code"], outcome["field"]) == ("EngineError", code, field)
    begin, _, rest = outcome["message"].partition(message)
    assert begin in ("", f"{field}: ", f"weights: {field} "), outcome["message"]
    assert len(rest) < 150 or rest.startswith("; legal"), outcome["message"]


@pytest.mark.parametrize("call", SAID)
def test_bad_input_is_told(outcomes: dict[bool, Any], call: str):
    """No TypeError of JavaScript's, and nothing as if it had been left out."""
    check(outcomes[False]["said"][call], *SAID[call])


@pytest.mark.parametrize("call", SAID_BY_NAME)
def test_bad_inputs_by_name_are_told(outcomes: dict[bool, Any], call: str):
    """Which input is at fault, where the model has several."""
    check(outcomes[True]["said"][call], *SAID_BY_NAME[call])


@pytest.mark.parametrize("several", [False, True])
def test_no_call_is_missing_and_none_changes_the_session(outcomes: dict[bool, Any], several: bool):
    """All of the page's cases are expected above; the session's state is the same bytes as before them."""
    assert set(outcomes[several]["said"]) == set(SAID_BY_NAME if several else SAID)
    assert outcomes[several]["before"].tobytes() == outcomes[several]["after"].tobytes()


def test_a_diagnosis_can_be_aborted_while_it_runs(browser_page: BrowserPage):
    """Not only while it compiles."""
    told = browser_page.call(PAGE, "abortedDiagnosis", SPEC | {"train": {"steps": 200}}, DATA)
    assert told["code"] == "aborted"


# ---- specs ----------------------------------------------------------------------------------------------------------

OF_THE_SERVICE: list[tuple[str, Any, str]] = [
    ("data.synthetic", {"kind": "xor", "rows": 20, "seed": 1}, "give the page's own as options.data"),
    ("limits.wall_s", 60, "give run() a signal, such as AbortSignal.timeout(ms)"),
    ("checkpoint.every_steps", 5, "call session.checkpoint() between two run({steps})"),
    ("deadline", "2027-01-31T18:00:00Z", "a page begins at once"),
]
Method = Literal["compile", "train", "estimate"]


@pytest.mark.parametrize("method", ["compile", "train", "estimate"])
@pytest.mark.parametrize(("field", "value", "instead"), OF_THE_SERVICE)
def test_what_only_the_service_does_is_refused(
    browser_page: BrowserPage, method: Method, field: str, value: Any, instead: str
):
    """With what a page does instead."""
    section, _, name = field.rpartition(".")
    spec = SPEC | {"metrics": []} | ({section: {name: value}} if section else {name: value})
    check(browser_page.call(PAGE, "ofSpec", spec, DATA, method), "spec_invalid", field, "only the service ")
    assert instead in browser_page.call(PAGE, "ofSpec", spec, DATA, method)["message"]


def test_metrics_that_train_would_not_measure_are_refused(browser_page: BrowserPage):
    """As the service does; compile() takes them, since evaluate() measures them on rows that it is given."""
    told = browser_page.call(PAGE, "ofSpec", SPEC, DATA, "train")
    check(told, "spec_invalid", "metrics", "are measured on validation rows, and there are none")
    assert 'not ["accuracy"]' in told["message"]
    validated = SPEC | {"data": {"validation": {"rows": [3, 4]}}}
    assert browser_page.call(PAGE, "ofSpec", validated, DATA, "train") is None
    assert browser_page.call(PAGE, "ofSpec", SPEC | {"metrics": []}, DATA, "train") is None
    assert browser_page.call(PAGE, "ofSpec", SPEC, DATA, "compile") is None


def test_a_stored_spec_is_taken(browser_page: BrowserPage):
    """One as the API gives it, all defaults filled in, with what names a job and bounds its attempts."""
    from texelgrad.spec import parse_spec

    filled = parse_spec(SPEC | {"name": "digits", "tags": {"by": "me"}, "metrics": []}).model_dump(
        mode="json"
    )
    assert filled["limits"] == {"wall_s": None, "max_attempts": 3}
    for method in ("compile", "train", "estimate"):
        assert browser_page.call(PAGE, "ofSpec", filled, DATA, method) is None
