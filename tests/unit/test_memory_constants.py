"""The service counts textures with the page's own numbers: those that both have are the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from texelgrad import gated_gradients, memory, uniform_rows

WEBGL2 = Path(__file__).parents[2] / "browser_runtime" / "backends" / "webgl2"
SAME = {
    "_ROW_ALIGNMENT": "layout.js ROW_ALIGNMENT",
    "_NARROW": "layout.js NARROW",
    "_FEW_FRAGMENTS": "fragment_rows.js FEW_FRAGMENTS",
    "_MANY_FRAGMENTS": "fragment_rows.js MANY_FRAGMENTS",
    "_TELEMETRY_LINES": "lower.js TELEMETRY_LINES",
    "_MAX_SLOTS": "lower.js MAX_SLOTS",
    "_RESIDENT_BYTES": "layout.js RESIDENT_BYTES",
    "_SMALL_BYTES": "lower.js SMALL_BYTES",
    "_TEXELS_OF_PART": "lower.js TEXELS_OF_PART",
    "_MOST_WASTE": "regions.js MOST_WASTE",
    "_MOST_WASTE_BELOW": "stored_gradients.js MOST_WASTE_BELOW",
    "_PATCH_BYTES": "convolution.js PATCH_BYTES",
    "_MAX_TRIPS": "kernels/common.js MAX_TRIPS",
    "_SHORT_ROW": "kernels/loss.js SHORT_ROW",
    "_FRAGMENTS": "kernels/gradient_parts.js FRAGMENTS",
    "_MAX_PARTS": "kernels/norm.js MAX_PARTS",
}


@pytest.mark.parametrize("name", SAME)
def test_a_number_is_the_same_on_both_sides(name: str):
    """Bytes, texels, rows and the like, some of them written as products of powers of two."""
    file, theirs = SAME[name].split()
    found = re.search(rf"const {theirs} = ([\d_.]+)(?: (\*\*|<<) (\d+))?;", (WEBGL2 / file).read_text())
    assert found, f"{file} defines no {theirs}"
    number, operator, exponent = float(found[1]), found[2], int(found[3] or 0)
    value = number**exponent if operator == "**" else number * 2**exponent
    assert getattr(memory, name) == value


UNIFORM = {
    "ROWS": "UNIFORM_ROWS", "LINES": "UNIFORM_LINES", "LEAST_BLOCK_BYTES": "LEAST_BLOCK_BYTES", "MOST_BLOCK_BYTES": "MOST_BLOCK_BYTES",
    "_ALIGNMENT_BYTES": "ALIGNMENT_BYTES", "_TEXEL_BYTES": "TEXEL_BYTES", "MOST_ROWS": "MOST_ROWS",
}  # fmt: skip


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_blocks_are_the_same_on_both_sides(name: str):
    """Their rows and bytes."""
    found = re.search(rf"const {UNIFORM[name]} = ([\d <]+);", (WEBGL2 / "uniform_rows.js").read_text())
    assert found
    number, _, shift = found[1].partition("<<")
    assert getattr(uniform_rows, name) == int(number) << int(shift or 0)


def test_rows_of_spread_weights_are_a_multiple_of_the_same():
    """Both sides say so on their own."""
    text = (WEBGL2 / "layout.js").read_text()
    assert f"const SPREAD_ROWS = {uniform_rows.SPREAD_ROWS};" in text


def test_from_when_on_products_take_uniform_blocks():
    """On GPUs alone."""
    (found,) = re.findall(
        r"uniform: \{ products: 2 \*\* (\d+), texels: (\d+) \}", (WEBGL2 / "fragment_rows.js").read_text()
    )
    assert (1 << int(found[0]), int(found[1])) == (uniform_rows._PRODUCTS, uniform_rows._TEXELS)  # pyright: ignore[reportPrivateUsage]


def test_parts_of_logits():
    """On GPUs alone, of few fragments."""
    (found,) = re.findall(
        r"sums: \{ fragments: (\d+), texels: \d+, most: (\d+) \}", (WEBGL2 / "fragment_rows.js").read_text()
    )
    ours = (memory._FEW_FRAGMENTS, memory._SUM_PARTS)  # pyright: ignore[reportPrivateUsage]
    assert ours == tuple(map(int, found))


def test_from_when_on_gradients_may_be_gated():
    """On GPUs alone; rows of a texel of gates."""
    text = (WEBGL2 / "fragment_rows.js").read_text()
    (exponent,) = re.findall(r"gated: \{ products: 2 \*\* (\d+) \}", text)
    assert 1 << int(exponent) == gated_gradients.PRODUCTS
    assert f"const GATED_ROWS = {gated_gradients.ROWS};" in (WEBGL2 / "layout.js").read_text()


def test_regions_slots_and_rows_are_those_of_fragment_rows():
    """Slots of both renderers, the others of GPUs."""
    text = (WEBGL2 / "fragment_rows.js").read_text()
    slots = [int(n) for n in re.findall(r"slots: (\d+)", text)]
    texels = {int(n.replace("_", "")) for n in re.findall(r"regions: \{ texels: ([\d_]+)", text)}
    rows = re.search(r"activation: \{ few: (\d), usual: (\d), many: (\d) \}", text)
    assert rows
    parts = re.search(r"parts: \{ fragments: (\d+), [^}]* samples: (\d+), [^}]* most: (\d+) \}", text)
    assert parts
    assert tuple(map(int, parts.groups())) == memory._BATCH_PARTS  # pyright: ignore[reportPrivateUsage]
    software, gpu, *_ = memory._RENDERERS  # pyright: ignore[reportPrivateUsage]
    ours = ([software.slots, gpu.slots], {memory._REGION_TEXELS}, gpu.rows)  # pyright: ignore[reportPrivateUsage]
    assert ours == (slots, texels, tuple(map(int, rows.groups())))
