"""Gradients that a GPU stores as gates and factors; browser_runtime/backends/webgl2/gated_gradients.js."""

from __future__ import annotations

import math
from collections.abc import Sequence

from texelgrad.layers.base import LayerShape, texels

ROWS = 8
"""Of a texel of gates."""
PRODUCTS = 1 << 23
"""From which on a gradient may be gated."""
_ROW_TEXELS = ROWS // 4
_TEXEL_BYTES = 4 + 16  # of the gates and of the factors
_COLUMN_BYTES = 16 * ROWS  # of a column texel in all layers of a gradient


def gated_layers(layers: Sequence[LayerShape], batch: int) -> list[LayerShape]:
    """Those whose outputs' gradients may be gated."""
    single = {math.prod(layer.input) for layer in layers if layer.is_dense and math.prod(layer.output) == 1}
    return [layer for layer in layers if _is_gated(layer, batch, single)]


def gated_bytes(layers: Sequence[LayerShape], batch: int) -> int:
    """Of all that there are besides what other gradients take, at most."""
    return sum(_bytes(layer, batch) for layer in gated_layers(layers, batch))


def _is_gated(layer: LayerShape, batch: int, single: set[int]) -> bool:
    """Whether the gradient of its outputs may be: they go into a layer of one output."""
    outputs = math.prod(layer.output)
    return layer.is_dense and outputs in single and batch * math.prod(layer.input) * outputs >= PRODUCTS


def _bytes(layer: LayerShape, batch: int) -> int:
    groups = math.ceil(batch / ROWS)
    gates = groups * (texels(layer.output) + _ROW_TEXELS) * _TEXEL_BYTES
    # The gradient of its weights lies turned, in whole groups of rows; behind them are lines for a texel for each group's biases.
    turned = math.ceil(math.prod(layer.output) / ROWS)
    return gates + (turned + 2 * texels(layer.input)) * _COLUMN_BYTES
