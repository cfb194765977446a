"""Logits that are sums of parts, as on GPUs: kernels against float64, whole runs."""

from __future__ import annotations

from typing import Any

import pytest

from .forced import check_report
from .harness import BrowserPage
from .parity import CASES
from .specs import ACTIVATIONS, data_for, mlp
from .test_kernels import check
from .test_parity import check_parity
from .test_uniform_rows import FORMATS, ROWS

EVERY: dict[str, Any] = {"rows": ROWS | {"sums": {"fragments": 2**20, "texels": 1, "most": 8}}}
"""However many fragments there are, and however short their sums."""


@pytest.mark.parametrize("device", FORMATS, ids=lambda device: "-".join(device.values()))
@pytest.mark.parametrize(
    ("sizes", "rows", "batch_size"),
    [
        ((8, 6), 5, 5),  # two parts of a texel, in a folded texture
        ((12, 33, 64, 31), 37, 20),  # eight parts, rows that leave 12 of 16
        ((24, 600, 10), 48, 17),  # two parts of 75 texels, which are two blocks each
        ((9, 36, 3), 30, 30),  # 9 texels: none
    ],
)
def test_logits(
    browser_page: BrowserPage, sizes: tuple[int, ...], rows: int, batch_size: int, device: dict[str, str]
):
    """Both formats, both ways of fetching; the last batch, which is short."""
    batch = (rows - 1) // batch_size
    check(
        browser_page, sizes, rows, "softmax_cross_entropy", device=EVERY | device, batch_size=batch_size, batch=batch
    )  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_behind_any_activation(browser_page: BrowserPage, activation: str):
    """Logits have none themselves."""
    check(browser_page, (6, 64, 7), 21, "softmax_cross_entropy", activation=activation, device=EVERY)


@pytest.mark.parametrize("rows", [1, 4, 8])
def test_any_rows_a_fragment(browser_page: BrowserPage, rows: int):
    """One as on GPUs, where few fragments have one row each, or several."""
    device = {"rows": EVERY["rows"] | {"activation": rows}}
    check(browser_page, (6, 128, 10), 37, "softmax_cross_entropy", device=device, batch_size=20, batch=1)


def test_parity_with_pytorch(browser_page: BrowserPage):
    """By the rule of docs/numerics.md."""
    (case,) = (case for case in CASES if case.name == "softmax_cross_entropy-adam")
    check_parity(browser_page, case, device=EVERY)


def test_the_precision_report_adds_the_parts(browser_page: BrowserPage):
    """Every operator against the engine's own reference."""
    spec = mlp((30, 64, 64, 5), "softmax_cross_entropy", optimizer="adam", steps=3, batch_size=24)
    x, y = data_for(50, 30, 5, "softmax_cross_entropy")
    check_report(browser_page, spec, x, y, EVERY)
