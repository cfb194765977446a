"""A workload as a PyTorch training step, from the same data and initial weights as the page's. Needs torch and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everybody writes it

from bench.workloads import Workload, data_of, layers_of, weights_of

BETAS, EPS = (0.9, 0.999), 1e-8


class Training:
    """Parameters, batches and `step`, on one device and in one dtype."""

    def __init__(self, workload: Workload, device: str, dtype: torch.dtype = torch.float32) -> None:
        self.workload = workload
        self.layers = layers_of(workload)
        self.parameters = [
            p.to(device=device, dtype=dtype).requires_grad_() for p in _parameters(workload, self.layers)
        ]
        x, y = map(torch.from_numpy, data_of(workload))  # pyright: ignore[reportArgumentType]
        x = x.to(device=device, dtype=dtype)
        if x.dim() == 4:
            x = x.permute(0, 3, 1, 2).contiguous()
        y = y.to(device=device, dtype=dtype if workload["loss"] == "bce" else torch.int64)
        batch = workload["batch"]
        self.batches = list(zip(x.split(batch), y.split(batch), strict=True))
        self.optimizer = self._optimizer(device)
        self.taken = 0

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """One step; the loss of the batch before the update, on the device."""
        self.optimizer.zero_grad(set_to_none=True)
        z = self._forward(x)
        lossy = F.binary_cross_entropy_with_logits if self.workload["loss"] == "bce" else F.cross_entropy
        loss = lossy(z, y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def next_batch(self) -> tuple[Tensor, Tensor]:
        """The batches in their order, over and over."""
        batch = self.batches[self.taken % len(self.batches)]
        self.taken += 1
        return batch

    def _forward(self, x: Tensor) -> Tensor:
        at = iter(self.parameters)
        for layer in self.layers:
            match layer["type"]:
                case "dense":
                    x = F.linear(x, next(at), next(at))
                case "conv2d":
                    x = F.conv2d(x, next(at), next(at))
                case "max_pool2d":
                    x = F.max_pool2d(x, layer["size"])
                case _:
                    x = x.flatten(1)
            if layer.get("activation") == "relu":
                x = F.relu(x)
        return x

    def _optimizer(self, device: str) -> torch.optim.Optimizer:
        kind, lr = self.workload["optimizer"]["type"], self.workload["optimizer"]["lr"]
        cuda = device.startswith("cuda")
        if kind == "sgd":
            return torch.optim.SGD(self.parameters, lr=lr, fused=cuda or None)
        return torch.optim.Adam(
            self.parameters, lr=lr, betas=BETAS, eps=EPS, fused=cuda or None, capturable=cuda
        )


def _parameters(workload: Workload, layers: list[dict[str, Any]]) -> list[Tensor]:
    """Kernels as torch wants them (dense [out, in], convolutions [out, in, height, width]), each with its zero bias.

    Torch flattens [channels, height, width], the workload [height, width, channels]: the dense layer behind it reads in that order.
    """
    kernels = iter(weights_of(workload))
    shape = list(workload["input"])
    image: list[int] | None = None
    parameters: list[Tensor] = []
    for layer in layers:
        match layer["type"]:
            case "dense":
                kernel = torch.from_numpy(next(kernels))
                if image:
                    order = torch.arange(kernel.shape[0]).reshape(image).permute(2, 0, 1).flatten()
                    kernel, image = kernel[order], None
                shape = [layer["units"]]
                parameters += [kernel.T.contiguous(), torch.zeros(layer["units"])]
            case "conv2d":
                kernel = torch.from_numpy(next(kernels))
                shape = [shape[0] - kernel.shape[0] + 1, shape[1] - kernel.shape[1] + 1, layer["filters"]]
                parameters += [kernel.permute(3, 2, 0, 1).contiguous(), torch.zeros(layer["filters"])]
            case "max_pool2d":
                shape = [shape[0] // layer["size"], shape[1] // layer["size"], shape[2]]
            case _:
                image = shape
    return parameters


def runner(training: Training, *, graph: bool) -> Callable[[], Tensor]:
    """What takes one step and gives its loss; with `graph`, a replay of a captured CUDA graph."""
    if not graph:
        return lambda: training.step(*training.next_batch())
    x, y = (t.clone() for t in training.batches[0])
    initial = [p.detach().clone() for p in training.parameters]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # capture wants a warm allocator and existing optimizer states
            training.step(x, y)
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = training.step(x, y)
    with torch.no_grad():  # as if nothing had been trained
        for parameter, first in zip(training.parameters, initial, strict=True):
            parameter.copy_(first)
        for state in training.optimizer.state.values():
            for value in state.values():
                if isinstance(value, Tensor):
                    value.zero_()

    def replay() -> Tensor:
        if len(training.batches) > 1:
            for mine, given in zip((x, y), training.next_batch(), strict=True):
                mine.copy_(given)
        captured.replay()
        return loss

    return replay
