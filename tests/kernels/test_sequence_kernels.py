"""Poolings over sequences: those over images with one row, every kernel against float64, and gradients."""

from __future__ import annotations

import pytest

from .cnns import FLATTEN, Layer, cnn, conv1d, dense, images_for, weights_of
from .harness import BrowserPage
from .test_gradients import check as check_gradients
from .test_linear_kernels import check


def pool1d(kind: str, size: int, **fields: object) -> Layer:
    """A max or avg pooling."""
    return {"type": f"{kind}_pool1d", "size": size, **fields}


NETS: dict[str, list[Layer]] = {
    "max": [conv1d(5, 3, "tanh"), pool1d("max", 3, stride=2, padding="same"), conv1d(4, 2, "linear"), pool1d("max", 2, padding=[1, 0]), FLATTEN],
    "avg": [conv1d(5, 3, "tanh"), pool1d("avg", 3, stride=2, padding="same"), conv1d(4, 2, "linear"), pool1d("avg", 2, padding=[1, 0]), FLATTEN],
    "global max": [conv1d(6, 3, "tanh"), {"type": "global_max_pool1d"}],
    "global avg": [conv1d(6, 3, "tanh"), {"type": "global_avg_pool1d"}],
}  # fmt: skip


@pytest.mark.parametrize("net", NETS)
def test_pools_of_sequences(browser_page: BrowserPage, net: str):
    """Every kernel; windows that overlap and are padded, a last short batch."""
    check(browser_page, (17, 3), [*NETS[net], dense(3)], 7, batch_size=4, batch=1, optimizer="adam")


@pytest.mark.parametrize("net", NETS)
def test_gradients(browser_page: BrowserPage, net: str):
    """Central differences of the whole net; 2 samples."""
    spec = cnn((11, 2), [*NETS[net], dense(3)], optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    x, y = images_for(spec, 2)
    check_gradients(browser_page, spec, x, y, (weights_of(spec, seed=seed) for seed in range(1, 400)))
