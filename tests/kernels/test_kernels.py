"""Every kernel in a real browser against float64, element by element, on the inputs that it read; padding exactly zero.

One step of a small net runs forward, loss, backward and update, each kernel's inputs and outputs read back (steps.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..tolerances import BY_HAND_TOL, FINITE_ATOL, FINITE_RTOL
from .harness import BrowserPage, PageError
from .oracle import Floats
from .specs import ACTIVATIONS, LOSSES, OPTIMIZERS, Array, data_for, mlp, weights_for
from .steps import check_padding, check_reduction, check_values, inspect, split_padding

DEVICES: list[dict[str, Any]] = [
    {"format": storage, "fetch": fetch, "maxDrawBuffers": targets}
    for storage in ("rgba32f", "rgba32ui")
    for fetch in ("texture", "texelFetch")
    for targets in (8, 4, 2, 1)
]
TARGETS_NEEDED = {"sgd": 2, "momentum": 2, "adam": 3}  # a loss writes its gradient and its row losses


def device_id(device: dict[str, Any]) -> str:
    return "-".join(map(str, device.values()))


def check(
    page: BrowserPage,
    sizes: tuple[int, ...],
    rows: int,
    loss: str = "mse",
    *,
    labels: str = "index",
    batch_size: int | None = None,
    batch: int = 0,
    device: dict[str, Any] | None = None,
    **net: Any,
) -> set[str]:
    """Check every kernel of the third step of a net; returns the names of the kernels."""
    x, y = data_for(rows, sizes[0], sizes[-1], loss, labels=labels)
    spec = mlp(sizes, loss, batch_size=batch_size, **net)
    weights = weights_for(sizes)
    step = inspect(page, spec, x, y, weights=weights, steps=2, batch=batch, device=device or {})
    check_padding(step)
    check_reduction(step)
    return set(check_values(step))


# ---- variants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("activation", "optimizer"),
    [
        pytest.param(a, o, marks=() if a == "relu" or o == "adam" else pytest.mark.full)
        for o in OPTIMIZERS
        for a in ACTIVATIONS
    ],
)
def test_activations_losses_and_optimizers(browser_page: BrowserPage, activation: str, optimizer: str):
    """Every activation in the middle, each loss and label kind, each optimizer; a last short batch of 5 rows."""
    net: dict[str, Any] = {"activation": activation, "optimizer": optimizer, "batch_size": 8, "batch": 1}
    check(browser_page, (5, 7, 3), 13, "bce", **net)
    check(browser_page, (6, 9, 6), 13, "bce", **net)
    check(browser_page, (5, 7, 3), 13, "mse", last=activation, **net)
    check(browser_page, (5, 7, 6), 13, "mse", last=activation, **net)
    for labels in ("index", "values"):
        check(browser_page, (5, 7, 3), 13, "softmax_cross_entropy", labels=labels, **net)
        kernels = check(browser_page, (5, 7, 10), 13, "softmax_cross_entropy", labels=labels, **net)
        assert "softmax_cross_entropy.frag.glsl" in kernels


def quick(device: dict[str, Any]) -> bool:
    """A device for the quick run: what SwiftShader gets, what a GPU gets, and the fallback with fewer targets."""
    if device["format"] == "rgba32f":
        return device["maxDrawBuffers"] == 8
    return device["fetch"] == "texelFetch" and device["maxDrawBuffers"] < 8


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
def test_devices(browser_page: BrowserPage, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets; an optimizer that does not fit is refused clearly."""
    for optimizer in OPTIMIZERS:
        net: dict[str, Any] = {"activation": "tanh", "optimizer": optimizer, "batch_size": 8, "batch": 1}
        if TARGETS_NEEDED[optimizer] > device["maxDrawBuffers"]:
            with pytest.raises(PageError, match="render targets; the device has") as caught:
                check(browser_page, (5, 7, 3), 13, "mse", device=device, **net)
            assert caught.value.properties["code"] == "no_float_targets"
        else:
            check(browser_page, (5, 9, 6), 13, "softmax_cross_entropy", device=device, **net)


@pytest.mark.parametrize(
    ("optimizer", "sizes", "rows", "device"),
    [
        (
            "sgd",
            (257, 257, 3),
            264,
            {"maxDrawBuffers": 4, "rows": {"activation": 4, "weight": 2, "gradient": 4}},
        ),
        ("momentum", (257, 257, 3), 264, {}),
        ("adam", (66, 66, 3), 264, {}),
        ("adam", (70, 97, 10), 250, {"maxDrawBuffers": 4}),
    ],
)
def test_stored_gradients(
    browser_page: BrowserPage, optimizer: str, sizes: tuple[int, ...], rows: int, device: dict[str, Any]
):
    """Where storing the gradient saves time, as its fragments have more rows, it is right as stored, and so is the update from it."""
    kernels = check(browser_page, sizes, rows, "softmax_cross_entropy", optimizer=optimizer, device=device)
    assert "affine_grad_weights.frag.glsl+update.frag.glsl" in kernels


@pytest.mark.parametrize("texels", [2, 4])
def test_loops_that_take_more_at_once(browser_page: BrowserPage, texels: int):
    """As on GPUs: samples and texels of rows taken several at once, as far as they leave no remainder; fragments of 1 to 8 rows."""
    device = {"rows": {"activation": {"few": 1, "usual": 4, "many": 8}, "weight": 4,
                       "gradient": 8, "samples": 16, "texels": texels, "slots": 64,
                       "regions": {"texels": 17_500, "alike": True}}}  # fmt: skip
    for sizes in ((5, 9, 3), (23, 41, 6), (31, 513, 70)):
        check(browser_page, sizes, 37, "softmax_cross_entropy", device=device, optimizer="adam")
        check(browser_page, sizes, 37, "mse", activation="tanh", device=device)


ONE_ROW: dict[str, Any] = {"rows": {"activation": 1, "weight": 4, "gradient": 8}}


@pytest.mark.parametrize("device", [DEVICES[index] | ONE_ROW for index in (0, 4, 8, 12)], ids=device_id)
def test_row_losses_of_one_lane(browser_page: BrowserPage, device: dict[str, Any]):
    """Of fragments of one row: textures of one lane beside those of four among the targets of a draw; parts of row losses, targets of one column."""
    net: dict[str, Any] = {"device": device, "batch_size": 8, "batch": 1}
    for loss, columns in (
        ("bce", 1),
        ("mse", 3),
        ("mse", 9),
        ("softmax_cross_entropy", 3),
        ("softmax_cross_entropy", 10),
    ):
        check(browser_page, (5, 7, columns), 13, loss, **net)
    check(browser_page, (2, 32, 1), 100, "bce", device=device)
    check(browser_page, (3, 258), 13, "softmax_cross_entropy", **net)


@pytest.mark.parametrize("storage", ["rgba32f", "rgba32ui"])
def test_reads_of_one_lane(browser_page: BrowserPage, storage: str):
    """One lane alone where the device reads it so, else the first of four."""
    x, y = data_for(37, 2, 1, "bce")
    spec = mlp((2, 32, 1), "bce")
    options = {"weights": weights_for((2, 32, 1)), "device": {"format": storage} | ONE_ROW}
    got = browser_page.call("/tests/kernels/engine_probe.js", "readsOfOneLane", spec, x, y, options)
    for asked, always in zip(got["asked"], got["always"], strict=True):
        assert asked.tobytes() == always.tobytes()
    losses, trained, staged = got["asked"]
    assert np.count_nonzero(losses) == 37
    assert sorted(trained) == sorted(y.ravel())
    assert staged.tolist() == y.ravel().tolist()


@pytest.mark.parametrize("optimizer", ["sgd", pytest.param("adam", marks=pytest.mark.full)])
def test_stored_gradients_below_those_of_the_inputs(browser_page: BrowserPage, optimizer: str):
    """As on GPUs: where both are as wide, in one texture and one render pass."""
    device = {"rows": {"activation": 8, "weight": 4, "gradient": 8, "samples": 16}}
    for sizes, rows in [((3, 128, 128, 2), 300), ((5, 160, 160, 160, 3), 290)]:
        kernels = check(browser_page, sizes, rows, "mse", device=device, optimizer=optimizer)
        assert "affine_grad_weights.frag.glsl+update.frag.glsl" in kernels


@pytest.mark.parametrize(("optimizer", "targets"), [("sgd", 8), ("sgd", 2), ("adam", 8), ("adam", 4)])
def test_weight_gradients_in_parts(browser_page: BrowserPage, optimizer: str, targets: int):
    """As on GPUs: a long batch is shared out among more fragments, also a last short one, of which some get nothing; the update adds their sums."""
    device = {
        "maxDrawBuffers": targets,
        "rows": {"activation": 4, "weight": 4, "gradient": 8, "samples": 16,
                 "parts": {"fragments": 512, "turns": 0, "samples": 32, "least": 2, "most": 8},
                 "regions": {"texels": 17_500 if targets == 8 else 0, "alike": True}},
    }  # fmt: skip
    nets: list[tuple[tuple[int, ...], int, str, dict[str, Any]]] = [
        ((2, 7, 1), 129, "update", {}),
        ((5, 9, 3), 700, "update", {"activation": "tanh"}),
        ((3, 6, 2), 300, "update", {"batch_size": 256, "batch": 1}),
        ((3, 6, 2), 2101, "sum_parts", {"clip": {"global_norm": 0.01}}),
    ]
    for sizes, rows, ending, net in nets:
        kernels = check(browser_page, sizes, rows, "mse", device=device, optimizer=optimizer, **net)
        assert f"affine_grad_weights.frag.glsl+{ending}.frag.glsl" in kernels


@pytest.mark.parametrize("targets", [8, 4])
@pytest.mark.parametrize("labels", ["index", "values"])
def test_softmax_of_long_rows(browser_page: BrowserPage, labels: str, targets: int):
    """Rows of more than 32 classes take two draws: statistics of each row, then the gradient."""
    for classes in (33, 258, 1030):
        kernels = check(
            browser_page, (3, classes), 13, "softmax_cross_entropy", labels=labels, batch_size=8, batch=1,
            device={"maxDrawBuffers": targets},
        )  # fmt: skip
        assert "softmax_rows.frag.glsl+softmax_grad.frag.glsl" in kernels


def test_long_sums_of_row_losses(browser_page: BrowserPage):
    """More than 4,096 texels of row losses are summed in parts, which the host adds."""
    check(browser_page, (2, 257), 300, "mse")
    check(browser_page, (2, 130), 517, "bce")


# ---- shapes ---------------------------------------------------------------------------------------------------------

ODD = [
    # sizes, rows, batch_size, batch
    ((1, 1), 1, None, 0),
    ((1, 1, 1), 2, None, 0),
    ((1, 17), 3, None, 0),
    ((17, 1), 9, 4, 2),
    ((257, 1), 5, None, 0),
    ((1, 257, 1), 7, 4, 1),
    ((3, 257), 4, 3, 1),
    ((13, 257, 5), 11, 8, 1),
    ((257, 16, 4), 257, 256, 1),
    ((8, 8, 8), 16, 8, 1),
    ((4, 12, 16), 33, 11, 2),
    ((2, 3, 5, 7), 257, None, 0),
]


@pytest.mark.parametrize(("sizes", "rows", "batch_size", "batch"), ODD)
def test_odd_shapes(
    browser_page: BrowserPage, sizes: tuple[int, ...], rows: int, batch_size: int | None, batch: int
):
    """1xN, Nx1, sizes around multiples of 4 and 8, 257, last short batches, sums of more than one block."""
    net: dict[str, Any] = {
        "batch_size": batch_size,
        "batch": batch,
        "optimizer": "adam",
        "activation": "sigmoid",
    }
    check(browser_page, sizes, rows, "mse", **net)
    if sizes[-1] > 1:
        check(browser_page, sizes, rows, "softmax_cross_entropy", **net)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("device", [DEVICES[0], DEVICES[5], DEVICES[10]], ids=device_id)
def test_all_small_shapes(browser_page: BrowserPage, device: dict[str, Any], optimizer: str):
    """Each of rows, inputs, hidden units and outputs from 1 to 17 and 257, the others odd."""
    for size in (*range(1, 18), 257):
        for sizes, rows in (((size, 5, 3), 7), ((5, size, 3), 7), ((5, 7, size), 6), ((5, 7, 3), size)):
            for loss in LOSSES:
                if loss == "softmax_cross_entropy" and sizes[-1] == 1:
                    continue
                if TARGETS_NEEDED[optimizer] <= device["maxDrawBuffers"]:
                    check(
                        browser_page, sizes, rows, loss, optimizer=optimizer, device=device, activation="tanh"
                    )


SIZE = st.one_of(st.integers(1, 17), st.sampled_from([31, 33, 64, 255, 257]))


@pytest.mark.full
@pytest.mark.timeout(1800)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    sizes=st.lists(SIZE, min_size=2, max_size=4).map(tuple),
    rows=st.integers(1, 40),
    batch_share=st.floats(0.1, 1),
    loss=st.sampled_from(LOSSES),
    labels=st.sampled_from(["index", "values"]),
    activation=st.sampled_from(ACTIVATIONS),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    device=st.sampled_from([device for device in DEVICES if device["maxDrawBuffers"] > 2]),
    last=st.booleans(),
)
def test_any_net(
    browser_page: BrowserPage, sizes: tuple[int, ...], rows: int, batch_share: float, loss: str, labels: str,
    activation: str, optimizer: str, device: dict[str, Any], last: bool,
):  # fmt: skip
    """Whatever the shapes and the variant."""
    if loss == "softmax_cross_entropy" and sizes[-1] == 1:
        sizes = (*sizes[:-1], 2)
    batch_size = max(1, round(rows * batch_share))
    batch = math.ceil(rows / batch_size) - 1 if last else 0
    check(
        browser_page, sizes, rows, loss, labels=labels, batch_size=batch_size, batch=batch, device=device,
        activation=activation, optimizer=optimizer,
    )  # fmt: skip


FORWARD: dict[str, Callable[[Floats], Floats]] = {
    "linear": lambda z: z,
    "relu": lambda z: np.where(z < 0, 0, z),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(d, id=device_id(d), marks=() if d["maxDrawBuffers"] in (8, 2) else pytest.mark.full)
        for d in DEVICES
        if quick(d) and d["maxDrawBuffers"] > 1
    ],
)
@pytest.mark.parametrize(
    ("sizes", "activation"),
    [((1, 1, 1), "relu"), ((2, 3, 1), "linear"), ((3, 17, 4), "relu"), ((4, 257, 2), "relu")],
)
def test_computed_reads(
    browser_page: BrowserPage, sizes: tuple[int, ...], activation: str, device: dict[str, Any]
):
    """Hidden layers that are never stored, in products, in weight gradients and as slopes; a last batch of one row."""
    kernels = check(
        browser_page,
        sizes,
        13,
        batch_size=6,
        batch=2,
        activation=activation,
        optimizer="momentum",
        device=device,
    )
    assert set(kernels) == {"affine.frag.glsl", "affine_grad_weights.frag.glsl"}


# ---- what must not be hidden ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["dense_1.kernel", "dense_1.bias", "dense_2.kernel", "dense_2.bias"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_non_finite_weights_reach_the_loss(
    browser_page: BrowserPage, activation: str, where: str, value: float
):
    """NaN and infinities come out of every kernel as they come out of float64, are flagged, and never enter padding."""
    sizes = (3, 5, 6)
    x, y = data_for(5, 3, 6, "mse")
    weights = weights_for(sizes)
    weights[where].reshape(-1)[1] = value
    step = inspect(browser_page, mlp(sizes, activation=activation), x, y, weights=weights)
    with np.errstate(all="ignore"):
        hidden = x.astype(np.float64) @ weights["dense_1.kernel"] + weights["dense_1.bias"]
        hidden = FORWARD[activation](hidden)
        z = hidden @ weights["dense_2.kernel"].astype(np.float64) + weights["dense_2.bias"]
        loss = float(np.mean((z - y) ** 2))
    assert_same_kind(step["sums"]["loss"], loss)
    assert step["sums"]["finite"] == math.isfinite(loss)
    stored = {name: tensor for group in step["groups"] for name, tensor in group["outputs"].items()}
    got, padding = split_padding(stored["dense_1.y"], step, "dense_1.y")
    for one, wanted in zip(got.reshape(-1), hidden.reshape(-1), strict=True):
        assert_same_kind(float(one), float(wanted))
    assert not padding.any()


def assert_same_kind(got: float, wanted: float) -> None:
    """Both NaN, the same infinity, or finite and near."""
    if math.isfinite(wanted):
        assert got == pytest.approx(wanted, rel=FINITE_RTOL, abs=FINITE_ATOL)
    else:
        assert np.array_equal([got], [wanted], equal_nan=True)


# ---- gather ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", [8, 2])
def test_gather(browser_page: BrowserPage, targets: int):
    """A batch holds its rows bit for bit, infinities and NaN patterns aside (they are refused), padding rows zero."""
    x, y = data_for(23, 6, 3, "mse")
    x[3], y[5] = -0.0, 3e38
    spec = mlp((6, 3), "mse", batch_size=5, shuffle=False)
    for batch in range(5):
        step = inspect(browser_page, spec, x, y, batch=batch, device={"maxDrawBuffers": targets})
        first = step["groups"][0]["inputs"]
        for name, source in (("x", x), ("target", y)):
            got, padding = split_padding(first[name], step, name)
            assert got.astype(np.float32).tobytes() == source[5 * batch : 5 * batch + 5].tobytes()
            assert not padding.any()


# ---- by hand --------------------------------------------------------------------------------------------------------

A = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
B = np.array([[1, 0, 2], [0, 1, 0], [3, 0, 1]], np.float32)
EYE, ZERO = np.eye(3, dtype=np.float32), np.zeros(3, np.float32)


def outputs(
    page: BrowserPage, spec: dict[str, Any], x: Array, y: Array, weights: dict[str, Array], steps: int = 0
):
    step = inspect(page, spec, x, y, weights=weights, steps=steps)
    return {
        name: split_padding(tensor, step, name)[0]
        for group in step["groups"]
        for name, tensor in group["outputs"].items()
    }


def near(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=BY_HAND_TOL, atol=BY_HAND_TOL)


def test_affine_by_hand(browser_page: BrowserPage):
    """X W + b, dY W^T, X^T dY and the column sums of dY, on 3x3 matrices of small whole numbers."""
    # 5 columns, two of them 0: what 4 or fewer columns give is computed where it is read and never stored
    weights = {
        "dense_1.kernel": np.eye(5, 3, dtype=np.float32), "dense_1.bias": ZERO,
        "dense_2.kernel": B, "dense_2.bias": np.array([1, 2, 3], np.float32),
    }  # fmt: skip
    z = np.array([[11, 4, 8], [23, 7, 17], [35, 10, 26]])
    # mse has dZ = 2 (Z - T) / 9: these targets make it A
    spec = mlp((5, 3, 3), activation="linear", optimizer={"type": "sgd", "lr": 1.0})
    got = outputs(browser_page, spec, np.pad(A, ((0, 0), (0, 2))), (z - 4.5 * A).astype(np.float32), weights)
    near(got["dense_1.y"], A)
    near(got["d(dense_2.y)"], A)
    near(got["d(dense_1.y)"], [[7, 2, 6], [16, 5, 18], [25, 8, 30]])
    near(got["dense_2"][:3], B - [[66, 78, 90], [78, 93, 108], [90, 108, 126]])
    near(got["dense_2"][3], [1 - 12, 2 - 15, 3 - 18])
    near(got["dense_1"][:3], EYE - [[246, 78, 288], [294, 93, 342], [342, 108, 396]])
    near(got["dense_1"][3:5], 0)
    near(got["dense_1"][5], [-48, -15, -54])


def test_softmax_cross_entropy_by_hand(browser_page: BrowserPage):
    """Equal logits give log 3; probabilities of a half, a quarter, three quarters."""
    z = np.log(np.array([[1, 1, 1], [2, 1, 1], [1, 1, 6]])).astype(np.float32)
    softmax = np.array([[1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 4, 1 / 4], [1 / 8, 1 / 8, 3 / 4]])
    for labels in (np.arange(3, dtype=np.int32), EYE):
        got = outputs(
            browser_page, mlp((3, 3), "softmax_cross_entropy"), EYE, labels,
            {"dense_1.kernel": z, "dense_1.bias": ZERO},
        )  # fmt: skip
        near(got["loss"], np.log([3, 4, 4 / 3]) / 3)
        near(got["d(dense_1.y)"], (softmax - EYE) / 3)


def test_bce_by_hand(browser_page: BrowserPage):
    """Logits of 0 give log 2, of ±log 3 probabilities of three quarters and of one."""
    z = np.array([[0, 0, 0], [math.log(3), 0, 0], [0, -math.log(3), 0]], np.float32)
    got = outputs(
        browser_page, mlp((3, 3), "bce"), EYE, EYE, {"dense_1.kernel": z, "dense_1.bias": ZERO}
    )  # fmt: skip
    near(got["loss"] * 9, np.log([8, 16, 16 / 3]))
    near(got["d(dense_1.y)"] * 9, [[-0.5, 0.5, 0.5], [0.75, -0.5, 0.5], [0.5, 0.25, -0.5]])


def test_optimizers_by_hand(browser_page: BrowserPage):
    """SGD and momentum twice, Adam's first step: X is the unit matrix and T such that the first gradient is G."""
    gradient = np.array([[1, -2, 3], [-4, 5, -6], [7, -8, 9]], np.float32)
    sums = gradient.sum(axis=0)
    targets = B - 4.5 * gradient
    weights = {"dense_1.kernel": B, "dense_1.bias": ZERO}

    def after(optimizer: dict[str, Any], steps: int) -> Array:
        return outputs(browser_page, mlp((3, 3), optimizer=optimizer), EYE, targets, weights, steps)[
            "dense_1"
        ]

    # Z = W + b moved by -lr (G + sums), so the second gradient is G - 2 lr (G + sums) / 9
    second = gradient - 2 * 0.5 * (gradient + sums) / 9
    near(after({"type": "sgd", "lr": 0.5}, 0), np.vstack([B - gradient / 2, -sums / 2]))
    near(after({"type": "sgd", "lr": 0.5}, 1)[:3], B - gradient / 2 - second / 2)
    momentum = after({"type": "sgd", "lr": 0.5, "momentum": 0.5}, 1)
    near(momentum[:3], B - gradient / 2 - (second + gradient / 2) / 2)
    adam = after({"type": "adam", "lr": 0.125, "beta1": 0.5, "beta2": 0.75}, 0)
    near(adam, np.vstack([B - 0.125 * np.sign(gradient), -0.125 * np.sign(sums)]))
