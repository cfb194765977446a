"""Layers that only give values another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from texelgrad.layers.base import LayerBase, Value


class Flatten(LayerBase):
    """Each sample becomes one row, in C order."""

    type: Literal["flatten"]

    def fit(self, values: Sequence[Value], field: str) -> tuple[None, Value]:  # noqa: ARG002
        """Moves nothing."""
        return None, Value((math.prod(values[0].shape),), values[0].held, values[0].data)
