"""An ONNX graph while it is made: nodes, constants, and values that know where their channels are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from texelgrad.tensor_file import Tensors


@dataclass(frozen=True)
class Constant:
    """Values that the graph holds, of this type once they are written."""

    name: str
    values: NDArray[Any]
    dtype: Any

    @property
    def nbytes(self) -> int:
        """Bytes of all the values as they are written."""
        return self.values.size * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Value:
    """What a node makes."""

    name: str
    axes: int  # of a sample
    channels_first: bool = False  # of images and sequences only


class Graph:
    """Nodes and constants so far."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.nodes: list[Any] = []
        self.constants: list[Constant] = []

    def node(self, operator: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """Append a node of one output, which has the node's name."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name: str, values: Any, dtype: Any = np.float32) -> str:
        """Append a constant."""
        self.constants.append(Constant(name, np.asarray(values), dtype))
        return name

    def first(self, value: Value, name: str) -> str:
        """An image or a sequence with its channels first."""
        if value.channels_first:
            return value.name
        order = [0, value.axes, *range(1, value.axes)]
        return self.node("Transpose", [value.name], f"{name}/channels_first", perm=order)

    def last(self, value: Value, name: str) -> str:
        """Any value with its channels last."""
        if not value.channels_first:
            return value.name
        order = [0, *range(2, value.axes + 1), 1]
        return self.node("Transpose", [value.name], f"{name}/channels_last", perm=order)

    def kernel(self, name: str) -> NDArray[Any]:
        """The kernel of a layer."""
        return self.tensors[f"{name}.kernel"]

    def bias(self, name: str) -> list[str]:
        """The bias of a layer as one more input, or none."""
        tensor = f"{name}.bias"
        return [self.constant(tensor, self.tensors[tensor])] if tensor in self.tensors else []
