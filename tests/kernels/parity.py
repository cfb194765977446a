"""The runs in which the engine and PyTorch must agree: same initial weights, same batches, 50 steps.

`scripts/write_goldens.py` stores PyTorch's side in tests/goldens/, so that parity is tested where PyTorch is not installed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from texelgrad.layers.base import RELU_LIKE
from texelgrad.rng import RandomStream, Stream

from .cnns import (
    FLATTEN,
    activation,
    add,
    buffers_of,
    cnn,
    conv,
    conv1d,
    dense,
    embedding,
    nodes,
    pool,
    transpose,
)
from .layer_models import MODELS, Layer, Shape
from .layer_models.activation import torch_activation
from .shape_nets import GLOBAL_AVG, avg_pool, concat, crop, dropout, multiply, upsample
from .specs import OPTIMIZERS, Array, Spec

GOLDENS = Path(__file__).parents[1] / "goldens"
STEPS = 50
SEEDS = tuple(range(8))

PARITY_OPTIMIZERS: dict[str, dict[str, Any]] = {
    **OPTIMIZERS,
    "nesterov": {"type": "sgd", "lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
    "adamw": {"type": "adamw", "lr": 0.01, "weight_decay": 0.2},
    "rmsprop": {"type": "rmsprop", "lr": 0.002, "alpha": 0.9, "momentum": 0.5},
    "adagrad": {"type": "adagrad", "lr": 0.05},
    "adadelta": {"type": "adadelta", "lr": 1.0},
    "lion": {"type": "lion", "lr": 0.002, "weight_decay": 0.1},
    "penalties": {"type": "adam", "lr": 0.01, "l1": 0.003, "l2": 0.01},
}

Weights = dict[str, Array]
Precision = Literal["float64", "float32"]


@dataclass(frozen=True)
class Run:
    """What one training run gave: the loss before each step, and the weights after the last."""

    losses: Array  # [STEPS]
    weights: Weights


@dataclass(frozen=True, eq=False)
class Case:
    """A net, a loss, an optimizer; rows do not fill the last batch."""

    net: str
    input: Shape | dict[str, Shape]
    layers: list[Layer]
    loss: str
    optimizer: str
    rows: int
    batch_size: int
    train: dict[str, Any] = field(default_factory=dict[str, Any])
    loss_options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """Such as softmax_cross_entropy-adam; also the golden file's name."""
        return f"{self.net}-{self.optimizer}"

    def spec(self, seed: int) -> Spec:
        """The job spec, with a cosine schedule over the 50 steps."""
        optimizer = self.options | {"schedule": {"type": "cosine", "min_lr": self.lowest}}
        return cnn(
            self.input, self.layers, {"type": self.loss, **self.loss_options} if self.loss_options else self.loss,
            optimizer=optimizer,
            steps=STEPS, seed=seed, batch_size=self.batch_size, **self.train,
        )  # fmt: skip

    @property
    def options(self) -> dict[str, Any]:
        """The optimizer as the spec has it, without a schedule."""
        return PARITY_OPTIMIZERS[self.optimizer]

    @property
    def lowest(self) -> float:
        """Where the schedule ends."""
        return min(0.001, self.options["lr"] / 10)

    def data(self, seed: int) -> tuple[Any, Array]:
        """Normal inputs; targets that a rule with noise gives, so that there is something to learn."""
        random = RandomStream(seed, Stream.SYNTHETIC)
        if isinstance(self.input, dict):
            return self._several(self.input, random)
        inputs = math.prod(self.input)
        if self.layers[-1]["type"] != "dense":
            return self._images(inputs, random)
        outputs = self.layers[-1]["units"]
        x = random.normal(self.rows * inputs).reshape(self.rows, inputs).astype(np.float32)
        if words := [layer["vocabulary"] for layer in self.layers if layer["type"] == "embedding"]:
            return self._words(inputs, min(words), outputs, random)
        rule = random.normal(inputs * outputs).reshape(inputs, outputs)
        z = x @ rule / math.sqrt(inputs) + 0.3 * random.normal(self.rows * outputs).reshape(
            self.rows, outputs
        )
        x = x.reshape(self.rows, *self.input)
        if self.loss in ("mse", "huber"):
            return x, z.astype(np.float32)
        if self.loss == "bce":
            return x, (z > 0).astype(np.float32)
        return x, z.argmax(axis=1).astype(np.int32)

    def _several(self, inputs: dict[str, Shape], random: RandomStream) -> tuple[dict[str, Array], Array]:
        """Normal values, and whole numbers for the embeddings; the class that a rule gives all of them together."""
        outputs = self.layers[-1]["units"]
        x: dict[str, Array] = {}
        z = np.zeros((self.rows, outputs))
        for name, shape in inputs.items():
            words = [
                layer["vocabulary"]
                for layer in self.layers
                if name in layer.get("inputs", ()) and "vocabulary" in layer
            ]
            size = math.prod(shape)
            draws = random.uniform(self.rows * size) if words else random.normal(self.rows * size)
            values = np.floor(draws * min(words)) if words else draws
            x[name] = values.reshape(self.rows, *shape).astype(np.float32)
            seen = (x[name][..., None] == np.arange(min(words))) if words else x[name]
            flat = seen.reshape(self.rows, -1).astype(np.float64)
            rule = random.normal(flat.shape[1] * outputs).reshape(-1, outputs)
            z += flat @ rule / math.sqrt(size)
        return x, z.argmax(axis=1).astype(np.int32)

    def _images(self, inputs: int, random: RandomStream) -> tuple[Array, Array]:
        """Sums of four patterns, which are their own targets."""
        patterns, shares = (
            random.normal(4 * inputs).reshape(4, inputs),
            random.normal(self.rows * 4).reshape(-1, 4),
        )
        x = (shares @ patterns / 2).astype(np.float32).reshape(self.rows, *self.input)
        return x, x

    def _words(self, length: int, vocabulary: int, outputs: int, random: RandomStream) -> tuple[Array, Array]:
        """Whole numbers, and the class that those of a row speak for."""
        x = np.floor(random.uniform(self.rows * length) * vocabulary).reshape(self.rows, -1)
        rule = random.normal(vocabulary * outputs).reshape(vocabulary, outputs)
        return x.astype(np.float32), rule[x.astype(int)].sum(axis=1).argmax(axis=1).astype(np.int32)

    def initial_weights(self, seed: int) -> Weights:
        """What the seed gives by docs/page-protocol.md: Glorot, or He before a relu and its like, uniform; biases zero."""
        weights: Weights = {}
        index = 0
        for node in nodes(self.spec(seed)):
            for name, shape in node.weights.items():
                if not name.endswith(".kernel"):
                    weights[name] = np.full(shape, node.initial(name), np.float32)
                    continue
                fan_in, fan_out = math.prod(shape[:-1]), math.prod(shape[:-2]) * shape[-1]
                relu = node.layer.get("activation") in RELU_LIKE
                limit = math.sqrt(3 * (2 / fan_in if relu else 2 / (fan_in + fan_out)))
                draws = RandomStream(seed, Stream.INIT, index).uniform(math.prod(shape))
                weights[name] = ((2 * draws - 1) * limit).astype(np.float32).reshape(shape)
            index += bool(node.weights)
        return weights

    def batches(self, seed: int) -> Iterator[Array]:
        """The rows of each of the 50 steps: epochs of a shuffled order, cut into batches, the last one short."""
        size = self.batch_size * self.train.get("accumulate_steps", 1)
        per_epoch = math.ceil(self.rows / size)
        for step in range(STEPS):
            order = RandomStream(seed, Stream.SHUFFLE, step // per_epoch).permutation(self.rows)
            yield order[step % per_epoch * size :][:size]

    def learning_rate(self, step: int) -> float:
        """Half a cosine, step counted from 0."""
        lr, low = self.options["lr"], self.lowest
        return low + (lr - low) * (1 + math.cos(math.pi * step / STEPS)) / 2


LINEAR_CASES = [
    Case(
        "separable", (8, 8, 3),
        [
            conv(8, 3, "relu", use_bias=False), conv(8, 3, "tanh", groups=8, padding="same"), conv(12, 1, "relu"),
            conv(12, 3, "tanh", groups=12, stride=2), conv(8, 1, "relu", groups=2), FLATTEN, dense(5),
        ],
        "softmax_cross_entropy", "rmsprop", 45, 16,
    ),
    Case(
        "sequence", (32, 3),
        [
            conv1d(8, 5, "relu", padding="same"), conv1d(6, 3, "tanh", stride=2, dilation=2), conv1d(6, 3, "relu", groups=2),
            FLATTEN, dense(3),
        ],
        "mse", "adam", 45, 16,
    ),
    # tanh: with relu one seed has a unit so near its kink that PyTorch's own float32 decides otherwise
    Case(
        "autoencoder", (8, 8, 1),
        [
            conv(6, 3, "tanh", stride=2, padding="same"), conv(4, 3, "tanh", stride=2, padding="same"),
            transpose(6, 3, "tanh", stride=2, padding="same"), transpose(1, 4, "linear", stride=2, padding=[[1, 1], [1, 1]]),
        ],
        "mse", "adam", 45, 16,
    ),
    Case(
        "several_inputs", {"image": (8, 8, 2), "words": (3,), "plain": (5,)},
        [
            conv(6, 3, "tanh", inputs=["image"]), pool(2), {"type": "flatten", "name": "seen"},
            embedding(12, 6, inputs=["words"]), {"type": "flatten", "name": "read"},
            concat("seen", "read", "plain"), dense(16, "tanh"), dense(4),
        ],
        "softmax_cross_entropy", "adam", 45, 16,
    ),
    Case("words", (9,), [embedding(12, 6), conv1d(7, 3, "tanh"), FLATTEN, dense(4)], "softmax_cross_entropy", "momentum", 45, 16),
]  # fmt: skip

CASES = [
    *LINEAR_CASES,
    *(Case("bce", (2,), [dense(32, "relu"), dense(1)], "bce", name, 100, 32) for name in OPTIMIZERS),
    # a single output, behind hidden layers that are stored
    *(Case("single", (9,), [dense(24, "relu"), dense(36, "relu"), dense(1)], "bce", name, 100, 32) for name in ("sgd", "adam")),
    # few inputs, behind which one hidden layer reads another
    Case("few", (3,), [dense(24, "relu"), dense(20, "relu"), dense(2)], "mse", "adam", 45, 16),
    *(Case("mse", (6,), [dense(16, "tanh"), dense(3)], "mse", name, 45, 16) for name in OPTIMIZERS),
    *(
        Case("softmax_cross_entropy", (20,), [dense(32, "sigmoid"), dense(16, "sigmoid"), dense(5)], "softmax_cross_entropy", name, 90, 32)
        for name in OPTIMIZERS
    ),
    Case(
        "cnn", (8, 8, 2),
        [conv(6, 3, "relu"), pool(2), conv(9, 3, "relu", padding="same"), FLATTEN, dense(16, "relu"), dense(5)],
        "softmax_cross_entropy", "adam", 45, 16,
    ),
    Case(
        "residual", (7,),
        [dense(12, "tanh"), dense(12, "relu", use_bias=False), add("dense_1", "dense_2", activation="tanh"), dense(4)],
        "softmax_cross_entropy", "adam", 45, 16,
    ),
    *(
        Case(name, (6,), [dense(16, "tanh"), dense(3)], "mse", name, 45, 16)
        for name in ("nesterov", "adamw", "rmsprop", "adagrad", "adadelta", "lion")
    ),
    Case(
        "layer_norm", (7,),
        [dense(16), {"type": "layer_norm", "activation": "relu"}, dense(12), {"type": "layer_norm", "activation": "tanh"}, dense(4)],
        "softmax_cross_entropy", "adamw", 45, 16,
    ),
    Case(
        "batch_norm", (8, 8, 2),
        [
            conv(6, 3, "linear", padding="same", use_bias=False), {"type": "batch_norm", "activation": "relu"},
            conv(6, 3, "linear", padding="same", use_bias=False), {"type": "batch_norm"},
            add("batch_norm_1", "batch_norm_2", activation="relu"), pool(2), FLATTEN, dense(5),
        ],
        "softmax_cross_entropy", "nesterov", 45, 16,
    ),
    Case(
        "mixed", (8, 8, 2),
        [
            conv(6, 3, "gelu", padding="same"), avg_pool(2), conv(6, 3, "silu", padding="same"), conv(6, 1, "softmax", inputs=["avg_pool2d_1"]),
            multiply("conv2d_2", "conv2d_3", activation="elu"), concat("multiply_1", "avg_pool2d_1"), upsample(2), crop(1), conv(5, 3, "hard_swish"),
            GLOBAL_AVG, dense(12), activation("softplus"), dense(5),
        ],
        "softmax_cross_entropy", "adam", 45, 16,
    ),
    Case(
        "dropout", (6,), [dense(16, "leaky_relu"), dropout(0.3), dense(12, "gelu"), dropout(0.5), dense(3)],
        "mse", "adam", 45, 16,
    ),
    Case(
        "frozen", (6,), [dense(16, "tanh", lr_multiplier=0.5), dense(12, "tanh", trainable=False), dense(3)],
        "mse", "penalties", 45, 16, {"clip": {"value": 0.05}},
    ),
    Case(
        "clipped", (8, 8, 2), [conv(5, 3, "tanh"), pool(2), FLATTEN, dense(12, "tanh"), dense(3)],
        "mse", "adamw", 30, 8, {"clip": {"global_norm": 0.5}},
    ),
    Case(
        "accumulated", (6,), [dense(16, "tanh"), dense(3)],
        "huber", "momentum", 45, 4, {"accumulate_steps": 4}, {"delta": 0.6},
    ),
    Case(
        "weighted", (7,), [dense(12, "tanh"), dense(4)],
        "softmax_cross_entropy", "adam", 45, 16, {}, {"class_weights": [0.5, 2.0, 1.0, 3.0], "label_smoothing": 0.1},
    ),
]  # fmt: skip


def torch_run(case: Case, seed: int, precision: Precision) -> Run:
    """The same training in PyTorch."""
    import torch  # where goldens are tested it is not installed

    from ..torch_losses import mean_loss
    from ..torch_optimizers import add_l1, make

    torch.set_num_threads(1)  # so small a matrix is slower in two threads, and far slower on busy cores
    dtype = {"float64": torch.float64, "float32": torch.float32}[precision]
    kept = buffers_of(case.spec(seed))
    weights = {
        name: torch.tensor(value, dtype=dtype, requires_grad=name not in kept)
        for name, value in case.initial_weights(seed).items()
    }
    layers = nodes(case.spec(seed))
    for node in layers:
        for name in node.weights:
            weights[name].requires_grad_(weights[name].requires_grad and node.layer.get("trainable", True))
    trained = {name: weight for name, weight in weights.items() if weight.requires_grad}
    multipliers = {node.name: node.layer.get("lr_multiplier", 1.0) for node in layers}
    optimizer = make(case.options, trained, multipliers)
    x, y = case.data(seed)
    target = torch.tensor(y).long() if y.dtype == np.int32 else torch.tensor(y, dtype=dtype)
    inputs = {
        name: torch.tensor(values, dtype=dtype)
        for name, values in (x if isinstance(x, dict) else {"input": x}).items()
    }
    losses = np.empty(STEPS)
    for step, batch in enumerate(case.batches(seed)):
        rows = torch.from_numpy(batch)
        for group in optimizer.param_groups:
            group["lr"] = case.learning_rate(step) * group["scale"]
        made = {name: values[rows] for name, values in inputs.items()}
        for node in layers:
            parts = {name.rpartition(".")[2]: weights[name] for name in node.weights}
            z = MODELS[node.layer["type"]].torch(
                node.layer | {"step": step}, parts, [made[name] for name in node.inputs]
            )
            made[node.name] = torch_activation(node.layer.get("activation", "linear"))(z)
        loss = mean_loss(case.loss, case.loss_options, made[layers[-1].name], target[rows])
        losses[step] = loss.item()
        optimizer.zero_grad()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        if clip := case.train.get("clip"):
            limited = list(trained.values())
            if "value" in clip:
                torch.nn.utils.clip_grad_value_(limited, clip["value"])
            else:
                torch.nn.utils.clip_grad_norm_(limited, clip["global_norm"])
        add_l1(case.options, trained)
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
