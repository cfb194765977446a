"""An upper bound of the texture memory that the engine takes, from sizes alone; a test holds it within twice the truth, but for the smallest nets.

Follows browser_runtime/backends/webgl2/{lower.js,lowering.js}, whose names it uses, for a device with 8 render targets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import NamedTuple

from texelgrad.gated_gradients import gated_bytes, gated_layers
from texelgrad.inputs import Shape
from texelgrad.layers.base import LayerShape, texels
from texelgrad.uniform_rows import (
    LEAST_BLOCK_BYTES,
    LINES,
    MOST_BLOCK_BYTES,
    MOST_ROWS,
    QUAD,
    ROWS,
    SPREAD_ROWS,
    arranged_bytes,
    is_large,
    uniform_rows,
)

_TEXEL_BYTES = 16  # RGBA32F
_LANE_BYTES = 4  # R32F, R32I
_ROW_ALIGNMENT = 16
_RENDER_TARGETS = 8
_LAYERS = 4  # rows that one fragment writes, but for activations and their gradients
_MAX_SLOTS = 32
_ROW_LOSS_BYTES = 8 << 20
_ROUNDING_BYTES = 8 << 10  # of small textures, whose sides depend on how many rows a fragment writes
_TELEMETRY_LINES = 24
_TEXELS_OF_PART = 4096
_FRAGMENTS = 8192
_FEW_FRAGMENTS, _MANY_FRAGMENTS = 512, 2048
_MAX_SPLITS = 4096  # parts of a gradient that an update can add
# of a dense layer's gradient on a GPU: of fewer fragments than the first, so many samples at least, so many parts at most
_BATCH_PARTS = (512, 64, 32)
_MAX_TRIPS = 32_768
_NARROW = 4  # texels of a row below which a matrix is folded
_MAX_TEXTURE_SIZE = 8192
_ALONE = 64  # pixels of 4 samples that one fragment sums alone, for a channel's statistics and gradients
_MAX_PARTS = 2048
_SHORT_ROW = 8  # texels of logits up to which softmax takes one draw
_RESIDENT_BYTES = 1 << 30  # of the data set and an epoch of it; more is streamed through a ring of batches
_RING_BYTES = _RESIDENT_BYTES // 16
_PATCH_BYTES = 1 << 28  # of what the windows of all convolutions hold
_SMALL_BYTES = 64 << 10  # of a tensor that may live up to the end of a step
_REGION_TEXELS = 17_500  # of weights and states that may share a texture
_MOST_WASTE = 1.5  # times as large as their own would be
_MOST_WASTE_BELOW = 1.25  # the same of a gradient and what lies below it
_SUM_PARTS = 8  # of logits on a GPU, at most
MAX_HELD_BYTES = 1 << 32
"""Of the numbers of a data set that is streamed: the page holds them outside of textures."""


class _Kind(NamedTuple):
    """Tensors share a texture only with their like."""

    folded: bool  # their rows are very short, or they are longer or wider than a texture
    layers: int
    lines: int = 1  # that a row group covers


@dataclass(frozen=True)
class _Renderer:
    """What the page's plan makes depend on what draws; fragment_rows.js, convolution.js."""

    times: tuple[float, float, float]  # of a load, a multiply-add and a store
    rows: tuple[int, int, int]  # of an activation a fragment, where these are few, usual, many
    slots: int  # batches of training in flight
    block_bytes: int = 0  # of the uniform blocks from which large products take rows, at most
    gates: bool = False  # whether gradients may be stored as gates
    sum_parts: int = 1  # of logits, at most
    waits: bool = False  # whether updates of large weights wait for one another too

    def kind(self, rows: int, texels_per_row: int, quad_widths: frozenset[int]) -> _Kind:
        """Of the texture that holds an activation: as many layers as its fragments write rows."""
        if texels_per_row in quad_widths and rows <= MOST_ROWS:
            return _Kind(folded=False, layers=ROWS, lines=LINES)
        few, layers, many = self.rows
        if rows * texels_per_row >= many * _MANY_FRAGMENTS:
            layers = many
        elif rows * texels_per_row < layers * _FEW_FRAGMENTS:
            layers = few
        longest = max(texels_per_row, math.ceil(rows / layers))
        return _Kind(texels_per_row < _NARROW or longest > _MAX_TEXTURE_SIZE, layers)


_RENDERERS = (
    _Renderer(times=(0, 1, 40), rows=(4, 4, 4), slots=32),  # on a CPU
    *(
        _Renderer(
            times=(1, 0.015, 10),
            rows=(1, 4, 8),
            slots=64,
            block_bytes=block_bytes,
            gates=gates,
            sum_parts=_SUM_PARTS,
            waits=True,
        )  # GPUs
        for block_bytes in (0, LEAST_BLOCK_BYTES, 2 * LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES)
        for gates in (False, True)  # where they may be; other gradients have other textures
    ),
)


@dataclass(frozen=True)
class Sizes:
    """What the memory depends on."""

    inputs: Sequence[Shape]  # of a row of each, as held
    layers: Sequence[LayerShape]
    output: Shape  # of a row of outputs, as held
    softmax: bool
    states: int  # of the optimizer, for each weight
    accumulates: bool  # whether gradients of several batches are added up
    target: Shape  # of a row of targets, as held
    rows: int
    train_rows: int
    validation_rows: int
    batch: int
    weighted: bool = False  # whether rows count differently


def texture_bytes(sizes: Sizes) -> int:
    """Bytes of all textures at once, at most, on the renderer that needs more."""
    return max(_texture_bytes(sizes, renderer) for renderer in _RENDERERS)


def _texture_bytes(sizes: Sizes, renderer: _Renderer) -> int:
    batch = _round_up(sizes.batch, _ROW_ALIGNMENT)
    stage = _round_up(min(max(sizes.validation_rows, 256), max(sizes.batch, 1024)), _ROW_ALIGNMENT)

    total = _ROUNDING_BYTES + _data(sizes, batch, stage)
    layers = _LAYERS
    while layers * (1 + sizes.states) > _RENDER_TARGETS:
        layers //= 2
    spread = {
        layer.index
        for layer in sizes.layers
        if sizes.states == 0 and renderer.block_bytes and is_large(layer, batch)
    }
    held = {
        layer.index: _weights(layer, ROWS, SPREAD_ROWS, quads=True)
        if layer.index in spread
        else _weights(layer, layers)
        for layer in sizes.layers
    }
    total += sum(held[layer.index] for layer in sizes.layers if layer.weights and layer.frozen)
    weights = [layer for layer in sizes.layers if layer.weights and not layer.frozen]
    small = [layer for layer in weights if _is_small(layer, 1 + sizes.states)]
    wasted = (_MOST_WASTE - 1) * sum(_weights(layer, layers) for layer in small)
    total += 2 * (1 + sizes.states) * (sum(held[layer.index] for layer in weights) + int(wasted))
    if sizes.accumulates:
        total += 2 * sum(_weights(layer, _LAYERS) for layer in weights)
    # Gradients that can't be fused into the update are stored, a convolution's in parts. One may lie below the gradient of the layer's input.
    stored = {layer.index: _weights(layer, 8, quads=_in_quads(layer, batch, renderer)) for layer in weights}
    total += sum(stored.values())
    below = [layer for layer in weights if layer.is_dense and layer.trained]
    beside = sum(
        stored[layer.index] + _tensor(batch, _round_up(texels(layer.input), QUAD)) for layer in below
    )
    total += int((_MOST_WASTE_BELOW - 1) * beside)
    if renderer.gates:
        total += gated_bytes(sizes.layers, batch)
    patches = _patches(sizes.layers, batch, stage, renderer)
    for layer in weights:
        if layer.lines:
            blocks, rows, columns = layer.weights or (0, 0, 0)
            forms = [layer, replace(layer, weights=(1, blocks * rows, columns))][
                : 2 if patches[layer.index] else 1
            ]
            total += max(_splits(form, batch) * _weights(form, 4) for form in forms)
        else:
            total += int(_MOST_WASTE * _batch_parts(layer, batch) * _weights(layer, 4))
    total += sum(_statistics(layer, batch, stage) for layer in sizes.layers)

    # Every layer's output lives until its backward pass; gradients and evaluation need those that wait for each other, and a small
    # one between two large ones may find the textures of both taken.
    outputs = {
        layer.index: (
            *([layer.sums.sets] if layer.sums and layer.sums.sets else []),
            *([patches[layer.index]] if patches[layer.index] else []),
            *[texels(layer.output)] * (layer.stored + (layer.winners and layer.trained)),
        )
        for layer in sizes.layers
    }
    kept = [columns for each in outputs.values() for columns in each]
    dips = [0, *(min(max(kept[:i]), kept[i], max(kept[i + 1 :])) for i in range(1, len(kept) - 1))]
    gated = gated_layers(sizes.layers, batch) if renderer.gates else []
    uniform = uniform_rows(
        sizes.layers, batch, renderer.block_bytes, gated=frozenset(layer.index for layer in gated)
    )
    staged = uniform_rows(sizes.layers, stage, renderer.block_bytes, training=uniform)
    total += arranged_bytes([uniform, staged], sizes.layers)
    quad_widths = uniform.widths
    total += sum(_tensor(batch, _in_lines(columns, quad_widths)) for columns in kept)
    # Of weights that share textures small gradients live up to the end of a step, so that the updates wait for one another.
    waiting = weights if renderer.waits else small
    lasting = {
        layer.index for layer in waiting if batch * texels(layer.output) * _TEXEL_BYTES <= _SMALL_BYTES
    }
    total += _at_once(sizes.layers, outputs, batch, renderer, quad_widths, backward=True, lasting=lasting)
    if stage != batch:  # as many rows find the textures that training keeps
        total += _at_once(sizes.layers, outputs, stage, renderer, quad_widths, backward=False, lasting=set())
    total += _tensor(stage, _round_up(max(dips), QUAD))

    units = math.prod(sizes.output)
    columns = texels(sizes.output)
    if sizes.softmax and batch * columns < _FEW_FRAGMENTS:
        total += _folded(renderer.sum_parts * batch * columns, 1, _TEXEL_BYTES)
    by_row = sizes.softmax and units > 4  # then one fragment sees a row
    passes = min(_MAX_SLOTS, max(1, math.ceil(sizes.validation_rows / stage)))
    few, usual, _ = renderer.rows
    together = usual if batch // usual * columns >= _FEW_FRAGMENTS else few  # rows whose losses share a texel
    for rows, textures, most, one_a_row, lanes in (
        (batch, 1, renderer.slots, by_row and columns > _SHORT_ROW, together),  # losses
        (stage, 2, passes, by_row, 4),  # losses and hits
    ):
        of_rows = rows if one_a_row else rows // lanes * columns
        texel_bytes = _LANE_BYTES if one_a_row or lanes == 1 else _TEXEL_BYTES
        slots = max(1, min(most, _ROW_LOSS_BYTES // (of_rows * texel_bytes)))
        parts = 2 * math.ceil(of_rows / _TEXELS_OF_PART) if of_rows > _TEXELS_OF_PART else 1
        total += textures * _folded(of_rows, slots, texel_bytes)
        total += slots * _TELEMETRY_LINES * parts * _TEXEL_BYTES
        total += _tensor(rows, 1, 1) if one_a_row else 0
    return total


def _data(sizes: Sizes, batch: int, stage: int) -> int:
    """Bytes of the data set, an epoch of it and the staging rows, or of the ring that it is streamed through."""
    shapes = *sizes.inputs, sizes.target, *([(1,)] if sizes.weighted else [])
    batches = math.ceil(sizes.train_rows / sizes.batch)

    def held(rows: int, layers: int = _LAYERS) -> int:
        return sum(_tensor(rows, texels(shape), layers, _fed_bytes(shape)) for shape in shapes)

    row_bytes = sum(texels(shape) * _fed_bytes(shape) for shape in shapes)
    if (sizes.rows + batches * batch) * row_bytes > _RESIDENT_BYTES:
        return held(stage) + held(min(batches, max(2, _RING_BYTES // (batch * row_bytes))) * batch)
    orders = batches * batch, _round_up(max(sizes.validation_rows, 1), stage)
    whole = held(sizes.rows, 1) + held(batches * batch)
    return held(stage) + whole + sum(_folded(rows, 1, _LANE_BYTES) for rows in orders)


def _fed_bytes(shape: Shape) -> int:
    """Of a texel of what comes with the data, which has one lane where pixels have one channel."""
    return _LANE_BYTES if shape[-1] == 1 else _TEXEL_BYTES


def _at_once(
    layers: Sequence[LayerShape], outputs: Mapping[int, Sequence[int]], rows: int, renderer: _Renderer, quad_widths: frozenset[int], *,
    backward: bool, lasting: set[int],
) -> int:  # fmt: skip
    """Bytes of the values of an evaluation, or of the gradients of a step, that are there at once, at most.

    `quad_widths`: texels a row of what lies in quads. `lasting`: layers whose outputs' gradients live up to the end of the step.
    """
    widths = {layer.index: texels(layer.output) for layer in layers}
    trained = {layer.index for layer in layers if layer.trained or (layer.weights and not layer.frozen)}
    reads = {
        layer.index: [maker for maker in layer.reads if maker in trained or not backward] for layer in layers
    }
    uses = Counter(chain(*reads.values()))
    # A value waits for its last reader, of whom the loss is one; the gradient that each reader makes waits for those of the others.
    waits = [
        (maker, layer.index)
        for layer in layers
        for maker in sorted(reads[layer.index])[: 1 if backward and layer.hands_on else None]
    ]
    waits = [*(waits if backward else dict(waits).items()), (layers[-1].index, layers[-1].index)]
    # What a layer makes besides, two at a time, and the sum of several gradients.
    besides = {
        layer.index: [
            *map(texels, layer.passing),
            *([widths[layer.index]] * max(0, layer.stored - 1) if backward else outputs[layer.index][:-1]),
        ]
        for layer in layers
    }
    sums = {maker for maker, count in uses.items() if backward and count > 1}

    total = 0
    tensors = [
        *(widths[maker] for maker, _ in waits),
        *(widths[maker] for maker in sums),
        *chain(*besides.values()),
    ]
    kinds = {columns: renderer.kind(rows, columns, quad_widths) for columns in {*tensors, *widths.values()}}
    for kind in {*kinds.values()}:
        changes = Counter[int]()
        for first, last in waits:
            if kinds[widths[first]] == kind:
                changes[0 if first in lasting else first] += 1
                changes[last + 1] -= 1
        waiting = [*accumulate(changes[index] for index in range(1 + layers[-1].index))]
        most = max(
            waiting[index]
            + min(2, sum(kinds[columns] == kind for columns in made))
            + (index in sums and kinds[widths[index]] == kind)
            for index, made in besides.items()
        )
        alike = sorted((columns for columns in tensors if kinds[columns] == kind), reverse=True)
        # Training and evaluation make their textures before prediction does: where its outputs are wider than all of them, theirs stay besides.
        widest = alike[:1] == [widths[layers[-1].index]] != alike[1:2]
        total += sum(
            _tensor(rows, _in_lines(columns, quad_widths), kind.layers) for columns in alike[: most + widest]
        )
    return total


def _in_lines(texels_per_row: int, quad_widths: frozenset[int]) -> int:
    """Texels that a row takes, with those that fill its lines."""
    return _round_up(texels_per_row, QUAD) if texels_per_row in quad_widths else texels_per_row


def _tensor(rows: int, texels_per_row: int, layers: int = _LAYERS, texel_bytes: int = _TEXEL_BYTES) -> int:
    """Bytes of a matrix whose rows interleave over `layers`."""
    return _folded(math.ceil(rows / layers) * texels_per_row, layers, texel_bytes)


def _in_quads(layer: LayerShape, batch: int, renderer: _Renderer) -> bool:
    """Whether the stored gradient of a layer's weights may take columns of the batch from uniform blocks."""
    return bool(renderer.block_bytes) and is_large(layer, batch)


def _weights(layer: LayerShape, layers: int, multiple: int = 1, *, quads: bool = False) -> int:
    """Bytes of a layer's weights: each block starts on a multiple of 4 rows, the bias in a group of its own.

    `multiple`: of their rows, the bias not counted. `quads`: whether a row has whole quads.
    """
    blocks, rows, columns = layer.weights or (0, 0, 0)
    bias_row = _round_up(blocks * _round_up(rows, 4), max(layers, multiple))
    return _tensor(bias_row + 1, _round_up(math.ceil(columns / 4), QUAD if quads else 1), layers)


def _is_small(layer: LayerShape, outputs: int) -> bool:
    """Whether a layer's weights may share a texture with others; backends/webgl2/regions.js."""
    blocks, rows, columns = layer.weights or (0, 0, 0)
    return blocks * rows * math.ceil(columns / 4) * outputs <= _REGION_TEXELS


def _patches(layers: Sequence[LayerShape], batch: int, stage: int, renderer: _Renderer) -> dict[int, int]:
    """Texels a sample of what the windows of each layer hold, 0 where that is not stored; backends/webgl2/convolution.js."""
    left = _PATCH_BYTES
    patches = dict[int, int]()
    for layer in layers:
        taken = max(_tensor(rows, layer.pixels * _texels_of_window(layer)) for rows in (batch, stage))
        wins = layer.windows and taken <= left and _patches_pay(layer, renderer)
        patches[layer.index] = layer.pixels * _texels_of_window(layer) if wins else 0
        left -= taken if wins else 0
    return patches


def _texels_of_window(layer: LayerShape) -> int:
    taps, channels, _ = layer.weights or (0, 0, 0)
    return math.ceil(taps * channels / 4)


def _patches_pay(layer: LayerShape, renderer: _Renderer) -> bool:
    """Whether it takes less time to store them."""
    taps, channels, filters = layer.weights or (0, 0, 0)
    passes = 1 if layer.frozen else 2
    load, multiply_add, store = renderer.times

    def time(trips: int, stored: int) -> float:
        products = math.ceil(filters / 4) * trips * passes
        return 2 * (products + 2 * stored) * load + 16 * products * multiply_add + stored * store

    texels = _texels_of_window(layer)
    return time(texels, texels) < time(taps * math.ceil(channels / 4), 0)


def _splits(layer: LayerShape, batch: int) -> int:
    """Parts in which a convolution's weight gradient is summed."""
    texels = _weights(layer, 4) // (4 * _TEXEL_BYTES)
    height, width = layer.lines or (0, 0)
    lines = batch // 4 * height
    short = math.ceil(lines / max(1, _MAX_TRIPS // width))
    return max(1, min(lines, max(math.ceil(_FRAGMENTS / texels), short), _MAX_SPLITS))


def _batch_parts(layer: LayerShape, batch: int) -> int:
    """Parts in which a dense layer's weight gradient is summed; backends/webgl2/fragment_rows.js."""
    fragments, samples, many = _BATCH_PARTS
    blocks, rows, columns = layer.weights or (0, 0, 0)
    least = blocks * math.ceil(rows / 4) * math.ceil(columns / 4)  # without a bias
    return min(many, batch // samples) if least < fragments else 0


def _statistics(layer: LayerShape, batch: int, stage: int) -> int:
    """Bytes of what a normalization sums up, but for the statistics of each sample, which are kept as outputs are."""
    if not (sums := layer.sums):
        return 0
    spots = batch // 4 * sums.pixels
    if spots > _ALONE:
        spots = max(16, math.ceil(math.sqrt(spots)), math.ceil(spots / _MAX_PARTS))
    parts = math.ceil(batch // 4 * sums.pixels / spots)
    total = (1 + parts) * _weights(layer, 4)  # the gradient of gamma and beta, and its parts
    if sums.sets:
        total += _tensor(batch, sums.sets)  # sums of the backward pass
        phases = (batch, stage, stage) if sums.parts > 1 else ()  # training, evaluation, prediction
        return total + sum(_tensor(rows, sums.sets * sums.parts) for rows in phases)
    columns = math.ceil(sums.channels / 4)
    # Mean and variance of the batch, and the running ones, which ping-pong.
    return total + 6 * _tensor(1, columns, 1) + (_tensor(2 * parts, columns, 2) if parts > 1 else 0)


def _folded(texels: int, layers: int, texel_bytes: int) -> int:
    """Bytes of a texture array whose layers hold so many texels: about square, its width a power of two."""
    width = 1
    while width * width < texels:
        width *= 2
    return width * math.ceil(texels / width) * layers * texel_bytes


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
