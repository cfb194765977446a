"""The weights that a spec begins with: each layer's initialisers of kernel and bias."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from texelgrad.rng import RandomStream, Stream

from ..kernels.cnns import FLATTEN, cnn, conv, dense
from ..node import call
from ..tolerances import ORTHOGONAL_ATOL


def initial(init: Any, bias_init: Any) -> dict[str, Any]:
    """Of a convolution and a dense layer, the second's number 1."""
    fields = {"init": init, "bias_init": bias_init}
    layers = [conv(5, 2, **fields), FLATTEN, dense(7, **fields)]
    return call("/tests/unit/weights_probe.js", "initialWeights", cnn((4, 3, 2), layers, seed=3))


@pytest.mark.parametrize(("init", "value"), [("zeros", 0), ("ones", 1), (-0.25, -0.25), (2, 2)])
def test_constants(init: Any, value: float):
    """A number is itself, for kernels and biases alike."""
    for name, array in initial(init, init).items():
        assert np.all(array == value), name


def test_biases_are_zero_unless_asked_for():
    """And a bias does not change what the kernel gets."""
    plain, shifted = initial("lecun_normal", "zeros"), initial("lecun_normal", 0.1)
    for name, array in plain.items():
        if name.endswith(".bias"):
            assert not array.any()
            assert np.all(shifted[name] == np.float32(0.1))
        else:
            assert array.tobytes() == shifted[name].tobytes()


def test_each_parameter_has_a_stream_of_its_own():
    """Numbered in the order of the layers; fans of a convolution count its places."""
    found = initial("lecun_normal", "zeros")
    for index, (name, fan_in) in enumerate((("conv2d_1", 2 * 2 * 2), ("dense_1", 3 * 2 * 5))):
        kernel = found[f"{name}.kernel"]
        drawn = RandomStream(3, Stream.INIT, index).normal(kernel.size) * math.sqrt(1 / fan_in)
        assert kernel.reshape(-1).tobytes() == drawn.astype(np.float32).tobytes()


def test_orthogonal_kernels():
    """A convolution's kernel is a matrix of all that a filter reads, times filters."""
    for kernel in (initial("orthogonal", "zeros")[f"{name}.kernel"] for name in ("conv2d_1", "dense_1")):
        matrix = kernel.reshape(-1, kernel.shape[-1]).astype(np.float64)
        np.testing.assert_allclose(matrix.T @ matrix, np.eye(matrix.shape[1]), atol=ORTHOGONAL_ATOL)
