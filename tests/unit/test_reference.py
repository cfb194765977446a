"""browser_runtime/reference/: each op on one 3x3 case by hand; test_reference_torch.py has the rest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from ..node import NodeError, call
from ..tolerances import REFERENCE_ATOL, REFERENCE_RTOL

PROBE = "/tests/kernels/reference_probe.js"
Array = NDArray[np.float64]


def array(values: ArrayLike) -> Array:
    return np.array(values, np.float64)


def op(name: str, attrs: dict[str, Any] | None = None, **inputs: Any) -> dict[str, Array]:
    return call(PROBE, "op", name, inputs, attrs or {})


def close(got: Any, values: ArrayLike) -> None:
    expected = array(values)
    assert np.shape(got) == expected.shape
    np.testing.assert_allclose(got, expected, rtol=REFERENCE_RTOL, atol=REFERENCE_ATOL)


# ---- by hand ------------------------------------------------------------------------------------------------

A = array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
B = array([[1, 0, 2], [0, 1, 0], [3, 0, 1]])
E = math.e


def test_matmul_by_hand():
    """Rows times columns, and both gradients."""
    close(op("matmul", a=A, b=B)["c"], [[10, 2, 5], [22, 5, 14], [34, 8, 23]])
    close(op("matmul_grad_a", dc=A, b=B)["da"], [[7, 2, 6], [16, 5, 18], [25, 8, 30]])
    close(op("matmul_grad_b", a=A, dc=B)["db"], [[22, 4, 9], [26, 5, 12], [30, 6, 15]])


def test_affine_by_hand():
    """The bias is added to every row; its gradient is the column sum."""
    close(op("affine", x=A, kernel=B, bias=array([1, 2, 3]))["y"], [[11, 4, 8], [23, 7, 17], [35, 10, 26]])
    close(op("affine_grad_input", dy=A, kernel=B)["dx"], [[7, 2, 6], [16, 5, 18], [25, 8, 30]])
    got = op("affine_grad_weights", x=A, dy=B)
    close(got["kernel"], [[22, 4, 9], [26, 5, 12], [30, 6, 15]])
    close(got["bias"], [4, 1, 3])


IMAGE = A.reshape(1, 3, 3, 1)
TWO_BY_TWO = {
    "taps": [2, 2], "stride": [1, 1], "dilation": [1, 1], "padding": [0, 0], "input": [3, 3, 1], "output": [2, 2, 1],
}  # fmt: skip


def test_conv2d_by_hand():
    """A correlation, not turned: the kernel's first element meets the window's first; DX is where each DY laid the kernel down."""
    kernel, dy = array([[1, 2], [3, 4]]).reshape(2, 2, 1, 1), array([[1, 0], [0, 2]]).reshape(1, 2, 2, 1)
    y = op("conv2d", TWO_BY_TWO, x=IMAGE, kernel=kernel, bias=array([1]))["y"]
    close(y, array([[38, 48], [68, 78]]).reshape(1, 2, 2, 1))
    dx = op("conv2d_grad_input", TWO_BY_TWO, dy=dy, kernel=kernel)["dx"]
    close(dx, array([[1, 2, 0], [3, 6, 4], [0, 6, 8]]).reshape(1, 3, 3, 1))
    got = op("conv2d_grad_weights", TWO_BY_TWO, x=IMAGE, dy=dy)
    close(got["kernel"], array([[11, 14], [20, 23]]).reshape(2, 2, 1, 1))
    close(got["bias"], [3])


def test_conv2d_dilated_and_padded_by_hand():
    """Taps two apart with a line of zeros around: the corners' sums by the four corners of the kernel."""
    attrs = TWO_BY_TWO | {"dilation": [2, 2], "padding": [1, 1], "output": [3, 3, 1]}
    kernel = array([[1, 2], [3, 4]]).reshape(2, 2, 1, 1)
    y = op("conv2d", attrs, x=IMAGE, kernel=kernel, bias=array([0]))["y"]
    close(y, array([[20, 36, 15], [36, 64, 26], [10, 16, 5]]).reshape(1, 3, 3, 1))


def test_means_and_sums_of_windows_by_hand():
    """Overlapping windows over 1 to 9; padding is not counted; each element gets its windows' shares back."""
    dy = array([[4, 8], [12, 16]]).reshape(1, 2, 2, 1)
    close(op("avg_pool2d", TWO_BY_TWO, x=IMAGE)["y"], array([[3, 4], [6, 7]]).reshape(1, 2, 2, 1))
    dx = op("avg_pool2d_grad", TWO_BY_TWO, dy=dy)["dx"]
    close(dx, array([[1, 3, 2], [4, 10, 6], [3, 7, 4]]).reshape(1, 3, 3, 1))
    padded = TWO_BY_TWO | {"stride": [2, 2], "padding": [1, 1]}
    close(op("avg_pool2d", padded, x=IMAGE)["y"], array([[1, 2.5], [5.5, 7]]).reshape(1, 2, 2, 1))
    dx = op("avg_pool2d_grad", padded, dy=dy)["dx"]
    close(dx, array([[4, 4, 4], [6, 4, 4], [6, 4, 4]]).reshape(1, 3, 3, 1))
    apart = {"taps": [1, 2], "stride": [1, 2], "padding": [0, 0], "input": [2, 4, 1], "output": [2, 2, 1]}
    y = op("upsample2d", apart, x=dy)["y"]
    close(y, array([[4, 4, 8, 8], [12, 12, 16, 16]]).reshape(1, 2, 4, 1))
    close(op("upsample2d_grad", apart, dy=y)["dx"], 2 * dy)


def test_dropout_by_hand():
    """What the mask drops is 0, the rest is divided by what is kept; NaN that is dropped is gone."""
    x = array([[1, 2, math.nan], [4, math.nan, -6]])
    got = op("dropout", {"kept": 0.5}, x=x, mask=array([1, 0, 0, 1, 1, 1]))["y"]
    close(got, [[2, 0, 0], [8, math.nan, -12]])


def test_moved_elements_by_hand():
    """Lines put around and taken away, channels joined and taken apart, products."""
    moved = {"input": [3, 3, 1], "output": [3, 4, 1], "offset": [1, -1]}
    y = op("shift2d", moved, x=IMAGE)["y"]
    close(y, array([[0, 4, 5, 6], [0, 7, 8, 9], [0, 0, 0, 0]]).reshape(1, 3, 4, 1))
    back = {"input": [3, 4, 1], "output": [3, 3, 1], "offset": [-1, 1]}
    close(op("shift2d", back, x=y)["y"], array([[0, 0, 0], [4, 5, 6], [7, 8, 9]]).reshape(1, 3, 3, 1))
    joined = op("concat", a=A, b=B[:, :2])["y"]
    close(joined, np.hstack([A, B[:, :2]]))
    close(op("slice_channels", {"first": 2, "count": 2}, x=joined)["y"], joined[:, 2:4])
    close(op("reshape", x=A)["y"], A)
    close(op("multiply", a=A, b=B)["y"], A * B)


@pytest.mark.parametrize(
    ("x", "y", "dx"),
    [
        (A, [[5, 6], [8, 9]], [[0, 0, 0], [0, 1, 2], [0, 3, 4]]),
        (-A, [[-1, -2], [-4, -5]], [[1, 2, 0], [3, 4, 0], [0, 0, 0]]),
        (np.ones((3, 3)), [[1, 1], [1, 1]], [[1, 2, 0], [3, 4, 0], [0, 0, 0]]),
        ([[0, 0, 7], [0, math.nan, math.nan], [0, 0, math.inf]], [[math.nan] * 2] * 2, [[0, 0, 0], [0, 10, 0], [0, 0, 0]]),
    ],
)  # fmt: skip
def test_max_pool2d_by_hand(x: ArrayLike, y: ArrayLike, dx: ArrayLike):
    """Overlapping windows add up; of equal elements, and of several NaN, the first takes the gradient."""
    image, dy = array(x).reshape(1, 3, 3, 1), array([[1, 2], [3, 4]]).reshape(1, 2, 2, 1)
    close(op("max_pool2d", TWO_BY_TWO, x=image)["y"], array(y).reshape(1, 2, 2, 1))
    close(op("max_pool2d_grad", TWO_BY_TWO, x=image, dy=dy)["dx"], array(dx).reshape(1, 3, 3, 1))


@pytest.mark.parametrize(
    ("fn", "y", "slope"),
    [
        ("linear", [[-1, 0, 2]] * 3, [[1, 1, 1]] * 3),
        ("relu", [[0, 0, 2]] * 3, [[0, 0, 1]] * 3),
        (
            "sigmoid",
            [[1 / (1 + E), 0.5, 1 / (1 + E**-2)]] * 3,
            [[E / (1 + E) ** 2, 0.25, E**2 / (1 + E**2) ** 2]] * 3,
        ),
        (
            "tanh",
            [[(1 - E**2) / (1 + E**2), 0, (E**4 - 1) / (E**4 + 1)]] * 3,
            [[4 / (E + 1 / E) ** 2, 1, 4 / (E**2 + E**-2) ** 2]] * 3,
        ),
        ("leaky_relu", [[-0.01, 0, 2]] * 3, [[0.01, 0.01, 1]] * 3),
        ("elu", [[1 / E - 1, 0, 2]] * 3, [[1 / E, 1, 1]] * 3),
        (
            "softplus",
            [[math.log(1 + 1 / E), math.log(2), math.log(1 + E**2)]] * 3,
            [[1 / (1 + E), 0.5, E**2 / (1 + E**2)]] * 3,
        ),
        ("hard_sigmoid", [[1 / 3, 0.5, 5 / 6]] * 3, [[1 / 6, 1 / 6, 1 / 6]] * 3),
    ],
)
def test_activations_by_hand(fn: str, y: ArrayLike, slope: ArrayLike):
    """Value, and gradient from output and from input."""
    x, dy = array([[-1, 0, 2]] * 3), array([[3, 3, 3], [-1, -1, -1], [0, 0, 0]])
    close(op("activation", {"fn": fn}, x=x)["y"], y)
    close(op("activation_grad", {"fn": fn}, dy=dy, y=array(y))["dx"], array(slope) * dy)
    close(op("activation_grad", {"fn": fn}, dy=dy, x=x)["dx"], array(slope) * dy)


@pytest.mark.parametrize(
    ("fn", "y", "slope"),
    [
        # Phi(1) = 0.841344746068543, phi(1) = 0.241970724519143
        ("gelu", [-0.158655253931457, 0, 0.841344746068543], [-0.083315470587687, 0.5, 1.083315470587687]),
        (
            "silu",
            [-1 / (1 + E), 0, E / (1 + E)],
            [(1 + E - E) / (1 + E) - E / (1 + E) ** 2, 0.5, E / (1 + E) + E / (1 + E) ** 2],
        ),
        ("hard_swish", [-1 / 3, 0, 2 / 3], [1 / 6, 0.5, 5 / 6]),
    ],
)
def test_activations_whose_slope_needs_the_input_by_hand(fn: str, y: list[float], slope: list[float]):
    """At -1, 0 and 1."""
    x, dy = array([-1, 0, 1]), array([3, -1, 2])
    np.testing.assert_allclose(op("activation", {"fn": fn}, x=x)["y"], y, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        op("activation_grad", {"fn": fn}, dy=dy, x=x)["dx"], slope * dy, rtol=0, atol=1e-14
    )


def test_softmax_channels_by_hand():
    """Equal inputs give equal shares; the gradient sums to 0 over the channels."""
    x = array([[0, 0, 0], [math.log(2), 0, 0], [1000, 0, -1000]])
    y = array([[1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 4, 1 / 4], [1, 0, 0]])
    close(op("softmax_channels", x=x)["y"], y)
    dx = op("softmax_channels_grad", dy=A, y=y)["dx"]
    close(dx, [[-1 / 3, 0, 1 / 3], [-3 / 8, 1 / 16, 5 / 16], [0, 0, 0]])


def test_bce_by_hand():
    """Row losses are means over the outputs, the gradient is that of the mean over the batch."""
    z, y = np.zeros((3, 3)), array([[0, 1, 0], [1, 1, 1], [0, 0, 0.5]])
    attrs = {"fn": "bce", "labels": "values"}
    close(op("loss", attrs, z=z, target=y)["loss"], [math.log(2)] * 3)
    close(op("loss_grad", attrs, z=z, target=y)["dz"], (0.5 - y) / 9)
    assert call(PROBE, "lossMean", "bce", z, y) == pytest.approx(math.log(2), rel=REFERENCE_RTOL)
    predicted = op("accuracy", attrs, z=array([[-1, 1, 1], [1, 1, 1], [1, 1, 1]]), target=y)["correct"]
    close(predicted, [2 / 3, 1, 0])


def test_mse_by_hand():
    """Row losses are means over the outputs."""
    z, y = A, B
    attrs = {"fn": "mse", "labels": "values"}
    close(op("loss", attrs, z=z, target=y)["loss"], [5 / 3, 68 / 3, 144 / 3])
    close(op("loss_grad", attrs, z=z, target=y)["dz"], 2 * (A - B) / 9)


def test_softmax_cross_entropy_by_hand():
    """Equal logits give log 3; class numbers and their one-hot rows are the same; the first largest logit wins."""
    z = array([[0, 0, 0], [math.log(2), 0, 0], [0, 0, math.log(6)]])
    classes, one_hot = array([0, 1, 2]), np.eye(3)
    softmax = array([[1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 4, 1 / 4], [1 / 8, 1 / 8, 3 / 4]])
    for target, labels in ((classes, "index"), (classes.reshape(3, 1), "index"), (one_hot, "values")):
        attrs = {"fn": "softmax_cross_entropy", "labels": labels}
        close(op("loss", attrs, z=z, target=target)["loss"], [math.log(3), math.log(4), math.log(4 / 3)])
        close(op("loss_grad", attrs, z=z, target=target)["dz"], (softmax - one_hot) / 3)
        close(op("accuracy", attrs, z=z, target=target)["correct"], [1, 0, 1])


def test_optimizers_by_hand():
    """One step of each; Adam's first step is lr in the gradient's direction."""
    w, g = A, 2 * B - 1
    assert np.all(g != 0)
    close(call(PROBE, "optimize", w, [g], {"type": "sgd"}, [0.5])[0], w - g / 2)
    momentum = call(PROBE, "optimize", w, [g, g], {"type": "sgd", "momentum": 0.5}, [1, 1])
    close(momentum[1], w - g - 1.5 * g)
    adam = {"type": "adam", "beta1": 0.5, "beta2": 0.75, "eps": 0}
    close(call(PROBE, "optimize", w, [g], adam, [0.1])[0], w - 0.1 * np.sign(g))


def test_schedules_by_hand():
    """Cosine falls from lr to min_lr: half way at half time."""
    assert call(PROBE, "rates", "constant", {"lr": 0.3}, 3) == [0.3] * 3
    got = call(PROBE, "rates", "cosine", {"lr": 1, "min_lr": 0.2}, 4)
    close(got, [1, 0.6 + 0.4 * math.sqrt(0.5), 0.6, 0.6 - 0.4 * math.sqrt(0.5)])


def test_gather_by_hand():
    """Rows in the given order, -1 as zeros."""
    close(op("gather", source=A, order=array([2, -1, 0]))["rows"], [[7, 8, 9], [0, 0, 0], [1, 2, 3]])


# ---- what does not fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "inputs", "attrs", "message"),
    [
        ("matmul", {"a": A, "b": A[:2]}, {}, r"matmul: shapes \[3,3\] and \[2,3\] do not fit"),
        ("affine", {"x": A, "kernel": B, "bias": A[0, :2]}, {}, r"bias: shapes \[3,3\] and \[2\]"),
        ("loss", {"z": A, "target": array([0, 1, 3])}, {"fn": "softmax_cross_entropy", "labels": "index"}, "no class 3 among 3"),
        ("loss", {"z": A, "target": A[:2]}, {"fn": "mse", "labels": "values"}, r"shapes \[3,3\] and \[2,3\]"),
        ("loss", {"z": A, "target": A}, {"fn": "l7", "labels": "values"}, "no loss l7; use one of bce"),
        ("gather", {"source": A, "order": array([3])}, {}, "no row 3 among 3"),
    ],
)  # fmt: skip
def test_bad_shapes_name_both(name: str, inputs: dict[str, Any], attrs: dict[str, Any], message: str):
    """An error says what was given, both shapes included."""
    with pytest.raises(NodeError, match=message):
        op(name, attrs, **inputs)
