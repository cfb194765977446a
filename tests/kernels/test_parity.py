"""Parity with PyTorch over 50 steps, by the rule of docs/numerics.md. Live, or with --goldens against stored runs."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from ..tolerances import (
    GOLDEN_LOSS_RTOL,
    GOLDEN_WEIGHT_ATOL,
    GOLDEN_WEIGHT_RTOL,
    PARITY_LOSS_ATOL,
    PARITY_LOSS_RTOL,
    PARITY_MEDIAN_ATOL,
    PARITY_MEDIAN_FACTOR,
    PARITY_WEIGHT_ATOL,
)
from .harness import BrowserPage
from .parity import CASES, GOLDENS, SEEDS, STEPS, Case, golden_runs, reference_run, torch_run, uses_goldens

ENGINE = "/tests/kernels/engine_page.js"
# Their losses, optimizers and layers stand in other cases too.
COVERED = {
    "mse-sgd", "mse-adam", "bce-sgd", "bce-momentum", "softmax_cross_entropy-sgd", "softmax_cross_entropy-momentum",
    "nesterov-nesterov", "rmsprop-rmsprop", "adamw-adamw",
}  # fmt: skip
each_case = pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=pytest.mark.full if c.name in COVERED else ()) for c in CASES],
)


def engine_run(page: BrowserPage, case: Case, seed: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The engine's losses, and its weights after the last step."""
    x, y = case.data(seed)
    run = page.call(ENGINE, "run", case.spec(seed), x, y, options)
    assert [point["step"] for point in run["history"]] == list(range(1, STEPS + 1))
    return np.array([point["loss"] for point in run["history"]]), run["weights"]


@each_case
def test_parity_with_pytorch(browser_page: BrowserPage, case: Case):
    """Every seed near PyTorch float64, and in the median no further from it than 4 times PyTorch float32."""
    check_parity(browser_page, case)


@pytest.mark.full
@pytest.mark.parametrize("algorithm", ["direct", "im2col"])
@pytest.mark.parametrize("net", ["cnn-adam", "sequence-adam"])
def test_parity_of_both_convolutions(browser_page: BrowserPage, net: str, algorithm: str):
    """The same, whichever way all convolutions take."""
    (case,) = (case for case in CASES if case.name == net)
    check_parity(browser_page, case, device={"convolution": algorithm})


def check_parity(browser_page: BrowserPage, case: Case, **options: Any) -> None:
    """Of all seeds; options are the engine's."""
    ours: list[float] = []
    theirs: list[float] = []
    for seed in SEEDS:
        reference = reference_run(case, seed, "float64")
        losses, weights = engine_run(browser_page, case, seed, **options)
        distance = np.abs(losses - reference.losses)
        assert np.all(distance <= PARITY_LOSS_RTOL * np.abs(reference.losses) + PARITY_LOSS_ATOL), (
            f"seed {seed}"
        )
        for name, wanted in reference.weights.items():
            assert np.abs(weights[name] - wanted).max() <= PARITY_WEIGHT_ATOL, f"seed {seed}: {name}"
        assert reference.losses[-1] < reference.losses[0], "nothing was learnt, so little is proved"
        ours.append(float(distance.max()))
        theirs.append(float(np.abs(reference_run(case, seed, "float32").losses - reference.losses).max()))
    assert np.median(ours) <= PARITY_MEDIAN_FACTOR * np.median(theirs) + PARITY_MEDIAN_ATOL


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            c, id=c.name, marks=() if c.name in {"bce-adam", "mixed-adam", "cnn-adam"} else pytest.mark.full
        )
        for c in CASES
    ],
)
def test_the_seed_gives_these_weights(browser_page: BrowserPage, case: Case):
    """The engine's own initial weights are bit for bit those that PyTorch starts from here: handing them over changes nothing."""
    losses, weights = engine_run(browser_page, case, 3)
    given, same = engine_run(browser_page, case, 3, initialWeights=case.initial_weights(3))
    assert losses.tobytes() == given.tobytes()
    for name, value in weights.items():
        assert value.tobytes() == same[name].tobytes()


@each_case
def test_goldens_are_complete(case: Case):
    """Every case has its file, of the sizes that the case has; all together stay below a megabyte."""
    runs = golden_runs(case)
    assert len(runs) == 2 * len(SEEDS)
    for (_, precision), run in runs.items():
        assert run.losses.shape == (STEPS,)
        if precision == "float64":
            shapes = {name: value.shape for name, value in case.initial_weights(0).items()}
            assert {name: value.shape for name, value in run.weights.items()} == shapes
    assert sum(path.stat().st_size for path in GOLDENS.glob("*.npz")) < 1_000_000
    assert {path.stem for path in GOLDENS.glob("*.npz")} == {case.name for case in CASES}


def test_pytorch_is_used_unless_goldens_are_asked_for():
    """A missing PyTorch is an error and not a skip."""
    assert uses_goldens() or importlib.util.find_spec("torch") is not None


if not uses_goldens():

    @pytest.mark.full
    @each_case
    def test_goldens_are_what_pytorch_gives(case: Case):
        """The stored runs are those of the cases as they stand; float64 on another machine sums in another order."""
        for seed in SEEDS[:2]:
            live, stored = torch_run(case, seed, "float64"), golden_runs(case)[seed, "float64"]
            np.testing.assert_allclose(stored.losses, live.losses, rtol=GOLDEN_LOSS_RTOL)
            for name, value in live.weights.items():
                np.testing.assert_allclose(
                    stored.weights[name], value, rtol=GOLDEN_WEIGHT_RTOL, atol=GOLDEN_WEIGHT_ATOL
                )
