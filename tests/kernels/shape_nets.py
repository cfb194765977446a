"""Layers of average and global pooling, of moved elements, products and concatenations, and nets that have them all."""

from __future__ import annotations

from typing import Any

from .cnns import FLATTEN, Layer, Shape, activation, add, conv, dense, pool

GLOBAL_AVG: Layer = {"type": "global_avg_pool2d"}
GLOBAL_MAX: Layer = {"type": "global_max_pool2d"}


def avg_pool(size: Any = 2, **fields: Any) -> Layer:
    """An average pooling; fields: stride, padding."""
    return {"type": "avg_pool2d", "size": size, **fields}


def reshape(*shape: int, **fields: Any) -> Layer:
    """Another shape."""
    return {"type": "reshape", "shape": list(shape), **fields}


def upsample(size: Any = 2, **fields: Any) -> Layer:
    """Nearest neighbours."""
    return {"type": "upsample2d", "size": size, **fields}


def zero_pad(padding: Any, **fields: Any) -> Layer:
    """Zeros around."""
    return {"type": "zero_pad2d", "padding": padding, **fields}


def crop(cropping: Any, **fields: Any) -> Layer:
    """Without edges."""
    return {"type": "crop2d", "cropping": cropping, **fields}


def dropout(rate: float, **fields: Any) -> Layer:
    """Zeros for a share of the elements."""
    return {"type": "dropout", "rate": rate, **fields}


def multiply(*inputs: str, **fields: Any) -> Layer:
    """A product of layers by their names; fields: activation."""
    return {"type": "multiply", "inputs": list(inputs), **fields}


def concat(*inputs: str, **fields: Any) -> Layer:
    """Layers one after another."""
    return {"type": "concat", "inputs": list(inputs), **fields}


SHAPE_NETS: dict[str, tuple[Shape, list[Layer]]] = {
    "averages": ((7, 6, 3), [conv(5, 2, "tanh"), avg_pool(2, stride=1), avg_pool((3, 2), stride=2, padding="same"), conv(3, 1, "gelu"), avg_pool(2, padding=[[1, 0], [0, 1]]), FLATTEN, dense(3)]),
    "global average": ((5, 6, 2), [conv(6, 2, "tanh"), GLOBAL_AVG, dense(5, "relu"), dense(2)]),
    "global maximum": ((5, 4, 2), [conv(6, 2, "tanh"), GLOBAL_MAX, dense(2)]),
    "reshaped": ((3, 4, 2), [dense(24, "tanh", inputs=["flatten_1"]), reshape(2, 3, 4), conv(5, 2, "tanh"), reshape(2, 5), reshape(10), dense(12, "silu"), reshape(2, 2, 3), conv(2, 2), FLATTEN, dense(2)]),
    "taken apart": ((4, 3, 5), [conv(6, 2, "tanh"), reshape(3, 4, 3), conv(2, 2, "tanh"), reshape(3, 4), reshape(1, 12, 1), conv(3, (1, 3)), FLATTEN, dense(2)]),
    "reshaped input": ((30,), [reshape(5, 6, 1), conv(3, 2, "tanh"), FLATTEN, dense(2)]),
    "input read both ways": ((12,), [dense(6, "tanh"), reshape(2, 3, 2, inputs=["input"]), conv(3, 2, "tanh"), FLATTEN, dense(6), add("dense_1", "dense_2"), dense(2)]),
    "upsampled": ((3, 4, 2), [conv(5, 2, "tanh"), upsample(2), conv(3, 2, "tanh"), upsample((1, 3)), avg_pool(2), FLATTEN, dense(2)]),
    "padded and cropped": ((4, 5, 2), [conv(5, 2, "tanh"), zero_pad([[1, 0], [2, 1]]), conv(3, 2, "gelu"), crop([[0, 1], [1, 1]]), zero_pad(1), crop(1), FLATTEN, dense(2)]),
    "products": ((6,), [dense(5, "tanh"), dense(5, "sigmoid", inputs=["input"]), dense(5, "tanh"), multiply("dense_1", "dense_2", "dense_3", activation="gelu"), multiply("dense_1", "multiply_1"), dense(5), multiply("dense_4", "dense_4", activation="tanh"), dense(2)]),
    "squeeze and excite": ((5, 4, 2), [conv(6, 2, "relu"), conv(6, 2, "sigmoid", padding="same"), multiply("conv2d_1", "conv2d_2"), pool(2), FLATTEN, dense(2)]),
    "concatenated": ((5, 4, 3), [conv(5, 2, "tanh"), conv(3, 2, "gelu", inputs=["input"]), conv(6, 2, "linear", inputs=["input"]), concat("conv2d_1", "conv2d_2", "conv2d_3"), conv(4, 2, "tanh"), FLATTEN, dense(2)]),
    "concatenated with itself": ((4,), [dense(3, "tanh"), concat("dense_1", "dense_1", "input"), dense(2)]),
    "dense block": ((4, 4, 4), [conv(4, 3, "relu", padding="same"), concat("input", "conv2d_1"), conv(4, 3, "relu", padding="same"), concat("concat_1", "conv2d_2"), GLOBAL_AVG, dense(2)]),
    "flattened and flat": ((4, 3, 3), [conv(5, 2, "tanh"), FLATTEN, dense(30, "tanh"), add("flatten_1", "dense_1", activation="tanh"), multiply("flatten_1", "add_1"), concat("multiply_1", "flatten_1"), dense(2)]),
    "flattened alike": ((4, 3, 2), [conv(5, 2), FLATTEN, conv(5, 2, "tanh", inputs=["input"]), {"type": "flatten", "inputs": ["conv2d_2"]}, concat("flatten_1", "flatten_2"), activation("tanh"), dense(3)]),
}  # fmt: skip
"""Each kernel, forward and backward, with every way in which values are held."""
SHAPE_NETS["reshaped"][1].insert(0, FLATTEN)
