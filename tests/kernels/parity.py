"""The runs in which the engine and PyTorch must agree: same initial weights, same batches, 50 steps.

`scripts/write_goldens.py` stores PyTorch's side in tests/goldens/, so that parity is tested where PyTorch is not installed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from texelgrad.rng import RandomStream, Stream

from .specs import LOSSES, OPTIMIZERS, Array, Spec, mlp

GOLDENS = Path(__file__).parents[1] / "goldens"
STEPS = 50
SEEDS = tuple(range(8))

Weights = dict[str, Array]
Precision = Literal["float64", "float32"]


@dataclass(frozen=True)
class Run:
    """What one training run gave: the loss before each step, and the weights after the last."""

    losses: Array  # [STEPS]
    weights: Weights


@dataclass(frozen=True)
class Case:
    """A net, a loss, an optimizer; rows do not fill the last batch."""

    sizes: tuple[int, ...]
    activation: str
    loss: str
    optimizer: str
    rows: int
    batch_size: int

    @property
    def name(self) -> str:
        """Such as softmax_cross_entropy-adam; also the golden file's name."""
        return f"{self.loss}-{self.optimizer}"

    def spec(self, seed: int) -> Spec:
        """The job spec, with a cosine schedule over the 50 steps."""
        optimizer = OPTIMIZERS[self.optimizer] | {"schedule": {"type": "cosine", "min_lr": 0.001}}
        return mlp(
            self.sizes, self.loss, activation=self.activation, optimizer=optimizer,
            steps=STEPS, seed=seed, batch_size=self.batch_size,
        )  # fmt: skip

    def data(self, seed: int) -> tuple[Array, Array]:
        """Normal inputs; targets that a rule with noise gives, so that there is something to learn."""
        random = RandomStream(seed, Stream.SYNTHETIC)
        inputs, outputs = self.sizes[0], self.sizes[-1]
        x = random.normal(self.rows * inputs).reshape(self.rows, inputs).astype(np.float32)
        rule = random.normal(inputs * outputs).reshape(inputs, outputs)
        z = x @ rule / math.sqrt(inputs) + 0.3 * random.normal(self.rows * outputs).reshape(
            self.rows, outputs
        )
        if self.loss == "mse":
            return x, z.astype(np.float32)
        if self.loss == "bce":
            return x, (z > 0).astype(np.float32)
        return x, z.argmax(axis=1).astype(np.int32)

    def initial_weights(self, seed: int) -> Weights:
        """What the seed gives by docs/page-protocol.md: Glorot, or He before a relu, uniform; biases zero."""
        weights: Weights = {}
        for index, (fan_in, fan_out) in enumerate(pairwise(self.sizes)):
            he = self.activation == "relu" and index < len(self.sizes) - 2
            limit = math.sqrt(3 * (2 / fan_in if he else 2 / (fan_in + fan_out)))
            draws = RandomStream(seed, Stream.INIT, index).uniform(fan_in * fan_out)
            kernel = ((2 * draws - 1) * limit).astype(np.float32).reshape(fan_in, fan_out)
            weights[f"dense_{index + 1}.kernel"] = kernel
            weights[f"dense_{index + 1}.bias"] = np.zeros(fan_out, np.float32)
        return weights

    def batches(self, seed: int) -> Iterator[Array]:
        """The rows of each of the 50 steps: epochs of a shuffled order, cut into batches, the last one short."""
        per_epoch = math.ceil(self.rows / self.batch_size)
        for step in range(STEPS):
            order = RandomStream(seed, Stream.SHUFFLE, step // per_epoch).permutation(self.rows)
            yield order[step % per_epoch * self.batch_size :][: self.batch_size]

    def learning_rate(self, step: int) -> float:
        """Half a cosine, step counted from 0."""
        lr, low = OPTIMIZERS[self.optimizer]["lr"], 0.001
        return low + (lr - low) * (1 + math.cos(math.pi * step / STEPS)) / 2


NETS: dict[str, dict[str, Any]] = {
    "bce": {"sizes": (2, 32, 1), "activation": "relu", "rows": 100, "batch_size": 32},
    "mse": {"sizes": (6, 16, 3), "activation": "tanh", "rows": 45, "batch_size": 16},
    "softmax_cross_entropy": {
        "sizes": (20, 32, 16, 5),
        "activation": "sigmoid",
        "rows": 90,
        "batch_size": 32,
    },
}
CASES = [Case(**NETS[loss], loss=loss, optimizer=optimizer) for loss in LOSSES for optimizer in OPTIMIZERS]


def torch_run(case: Case, seed: int, precision: Precision) -> Run:
    """The same training in PyTorch."""
    import torch  # where goldens are tested it is not installed
    from torch.nn import functional

    torch.set_num_threads(1)  # so small a matrix is slower in two threads, and far slower on busy cores
    dtype = {"float64": torch.float64, "float32": torch.float32}[precision]
    weights = {
        name: torch.tensor(value, dtype=dtype, requires_grad=True)
        for name, value in case.initial_weights(seed).items()
    }
    options = OPTIMIZERS[case.optimizer]
    optimizer: torch.optim.Optimizer = (
        torch.optim.Adam(weights.values(), lr=options["lr"])
        if options["type"] == "adam"
        else torch.optim.SGD(weights.values(), lr=options["lr"], momentum=options.get("momentum", 0))
    )
    act = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}[case.activation]
    loss_of = {
        "bce": functional.binary_cross_entropy_with_logits,
        "mse": functional.mse_loss,
        "softmax_cross_entropy": functional.cross_entropy,
    }[case.loss]
    x, y = case.data(seed)
    target = torch.tensor(y).long() if y.dtype == np.int32 else torch.tensor(y, dtype=dtype)
    inputs = torch.tensor(x, dtype=dtype)
    last, losses = len(case.sizes) - 1, np.empty(STEPS)
    for step, batch in enumerate(case.batches(seed)):
        rows = torch.from_numpy(batch)
        for group in optimizer.param_groups:
            group["lr"] = case.learning_rate(step)
        h = inputs[rows]
        for layer in range(1, last + 1):
            h = h @ weights[f"dense_{layer}.kernel"] + weights[f"dense_{layer}.bias"]
            h = act(h) if layer < last else h
        loss = loss_of(h, target[rows])
        losses[step] = loss.item()
        optimizer.zero_grad()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        optimizer.step()  # pyright: ignore[reportUnknownMemberType]
    return Run(losses, {name: value.detach().numpy() for name, value in weights.items()})


def uses_goldens() -> bool:
    """Whether `scripts/test --goldens` asked for PyTorch's stored runs."""
    return bool(os.environ.get("TEXELGRAD_TEST_GOLDENS"))


@cache
def golden_runs(case: Case) -> dict[tuple[int, Precision], Run]:
    """PyTorch's runs as write_goldens.py stored them."""
    runs: dict[tuple[int, Precision], Run] = {}
    with np.load(GOLDENS / f"{case.name}.npz") as stored:
        for seed in SEEDS:
            weights = {name: stored[f"weights.{name}"][seed] for name in case.initial_weights(0)}
            runs[seed, "float64"] = Run(stored["losses.float64"][seed], weights)
            runs[seed, "float32"] = Run(stored["losses.float32"][seed], {})
    return runs


def reference_run(case: Case, seed: int, precision: Precision) -> Run:
    """PyTorch's run, live or from the goldens; the goldens hold no float32 weights, which nothing compares."""
    return golden_runs(case)[seed, precision] if uses_goldens() else torch_run(case, seed, precision)
