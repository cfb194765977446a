"""Sessions: same bits however a run is cut, checkpoints, weights, predictions and metrics, through the public module."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from texelgrad.rng import RandomStream, Stream

from ..tolerances import PREDICTION_RTOL, RESUMMED_RTOL
from .harness import BrowserPage, PageError
from .nets import Inputs, forward, metrics
from .specs import OPTIMIZERS, Array, Spec, data_for, mlp, weights_for

PAGE = "/tests/kernels/session_page.js"
SIZES = (5, 9, 3)
LOSS = "softmax_cross_entropy"
Call = tuple[str, Any] | tuple[str]


def play(page: BrowserPage, spec: Spec, x: Inputs, y: Array, *calls: Call, **options: Any) -> dict[str, Any]:
    """Call methods of one session one after another; see session_page.js."""
    return page.call(PAGE, "play", spec, x, y, calls, options)


def shuffled(optimizer: str = "adam", **train: Any) -> Spec:
    """30 steps, 4 an epoch: 37 rows in batches of 10, validation apart."""
    spec = mlp(SIZES, LOSS, optimizer=optimizer, steps=30, batch_size=10, **train)
    spec["optimizer"] = spec["optimizer"] | {"schedule": {"type": "cosine"}}
    return spec | {"data": {"validation": {"fraction": 0.1}}}


X, Y = data_for(41, 5, 3, LOSS)


def final_bytes(page: BrowserPage, spec: Spec, *before: Call, **options: Any) -> bytes:
    """The weights file at the end of a run."""
    played = play(page, spec, X, Y, *before, ("run", {}), ("weightsFile",), **options)
    assert played["step"] == played["totalSteps"]
    return played["results"][-1].tobytes()


# ---- bits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_same_seed_same_bytes(browser_page: BrowserPage, optimizer: str):
    """Twice in a Worker, and once in the page's own thread; another seed gives other weights."""
    spec = shuffled(optimizer)
    first = final_bytes(browser_page, spec)
    assert final_bytes(browser_page, spec) == first
    assert final_bytes(browser_page, spec, thread="worker") == first
    assert final_bytes(browser_page, spec, thread="inline") == first
    assert final_bytes(browser_page, shuffled(optimizer, seed=2)) != first


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("piece", [1, 7])
def test_a_run_in_pieces_is_the_same_run(browser_page: BrowserPage, optimizer: str, piece: int):
    """Pause is not calling run: neither weights nor curve tell."""
    spec = shuffled(optimizer)
    whole = play(browser_page, spec, X, Y, ("run", {}), ("weightsFile",))
    calls = [("run", {"steps": piece})] * math.ceil(30 / piece)
    pieces = play(browser_page, spec, X, Y, *calls, ("weightsFile",))
    assert pieces["results"][-1].tobytes() == whole["results"][-1].tobytes()
    assert pieces["history"] == whole["history"]
    assert [result["done"] for result in pieces["results"][:-1]] == [False] * (len(calls) - 1) + [True]


def test_losses_are_read_before_their_place_is_taken_again(browser_page: BrowserPage):
    """A run whose chunks go round the lines of telemetry many times, two of them in flight, has the curve of one that waits for each of its pieces."""
    spec = mlp(SIZES, LOSS, steps=3000, optimizer="adam")
    whole = play(browser_page, spec, X, Y, ("run", {}))
    pieces = play(browser_page, spec, X, Y, *[("run", {"steps": 100})] * 30)
    assert [point["step"] for point in whole["history"]] == list(range(1, 3001))
    assert whole["history"] == pieces["history"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("step", [1, 6, 8])
def test_resume_equals_uninterrupted(browser_page: BrowserPage, optimizer: str, step: int):
    """A checkpoint restored in a new session ends at the same bytes; at an odd step, in an epoch, between epochs."""
    spec = shuffled(optimizer)
    checkpoint = play(browser_page, spec, X, Y, ("run", {"steps": step}), ("checkpoint",))["results"][-1]
    resumed = play(browser_page, spec, X, Y, ("restore", checkpoint), ("run", {}), ("weightsFile",))
    assert resumed["results"][0] == {"step": step, "bitExact": True}
    assert resumed["results"][-1].tobytes() == final_bytes(browser_page, spec)
    assert resumed["history"][0]["step"] == step + 1


def test_a_session_goes_back_to_its_own_checkpoint(browser_page: BrowserPage):
    """Restoring an earlier state of the same session repeats the same steps, whatever happened in between."""
    spec = shuffled()
    checkpoint = play(browser_page, spec, X, Y, ("run", {"steps": 5}), ("checkpoint",))["results"][-1]
    calls: list[Call] = [("run", {"steps": 9}), ("diagnose", "basic"), ("evaluate",), ("restore", checkpoint)]
    assert final_bytes(browser_page, spec, *calls) == final_bytes(browser_page, spec)


def test_going_back_forgets_the_validations_since(browser_page: BrowserPage):
    """The record tells of no validation of steps that were taken back."""
    checkpoint = checkpoint_of(browser_page, shuffled(), steps=4)
    back: Call = ("restore", np.frombuffer(checkpoint, np.uint8))
    ahead = play(browser_page, shuffled(), X, Y, ("run", {"steps": 12}))
    assert ahead["record"]["validation"]["step"] == 12
    restored = play(browser_page, shuffled(), X, Y, ("run", {"steps": 12}), back)
    assert (restored["step"], restored["record"]["validation"]) == (4, None)
    again = play(browser_page, shuffled(), X, Y, ("run", {"steps": 12}), back, ("run", {"steps": 8}))
    assert again["record"]["validation"] == ahead["record"]["validation"]


def test_other_devices_resume_inexactly(browser_page: BrowserPage):
    """Another way of fetching is another plan key: the run goes on and says that its bits may differ."""
    checkpoint = play(browser_page, shuffled(), X, Y, ("checkpoint",))["results"][-1]
    device = {"fetch": "texelFetch", "format": "rgba32ui"}
    restored = play(browser_page, shuffled(), X, Y, ("restore", checkpoint), ("run", {}), device=device)
    reason = "it was made on another device, driver, browser or engine"
    assert restored["results"][0] == {"step": 0, "bitExact": False, "reason": reason}
    assert restored["step"] == 30


@pytest.mark.parametrize("other", ["x", "y", "weight"])
def test_other_data_resume_inexactly(browser_page: BrowserPage, other: str):
    """One value is enough, whether the rows are in memory or come in pieces; what is the same in another form is the same."""
    spec = shuffled() | {"data": {"validation": {"fraction": 0.1}, "normalize": "standard"}}
    weight = np.linspace(1, 2, len(X)).astype(np.float32)
    made = play(browser_page, spec, X, Y, ("run", {"steps": 3}), ("checkpoint",), weight=weight)["results"][1]
    back: list[Call] = [("restore", made), ("run", {})]
    again = play(
        browser_page, spec, X.astype(np.float64), Y.astype(np.float32), *back, weight=weight, stream=True
    )
    assert again["results"][0] == {"step": 3, "bitExact": True}
    data = {"x": X.copy(), "y": Y.copy(), "weight": weight.copy()}
    changed = data[other].reshape(-1)
    changed[-1] = (changed[-1] + 1) % 3 if other == "y" else changed[-1] + 0.01
    restored = play(browser_page, spec, data["x"], data["y"], *back, weight=data["weight"])
    assert restored["results"][0] == {"step": 3, "bitExact": False, "reason": "it was made with other data"}
    assert restored["step"] == 30


# ---- checkpoints and weights that do not fit ------------------------------------------------------------------------


def checkpoint_of(page: BrowserPage, spec: Spec, steps: int = 3) -> bytes:
    return play(page, spec, X, Y, ("run", {"steps": steps}), ("checkpoint",))["results"][-1].tobytes()


def parts_of(checkpoint: bytes) -> tuple[dict[str, Array], dict[str, str]]:
    """Tensors and metadata, but for the checksum: as a checkpoint of an early version."""
    length = int.from_bytes(checkpoint[:8], "little")
    metadata = json.loads(checkpoint[8 : 8 + length])["__metadata__"]
    assert re.fullmatch("[0-9a-f]{8}", metadata.pop("crc32"))
    return safetensors.numpy.load(checkpoint), metadata


def test_foreign_checkpoints_are_refused(browser_page: BrowserPage):
    """Of another model, seed or optimizer, cut short, without a state, or with a step that is none: nothing changes."""
    spec = shuffled()
    own = checkpoint_of(browser_page, spec)
    tensors, metadata = parts_of(own)
    wider = mlp((5, 8, 3), LOSS, optimizer="adam", batch_size=10)
    without = {name: value for name, value in tensors.items() if name != "dense_2.bias.v"}
    reshaped = tensors | {"dense_1.kernel": tensors["dense_1.kernel"].T.copy()}
    foreign = {
        "another model": checkpoint_of(browser_page, wider),
        "another seed": checkpoint_of(browser_page, shuffled(seed=2)),
        "another optimizer": checkpoint_of(browser_page, shuffled("momentum")),
        "cut short": own[: len(own) // 2],
        "no safetensors": b"x" * 100,
        "empty": b"",
        "a state is missing": safetensors.numpy.save(without, metadata),
        "a shape is wrong": safetensors.numpy.save(reshaped, metadata),
        "no step": safetensors.numpy.save(tensors, metadata | {"step": "soon"}),
        "beyond the end": safetensors.numpy.save(tensors, metadata | {"step": "31"}),
        "weights alone": safetensors.numpy.save({"dense_1.bias": tensors["dense_1.bias"]}),
        "no set-up": safetensors.numpy.save(tensors, metadata | {"spec": "?"}),
    }
    told = {
        "another model": "other than in this session: model",
        "another seed": "other than in this session: train",
        "another optimizer": "other than in this session: optimizer",
        "weights alone": "it is a file of weights or of other tensors",
    }
    for why, file in foreign.items():
        call = ("restore", np.frombuffer(file, np.uint8))
        outcome = browser_page.call(PAGE, "refused", spec, X, Y, call)
        assert outcome["error"] is not None, why
        assert outcome["error"]["code"] == "data_invalid", why
        assert told.get(why, "") in outcome["error"]["message"], why
        assert outcome["before"].tobytes() == outcome["after"].tobytes() == own, why


def test_damaged_checkpoints_are_refused(browser_page: BrowserPage):
    """Whatever byte of it was overwritten, in a weight, a state, the step or a shape; the error says so, and nothing changes."""
    spec = shuffled()
    own = checkpoint_of(browser_page, spec)
    data = 8 + int.from_bytes(own[:8], "little")
    rng = np.random.default_rng(0)
    places = [
        own.index(b'"step":"3"') + 8,
        own.index(b'"shape":[') + 9,
        own.index(b"data_offsets"),
        data,
        len(own) - 1,
    ]
    for place in [*places, *rng.integers(0, data, 20), *rng.integers(data, len(own), 20)]:
        damaged = bytearray(own)
        damaged[place] ^= 1
        call = ("restore", np.frombuffer(bytes(damaged), np.uint8))
        outcome = browser_page.call(PAGE, "refused", spec, X, Y, call)
        if outcome["error"] is None:  # the checksum has another name: it counts for none
            assert b'"crc32"' not in damaged
            continue
        assert (outcome["error"]["code"], outcome["error"]["field"]) == ("data_invalid", "checkpoint"), place
        assert place < data or "checksum" in outcome["error"]["message"]
        assert outcome["before"].tobytes() == outcome["after"].tobytes() == own


def test_checkpoints_without_a_checksum_restore(browser_page: BrowserPage):
    """Those of early versions; and what another writer of the format made of one, whatever order it gave the tensors and metadata."""
    spec = shuffled()
    own = checkpoint_of(browser_page, spec)
    length = int.from_bytes(own[:8], "little")
    tensors, metadata = parts_of(own)
    checksum = {"crc32": json.loads(own[8 : 8 + length])["__metadata__"]["crc32"]}
    for file in (
        safetensors.numpy.save(tensors, metadata),
        safetensors.numpy.save(tensors, metadata | checksum),
    ):
        assert file != own
        restored, again = play(
            browser_page, spec, X, Y, ("restore", np.frombuffer(file, np.uint8)), ("checkpoint",)
        )["results"]
        assert restored == {"step": 3, "bitExact": True}
        assert again.tobytes() == own


def test_weights_round_trip(browser_page: BrowserPage):
    """What goes in comes out bit for bit, by initialWeights and by setWeights, negative zero and tiny numbers too."""
    weights = weights_for(SIZES)
    weights["dense_1.kernel"][0, :4] = [-0.0, 1e-30, 3e38, 2.0**-126]
    by_option = play(browser_page, shuffled(), X, Y, ("getWeights",), initialWeights=weights)
    by_call = play(browser_page, shuffled(), X, Y, ("setWeights", weights), ("getWeights",))
    for got in (by_option["results"][0], by_call["results"][1]):
        assert list(got) == ["dense_1.kernel", "dense_1.bias", "dense_2.kernel", "dense_2.bias"]
        for name, value in weights.items():
            assert got[name].shape == value.shape
            assert got[name].tobytes() == value.tobytes()


def test_wrong_weights_are_refused(browser_page: BrowserPage):
    """A missing, unknown, misshapen or short tensor is named, and no weight changes."""
    weights = weights_for(SIZES)
    kernel = "dense_2.kernel"
    wrong: list[tuple[str, dict[str, Any]]] = [
        (kernel, {name: value for name, value in weights.items() if name != kernel}),
        ("dense_3.bias", weights | {"dense_3.bias": weights["dense_2.bias"]}),
        (kernel, weights | {kernel: weights[kernel].T.copy()}),
        ("dense_2.bias", weights | {"dense_2.bias": {"shape": [3], "data": [1.0, 2.0]}}),
    ]
    for name, value in wrong:
        outcome = browser_page.call(PAGE, "refused", shuffled(), X, Y, ("setWeights", value))
        assert outcome["error"] is not None, name
        assert (outcome["error"]["code"], outcome["error"]["field"]) == ("data_invalid", name)
        assert outcome["before"].tobytes() == outcome["after"].tobytes()
        with pytest.raises(PageError, match=name):
            play(browser_page, shuffled(), X, Y, initialWeights=value)


def test_files_load_in_python(browser_page: BrowserPage):
    """Weights file and checkpoint are safetensors as the Python package reads them; equal to getWeights."""
    calls: list[Call] = [("run", {}), ("weightsFile",), ("getWeights",), ("checkpoint",)]
    _, file, weights, checkpoint = play(browser_page, shuffled(), X, Y, *calls)["results"]
    loaded = safetensors.numpy.load(file.tobytes())
    assert set(loaded) == set(weights)
    for name, value in weights.items():
        assert loaded[name].dtype == np.float32
        assert loaded[name].shape == value.shape
        assert loaded[name].tobytes() == value.tobytes()
    tensors, metadata = parts_of(checkpoint.tobytes())
    assert metadata["step"] == "30"
    assert set(tensors) == set(weights) | {f"{name}.{state}" for name in weights for state in ("m", "v")}


# ---- predictions and metrics ----------------------------------------------------------------------------------------

NETS = [((5, 9, 3), LOSS), ((5, 9, 10), LOSS), ((5, 6, 1), "bce"), ((5, 6, 7), "bce"), ((5, 6, 2), "mse")]


@pytest.mark.parametrize(("sizes", "loss"), NETS)
def test_predict_and_evaluate(browser_page: BrowserPage, sizes: tuple[int, ...], loss: str):
    """As NumPy computes them, on 1 row, odd counts, and more rows than the staging tensor's 256."""
    weights = weights_for(sizes)
    spec = mlp(sizes, loss, activation="tanh")
    for rows in (1, 7, 255, 257, 700):
        x, y = data_for(rows, sizes[0], sizes[-1], loss, seed=rows)
        train_x, train_y = data_for(10, sizes[0], sizes[-1], loss)
        calls: list[Call] = [("predict", x), ("evaluate", {"x": x, "y": y}), ("predict", x)]
        first, evaluated, again = play(browser_page, spec, train_x, train_y, *calls, initialWeights=weights)[
            "results"
        ]
        expected = forward(spec, weights, x)
        assert first.shape == expected.shape
        np.testing.assert_allclose(first, expected, rtol=0, atol=PREDICTION_RTOL * np.abs(expected).max())
        assert first.tobytes() == again.tobytes()
        assert evaluated == pytest.approx(metrics(spec, weights, x, y), rel=PREDICTION_RTOL)


@pytest.mark.parametrize(("sizes", "loss"), NETS)
@pytest.mark.parametrize("rows", [41, 900])
def test_validation_after_each_epoch(browser_page: BrowserPage, sizes: tuple[int, ...], loss: str, rows: int):
    """val_loss and val_accuracy are NumPy's, with the weights after the epoch, on the last rows of the seeded split."""
    x, y = data_for(rows, sizes[0], sizes[-1], loss)
    spec = mlp(sizes, loss, optimizer="adam", seed=9, epochs=3, batch_size=10)
    spec |= {"data": {"validation": {"fraction": 0.35}}}
    held_out = RandomStream(9, Stream.SPLIT).permutation(rows)[rows - math.floor(rows * 0.35) :]
    epoch = math.ceil((rows - len(held_out)) / 10)
    calls: list[Call] = [("run", {"steps": epoch}), ("getWeights",)] * 3
    played = play(browser_page, spec, x, y, *calls, ("evaluate",))
    points = [point for point in played["history"] if "val_loss" in point]
    assert [point["step"] for point in points] == [epoch, 2 * epoch, 3 * epoch]
    measured = [{key[4:]: value for key, value in point.items() if key != "step"} for point in points]
    for got, weights in zip(measured, played["results"][1::2], strict=True):
        wanted = metrics(spec, weights, x[held_out], y[held_out])
        assert got == pytest.approx(wanted, rel=PREDICTION_RTOL)
    assert played["results"][-1] == pytest.approx(measured[-1], rel=RESUMMED_RTOL)


def test_batches_follow_the_seed(browser_page: BrowserPage):
    """With a learning rate of almost nothing, each step's loss is that of the rows that texelgrad.rng puts in its batch."""
    weights = weights_for(SIZES)
    spec = mlp(SIZES, LOSS, optimizer={"type": "sgd", "lr": 1e-30}, seed=4, steps=13, batch_size=10)
    history = play(browser_page, spec, X, Y, ("run", {}), initialWeights=weights)["history"]
    for step, point in enumerate(history):
        order = RandomStream(4, Stream.SHUFFLE, step // 5).permutation(41)
        rows = order[step % 5 * 10 :][:10]
        assert point["loss"] == pytest.approx(
            metrics(spec, weights, X[rows], Y[rows])["loss"], rel=PREDICTION_RTOL
        )


def test_calls_at_the_same_time(browser_page: BrowserPage):
    """Evaluations and predictions that overlap give what they give alone; a run beside them the same bytes."""
    spec = shuffled()
    sets = [dict(zip("xy", data_for(rows, 5, 3, LOSS, seed=rows), strict=True)) for rows in (300, 7, 520)]
    got = browser_page.call(PAGE, "concurrently", spec, X, Y, sets)
    for one, other in zip(got["together"], got["apart"], strict=True):
        np.testing.assert_equal(one, other)
    assert got["file"].startswith("run() can't be called while run() is under way")
    assert got["weights"].tobytes() == final_bytes(browser_page, spec)


@pytest.mark.parametrize(("value", "told"), [(np.nan, "NaN"), (-np.inf, "-Infinity"), (1e39, "1e\\+39")])
def test_inputs_that_are_not_finite_are_refused(browser_page: BrowserPage, value: float, told: str):
    """Nothing is predicted for them, as nothing is evaluated on them; told in the numbers as they were given."""
    spec = shuffled() | {"data": {"normalize": "standard"}}
    x = np.resize(X, (600, 5)).astype(np.float64)
    x[2, 3] = value
    y = np.resize(Y, (600, *Y.shape[1:]))
    with pytest.raises(
        PageError, match=f"^.*x: value 13 from row 0 is {told}; legal: finite float32 numbers"
    ) as caught:
        play(browser_page, spec, X, Y, ("predict", x))
    assert (caught.value.properties["code"], caught.value.properties["field"]) == ("data_invalid", "x")
    with pytest.raises(PageError, match="legal: finite float32 numbers") as caught:
        play(browser_page, spec, X, Y, ("evaluate", {"x": x, "y": y}))
    assert (caught.value.properties["code"], caught.value.properties["field"]) == ("data_invalid", "data.x")


def test_predictions_for_what_normalisation_takes_beyond_float32(browser_page: BrowserPage):
    """The inputs are numbers; what the network makes of them is told as it is."""
    spec = shuffled() | {"data": {"normalize": "standard"}}
    x = X.copy()
    x[0] = 3e38
    got = play(browser_page, spec, X * np.float32(0.01), Y, ("predict", x))["results"][0]
    assert not np.isfinite(got[0]).all()
    assert np.isfinite(got[1:]).all()


# ---- data that is read piece by piece -------------------------------------------------------------------------------


@pytest.mark.parametrize("thread", ["worker", "inline"])
def test_streamed_data_gives_the_same_bytes(browser_page: BrowserPage, thread: str):
    """An array with `read` is the same data, also in evaluate's and predict's hands."""
    spec = shuffled()
    assert final_bytes(browser_page, spec, stream=True, thread=thread) == final_bytes(browser_page, spec)


@pytest.mark.parametrize("thread", ["worker", "inline"])
def test_a_failing_read_rejects(browser_page: BrowserPage, thread: str):
    """The message carries the reader's own; the engine stays usable."""
    with pytest.raises(PageError, match="row 40 is not readable") as caught:
        play(browser_page, shuffled(), X, Y, stream=40, thread=thread)
    assert caught.value.properties["code"] == (
        "data_invalid" if thread == "worker" else caught.value.properties["code"]
    )
    final_bytes(browser_page, shuffled(), thread=thread)


# ---- the end of a run -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thread", ["worker", "inline"])
def test_abort(browser_page: BrowserPage, thread: str):
    """An AbortSignal stops a run with code aborted, soon, and leaves the session usable."""
    spec = mlp(SIZES, LOSS, steps=10_000_000)
    outcome = browser_page.call(PAGE, "abortEarly", spec, X, Y, {"thread": thread})
    assert outcome["code"] == "aborted"
    assert outcome["seen"] <= outcome["step"] < 1_000_000
    assert outcome["after"] == outcome["step"] + 1
    with pytest.raises(PageError) as caught:
        browser_page.call(PAGE, "abortedBefore", spec, X, Y)
    assert caught.value.properties["code"] == "aborted"


BROKEN_OFF: list[tuple[Spec, int]] = [
    (mlp(SIZES, LOSS, epochs=60, batch_size=5) | {"data": {"validation": {"fraction": 0.3}}}, 41),
    # A step of more batches than a chunk has, so that runs end in the middle of one.
    (mlp(SIZES, LOSS, steps=3, batch_size=1, accumulate_steps=3000) | {"data": {"validation": {"rows": [[0, 41]]}}}, 3041),
    # A validation whose outputs are read in two chunks, each of at most 32 batches.
    (
        mlp(SIZES, LOSS, epochs=4, batch_size=1000)
        | {"metrics": ["accuracy", "auc"], "data": {"validation": {"rows": [[0, 70_000]]}}},
        71_000,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "rows"), BROKEN_OFF, ids=["epochs", "long step", "long validation"])
@pytest.mark.parametrize(
    ("how", "thread"),
    [("abort", "worker"), pytest.param("abort", "inline", marks=pytest.mark.full), ("throw", "worker")],
)
def test_a_run_that_is_broken_off_goes_on(
    browser_page: BrowserPage, spec: Spec, rows: int, how: str, thread: str
):
    """Its curve, losses and metrics of the validation, its weights and its state are those of an uninterrupted run."""
    x, y = data_for(rows, SIZES[0], SIZES[-1], LOSS)
    whole = play(browser_page, spec, x, y, ("run", {}), ("weightsFile",), ("checkpoint",), thread=thread)
    found = browser_page.call(PAGE, "brokenOff", spec, x, y, how, {"thread": thread})
    assert found["times"] >= 1
    assert found["history"] == whole["history"]
    assert found["weights"].tobytes() == whole["results"][1].tobytes()
    assert found["checkpoint"].tobytes() == whole["results"][2].tobytes()


@pytest.mark.parametrize(("spec", "rows"), BROKEN_OFF[1:], ids=["long step", "long validation"])
def test_a_run_that_is_broken_off_goes_on_elsewhere(browser_page: BrowserPage, spec: Spec, rows: int):
    """Its checkpoint knows of a validation that has begun: the curve has each point once, and the end is the same."""
    x, y = data_for(rows, SIZES[0], SIZES[-1], LOSS)
    whole = play(browser_page, spec, x, y, ("run", {}), ("weightsFile",), ("checkpoint",))
    found = browser_page.call(PAGE, "brokenOffElsewhere", spec, x, y)
    assert found["times"] >= 1
    assert found["history"] == whole["history"]
    assert found["weights"].tobytes() == whole["results"][1].tobytes()
    assert found["checkpoint"].tobytes() == whole["results"][2].tobytes()


def test_other_weights_after_a_run_was_broken_off(browser_page: BrowserPage):
    """A step under way is finished: nothing of the old weights' gradient is left."""
    spec, rows = BROKEN_OFF[1]
    x, y = data_for(rows, SIZES[0], SIZES[-1], LOSS)
    found = browser_page.call(PAGE, "otherWeightsAfterAbort", spec, x, y, weights_for(SIZES))
    assert found["code"] == "aborted"
    assert 1 <= found["step"] < 3
    assert found["files"][0].tobytes() == found["files"][1].tobytes()


def test_a_throwing_callback_ends_the_run(browser_page: BrowserPage):
    """With its own error."""
    with pytest.raises(PageError, match="the caller's own"):
        browser_page.call(PAGE, "throwingCallback", mlp(SIZES, LOSS, steps=100_000), X, Y)


@pytest.mark.parametrize("thread", ["worker", "inline"])
def test_a_session_disposed_at_work_harms_no_other(browser_page: BrowserPage, thread: str):
    """Its call is told, and draws nothing without its textures: that would be an error of whoever calls next on the engine."""
    got = browser_page.call(
        PAGE, "disposedAtWork", mlp(SIZES, LOSS, steps=1_000_000), X, Y, {"thread": thread}
    )
    assert got["codes"][0] == "disposed"
    assert got["codes"][1] in ("disposed", None)  # unless it was done before
    stayed, anew = got["weights"]
    assert stayed.tobytes() == anew.tobytes()


def test_a_disposed_session_says_so(browser_page: BrowserPage):
    """dispose() twice is fine, run() after it is not."""
    with pytest.raises(PageError) as caught:
        browser_page.call(PAGE, "afterDispose", shuffled(), X, Y)
    assert caught.value.properties["code"] == "disposed"


@pytest.mark.parametrize("thread", ["worker", "inline"])
def test_release_ends_whatever_the_engine_was_doing(browser_page: BrowserPage, thread: str):
    """A compile and a run under way, and every later call but dispose(); the next compile() has an engine of its own."""
    spec = mlp(SIZES, LOSS, steps=1_000_000)
    said = browser_page.call(PAGE, "released", spec, X, Y, {"thread": thread})
    gone = "disposed: the engine was released, and its sessions with it"
    assert (said["compiling"], said["running"]) == (gone, gone)
    assert said["after"] == [gone, gone, gone, "done"]


@pytest.mark.parametrize("where", ["restore", "initialWeights"])
def test_a_files_buffer_is_not_its_bytes(browser_page: BrowserPage, where: str):
    """As fetch() gives it: said, not misread."""
    with pytest.raises(PageError, match="its bytes come as a Uint8Array, not as ArrayBuffer") as caught:
        browser_page.call(PAGE, "withBuffer", shuffled(), X, Y, where)
    assert caught.value.properties["code"] == "data_invalid"


def test_a_spec_may_refuse_a_renderer_on_the_cpu(browser_page: BrowserPage):
    """As a job does; the option says it for any spec."""
    with pytest.raises(PageError) as caught:
        browser_page.call(PAGE, "afterDispose", shuffled() | {"allow_software": False}, X, Y)
    software = browser_page.call("/tests/kernels/budget_page.js", "deviceRecord")["software"]
    assert caught.value.properties["code"] == ("software_refused" if software else "disposed")


def test_a_first_loss_that_is_not_finite_is_not_the_learning_rates(browser_page: BrowserPage):
    """No step was taken before it."""
    x, y = data_for(20, 5, 2, "mse")
    with pytest.raises(PageError, match="at step 1, before any update: the data are too large") as caught:
        play(browser_page, mlp((5, 2), "mse", steps=5), x * np.float32(1e30), y, ("run", {}))
    assert caught.value.properties["field"] == "data.normalize"


def test_a_loss_that_is_not_finite_stops_the_run(browser_page: BrowserPage):
    """The error names the first step; the curve ends there, its last value exact."""
    x, y = data_for(20, 5, 2, "mse")
    spec = mlp((5, 2), "mse", optimizer={"type": "sgd", "lr": 1e4}, steps=500)
    with pytest.raises(PageError, match=r"at step \d+") as caught:
        play(browser_page, spec, x, y, ("run", {}))
    assert caught.value.properties["code"] == "non_finite_loss"
    step = caught.value.properties["detail"]["step"]
    assert (caught.value.properties["field"], step > 1) == ("optimizer.lr", True)
    spec["numerics"] = {"on_nonfinite": "continue"}
    played = play(browser_page, spec, x, y, ("run", {}), ("diagnose",))
    history = played["history"]
    last = history[step - 2]
    assert last["step"] == step - 1
    said = f"at step {step}, after {last['loss']:.3g} at step {step - 1}: training diverged"
    assert said.replace("e+0", "e+") in played["record"]["diverged"]
    for operator in played["results"][1]["operators"]:
        assert operator["compared"] == 0, operator
        assert operator["maxUlp"] is None, "NaN beside NaN is no error of 0"
    losses = played["results"][1]["firstLosses"]
    assert all((each["relativeError"] is None) == (not math.isfinite(each["loss"])) for each in losses)
    assert len(history) == 500
    assert all(math.isfinite(point["loss"]) for point in history[: step - 1])
    assert not any(math.isfinite(point["loss"]) for point in history[step - 1 :])
