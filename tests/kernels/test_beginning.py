"""Runs that begin with weights of a file, for some layers or for all; and models that only predict."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from texelgrad.normalize import normalized
from texelgrad.spec import check_spec

from ..tolerances import PREDICTION_RTOL
from .cnns import cnn, dense, weights_of
from .harness import BrowserPage, PageError
from .nets import forward
from .specs import Array, Spec, data_for, mlp, weights_for
from .test_session import LOSS, SIZES, play

X, Y = data_for(41, 5, 3, LOSS)
WEIGHTS = weights_for(SIZES)


def file_of(tensors: dict[str, Array]) -> Array:
    return np.frombuffer(safetensors.numpy.save(tensors), np.uint8)


NOTHING: Any = None


def first_weights(page: BrowserPage, spec: Spec, file: Array | None) -> dict[str, Array]:
    """The weights before the first step."""
    return page.call("/tests/kernels/session_page.js", "firstWeights", spec, X, Y, file)


@pytest.mark.parametrize("layers", [["dense_1"], ["dense_2"], ["dense_1", "dense_2"], None])
def test_named_layers_begin_with_the_file(browser_page: BrowserPage, layers: list[str] | None):
    """Bit for bit; the others as the seed gives them; float64 is rounded once, and what else is in the file is ignored."""
    spec = mlp(SIZES, LOSS) | {"fine_tune": {"layers": layers}}
    given = {name: value.astype(np.float64) for name, value in WEIGHTS.items()}
    file = file_of(given | {"input.offset": np.zeros(5), "other.kernel": np.ones((2, 2), np.float32)})
    got = first_weights(browser_page, spec, file)
    seeded = first_weights(browser_page, mlp(SIZES, LOSS), None)
    for name, value in got.items():
        chosen = layers is None or name.split(".")[0] in layers
        np.testing.assert_array_equal(value, WEIGHTS[name] if chosen else seeded[name])


def test_layers_of_which_the_file_has_nothing_come_from_the_seed(browser_page: BrowserPage):
    """Without a list of layers, those that the file has are taken."""
    file = file_of({name: value for name, value in WEIGHTS.items() if name.startswith("dense_1")})
    got = first_weights(browser_page, mlp(SIZES, LOSS) | {"fine_tune": {}}, file)
    seeded = first_weights(browser_page, mlp(SIZES, LOSS), None)
    np.testing.assert_array_equal(got["dense_1.kernel"], WEIGHTS["dense_1.kernel"])
    np.testing.assert_array_equal(got["dense_2.kernel"], seeded["dense_2.kernel"])


@pytest.mark.parametrize(
    ("tensors", "tune", "message"),
    [
        ({"dense_1.kernel": WEIGHTS["dense_1.kernel"]}, {}, "dense_1.bias is missing"),
        (WEIGHTS | {"dense_2.bias": np.zeros(4, np.float32)}, {}, r"dense_2.bias is \[4\]; needed: \[3\]"),
        ({"other.kernel": np.zeros((2, 2), np.float32)}, {}, "no layer to be tuned"),
        ({"dense_1.kernel": np.zeros((5, 9), np.int32)}, {}, "float32 or float64"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    browser_page: BrowserPage, tensors: dict[str, Array], tune: dict[str, Any], message: str
):
    """With the name of the tensor."""
    with pytest.raises(PageError, match=message) as caught:
        first_weights(browser_page, mlp(SIZES, LOSS) | {"fine_tune": tune}, file_of(tensors))
    assert caught.value.properties["code"] == "data_invalid"


@pytest.mark.parametrize("way", ["initialWeights", "initialWeightsFile", "fine_tune"])
@pytest.mark.parametrize(
    ("value", "told"), [(np.nan, "NaN"), (-np.inf, "-Infinity"), (1e39, "(1e\\+39|Infinity)")]
)
def test_weights_that_are_not_finite_are_refused(
    browser_page: BrowserPage, way: str, value: float, told: str
):
    """Of the layers that begin with them; a run that diverged may still be asked what it predicts."""
    kernel = WEIGHTS["dense_1.kernel"].astype(np.float64)
    kernel[0, 3] = value
    tensors = WEIGHTS | {"dense_1.kernel": kernel}
    options = (
        {"initialWeights": tensors} if way == "initialWeights" else {"initialWeightsFile": file_of(tensors)}
    )
    spec = mlp(SIZES, LOSS) | ({"fine_tune": {"layers": ["dense_1"]}} if way == "fine_tune" else {})
    with pytest.raises(PageError, match=f"dense_1.kernel is {told} at 3; legal: finite") as caught:
        play(browser_page, spec, X, Y, **options)
    assert (caught.value.properties["code"], caught.value.properties["field"]) == (
        "data_invalid",
        "dense_1.kernel",
    )
    if way == "fine_tune":
        play(browser_page, spec | {"fine_tune": {"layers": ["dense_2"]}}, X, Y, **options)
    only = mlp(SIZES, LOSS) | {"predict": {"job": "job_" + "0" * 26}}
    play(browser_page, only, NOTHING, NOTHING, ("predict", X), **options)


@pytest.mark.parametrize(
    ("value", "told"), [(np.nan, "NaN"), (-np.inf, "-Infinity"), (1e39, "(1e\\+39|Infinity)")]
)
def test_setting_weights_that_are_not_finite_is_refused(browser_page: BrowserPage, value: float, told: str):
    """As those to begin with are; and no weight changes."""
    kernel = WEIGHTS["dense_1.kernel"].astype(np.float64)
    kernel[0, 3] = value
    tensors = WEIGHTS | {"dense_1.kernel": kernel}
    spec = mlp(SIZES, LOSS, steps=9)
    outcome = browser_page.call(
        "/tests/kernels/session_page.js", "refused", spec, X, Y, ("setWeights", tensors)
    )
    error = outcome["error"]
    assert error is not None
    assert (error["code"], error["field"]) == ("data_invalid", "dense_1.kernel")
    assert re.search(f"dense_1.kernel is {told} at 3; legal: finite float32 numbers", error["message"])
    assert outcome["before"].tobytes() == outcome["after"].tobytes()
    only = mlp(SIZES, LOSS) | {"predict": {"job": "job_" + "0" * 26}}
    play(
        browser_page, only, NOTHING, NOTHING, ("setWeights", tensors), ("predict", X), initialWeights=WEIGHTS
    )


def test_files_with_bytes_of_no_tensor_are_refused(browser_page: BrowserPage):
    """As by the service: such a file is not what its header says."""
    file = file_of(WEIGHTS)
    held = sum(value.nbytes for value in WEIGHTS.values())
    message = f"initialWeights: not a safetensors file .*: it has {held + 3} bytes of tensors, its header says {held}"
    with pytest.raises(PageError, match=message) as caught:
        play(browser_page, mlp(SIZES, LOSS), X, Y, initialWeightsFile=np.append(file, np.zeros(3, np.uint8)))
    assert (caught.value.properties["code"], caught.value.properties["field"]) == (
        "data_invalid",
        "initialWeights",
    )


def test_a_fine_tuned_run_resumes(browser_page: BrowserPage):
    """Its checkpoint holds all that it needs: without the file it ends at the same bytes."""
    spec = mlp(SIZES, LOSS, optimizer="adam", steps=12, batch_size=10) | {
        "fine_tune": {"layers": ["dense_1"]}
    }
    file = file_of(WEIGHTS)
    whole = play(browser_page, spec, X, Y, ("run", {}), ("weightsFile",), initialWeightsFile=file)
    half = play(browser_page, spec, X, Y, ("run", {"steps": 5}), ("checkpoint",), initialWeightsFile=file)
    again = play(browser_page, spec, X, Y, ("restore", half["results"][-1]), ("run", {}), ("weightsFile",))
    assert again["results"][-1].tobytes() == whole["results"][-1].tobytes()


def test_inputs_are_normalised_as_the_file_says(browser_page: BrowserPage):
    """`inherit` takes offset and scale from the file that trained before, and passes them on."""
    spec = mlp(SIZES, LOSS) | {"fine_tune": {}, "data": {"normalize": "inherit"}}
    offset, scale = np.arange(5.0), np.linspace(0.5, 2, 5)
    file = file_of(WEIGHTS | {"input.offset": offset, "input.scale": scale})
    played = play(browser_page, spec, X, Y, ("predict", X), ("weightsFile",), initialWeightsFile=file)
    expected = forward(spec, WEIGHTS, ((X - offset) * scale).astype(np.float32))
    got = played["results"][0]
    np.testing.assert_allclose(got, expected, rtol=0, atol=PREDICTION_RTOL * np.abs(expected).max())
    again = safetensors.numpy.load(played["results"][1].tobytes())
    np.testing.assert_array_equal(again["input.offset"], offset)
    np.testing.assert_array_equal(again["input.scale"], scale)
    assert played["record"]["normalization"] == {"offset": offset.tolist(), "scale": scale.tolist()}


@pytest.mark.parametrize("way", ["getWeights", "a file without them", "a job's getWeights"])
def test_what_is_inherited_must_be_there(browser_page: BrowserPage, way: str):
    """Weights that don't say what inputs go through are not taken for those of a model without normalisation."""
    first = mlp(SIZES, LOSS, steps=3) | {"data": {"normalize": "standard"}}
    *_, tensors, whole = play(browser_page, first, X, Y, ("run", {}), ("getWeights",), ("weightsFile",))[
        "results"
    ]
    tune = {"job": "job_" + "0" * 26} if way == "a job's getWeights" else {}
    spec = mlp(SIZES, LOSS) | {"fine_tune": tune, "data": {"normalize": "inherit"}}
    lacking = (
        {"initialWeightsFile": file_of(tensors)}
        if way == "a file without them"
        else {"initialWeights": tensors}
    )
    message = r"the weights have no input.offset \[5\], input.scale \[5\]; weightsFile\(\) .* has them"
    with pytest.raises(PageError, match=message) as caught:
        play(browser_page, spec, X, Y, **lacking)
    assert (caught.value.properties["code"], caught.value.properties["field"]) == (
        "data_invalid",
        "data.normalize",
    )
    assert play(browser_page, spec, X, Y, initialWeightsFile=whole)["record"]["normalization"] is not None
    without = {name: each for name, each in spec.items() if name != "data"}
    play(browser_page, without, X, Y, **lacking)


def test_a_job_without_normalisation_may_be_inherited_from(browser_page: BrowserPage):
    """Its file is whole, as the service has it: there is nothing to inherit."""
    spec = mlp(SIZES, LOSS) | {
        "fine_tune": {"job": "job_" + "0" * 26},
        "data": {"normalize": "inherit"},
    }
    played = play(browser_page, spec, X, Y, initialWeightsFile=file_of(WEIGHTS))
    assert played["record"]["normalization"] is None


def test_subnormal_inputs_are_predicted_exactly(browser_page: BrowserPage):
    """A scale beyond float32 is right for them: float64 holds it, and what comes of it are numbers of any size."""
    tiny = (X * 1e-40).astype(np.float32)
    assert 0 < np.abs(tiny).max() < np.finfo(np.float32).tiny
    spec = mlp(SIZES, LOSS, steps=5, batch_size=20) | {"data": {"normalize": "standard"}}
    trained = play(browser_page, spec, tiny, Y, ("run", {}), ("weightsFile",), ("predict", tiny))
    weights = safetensors.numpy.load(trained["results"][1].tobytes())
    assert weights["input.scale"].min() > np.finfo(np.float32).max
    only = mlp(SIZES, LOSS) | {"predict": {"job": "job_" + "0" * 26}}
    got = play(
        browser_page, only, NOTHING, NOTHING, ("predict", tiny), initialWeightsFile=trained["results"][1]
    )
    np.testing.assert_array_equal(got["results"][0], trained["results"][2])
    expected = forward(spec, weights, normalized(tiny, weights))
    np.testing.assert_allclose(
        got["results"][0], expected, rtol=0, atol=PREDICTION_RTOL * np.abs(expected).max()
    )


@pytest.mark.parametrize("loss", [LOSS, "bce", "mse"])
def test_predicting_without_training_data(browser_page: BrowserPage, loss: str):
    """A trained model's file is enough: the outputs are those of the session that trained, normalisation included."""
    x, y = data_for(300, 5, 3, loss)
    spec = mlp(SIZES, loss, optimizer="adam", steps=9, batch_size=50) | {"data": {"normalize": "standard"}}
    trained = play(browser_page, spec, x * 3 + 1, y, ("run", {}), ("weightsFile",), ("predict", x))
    only = {key: value for key, value in spec.items() if key != "data"}
    only |= {"predict": {"job": "job_" + "0" * 26}, "train": {"steps": 1}}
    got = play(browser_page, only, NOTHING, NOTHING, ("predict", x), initialWeightsFile=trained["results"][1])
    np.testing.assert_array_equal(got["results"][0], trained["results"][2])


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"train": {"steps": 1, "batch_size": 32, "evaluate_every": 1}, "data": {"validation": {"rows": [3, 40]}}},
        {"train": {"steps": 1, "accumulate_steps": 3}, "data": {"normalize": "standard", "validation": {"fraction": 0.5, "stratify": True}}},
    ],
)  # fmt: skip
def test_predicting_needs_nothing_that_training_does(browser_page: BrowserPage, training: dict[str, Any]):
    """Batch normalization of flat rows predicts for any number of rows; batches and a split are for training alone, here and in Python."""
    layers = [dense(7), {"type": "batch_norm", "activation": "tanh"}, dense(3)]
    spec = cnn((5,), layers, LOSS) | {"predict": {"job": "job_" + "0" * 26}, "train": {"steps": 1}} | training
    weights = weights_of(spec)
    for rows in (1, 7):
        x = X[:rows]
        calls: list[Any] = [("predict", x), ("getWeights",)]
        got, after = play(browser_page, spec, NOTHING, NOTHING, *calls, initialWeightsFile=file_of(weights))["results"]  # fmt: skip
        expected = forward(spec, weights, x)
        np.testing.assert_allclose(got, expected, rtol=0, atol=PREDICTION_RTOL * np.abs(expected).max())
        assert all(after[name].tobytes() == value.tobytes() for name, value in weights.items())
    _, _, faults = check_spec(spec | {"data": training.get("data", {}) | {"dataset": "ds_" + "0" * 26}})
    assert faults == []
    with pytest.raises(PageError, match="only predicts") as caught:
        play(browser_page, spec, NOTHING, NOTHING, ("run", {}), initialWeightsFile=file_of(weights))
    assert caught.value.properties["field"] == "predict"


def test_predicting_with_tensors_in_memory(browser_page: BrowserPage):
    """With what the inputs go through among them; a model that trains on other terms does not know them."""
    offset, scale = np.arange(5.0), np.linspace(0.5, 2, 5)
    given = WEIGHTS | {"input.offset": offset, "input.scale": scale}
    spec = mlp(SIZES, LOSS) | {"predict": {"job": "job_" + "0" * 26}}
    got = play(browser_page, spec, NOTHING, NOTHING, ("predict", X), initialWeights=given)["results"][0]
    expected = forward(spec, WEIGHTS, ((X - offset) * scale).astype(np.float32))
    np.testing.assert_allclose(got, expected, rtol=0, atol=PREDICTION_RTOL * np.abs(expected).max())
    with pytest.raises(PageError, match="input.offset is unknown"):
        play(browser_page, mlp(SIZES, LOSS), X, Y, initialWeights=given)


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"input.offset": np.zeros(5)}, "input.scale", "input.scale is missing"),
        ({"input.scale": np.ones(5)}, "input.offset", "input.offset is missing"),
        ({"input.offset": np.zeros(4), "input.scale": np.ones(4)}, "input.offset", r"is \[4\]; needed: \[5\]"),
        ({"input.offset": np.zeros(5), "input.scale": np.ones((1, 5))}, "input.scale", r"is \[1,5\]; needed: \[5\]"),
        ({"input.offset": np.full(5, np.inf), "input.scale": np.ones(5)}, "input.offset", "is Infinity at 0; legal: finite numbers"),
        ({"input.offset": np.zeros(5), "input.scale": np.array([1, 2, np.nan, 1, 1])}, "input.scale", "is NaN at 2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", ["predict", "fine_tune"])
def test_what_inputs_go_through_must_fit_them(
    browser_page: BrowserPage, given: dict[str, Array], field: str, message: str, way: str
):
    """Offset and scale, both or neither, a finite number for each feature."""
    asked = {"predict": {"job": "job_" + "0" * 26}}
    if way == "fine_tune":
        asked = {"fine_tune": {}, "data": {"normalize": "inherit"}}
    with pytest.raises(PageError, match=message) as caught:
        play(browser_page, mlp(SIZES, LOSS) | asked, X, Y, initialWeightsFile=file_of(WEIGHTS | given))
    assert (caught.value.properties["code"], caught.value.properties["field"]) == ("data_invalid", field)


@pytest.mark.parametrize(
    "asked",
    [
        {"predict": {"job": "job_" + "0" * 26}},
        {"fine_tune": {}},
        {"fine_tune": {}, "data": {"normalize": "inherit"}},
    ],
)
def test_weights_that_were_not_given(browser_page: BrowserPage, asked: dict[str, Any]):
    """The seed's are never taken for a trained model's."""
    with pytest.raises(PageError, match="initialWeights: .* needs the weights of a trained model") as caught:
        play(browser_page, mlp(SIZES, LOSS) | asked, X, Y, ("run", {}))
    assert caught.value.properties["code"] == "data_invalid"
    assert caught.value.properties["field"] == "initialWeights"


@pytest.mark.parametrize("method", ["run", "evaluate", "predict", "checkpoint", "diagnose"])
def test_a_session_that_lacks_weights_does_nothing_with_the_seeds(browser_page: BrowserPage, method: str):
    """Until it is given some, or a checkpoint brings them."""
    spec = mlp(SIZES, LOSS) | {"fine_tune": {}}
    argument = {
        "run": {},
        "evaluate": {"x": X, "y": Y},
        "predict": X,
        "checkpoint": None,
        "diagnose": "basic",
    }[method]
    call: Any = (method,) if argument is None else (method, argument)
    with pytest.raises(PageError, match="compile with them, or restore") as caught:
        play(browser_page, spec, X, Y, call)
    assert (caught.value.properties["code"], caught.value.properties["field"]) == (
        "data_invalid",
        "initialWeights",
    )
    play(browser_page, spec, X, Y, ("setWeights", WEIGHTS), call)


@pytest.mark.parametrize("method", ["train", "diagnose"])
def test_what_runs_at_once_lacks_weights_before_it_compiles(browser_page: BrowserPage, method: str):
    """Not a row is read for nothing."""
    spec = mlp(SIZES, LOSS) | {"fine_tune": {}, "metrics": []}
    got = browser_page.call(
        "/tests/kernels/bad_input_page.js", "withoutWeights", spec, {"x": X, "y": Y}, method
    )
    assert (got["code"], got["field"]) == ("data_invalid", "initialWeights")
    assert "fine_tune needs the weights of a trained model" in got["message"]
    assert got["reads"] == 0
