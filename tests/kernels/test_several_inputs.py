"""Sessions of models with several inputs: every call that reads data, in the page's public module."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from texelgrad.normalize import normalized
from texelgrad.spec_data import Validation
from texelgrad.splits import split

from ..tolerances import FIRST_LOSS_RTOL, PREDICTION_RTOL
from .cnns import FLATTEN, Layer, cnn, conv, dense, embedding, pool, several_for
from .harness import BrowserPage, PageError
from .nets import forward, metrics
from .specs import Array, Spec

SESSION = "/tests/kernels/session_page.js"
LOSS = "softmax_cross_entropy"
ROWS = 61
INPUTS: dict[str, tuple[int, ...]] = {"image": (6, 5, 2), "words": (3,), "plain": (4,)}
LAYERS: list[Layer] = [
    conv(3, 2, "tanh", inputs=["image"]), pool(2), FLATTEN | {"name": "seen"},
    embedding(9, 4, inputs=["words"]), FLATTEN | {"name": "read"},
    {"type": "concat", "inputs": ["seen", "read", "plain"]}, dense(6, "tanh"), dense(3),
]  # fmt: skip


def spec_for(**data: Any) -> Spec:
    spec = cnn(INPUTS, LAYERS, LOSS, optimizer="adam", steps=20, batch_size=8)
    return spec | {"data": {"validation": {"fraction": 0.2}, **data}}


def data_for(rows: int = ROWS, seed: int = 1) -> tuple[dict[str, Array], Array]:
    """Far from 0 where it is normalised; classes that the inputs tell of."""
    x = several_for(spec_for(), rows, seed=seed)
    y = (x["words"].sum(axis=1).astype(int) + (x["plain"][:, 0] > 0)) % 3
    shifted = {"image": x["image"] * 7 + 100, "words": x["words"], "plain": x["plain"] * 0.01 - 3}
    return {name: each.astype(np.float32) for name, each in shifted.items()}, y.astype(np.int32)


X, Y = data_for()


def play(page: BrowserPage, spec: Spec, *calls: Any, x: Any = X, y: Any = Y, **options: Any) -> Any:
    return page.call(SESSION, "play", spec, x, y, calls, options)


def ready(weights: dict[str, Array], x: dict[str, Array]) -> dict[str, Array]:
    """Inputs as the record says that the network takes them."""
    return {name: normalized(each, weights, name) for name, each in x.items()}


def of_record(record: dict[str, Any]) -> dict[str, Array]:
    """The tensors of a weights file that normalise, from the record."""
    return {
        f"{name}.{part}": np.array(found[part])
        for name, found in (record["normalization"] or {}).items()
        for part in ("offset", "scale")
    }


def test_everything_that_reads_data(browser_page: BrowserPage):
    """Normalisation by input, validation, evaluation, prediction, and the float64 run of the first steps."""
    spec = spec_for(normalize="standard")
    other, targets = data_for(300, seed=2)
    given = {"x": other, "y": targets}
    calls = [
        ("run", {}),
        ("getWeights",),
        ("evaluate",),
        ("evaluate", given),
        ("predict", other),
        ("diagnose",),
    ]
    played = play(browser_page, spec, *calls)
    _, weights, validated, evaluated, predicted, report = played["results"]
    train, kept = split(Validation(fraction=0.2), 1, ROWS)
    fitted = of_record(played["record"])
    assert set(played["record"]["normalization"]) == {"image", "plain"}, "looked up numbers stay as they are"
    for name in ("image", "plain"):
        rows = X[name][train].reshape(-1, X[name].shape[-1]).astype(np.float64)
        np.testing.assert_allclose(fitted[f"{name}.offset"], rows.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(fitted[f"{name}.scale"], 1 / rows.std(axis=0), rtol=1e-6)
    wanted = forward(spec, weights, ready(fitted, other))
    np.testing.assert_allclose(predicted, wanted, rtol=0, atol=PREDICTION_RTOL * np.abs(wanted).max())
    assert evaluated == pytest.approx(
        metrics(spec, weights, ready(fitted, other), targets), rel=PREDICTION_RTOL
    )
    held_out = {name: each[kept] for name, each in ready(fitted, X).items()}
    assert validated == pytest.approx(metrics(spec, weights, held_out, Y[kept]), rel=PREDICTION_RTOL)
    assert len(report["firstLosses"]) == 10
    assert max(each["relativeError"] for each in report["firstLosses"]) < FIRST_LOSS_RTOL
    assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]


def test_every_way_gives_the_same_bits(browser_page: BrowserPage):
    """Streamed through the ring, read piece by piece, in this thread or a Worker, resumed in the middle."""
    spec = spec_for(normalize="minmax")
    weight = np.linspace(0.5, 2, ROWS).astype(np.float32)
    end = [("run", {}), ("weightsFile",)]
    first = play(browser_page, spec, *end, weight=weight)["results"][-1].tobytes()
    ways: list[dict[str, Any]] = [{"thread": "inline"}, {"stream": True}, {"device": {"residentBytes": 0}}]
    for way in ways:
        assert play(browser_page, spec, *end, weight=weight, **way)["results"][-1].tobytes() == first, way
    middle = play(browser_page, spec, ("run", {"steps": 7}), ("checkpoint",), weight=weight)["results"][-1]
    resumed = play(browser_page, spec, ("restore", middle), *end, weight=weight)
    assert resumed["results"][0] == {"step": 7, "bitExact": True}
    assert resumed["results"][-1].tobytes() == first


def test_weights_of_another_run(browser_page: BrowserPage):
    """Predicting and fine-tuning from a file of weights: it says what each input goes through."""
    trained = play(
        browser_page, spec_for(normalize="standard"), ("run", {}), ("weightsFile",), ("predict", X)
    )
    _, file, outputs = trained["results"]
    job = "job_00000000000000000000000000"
    predicting = spec_for() | {"predict": {"job": job}}
    again = browser_page.call(
        SESSION, "play", predicting, None, None, [("predict", X)], {"initialWeightsFile": file}
    )
    np.testing.assert_array_equal(again["results"][0], outputs)
    tuning = spec_for(normalize="inherit") | {"fine_tune": {"job": job}}
    begun = play(browser_page, tuning, ("predict", X), initialWeightsFile=file)
    np.testing.assert_array_equal(begun["results"][0], outputs)
    inherited = of_record(begun["record"])
    assert {name: each.tolist() for name, each in of_record(trained["record"]).items()} == {
        name: each.tolist() for name, each in inherited.items()
    }


def test_names_that_every_object_has(browser_page: BrowserPage):
    """An input may be called constructor: it is normalised where that is asked for, and not where it is not."""
    inputs = {"constructor": (3,), "toString": (2,)}
    layers = [
        dense(4, "tanh", inputs=["constructor"], name="valueOf"),
        embedding(5, 2, inputs=["toString"]), FLATTEN | {"name": "read"},
        {"type": "concat", "inputs": ["valueOf", "read"]}, dense(1),
    ]  # fmt: skip
    spec: Spec = cnn(inputs, layers, "mse", optimizer="sgd", steps=3)
    x, y = several_for(spec, 9), np.ones((9, 1), np.float32)
    for normalize, wanted in (("none", None), ("standard", {"constructor"})):
        changed = spec | {"data": {"normalize": normalize}}
        played = play(browser_page, changed, ("run", {}), ("getWeights",), ("predict", x), x=x, y=y)
        record = played["record"]["normalization"]
        assert (record and set(record)) == wanted
        _, weights, predicted = played["results"]
        expected = forward(spec, weights, ready(of_record(played["record"]), x))
        np.testing.assert_allclose(predicted, expected, rtol=0, atol=PREDICTION_RTOL * np.abs(expected).max())


# What the engine itself calls something, and a spec may call an input or a layer.
ENGINE_WORDS = (
    "output",
    "outputs",
    "order",
    "data",
    "epoch",
    "stage",
    "telemetry",
    "row",
    "rows",
    "parts",
    "norm",
    "state",
)


def test_names_that_the_engine_uses(browser_page: BrowserPage):
    """An input, a layer within the net or its last one may have any name that is not refused: the same bits come out."""
    x, y = {"first": X["plain"], "second": X["words"]}, Y

    def outcome(names: dict[str, str]) -> list[Any]:
        called = {name: names.get(name, name) for name in ("first", "second", "hidden", "last")}
        layers = [
            {"type": "concat", "inputs": [called["first"], called["second"]]},
            dense(6, "tanh", name=called["hidden"]), dense(3, name=called["last"]),
        ]  # fmt: skip
        inputs = {called[name]: x[name].shape[1:] for name in x}
        spec = cnn(inputs, layers, LOSS, optimizer="momentum", steps=12, batch_size=8)
        spec |= {"data": {"validation": {"fraction": 0.2}}}
        given = {called[name]: each for name, each in x.items()}
        calls = [
            ("run", {}),
            ("evaluate",),
            ("evaluate", {"x": given, "y": y}),
            ("predict", given),
            ("getWeights",),
        ]
        played = play(browser_page, spec, *calls, x=given, y=y)
        *measured, predicted, weights = played["results"][1:]
        return [
            measured,
            played["history"],
            predicted.tobytes(),
            [each.tobytes() for each in weights.values()],
        ]

    wanted = outcome({})
    for word in ENGINE_WORDS:
        for name in ("first", "hidden", "last"):
            assert outcome({name: word}) == wanted, f"{name} is called {word}"


SHORT = {name: each[:5] for name, each in X.items()}
REFUSED: dict[str, tuple[Any, str, str]] = {
    "nothing": (None, "data.x.image", "must be"),
    "an array": (X["plain"], "data.x.shape", "is no input of the model; legal: image, words, plain"),
    "missing": ({"image": X["image"], "words": X["words"]}, "data.x.plain", "must be"),
    "unknown": (X | {"more": X["plain"]}, "data.x.more", "is no input of the model; legal: image, words, plain"),
    "rows": (X | {"words": X["words"][:60]}, "data.x.words", "has 60 rows, data.x.image has 61"),
    "shape": (X | {"plain": X["plain"][:, :3]}, "data.x.plain", r"rows are \[3\]; model.input.plain is \[4\]"),
    "numbers": (X | {"words": X["words"] + 0.5}, "data.x.words", "embedding needs whole numbers from 0 to 8"),
    "values": (X | {"plain": X["plain"] * np.nan}, "data.x.plain", "legal: finite float32 numbers"),
    "targets": (SHORT, "data.y", "has 61 rows, data.x.image has 5"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_data_that_does_not_fit(browser_page: BrowserPage, case: str):
    """The input is named, with what is legal."""
    x, field, message = REFUSED[case]
    with pytest.raises(PageError, match=message) as caught:
        browser_page.call("/tests/kernels/several_inputs_page.js", "compiled", spec_for(), {"x": x, "y": Y})
    assert (caught.value.properties["code"], caught.value.properties["field"]) == ("data_invalid", field)


@pytest.mark.parametrize(
    ("x", "field"),
    [(X["plain"], "x.shape"), ({"image": X["image"]}, "x.words"), (X | {"plain": X["plain"][:9]}, "x.plain")],
)
def test_predictions_that_do_not_fit(browser_page: BrowserPage, x: Any, field: str):
    """Named as the caller gives them."""
    with pytest.raises(PageError) as caught:
        play(browser_page, spec_for(), ("predict", x))
    assert (caught.value.properties["code"], caught.value.properties["field"]) == ("data_invalid", field)
