"""An ONNX model as the bytes of its file, whose constants are written block by block and never stand in memory together.

Protocol buffers: a field is a tag, number * 8 + 2 for bytes, then their length and the bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper

from texelgrad.errors import Fault, Invalid
from texelgrad.export_onnx_graph import Constant
from texelgrad.tensor_file import Pieces, pieces_of

_MAX_BYTES = 2**31 - 1  # of a message, as its readers have it


def onnx_pieces(model: ModelProto, constants: list[Constant]) -> Pieces:
    """The file of a model whose graph has no initializers yet; raises Invalid at once where it would be too large."""
    rest = model.graph.SerializeToString(deterministic=True)
    headers = [_header(constant) for constant in constants]
    size = len(rest) + sum(
        len(_field(GraphProto.INITIALIZER_FIELD_NUMBER, len(header) + constant.nbytes))
        + len(header)
        + constant.nbytes
        for header, constant in zip(headers, constants, strict=True)
    )
    if size > _MAX_BYTES:
        message = f"would have {size} bytes, more than an ONNX file holds"
        raise Invalid([Fault("format", message, "onnx", "safetensors, npz, tfjs")])
    head = ModelProto()
    head.CopyFrom(model)
    head.ClearField("graph")
    return _written(head, rest, headers, constants, size)


def _written(
    head: ModelProto, rest: bytes, headers: list[bytes], constants: list[Constant], size: int
) -> Pieces:
    yield head.SerializeToString(deterministic=True) + _field(ModelProto.GRAPH_FIELD_NUMBER, size) + rest
    for header, constant in zip(headers, constants, strict=True):
        yield _field(GraphProto.INITIALIZER_FIELD_NUMBER, len(header) + constant.nbytes) + header
        yield from pieces_of(constant.values, constant.dtype)


def _header(constant: Constant) -> bytes:
    """What comes before a tensor's values."""
    kind: Any = helper.np_dtype_to_tensor_dtype(np.dtype(constant.dtype))
    tensor = TensorProto(name=constant.name, dims=constant.values.shape, data_type=kind)
    return tensor.SerializeToString(deterministic=True) + _field(
        TensorProto.RAW_DATA_FIELD_NUMBER, constant.nbytes
    )


def _field(number: int, length: int) -> bytes:
    """Tag and length of a field of bytes, both as varints."""
    return _varint(number << 3 | 2) + _varint(length)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
