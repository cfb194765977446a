"""Writes PyTorch's side of the parity tests to tests/goldens/, for machines without PyTorch (scripts/test --goldens).

Run after a change to the cases of tests/kernels/parity.py:  python -m scripts.write_goldens
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.kernels.parity import CASES, GOLDENS, SEEDS, Case, torch_run


def arrays(case: Case) -> dict[str, np.ndarray]:
    """Losses of both precisions [seeds, steps], and the float64 weights [seeds, ...], to float32: they are compared to 1e-4."""
    exact = [torch_run(case, seed, "float64") for seed in SEEDS]
    single = [torch_run(case, seed, "float32") for seed in SEEDS]
    weights = {
        f"weights.{name}": np.stack([run.weights[name] for run in exact]).astype(np.float32)
        for name in exact[0].weights
    }
    losses = {"float64": exact, "float32": single}
    return weights | {f"losses.{key}": np.stack([run.losses for run in runs]) for key, runs in losses.items()}


def main() -> None:
    """One file a case; what no case makes any more is removed."""
    GOLDENS.mkdir(exist_ok=True)
    for stale in GOLDENS.glob("*.npz"):
        stale.unlink()
    for case in CASES:
        path = GOLDENS / f"{case.name}.npz"
        np.savez_compressed(path, **arrays(case))  # pyright: ignore[reportArgumentType]
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
