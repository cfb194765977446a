"""Parameters that share textures: the same bits as on textures of their own, through every way in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .cnns import FLATTEN, conv, dense
from .harness import BrowserPage
from .specs import OPTIMIZERS, Spec, data_for, mlp

PAGE = "/tests/kernels/regions_page.js"
NORM: dict[str, Any] = {"clip": {"global_norm": 0.5}}


def of_layers(sample: list[int], layers: list[Any], optimizer: str, **train: Any) -> Spec:
    """A spec of any layers."""
    return {
        "model": {"input": sample, "layers": layers},
        "loss": "mse",
        "optimizer": OPTIMIZERS[optimizer],
        "train": {"steps": 6, "seed": 3, "batch_size": 8, **train},
    }


NETS: dict[str, tuple[Spec, int]] = {
    "two layers": (mlp((2, 32, 1), steps=6), 2),
    "momentum": (mlp((5, 17, 17, 3), optimizer="momentum", activation="tanh", steps=6, batch_size=8), 6),
    "adam": (mlp((13, 64, 32, 16, 1), optimizer="adam", steps=6, batch_size=16), 4 * 3),
    "plain and folded": (mlp((20, 40, 40, 40, 2), optimizer="sgd", steps=6, batch_size=16), 4),
    "clipped": (mlp((3, 9, 9, 2), optimizer="adam", steps=6, **NORM), 9),
    "several batches": (mlp((3, 9, 9, 2), optimizer="momentum", steps=6, batch_size=8, accumulate_steps=2), 6),
    "frozen": (of_layers([6], [dense(9, "relu"), dense(9, "relu", trainable=False), dense(9, "relu"), dense(2)], "adam"), 9),
    "image, clipped": (of_layers([6, 6, 2], [conv(5), conv(4, 2, groups=1), {"type": "batch_norm"}, FLATTEN, dense(2)], "momentum", **NORM), 8),
}  # fmt: skip
DEVICES: list[dict[str, Any]] = [
    {"format": "rgba32f", "fetch": "texture"},
    {"format": "rgba32ui", "fetch": "texelFetch", "maxDrawBuffers": 4},
]


@pytest.mark.parametrize(
    ("net", "device"),
    [
        pytest.param(net, device, id=f"{net}-{device['fetch']}", marks=() if (i + j) % 2 == 0 else pytest.mark.full)
        for i, net in enumerate(NETS)
        for j, device in enumerate(DEVICES)
    ],
)  # fmt: skip
def test_shared_textures_change_no_bit(browser_page: BrowserPage, net: str, device: dict[str, Any]):
    """Weights, states and predictions where half of the steps are made on shared textures, from a checkpoint; padding stays 0."""
    spec, sharing = NETS[net]
    inputs, outputs = spec["model"]["input"], spec["model"]["layers"][-1]["units"]
    x, y = data_for(32, int(np.prod(inputs)), outputs, "mse")
    x = x.reshape(32, *inputs)
    half = {"shared": "none", "steps": 3}
    alone = browser_page.call(PAGE, "relay", spec, x, y, device, [half, half])
    shared = browser_page.call(PAGE, "relay", spec, x, y, device, [half, {**half, "shared": "all"}])
    assert (alone["sharing"], alone["stray"]) == (0, 0)
    assert (shared["sharing"], shared["stray"]) == (sharing, 0)
    assert shared["tensors"].keys() == alone["tensors"].keys()
    for name, wanted in alone["tensors"].items():
        assert shared["tensors"][name].tobytes() == wanted.tobytes(), name
    assert shared["predictions"].tobytes() == alone["predictions"].tobytes()


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device["fetch"])
def test_lines_of_one_length_change_no_bit(browser_page: BrowserPage, device: dict[str, Any]):
    """Whatever parameters write: two of the three layers."""
    spec = mlp((20, 24, 24, 3), optimizer="momentum", activation="tanh", steps=6, batch_size=8)
    x, y = data_for(32, 20, 3, "mse")
    half = {"shared": "none", "steps": 3}
    alone = browser_page.call(PAGE, "relay", spec, x, y, device, [half, half])
    level = browser_page.call(PAGE, "relay", spec, x, y, device, [half, {**half, "shared": "level"}])
    assert (level["sharing"], level["stray"]) == (4, 0)
    for name, wanted in alone["tensors"].items():
        assert level["tensors"][name].tobytes() == wanted.tobytes(), name
