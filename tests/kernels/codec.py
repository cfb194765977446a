"""The Python half of codec.js: values between Python and the test page, exact for every float."""

from __future__ import annotations

import base64
import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

DTYPES = ("float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32")


def encode_array(array: NDArray[Any]) -> dict[str, Any]:
    """Wrap an array as base64 of its little-endian bytes in C order; TypeError for a dtype that JS lacks."""
    if array.dtype.name not in DTYPES:
        raise TypeError(f"dtype {array.dtype.name} has no typed array in JS; use one of {', '.join(DTYPES)}")
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return {
        "$array": base64.b64encode(data).decode("ascii"),
        "dtype": array.dtype.name,
        "shape": list(array.shape),
    }


def decode_array(envelope: dict[str, Any]) -> NDArray[Any]:
    """Unwrap what `encode_array`, here or in codec.js, made; the result is a fresh, writable array."""
    data = base64.b64decode(envelope["$array"])
    little_endian = np.dtype(envelope["dtype"]).newbyteorder("<")
    return np.frombuffer(data, little_endian).astype(envelope["dtype"]).reshape(envelope["shape"])


def encode(value: object) -> object:
    """Replace arrays and the floats that JSON lacks (NaN, infinities, -0.0) by envelopes."""
    if isinstance(value, np.ndarray):
        return encode_array(cast("NDArray[Any]", value))
    if isinstance(value, np.generic):
        return encode(cast("np.generic[Any]", value).item())
    if isinstance(value, float):
        if math.isnan(value):
            return {"$number": "NaN"}
        if math.isinf(value):
            return {"$number": "Infinity" if value > 0 else "-Infinity"}
        is_negative_zero = value == 0.0 and math.copysign(1.0, value) < 0.0
        return {"$number": "-0"} if is_negative_zero else value
    if isinstance(value, dict):
        return {key: encode(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in cast("list[object]", value)]
    return value


def decode(value: Any) -> Any:
    """Undo `encode`; `value` is what `json.loads` gave."""
    if isinstance(value, list):
        return [decode(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        envelope = cast("dict[str, Any]", value)
        if "$number" in envelope:
            return float(envelope["$number"])
        if "$array" in envelope:
            return decode_array(envelope)
        return {key: decode(item) for key, item in envelope.items()}
    return value
