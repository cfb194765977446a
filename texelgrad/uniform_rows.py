"""Which products of dense layers take their rows from uniform blocks on a GPU; browser_runtime/backends/webgl2/uniform_rows.js."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from texelgrad.inputs import Shape
from texelgrad.layers.base import LayerShape, texels

ROWS, LINES = 8, 2
"""Rows of a group, and lines that it covers in what a product writes."""
QUAD = 4
"""Column texels side by side in these lines: a row has whole quads."""
_PRODUCTS = 1 << 23  # from which on a product is large
_TEXELS = 96  # a row of what it reads and makes, at least
LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES = 16 << 10, 64 << 10
"""The least that a GPU has, and what is taken at most."""
_ALIGNMENT_BYTES = 256
_TEXEL_BYTES = 16
_SAMPLE_BYTES = 2 * _TEXEL_BYTES
"""Of a sample in the block of a weight gradient's row group: 8 columns."""
MOST_ROWS = 8192
"""Of a batch."""
SPREAD_ROWS = 32
"""Rows of spread weights are a multiple of this."""


@dataclass(frozen=True)
class UniformRows:
    """Of all products of a phase."""

    rows: int  # of a batch
    widths: frozenset[int] = frozenset()  # texels a row of results; all that is as wide lies in quads too
    blocks: frozenset[int] = frozenset()  # bytes of a row group of each operand


def is_large(layer: LayerShape, rows: int) -> bool:
    """Whether a dense layer's products may take rows from uniform blocks; its weights then may have 8 rows a fragment."""
    return layer.is_dense and _are_many(rows, layer.input, layer.output)


def uniform_rows(
    layers: Sequence[LayerShape], rows: int, block_bytes: int, *, training: UniformRows | None = None,
    gated: frozenset[int] = frozenset(),
) -> UniformRows:  # fmt: skip
    """Of blocks up to so many bytes. Forward, a product makes a layer's output; backward, in training, the gradient of its input.

    `training`: what training takes, for an evaluation, whose tensors lie as those of training do. `gated`: layers whose outputs' gradients are stored as
    gates, with which no product has rows.
    """
    dense = [layer for layer in layers if layer.is_dense]
    products = [(layer.input, layer.output) for layer in dense]
    if training is None:
        products += [
            (layer.output, layer.input) for layer in dense if layer.trained and layer.index not in gated
        ]
    found = [
        (texels(made), _block(texels(read)))
        for read, made in products
        if _are_many(rows, read, made) and (training is None or texels(made) in training.widths)
    ]
    taken = [(made, block) for made, block in found if block <= block_bytes]
    if not taken or rows > MOST_ROWS:
        return UniformRows(rows)
    return UniformRows(rows, frozenset(made for made, _ in taken), frozenset(block for _, block in taken))


def arranged_bytes(phases: Sequence[UniformRows], layers: Sequence[LayerShape]) -> int:
    """Of the texture in which all of them arrange the rows, and of the buffer beside it, at most.

    The first is training, which arranges columns besides, for weight gradients of `layers`: as many lines as are left beside the rows. Which of the blocks
    is the longest, as which lines are long, depends on what the page fuses: of more blocks side by side fewer may be wasted.
    """
    training = phases[0]
    groups = max((phase.rows // ROWS for phase in phases if phase.blocks), default=0)
    block = _SAMPLE_BYTES * training.rows
    large = [layer for layer in layers if training.blocks and is_large(layer, training.rows)]

    def taken(width: int) -> int:
        per_line = width // block
        lines = sum(math.ceil(_weight_groups(layer) / per_line) for layer in large) if per_line else 0
        return width * max(groups, training.rows // ROWS + lines)

    return 2 * max((taken(width) for phase in phases for width in phase.blocks), default=0)


def _are_many(rows: int, read: Shape, made: Shape) -> bool:
    """Products, of long rows."""
    return (
        rows * math.prod(read) * math.prod(made) >= _PRODUCTS and min(texels(read), texels(made)) >= _TEXELS
    )


def _weight_groups(layer: LayerShape) -> int:
    """Of 8 rows of weights, which may be spread; the bias has one of its own."""
    blocks, rows, _ = layer.weights or (0, 0, 0)
    return SPREAD_ROWS // ROWS * math.ceil(blocks * 4 * math.ceil(rows / 4) / SPREAD_ROWS) + 1


def _block(texels_per_row: int) -> int:
    return -(-ROWS * texels_per_row * _TEXEL_BYTES // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
