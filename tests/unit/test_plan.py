"""The planner in Node: fusion written out, memory that never overlaps, layouts there and back, refusals with figures."""

from __future__ import annotations

import math
import re
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from texelgrad.spec import parse_spec

from ..kernels.specs import ACTIVATIONS, LOSSES, OPTIMIZERS, Spec, mlp
from ..node import call

PROBE = "/tests/unit/plan_probe.js"
DESKTOP = {"maxDrawBuffers": 8, "maxTextureSize": 8192, "maxArrayLayers": 256}
quickly = settings(max_examples=60, deadline=None, derandomize=True)


# ---- fusion ---------------------------------------------------------------------------------------------------------


def test_two_layers_are_five_groups():
    """Forward, loss with its gradient, gradient of the hidden layer, and two updates."""
    groups = call(PROBE, "groups", mlp((5, 32, 1), "bce"), "values")
    assert groups["train"] == [
        ["affine", ["affine", "activation"], ["dense_1.y"]],
        ["affine", ["affine", "loss", "loss_grad"], ["loss", "d(dense_2.y)"]],
        ["affine_grad_input", ["affine_grad_input", "activation_grad"], ["d(dense_1.z)"]],
        ["affine_grad_weights", ["affine_grad_weights", "update"], ["dense_2"]],
        ["affine_grad_weights", ["affine_grad_weights", "update"], ["dense_1"]],
    ]
    assert groups["evaluate"] == [
        ["affine", ["affine", "activation"], ["dense_1.y"]],
        ["affine", ["affine", "loss", "accuracy"], ["loss", "correct"]],
    ]
    assert groups["predict"] == [
        ["affine", ["affine", "activation"], ["dense_1.y"]],
        ["affine", ["affine"], ["dense_2.y"]],
    ]


def test_what_few_columns_give_is_computed_where_it_is_read():
    """The article's net: neither the hidden layer nor its gradient is stored, which leaves three groups."""
    groups = call(PROBE, "groups", mlp((2, 32, 1), "bce"), "values")
    assert groups["train"] == [
        ["affine", ["affine", "loss", "loss_grad"], ["loss", "d(dense_2.y)"]],
        ["affine_grad_weights", ["affine_grad_weights", "update"], ["dense_2"]],
        ["affine_grad_weights", ["affine_grad_weights", "update"], ["dense_1"]],
    ]
    assert groups["evaluate"] == [["affine", ["affine", "loss", "accuracy"], ["loss", "correct"]]]
    assert groups["predict"] == [["affine", ["affine"], ["dense_2.y"]]]


@pytest.mark.parametrize(
    ("spec", "stored"),
    [
        # a function that costs, values that many fragments read, inputs of more than a texel
        (mlp((2, 32, 1), activation="tanh"), {"dense_1.y", "d(dense_1.z)"}),
        (mlp((2, 32, 5)), {"dense_1.y", "d(dense_1.z)"}),
        (mlp((5, 32, 2)), {"dense_1.y", "d(dense_1.z)"}),
        (mlp((2, 32, 32, 1)), {"dense_1.y", "d(dense_1.z)", "dense_2.y", "d(dense_2.z)"}),
        (mlp((4, 32, 4)), set()),
        # a chain of narrow layers: every other one
        (mlp((2, 3, 4, 2, 1)), {"dense_2.y", "d(dense_2.z)", "d(dense_3.z)"}),
        (mlp((1, 32, 1), activation="linear"), set()),
    ],
)
def test_what_is_stored(spec: Spec, stored: set[str]):
    """Only what costs nothing and is read once is computed again."""
    groups = call(PROBE, "groups", spec, "values")["train"]
    hidden = {
        name for *_, outputs in groups for name in outputs if name.removeprefix("d(").startswith("dense")
    }
    assert {
        name
        for name in hidden
        if "." in name and not name.startswith(f"d(dense_{len(spec['model']['layers'])}")
    } == stored


def test_a_loss_over_long_rows_is_a_group_of_its_own():
    """A fragment sees 4 columns: softmax over 10 classes needs the stored logits. Adam's states are stored with the weights."""
    spec = mlp((64, 64, 10), "softmax_cross_entropy", optimizer="adam", activation="linear")
    groups = call(PROBE, "groups", spec, "index")
    assert groups["train"] == [
        ["affine", ["affine"], ["dense_1.y"]],
        ["affine", ["affine"], ["dense_2.y"]],
        ["loss", ["loss", "loss_grad"], ["loss", "d(dense_2.y)"]],
        ["affine_grad_input", ["affine_grad_input"], ["d(dense_1.y)"]],
        ["affine_grad_weights", ["affine_grad_weights", "update"], ["dense_2", "dense_2.m", "dense_2.v"]],
        ["affine_grad_weights", ["affine_grad_weights", "update"], ["dense_1", "dense_1.m", "dense_1.v"]],
    ]
    assert groups["evaluate"][2] == ["loss", ["loss", "accuracy"], ["loss", "correct"]]


def test_the_last_activation_and_its_gradient_go_with_the_loss():
    """One layer, mse after tanh: two draws in all; nothing of the middle is stored."""
    groups = call(PROBE, "groups", mlp((4, 9), "mse", last="tanh", optimizer="momentum"), "values")
    assert groups["train"] == [
        [
            "affine",
            ["affine", "activation", "loss", "loss_grad", "activation_grad"],
            ["loss", "d(dense_1.z)"],
        ],
        ["affine_grad_weights", ["affine_grad_weights", "update"], ["dense_1", "dense_1.velocity"]],
    ]


@pytest.mark.parametrize("loss", LOSSES)
def test_every_op_is_in_one_group_and_reads_what_was_stored(loss: str):
    """A group's inputs come from outside or from an earlier group; the gradient of the data is never made."""
    groups = call(PROBE, "groups", mlp((5, 6, 7, 8), loss, activation="sigmoid"), "values")["train"]
    ops = [op for _, types, _ in groups for op in types]
    assert ops.count("affine") == ops.count("affine_grad_weights") == ops.count("update") == 3
    assert ops.count("affine_grad_input") == 2
    assert ops.count("activation") == ops.count("activation_grad") == 2
    assert ops.count("loss") == ops.count("loss_grad") == 1
    stored = [name for *_, outputs in groups for name in outputs]
    assert len(stored) == len(set(stored))
    assert "d(x)" not in stored


# ---- memory ---------------------------------------------------------------------------------------------------------

MATRIX = st.fixed_dictionaries(
    {"rows": st.integers(1, 200), "columns": st.integers(1, 70), "layers": st.sampled_from([1, 2, 4])}
) | st.fixed_dictionaries(
    {"rows": st.integers(1, 64), "columns": st.integers(1, 70), "layers": st.just(8), "lines": st.just(2)}
)
LIFETIME = st.tuples(st.integers(0, 9), st.integers(0, 4))


@st.composite
def phases_of_tensors(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    phases: list[list[dict[str, Any]]] = []
    for _ in range(draw(st.integers(1, 3))):
        chosen = draw(st.lists(st.tuples(MATRIX, LIFETIME), min_size=1, max_size=12))
        phases.append(
            [
                {"name": f"t{i}", "matrix": matrix, "first": first, "last": first + length}
                for i, (matrix, (first, length)) in enumerate(chosen)
            ]
        )
    return phases


@quickly
@given(phases_of_tensors(), st.sampled_from([64, 128, 8192]))
def test_no_two_live_tensors_share_a_texture(phases: list[list[dict[str, Any]]], max_size: int):
    """Within a phase, tenants of one texture never live together; each fits its texture."""
    got = call(PROBE, "share", phases, max_size)
    for tensors, placed, layouts in zip(phases, got["placed"], got["layouts"], strict=True):
        for one, other in combinations(tensors, 2):
            if placed[one["name"]] == placed[other["name"]]:
                assert one["last"] < other["first"] or other["last"] < one["first"]
        for tensor, layout in zip(tensors, layouts, strict=True):
            slot = got["slots"][placed[tensor["name"]]]
            assert (slot["layers"], slot["folded"]) == (layout["layers"], layout["folded"])
            assert slot["width"] * slot["height"] >= layout["texels"]
            assert layout["lines"] == 1 or slot["height"] >= 2 * layout["groups"]
            assert max(slot["width"], slot["height"]) <= max_size
    used = {slot for placed in got["placed"] for slot in placed.values()}
    assert used == set(range(len(got["slots"])))
    assert got["bytes"] == 16 * sum(s["width"] * s["height"] * s["layers"] for s in got["slots"])


def test_textures_are_shared_across_time_and_phases():
    """Two tensors of disjoint lives, and those of another phase, take one texture."""
    matrix = {"rows": 8, "columns": 8, "layers": 4}
    lives = [
        {"name": "a", "matrix": matrix, "first": 0, "last": 1},
        {"name": "b", "matrix": matrix, "first": 2, "last": 3},
    ]
    got = call(PROBE, "share", [lives, lives[:1]], 64)
    assert len(got["slots"]) == 1


GPU = DESKTOP | {"software": False, "copiedBlockBytes": 65_536}


def rows_of(batch: int) -> dict[str, int]:
    """One batch, nothing kept back."""
    return {"total": batch, "train": batch, "validation": 0, "batch": batch}


BLOCKS = DESKTOP | {"software": False, "copiedBlockBytes": 65_536}
"""A GPU with uniform blocks as large as are taken."""
BRANCHES: Spec = mlp((512, 384, 8), "mse", optimizer="adam") | {
    "model": {
        "input": [512],
        "layers": [
            *(
                {"type": "dense", "units": 384, "inputs": ["input"], "use_bias": i % 2 == 0}
                for i in range(40)
            ),
            {"type": "add", "inputs": [f"dense_{i + 1}" for i in range(40)]},
            {"type": "dense", "units": 8},
        ],
    }
}
"""Layers with the same input, with and without bias."""
WIDE_BRANCHES: Spec = BRANCHES | {
    "model": {
        "input": [64],
        "layers": [
            *(
                layer
                for i in range(40)
                for layer in (
                    {"type": "dense", "units": 384, "inputs": ["input"], "name": f"a{i}"},
                    {"type": "dense", "units": 2052, "inputs": [f"a{i}"], "name": f"b{i}"},
                )
            ),
            {"type": "add", "inputs": [f"b{i}" for i in range(40)]},
            {"type": "dense", "units": 8},
        ],
    }
}
"""Rows of 2,052 numbers are no block, so that 40 inputs, whose columns are 49 lines each, are arranged beside the last product forward."""


@st.composite
def nets(draw: st.DrawFn) -> tuple[Spec, str, dict[str, int], dict[str, int]]:
    """A spec, its labels, a device, and rows."""
    loss = draw(st.sampled_from(LOSSES))
    width = st.one_of(st.integers(1, 40), st.sampled_from([64, 256, 257, 784]))
    least = 2 if loss == "softmax_cross_entropy" else 1
    sizes = (
        *draw(st.lists(width, min_size=1, max_size=4)),
        draw(st.one_of(st.just(least), st.integers(2, 60))),
    )
    labels = draw(st.sampled_from(["index", "values"])) if loss == "softmax_cross_entropy" else "values"
    total = draw(st.integers(2, 3000))
    validation = draw(st.integers(0, total // 2))
    batch = draw(st.integers(1, total - validation))
    spec = mlp(
        sizes,
        loss,
        activation=draw(st.sampled_from(ACTIVATIONS)),
        optimizer=draw(st.sampled_from(sorted(OPTIMIZERS))),
    )
    limits = {
        "maxDrawBuffers": draw(st.sampled_from([3, 4, 6, 8])),
        "maxTextureSize": draw(st.sampled_from([1024, 2048, 8192, 16384])),
        "maxArrayLayers": draw(st.sampled_from([256, 2048])),
        "software": draw(st.booleans()),
        "copiedBlockBytes": draw(st.sampled_from([16_384, 65_536])),
    }
    rows = {"total": total, "train": total - validation, "validation": validation, "batch": batch}
    return spec, labels, limits, rows


# rows from uniform blocks in all phases, of 256 and of 1,024 samples
@example(
    (
        mlp((1024, 2048, 2048, 1000), "softmax_cross_entropy"),
        "values",
        DESKTOP | {"software": False, "copiedBlockBytes": 65_536},
        {"total": 4000, "train": 3000, "validation": 1000, "batch": 256},
    )
)
# gradients below those of the inputs: one, several that take turns, one whose texture a wider tensor had, one of other layers, one for which no texture is high enough
@example((mlp((2, 256, 256, 1), "mse"), "values", GPU, rows_of(500)))
@example((mlp((16, 360, 360, 360, 360, 360, 4), "mse"), "values", GPU, rows_of(256)))
@example((mlp((16, 512, 512, 2000, 4), "mse"), "values", GPU | {"copiedBlockBytes": 0}, rows_of(256)))
@example((mlp((16, 384, 384, 4), "mse"), "values", GPU, rows_of(128)))
@example((mlp((16, 700, 700, 4), "mse"), "values", GPU | {"maxTextureSize": 256}, rows_of(1500)))
# as gates, with the weights' gradient below the inputs'; beside rows from uniform blocks; of two hidden layers, and of one
@example((mlp((16, 512, 512, 1), "bce", activation="relu"), "values", GPU, rows_of(500)))
@example((mlp((1024, 2048, 2048, 1), "bce", activation="relu"), "values", GPU, rows_of(256)))
@example((mlp((8, 257, 301, 1), "mse", activation="relu", optimizer="adam"), "values", GPU, rows_of(700)))
@example((mlp((300, 511, 1), "mse", activation="relu"), "values", GPU, rows_of(300)))
# operands that are computed, below the results and in textures of their own
@example(
    (mlp((4, 256, 256, 256, 3), "mse", activation="relu", optimizer="adam"), "values", GPU, rows_of(500))
)
@example((mlp((2, 128, 256, 3), "mse", activation="relu"), "values", GPU, rows_of(500)))
# columns from uniform blocks, beside the rows of two products; of weights in quads; of three layers with the same input; where few lines are left
@example(
    (mlp((784, 512, 512, 10), "softmax_cross_entropy", optimizer="adam"), "values", BLOCKS, rows_of(128))
)
@example((mlp((784, 512, 512, 10), "softmax_cross_entropy", optimizer="sgd"), "values", BLOCKS, rows_of(128)))
@example(
    (
        mlp((784, 512, 512, 1), "mse", optimizer="adam"),
        "values",
        BLOCKS | {"maxTextureSize": 784},
        rows_of(128),
    )
)
@example((BRANCHES, "values", BLOCKS, rows_of(256)))
@example((WIDE_BRANCHES, "values", BLOCKS | {"maxTextureSize": 1100}, rows_of(384)))
# gradients in parts, in one texture
@example((mlp((16, 64, 64, 1), "mse", optimizer="adam"), "values", GPU, rows_of(2048)))
@quickly
@given(nets())
def test_lowered_plans_are_sound(net: tuple[Spec, str, dict[str, int], dict[str, int]]):
    """No draw reads what it writes, every target is large enough and allowed, and no live tensor is overwritten."""
    spec, labels, limits, rows = net
    got = call(PROBE, "lowered", spec, labels, limits, rows)
    textures, slots = got["textures"], got["slots"]
    for texture in textures:
        assert max(texture["width"], texture["height"]) <= limits["maxTextureSize"]
        assert texture["layers"] <= limits["maxArrayLayers"]
    for slot in slots:
        texture = textures[slot["texture"]]
        assert slot["width"] <= texture["width"]
        assert slot["y"] + slot["height"] <= texture["height"]
        assert all(slot[of] == texture[of] for of in ("layers", "lanes", "numbers"))
    within = set[int]()  # slots whose lines are also those of another, whose tensors leave them below
    for one, other in combinations(range(len(slots)), 2):
        # Of the lines beside a buffer each phase takes as many as it needs: check_blocks.
        if slots[one]["texture"] == slots[other]["texture"] and not textures[slots[one]["texture"]].get(
            "copied"
        ):
            above, below = sorted((one, other), key=lambda i: slots[i]["y"])
            if slots[above]["y"] + slots[above]["height"] > slots[below]["y"]:
                within.add(below)
    for index in within:
        check_below(got["draws"], slots, index)
    check_reads([draw for draw in got["draws"] if draw["phase"] == "train"], slots)
    for draw in got["draws"]:
        assert sum(write["targets"] for write in draw["writes"]) <= limits["maxDrawBuffers"]
        for parity in (0, 1):
            written = {slots[write["slots"][parity]]["texture"] for write in draw["writes"]}
            read = {slots[read[parity]]["texture"] for read in draw["reads"]}
            if draw["uniform"]:
                read.add(slots[draw["uniform"]["slot"]]["texture"])
            assert not written & read, f"{draw['shader']} reads what it writes"
        for write in draw["writes"]:
            for slot in write["slots"]:
                assert slots[slot]["y"] == draw["y"]
                assert slots[slot]["width"] >= draw["width"]
                assert slots[slot]["height"] >= draw["height"]
        if draw["phase"] != "reductions":
            assert draw["width"] * draw["height"] >= draw["domain"]["texels"]
    made: set[str] = set()
    for group in got["order"]:
        assert {name for name in group["inputs"] if name in got["lifetimes"]} <= made
        made |= set(group["outputs"])
    for (one, a), (other, b) in combinations(got["lifetimes"].items(), 2):
        if set(got["places"][one]["slots"]) & set(got["places"][other]["slots"]):
            assert a["last"] < b["first"] or b["last"] < a["first"], f"{one} and {other}"
    assert got["bytes"] == sum(
        t["width"] * t["height"] * t["layers"] * 4 * t["lanes"] * (1 + t.get("copied", False))
        for t in textures
    )
    check_blocks(got["draws"], textures, slots, limits["copiedBlockBytes"])
    sizes = got["sizes"]
    assert sizes["batch"] % 8 == sizes["stage"] % 8 == 0
    assert sizes["batch"] >= rows["batch"]
    assert sizes["ring"] == math.ceil(rows["train"] / rows["batch"])


def check_blocks(draws: list[Any], textures: list[Any], slots: list[Any], block_bytes: int) -> None:
    """What a draw takes from its blocks was arranged there for it, and copied, and nobody has copied anything else there since."""
    lines: dict[int, list[Any]] = {}  # what drew the lines of a texture, and which
    buffers: dict[int, list[Any]] = {}  # what the buffer beside it holds, and where
    untaken = {i for i, draw in enumerate(draws) if draw["shader"].startswith("arrange")}
    for index, draw in enumerate(draws):
        slot = slots[draw["writes"][0]["slots"][0]]
        texture = textures[slot["texture"]]
        if draw["shader"].startswith("arrange"):
            top, bottom = draw["y"], draw["y"] + draw["height"]
            others = lines.get(slot["texture"], [])
            kept = [one for one in others if one["bottom"] <= top or bottom <= one["top"]]
            lines[slot["texture"]] = [*kept, {"index": index, "top": top, "bottom": bottom}]
        if copied := draw["fills"]:
            assert copied["slot"] == draw["writes"][0]["slots"][0]
            assert texture["copied"]
            assert draw["y"] == slot["y"] == 0
            assert draw["height"] <= copied["height"] <= texture["height"]
            end = copied["width"] * copied["height"]
            kept = [held for held in buffers.get(slot["texture"], []) if held["start"] >= end]
            for one in lines[slot["texture"]]:
                if one["top"] < copied["height"]:
                    assert one["bottom"] <= copied["height"]
                    assert draws[one["index"]]["width"] <= copied["width"]
                    kept.append(one | {"start": copied["width"] * one["top"], "pitch": copied["width"]})
            buffers[slot["texture"]] = kept
        if blocks := draw["uniform"]:
            home = slots[blocks["slot"]]["texture"]
            start = blocks["y"] * blocks["pitch"]
            [held] = [held for held in buffers[home] if held["start"] == start]
            source = draws[held["index"]]
            untaken.discard(held["index"])
            columns = draw["shader"] == "affine_grad_weights.frag.glsl"
            assert source["shader"] == ("arrange_columns.frag.glsl" if columns else "arrange.frag.glsl")
            assert draw["takes"] in (None, source["reads"][0][0])
            assert held["pitch"] == blocks["pitch"] <= textures[home]["width"]
            assert blocks["perLine"] * blocks["texels"] <= blocks["pitch"]
            assert source["height"] >= math.ceil(blocks["groups"] / blocks["perLine"])
            assert draw["height"] == 2 * blocks["groups"]
            assert 16 * blocks["pitch"] % 256 == 16 * blocks["texels"] % 256 == 0
            assert 16 * blocks["texels"] <= block_bytes
    assert not untaken


def check_reads(draws: list[dict[str, Any]], slots: list[dict[str, Any]]) -> None:
    """Lines that a draw reads were last written as what it reads, if this step has written them at all."""
    written: dict[int, list[tuple[int, int]]] = {}
    for draw in draws:
        for read in draw["lines"]:
            start, end = read["y"], read["y"] + read["height"]
            for top, bottom in reversed(written.get(slots[read["slot"]]["texture"], [])):
                if top < end and start < bottom:
                    assert top == start, f"{draw['shader']} reads lines that something else was written to"
                    assert bottom >= end, f"{draw['shader']} reads more lines than were written"
                    break
        for write in draw["writes"]:
            lines = (draw["y"], draw["y"] + draw["height"])
            written.setdefault(slots[write["slots"][0]]["texture"], []).append(lines)


def check_below(draws: list[dict[str, Any]], slots: list[dict[str, Any]], index: int) -> None:
    """What lies below a tensor is written right behind it or before it, into the same render targets, and read before anything else comes there."""
    slot = slots[index]
    [at] = [i for i, draw in enumerate(draws) if any(index in write["slots"] for write in draw["writes"])]
    draw = draws[at]
    # An operand comes before the product that computes it, a gradient behind that of the layer's inputs.
    above = draws[at + 1] if draws[at + 1]["computed"] == ["X"] else draws[at - 1]
    targets = [[(slots[w["slots"][0]]["texture"], w["layers"]) for w in d["writes"]] for d in (above, draw)]
    assert targets[0] == targets[1] == [(slot["texture"], slot["layers"])]
    assert above["y"] + above["height"] <= draw["y"] == slot["y"]
    reads = [i for i, d in enumerate(draws) if any(line["slot"] == index for line in d["lines"])]
    assert reads
    assert reads[0] > at


def order_of(
    sizes: tuple[int, ...], batch: int, *, software: bool, **net: Any
) -> tuple[list[str], list[set[str]]]:
    """What the groups of a step update, or else make first; and which parameters share textures."""
    limits = {"maxDrawBuffers": 8, "maxTextureSize": 8192, "maxArrayLayers": 256, "software": software}
    rows = {"total": batch, "train": batch, "validation": 0, "batch": batch}
    got = call(PROBE, "lowered", mlp(sizes, **net), "values", limits, rows)
    parameters = [group["parameter"] for group in got["order"] if group["parameter"]]
    homes: dict[int, set[str]] = {}
    for name in parameters:
        homes.setdefault(got["slots"][got["places"][name]["slots"][0]]["texture"], set()).add(name)
    order = [group["parameter"] or group["outputs"][0] for group in got["order"]]
    return order, [names for names in homes.values() if len(names) > 1]


def uniform_draws(sizes: tuple[int, ...], rows: int, optimizer: str = "sgd", **limits: Any) -> list[str]:
    """Which draws of a step take rows or columns from uniform blocks on a GPU, by what they compute."""
    device = DESKTOP | {"software": False, "copiedBlockBytes": 65_536} | limits
    data = {"total": rows, "train": rows, "validation": 0, "batch": rows}
    spec = mlp(sizes, "softmax_cross_entropy", optimizer=optimizer)
    got = call(PROBE, "lowered", spec, "values", device, data)
    return [d["shader"].partition(".")[0] for d in got["draws"] if d["uniform"] and d["phase"] == "train"]


THREE, TWO_BACK = ["affine"] * 3, ["affine_grad_input"] * 2


@pytest.mark.parametrize(
    ("sizes", "rows", "limits", "draws"),
    [
        ((1024, 2048, 2048, 1000), 256, {}, [*THREE, *TWO_BACK]),
        # 2^23 products and no fewer
        ((512, 384, 10), 48, {}, ["affine"]),
        ((512, 384, 10), 32, {}, []),
        ((784, 512, 512, 10), 128, {}, ["affine", "affine", "affine_grad_input"]),
        # the block: 8 rows of 4 values for each texel of 16 bytes, at most 64 KiB, or what the device has
        ((2048, 1024, 10), 256, {"copiedBlockBytes": 1 << 20}, ["affine"]),
        ((2052, 1024, 10), 256, {"copiedBlockBytes": 1 << 20}, []),
        ((512, 2048, 500), 256, {"copiedBlockBytes": 16_384}, ["affine", "affine_grad_input"]),
        ((516, 2048, 520), 256, {"copiedBlockBytes": 16_384}, []),
        ((1024, 2048, 2048, 1000), 256, {"copiedBlockBytes": 0}, []),
        # results of fewer than 96 texels a row leave the GPU idle, as do short sums
        ((384, 384, 10), 256, {}, ["affine"]),
        ((384, 380, 10), 272, {}, []),
        ((380, 384, 10), 272, {}, []),
        # 8 rows a fragment, and batches as long as the service counts on, whatever the device's textures hold
        ((1024, 1024, 10), 256, {"maxDrawBuffers": 4}, []),
        ((400, 768, 10), 8192, {}, ["affine"]),
        ((400, 768, 10), 8208, {}, []),
        ((400, 768, 10), 8208, {"maxTextureSize": 16_384}, []),
        ((1024, 2048, 2048, 1000), 256, {"software": True}, []),
    ],
)
def test_large_products_take_rows_from_uniform_blocks(
    sizes: tuple[int, ...], rows: int, limits: dict[str, Any], draws: list[str]
):
    """On GPUs, where they fit; all others take textures."""
    rows_taken = [draw for draw in uniform_draws(sizes, rows, **limits) if draw != "affine_grad_weights"]
    assert rows_taken == draws


@pytest.mark.parametrize(
    ("sizes", "rows", "optimizer", "forward", "backward", "gradients"),
    [
        ((784, 512, 512, 10), 128, "adam", 2, 1, 2),
        ((784, 512, 512, 10), 128, "sgd", 2, 1, 2),  # updated by the fragments that make them
        ((784, 512, 512, 10), 32, "momentum", 2, 1, 0),  # neither stored nor spread
        ((784, 512, 10), 32, "adam", 1, 0, 1),
        ((784, 512, 10), 16, "adam", 0, 0, 0),  # 2^22 products and a half
        ((384, 768, 10), 384, "adam", 1, 0, 1),  # blocks as long as those of the rows
        ((384, 768, 10), 400, "adam", 1, 0, 0),
    ],
)
def test_large_gradients_take_columns_from_uniform_blocks(
    sizes: tuple[int, ...], rows: int, optimizer: str, forward: int, backward: int, gradients: int
):
    """Those that are stored, and those of spread weights."""
    draws = uniform_draws(sizes, rows, optimizer)
    assert draws == [
        *["affine"] * forward,
        *["affine_grad_input"] * backward,
        *["affine_grad_weights"] * gradients,
    ]


def test_wide_nets_take_all_from_uniform_blocks():
    """Each layer's gradients behind one another."""
    backward = ["affine_grad_input", "affine_grad_weights"] * 2
    draws = uniform_draws((1024, 2048, 2048, 1000), 256, "sgd")
    assert draws == ["affine"] * 3 + [*backward, "affine_grad_weights"]


@pytest.mark.parametrize(
    ("sizes", "rows", "loss", "limits", "parts"),
    [
        ((64, 512, 10), 128, "softmax_cross_entropy", {}, 8),
        ((64, 256, 10), 128, "softmax_cross_entropy", {}, 4),  # 16 texels each
        ((64, 136, 10), 128, "softmax_cross_entropy", {}, 2),  # 17: nothing left over
        ((64, 120, 10), 128, "softmax_cross_entropy", {}, 1),
        ((64, 512, 12), 160, "softmax_cross_entropy", {}, 8),  # 480 fragments
        ((64, 512, 12), 176, "softmax_cross_entropy", {}, 1),  # 528
        ((64, 512, 33), 32, "softmax_cross_entropy", {}, 1),  # a row of 9 texels, which is read twice
        ((64, 512, 10), 128, "mse", {}, 1),  # the loss is part of the product
        ((64, 512, 10), 128, "softmax_cross_entropy", {"software": True}, 1),
    ],
)
def test_few_logits_are_sums_of_parts(
    sizes: tuple[int, ...], rows: int, loss: str, limits: dict[str, Any], parts: int
):
    """In training; evaluation and prediction have more rows, and read them where they like."""
    device = DESKTOP | {"software": False} | limits
    data = {"total": 1000, "train": 800, "validation": 200, "batch": rows}
    got = call(PROBE, "lowered", mlp(sizes, loss), "values", device, data)
    split = {
        d["phase"]: d["splits"] for d in got["draws"] if d["shader"] == "affine.frag.glsl" and d["splits"]
    }
    assert split == ({"train": parts} if parts > 1 else {})


@pytest.mark.parametrize(("batch", "lines"), [(32, 1), (128, 2)])
def test_training_says_which_tensors_lie_in_quads(batch: int, lines: int):
    """An evaluation has 256 rows and more, whose products are large; what a small batch trains on is laid out for it."""
    device = DESKTOP | {"software": False, "copiedBlockBytes": 65_536}
    rows = {"total": 1000, "train": 700, "validation": 300, "batch": batch}
    got = call(PROBE, "lowered", mlp((512, 384, 384, 10), "softmax_cross_entropy"), "values", device, rows)
    assert got["places"]["dense_1.y"]["layout"]["lines"] == lines
    phases = {draw["phase"] for draw in got["draws"] if draw["uniform"]}
    assert phases == (set() if lines == 1 else {"train", "evaluate", "predict"})


@pytest.mark.parametrize(
    ("sizes", "optimizer", "stored"),
    [
        ((1024, 2048, 2048, 1000), "sgd", 0),
        # 4 render targets for 4 rows, of weights and of momentum
        ((1024, 2048, 2048, 1000), "momentum", 3),
        # the first layer has no input gradient; the second one's product takes its rows from textures
        ((1024, 2048, 380), "sgd", 1),
        ((128, 300, 300), "sgd", 2),
    ],
)
def test_weights_whose_products_are_uniform_store_no_gradient(
    sizes: tuple[int, ...], optimizer: str, stored: int
):
    """Their fragments update 8 rows, with which a gradient is as cheap as one that is stored."""
    device = DESKTOP | {"software": False, "copiedBlockBytes": 65_536}
    data = {"total": 256, "train": 256, "validation": 0, "batch": 256}
    spec = mlp(sizes, "softmax_cross_entropy", optimizer=optimizer)
    got = call(PROBE, "lowered", spec, "values", device, data)
    updates = [draw for draw in got["draws"] if draw["shader"].startswith("update")]
    assert len(updates) == stored
    layers = [got["places"][f"dense_{i + 1}"]["layout"]["layers"] for i in range(len(sizes) - 1)]
    assert layers.count(8) == len(layers) - stored


@pytest.mark.parametrize(
    ("sizes", "rows", "together"),
    [
        ((2, 256, 256, 1), 500, 1),
        ((784, 360, 360, 10), 256, 1),
        ((16, 360, 360, 360, 4), 256, 2),
        ((784, 512, 512, 10), 128, 0),  # its products write quads
        ((300, 256, 512, 300), 500, 0),  # as wide, or they would waste texels
        ((16, 32, 32, 2), 4096, 0),  # in parts
    ],
)
def test_stored_gradients_lie_below_those_of_the_inputs(sizes: tuple[int, ...], rows: int, together: int):
    """On GPUs, so that both are one render pass."""
    got = call(
        PROBE, "lowered", mlp(sizes, "mse"), "values", DESKTOP | {"software": False},
        {"total": rows, "train": rows, "validation": 0, "batch": rows},
    )  # fmt: skip
    drawn = [
        (draw["shader"].split(".")[0], *[write["slots"] for write in draw["writes"]]) for draw in got["draws"]
    ]
    textures = [{got["slots"][slots[0]]["texture"] for slots in written} for _, *written in drawn]
    pairs = [
        (one[0], other[0])
        for (one, other), (a, b) in zip(pairwise(drawn), pairwise(textures), strict=True)
        if a == b
    ]
    below = {(f"{kind}_grad_input", f"{kind}_grad_weights") for kind in ("affine", "gated")}
    assert sum(pair in below for pair in pairs) == together


@pytest.mark.parametrize(
    ("sizes", "rows", "net", "gated"),
    [
        ((2, 256, 256, 1), 500, {}, True),
        ((784, 512, 1), 128, {}, True),  # nobody needs the gradient of the inputs
        ((2, 256, 256, 1), 500, {"loss": "bce", "optimizer": "adam"}, True),
        ((2, 256, 256, 2), 500, {}, False),  # no outer product
        ((2, 256, 256, 1), 500, {"activation": "tanh"}, False),  # no gates
        ((2, 96, 96, 1), 500, {}, False),  # few products
        ((2, 64, 64, 1), 4096, {}, False),  # in parts
        ((2, 256, 256, 1), 500, {"clip": {"global_norm": 1.0}}, False),  # others read the weights' gradient
    ],
)
def test_gradients_behind_a_single_output_are_gated(
    sizes: tuple[int, ...], rows: int, net: dict[str, Any], gated: bool
):
    """On GPUs, where the products with them are large and end in an update."""
    loss = net.get("loss", "mse")
    options: dict[str, Any] = {"activation": "relu"} | {
        key: value for key, value in net.items() if key != "loss"
    }
    spec = mlp(sizes, loss, **options)
    for limits in (GPU, GPU | {"software": True}, GPU | {"maxDrawBuffers": 4}):
        got = call(PROBE, "lowered", spec, "values", limits, rows_of(rows))
        shaders = [draw["shader"].partition(".")[0] for draw in got["draws"] if draw["phase"] == "train"]
        assert ("gates" in shaders) == (gated and limits == GPU)
        assert shaders.count("gated_grad_weights") == shaders.count("gates")
        assert shaders.count("gated_grad_input") == (shaders.count("gates") if len(sizes) > 3 else 0)


def test_a_gradient_of_one_column_is_stored():
    """Where it is the factor of the one before, which is gated: a texel of gates is no number of its."""
    spec = mlp((64, 4096, 1, 1), "mse", activation="relu", optimizer="sgd")
    got = call(PROBE, "lowered", spec, "values", GPU, rows_of(4096))
    (gates,) = [draw for draw in got["draws"] if draw["shader"] == "gates.frag.glsl"]
    read = {slot for slots in gates["reads"] for slot in slots}
    assert set(got["places"]["d(dense_2.z)"]["slots"]) <= read
    assert {got["slots"][slot]["numbers"] for slot in read} == {"float"}


@pytest.mark.parametrize(
    ("sizes", "optimizer", "batch", "passes"),
    [
        ((2, 32, 1), "sgd", 4096, 3),  # forward, gradients, updates
        ((2, 128, 1), "adam", 1000, 3),
        ((16, 64, 64, 1), "adam", 2048, 8),
        ((2, 256, 256, 1), "sgd", 500, 6),  # two of the three gradients in parts, side by side
        ((16, 64, 64, 1), "adam", 64, 6),  # not in parts
    ],
)
def test_gradients_in_parts_are_made_before_the_first_update(
    sizes: tuple[int, ...], optimizer: str, batch: int, passes: int
):
    """On GPUs, and lie in one texture, as do the parameters: all updates are one render pass."""
    got = call(
        PROBE, "lowered", mlp(sizes, "mse", optimizer=optimizer), "values", DESKTOP | {"software": False},
        {"total": batch, "train": batch, "validation": 0, "batch": batch},
    )  # fmt: skip
    targets = [
        [got["slots"][write["slots"][0]]["texture"] for write in draw["writes"]]
        for draw in got["draws"]
        if draw["phase"] == "train"
    ]
    assert 1 + sum(a != b for a, b in pairwise(targets)) == passes


@pytest.mark.parametrize(
    ("sizes", "net", "computed", "together"),
    [
        ((2, 256, 256, 1), {}, 1, True),
        ((4, 256, 256, 256, 3), {"optimizer": "adam"}, 1, True),
        ((2, 128, 256, 3), {}, 1, False),  # not as wide
        ((2, 256, 256, 3), {"activation": "tanh"}, 0, False),
        ((5, 256, 256, 3), {}, 0, False),  # more inputs than a texel holds
        ((2, 64, 64, 3), {}, 0, False),  # few products
        ((2, 512, 512, 3), {}, 0, False),  # rows from uniform blocks
    ],
)
def test_operands_of_few_inputs_are_computed_and_stored(
    sizes: tuple[int, ...], net: dict[str, Any], computed: int, together: bool
):
    """On GPUs, where the product is large; the draw that stores one is in the render pass of the product, which does not wait for it."""
    for limits in (GPU, GPU | {"software": True}, GPU | {"maxDrawBuffers": 4}):
        got = call(PROBE, "lowered", mlp(sizes, "mse", **net), "values", limits, rows_of(500))
        train = [draw for draw in got["draws"] if draw["phase"] == "train"]
        assert sum(draw["computed"] == ["X"] for draw in train) == (computed if limits == GPU else 0)
        places = [got["slots"][got["places"][f"dense_{i}.y"]["slots"][0]] for i in (1, 2)]
        shared = places[0]["texture"] == places[1]["texture"]
        assert shared == (together and limits == GPU)
        if shared:
            assert places[1]["y"] + places[1]["height"] >= places[0]["y"] > places[1]["y"]
            assert [draw["writes"][0]["slots"][0] for draw in train[:2]] == [
                got["places"][f"dense_{i}.y"]["slots"][0] for i in (1, 2)
            ]


@pytest.mark.parametrize(
    ("draws", "order"),
    [
        # free ones into the same texture, across one that writes elsewhere
        ([("a", [5], 1, True), ("b", [1], 2, False), ("c", [2], 1, True)], "bac"),
        ([("a", [5], 1, True), ("b", [7], 5, False), ("c", [2], 1, True)], "abc"),  # what it reads is written
        ([("a", [5], 1, True), ("b", [7], 2, False), ("c", [2], 3, True)], "abc"),  # another texture
        ([("a", [5], 1, False), ("b", [7], 2, False), ("c", [2], 1, True)], "abc"),  # somebody waits for it
        ([("a", [5], 1, True), ("b", [6], 3, True), ("c", [7], 2, False), ("d", [2], 1, True), ("e", [2], 3, True)], "cadbe"),
        ([("a", [5], 1, True), ("b", [6], 1, True), ("c", [7], 2, False), ("d", [2], 1, True)], "cabd"),
    ],
)  # fmt: skip
def test_draws_into_one_texture_are_gathered(draws: list[tuple[str, list[int], int, bool]], order: str):
    """Where nobody waits for the earlier one, and nothing between them writes what it reads."""
    assert "".join(call(PROBE, "gathered", draws)) == order


HIDDEN = ["dense_1.y", "dense_2.y", "loss"]


@pytest.mark.parametrize("software", [False, True])
@pytest.mark.parametrize(
    ("sizes", "batch", "order"),
    [
        ((2, 32, 1), 100, ["loss", "dense_2", "dense_1"]),
        ((2, 32, 32, 1), 100, [*HIDDEN, "d(dense_2.z)", "d(dense_1.z)", "dense_3", "dense_2", "dense_1"]),
        # Activations too large to be kept for longer than they are anyway.
        ((2, 256, 256, 1), 500, [*HIDDEN, "d(dense_2.z)", "dense_3", "d(dense_1.z)", "dense_2", "dense_1"]),
    ],
)
def test_updates_of_small_parameters_wait_for_one_another(
    sizes: tuple[int, ...], batch: int, order: list[str], software: bool
):
    """They share a texture, and come behind what makes the gradients that others need."""
    got, shared = order_of(sizes, batch, software=software)
    assert got == order
    assert shared == [{name for name in order if "." not in name and name != "loss"}]


def test_what_shares_no_texture_keeps_its_place():
    """Parameters that take longer to write than a pass takes to begin; on a CPU those whose programs others have too."""
    alike = (30, 16, 16, 16, 1)
    assert order_of(alike, 64, software=False)[1] == [{"dense_1", "dense_2", "dense_3", "dense_4"}]
    assert order_of(alike, 64, software=True)[1] == [{"dense_1", "dense_4"}]
    large = (300, 300, 300, 1)
    order, shared = order_of(large, 16, software=False)
    assert shared == [{"dense_1", "dense_2"}]  # whose lines are of one length
    assert order_of(large, 16, software=True)[1] == order_of((300, 300, 304, 1), 16, software=False)[1] == []
    assert order == [*HIDDEN, "d(dense_2.z)", "dense_3", "d(dense_1.z)", "dense_2", "dense_1"]
    # With Adam's states three times as much is written.
    sizes = (2, 256, 256, 1)
    assert order_of(sizes, 500, software=False, optimizer="sgd")[1] == [{"dense_1", "dense_2", "dense_3"}]
    assert order_of(sizes, 500, software=False, optimizer="adam")[1] == [{"dense_1", "dense_3"}]


@pytest.mark.parametrize(("software", "most"), [(False, 77_000), (True, 53_000)], ids=["gpu", "cpu"])
def test_the_textures_of_two_small_layers(software: bool, most: int):
    """Row losses of as many batches in flight as a GPU has, one row a fragment, take one lane; so do targets of one column."""
    limits = DESKTOP | {"maxTextureSize": 32_768, "maxArrayLayers": 2048, "software": software}
    rows = {"total": 100, "train": 100, "validation": 0, "batch": 100}
    got = call(PROBE, "lowered", mlp((2, 32, 1), "bce", optimizer="sgd"), "values", limits, rows)
    assert got["sizes"]["trainSlots"] == (32 if software else 64)
    assert got["bytes"] <= most

    def lanes(name: str) -> int:
        return got["slots"][got["places"][name]["slots"][0]]["lanes"]

    fed = [f"{use} of {name}" for use in ("data", "epoch", "stage") for name in ("x", "target")]
    assert [lanes(name) for name in fed] == [4, 1] * 3
    assert lanes("loss") == (4 if software else 1)


# ---- layout ---------------------------------------------------------------------------------------------------------


@quickly
@given(
    rows=st.integers(1, 60), columns=st.integers(1, 40), pixels=st.integers(1, 5), layers=st.sampled_from([1, 2, 4, 8]),
    max_size=st.sampled_from([64, 4096]), seed=st.integers(0, 99),
)  # fmt: skip
def test_layouts_in_quads_there_and_back(
    rows: int, columns: int, pixels: int, layers: int, max_size: int, seed: int
):
    """Row groups of two lines, four column texels side by side in a quad; zero between them."""
    data = np.random.default_rng(seed).normal(size=(rows, columns * pixels)).astype(np.float32)
    matrix = {"rows": rows, "columns": columns * pixels, "pixels": pixels, "layers": layers, "lines": 2}
    texels_per_row, groups = pixels * math.ceil(columns / 4), math.ceil(rows / layers)
    size = {"width": 2 * math.ceil(texels_per_row / 4), "height": 2 * groups}
    if max(size.values()) > max_size:
        return
    got = call(PROBE, "roundTrip", matrix, data, None, max_size)
    assert got["data"].tobytes() == data.tobytes()
    assert got["texture"] == size
    texels = got["texels"].reshape(layers, 2 * groups, -1, 4)
    assert np.count_nonzero(texels) == np.count_nonzero(data)
    pixel, channel = np.divmod(np.arange(columns * pixels), columns)
    n = pixel * math.ceil(columns / 4) + channel // 4
    for row in range(rows):
        x, y = 2 * (n >> 2) + (n & 1), 2 * (row // layers) + (n >> 1 & 1)
        found = texels[row % layers, y, x, channel & 3]
        np.testing.assert_array_equal(found, data[row])


@quickly
@given(
    rows=st.integers(1, 60), pixels=st.integers(1, 40), layers=st.sampled_from([1, 2, 4, 8]), max_size=st.sampled_from([64, 4096]),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_layouts_of_one_lane_there_and_back(rows: int, pixels: int, layers: int, max_size: int, seed: int):
    """The first lanes of what four would hold."""
    data = np.random.default_rng(seed).normal(size=(rows, pixels)).astype(np.float32)
    matrix = {"rows": rows, "columns": pixels, "pixels": pixels, "layers": layers}
    fits = call(PROBE, "size", matrix, max_size)["extent"]
    if fits is None or fits["height"] > max_size:
        return
    one, four = (call(PROBE, "roundTrip", matrix, data, None, max_size, lanes) for lanes in (1, 4))
    assert one["data"].tobytes() == data.tobytes()
    assert one["texels"].tobytes() == four["texels"][::4].tobytes()


@quickly
@given(
    rows=st.integers(1, 60), columns=st.integers(1, 40), layers=st.sampled_from([1, 2, 4, 8]), bias=st.booleans(),
    max_size=st.sampled_from([8, 32, 4096]), seed=st.integers(0, 99),
)  # fmt: skip
def test_layouts_there_and_back(rows: int, columns: int, layers: int, bias: bool, max_size: int, seed: int):
    """pack and unpack are inverse; every texel outside is zero; row r lies in layer r mod R; the bias starts a group of its own."""
    random = np.random.default_rng(seed)
    data = random.normal(size=(rows, columns)).astype(np.float32)
    extra = random.normal(size=columns).astype(np.float32) if bias else None
    matrix = {"rows": rows, "columns": columns, "layers": layers, "bias": bias}
    fits = call(PROBE, "size", matrix, max_size)["extent"]
    if fits is None or fits["height"] > max_size:
        return
    got = call(PROBE, "roundTrip", matrix, data, extra, max_size)
    assert got["data"].tobytes() == data.tobytes()
    assert got["bias"] is None if extra is None else got["bias"].tobytes() == extra.tobytes()
    assert np.count_nonzero(got["texels"]) == np.count_nonzero(data) + np.count_nonzero(
        0 if extra is None else extra
    )
    per_layer = got["texture"]["width"] * got["texture"]["height"]
    assert len(got["texels"]) == 4 * layers * per_layer
    spans: set[int] = set()
    for row, texel in enumerate(got["rows"]):
        assert texel // per_layer == row % layers
        span = set(range(texel, texel + got["layout"]["texelsPerRow"]))
        assert not span & spans, "rows overlap"
        assert max(span) // per_layer == row % layers, "a row leaves its layer"
        spans |= span
    if bias:
        bias_row = got["layout"]["biasRow"]
        assert bias_row % layers == 0
        assert bias_row >= rows
        assert bias_row % 4 == 0


@pytest.mark.parametrize(
    ("rows", "columns", "folded", "width", "height"),
    [
        (100, 16, False, 4, 25),
        (100, 1, True, 8, 4),  # one texel wide would idle half of each quad
        (50_176 * 4, 32, True, 1024, 392),  # more row groups than a texture has rows
        (4, 8192 * 4 + 4, True, 128, 65),  # a row longer than a texture is wide
        (8192 * 4, 8192 * 4, False, 8192, 8192),  # the largest
    ],
)
def test_long_and_narrow_matrices_fold(rows: int, columns: int, folded: bool, width: int, height: int):
    """4 layers on a device of 8192 x 8192."""
    got = call(PROBE, "size", {"rows": rows, "columns": columns, "layers": 4}, 8192)
    assert got["layout"]["folded"] is folded
    assert got["extent"] == {"width": width, "height": height}


@pytest.mark.parametrize(
    ("wanted", "targets", "options", "rows"),
    [
        (4, 8, {}, 4),
        (8, 8, {}, 8),
        (4, 8, {"extra": 1}, 4),
        (8, 8, {"extra": 1}, 4),
        (4, 4, {"extra": 1}, 2),
        (4, 8, {"outputs": 3}, 2),
        (4, 4, {"outputs": 3}, 1),
        (4, 1, {}, 1),
    ],
)
def test_rows_a_fragment_may_write(wanted: int, targets: int, options: dict[str, int], rows: int):
    """A power of two whose render targets fit."""
    assert call(PROBE, "rowsPerFragment", wanted, targets, options) == rows


# ---- what cannot fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "rows", "names"),
    [
        (mlp((784, 10)), 2**31, "batch"),
        (mlp((784, 10), batch_size=64), 2_000_000, "data: 2000000 rows"),
        (mlp((1000, 65536, 65536, 10), batch_size=8), 100, "dense_2"),
        (mlp((2, 2)), 2**22, "batch"),
    ],
)
def test_estimates_refuse_with_figures(spec: Spec, rows: int, names: str):
    """What does not fit on the assumed device is too_large, with what was needed and what there is."""
    outputs = spec["model"]["layers"][-1]["units"]
    shapes = {"x": {"shape": [rows, *spec["model"]["input"]]}, "y": {"shape": [rows, outputs]}}
    error = call(PROBE, "tryEstimate", spec, shapes)["error"]
    assert (error["name"], error["code"]) == ("EngineError", "too_large")
    assert names in error["message"]
    assert len(re.findall(r"\d+", error["message"])) >= 2, error["message"]


def test_a_smaller_device_refuses_what_a_larger_one_takes():
    """The same plan on textures of 2,048 and of 16,384."""
    spec, rows = (
        mlp((20_000, 5000, 2), batch_size=32),
        {"total": 200, "train": 200, "validation": 0, "batch": 32},
    )
    small = call(PROBE, "tryLower", spec, "values", DESKTOP | {"maxTextureSize": 2048}, rows)
    assert small["error"]["code"] == "too_large"
    assert "2048 x 2048" in small["error"]["message"]
    assert call(PROBE, "tryLower", spec, "values", DESKTOP | {"maxTextureSize": 16384}, rows)["bytes"] > 0


def test_parts_of_a_gradient_fold_where_a_texture_is_not_as_high():
    """32 parts of 76 row groups each are 2,432 lines."""
    rows = {"total": 2048, "train": 2048, "validation": 0, "batch": 2048}
    gpu = DESKTOP | {"maxTextureSize": 2048, "software": False}
    got = call(PROBE, "tryLower", mlp((300, 16, 2), batch_size=2048), "values", gpu, rows)
    assert "error" not in got


def test_telemetry_has_as_many_lines_as_its_texture_is_high():
    """Losses of images, a number a texel, are summed in parts of 4,096: 24 lines of so many would be higher than the device has."""
    rows = {"total": 512, "train": 512, "validation": 0, "batch": 512}
    layer = {"type": "conv2d", "filters": 1, "kernel": 1, "padding": "same", "activation": "linear"}
    spec = {"model": {"input": [64, 64, 1], "layers": [layer]}, "loss": "mse", "optimizer": {"type": "sgd", "lr": 0.1},
            "train": {"steps": 1, "batch_size": 512}}  # fmt: skip
    spec = parse_spec(spec).model_dump()
    heights = {}
    for size in (2048, 8192):
        got = call(PROBE, "lowered", spec, "values", DESKTOP | {"maxTextureSize": size}, rows)
        sums = [draw for draw in got["draws"] if draw["shader"] == "reduce_rows.frag.glsl"]
        heights[size] = max(draw["height"] for draw in sums)
    assert heights[2048] <= 2048 < heights[8192]


def test_data_beyond_textures_is_streamed():
    """Where data and epoch take more than 1 GiB, or more than a texture: a ring of batches, which is a sixteenth of that."""
    rows = {"total": 600_000, "train": 500_000, "validation": 100_000, "batch": 128}
    large = call(PROBE, "tryLower", mlp((784, 10), batch_size=128), "values", DESKTOP, rows)
    assert large["streamed"]
    assert large["sizes"]["ring"] == (64 << 20) // (128 * (196 + 3) * 16)
    assert large["bytes"] < 128 << 20
    fits = {"total": 60_000, "train": 60_000, "validation": 0, "batch": 128}
    small = call(PROBE, "tryLower", mlp((784, 10), batch_size=128), "values", DESKTOP, fits)
    assert not small["streamed"]
    assert small["sizes"]["ring"] == 469
    phone = call(
        PROBE, "tryLower", mlp((784, 10), batch_size=128), "values", DESKTOP | {"maxTextureSize": 2048}, fits
    )
    assert phone["streamed"]


@pytest.mark.parametrize(("optimizer", "targets"), [("sgd", 1), ("momentum", 1), ("adam", 2)])
def test_too_few_render_targets(optimizer: str, targets: int):
    """Named, with how many there are."""
    rows = {"total": 8, "train": 8, "validation": 0, "batch": 8}
    limits = DESKTOP | {"maxDrawBuffers": targets}
    error = call(PROBE, "tryLower", mlp((2, 2), optimizer=optimizer), "values", limits, rows)["error"]
    assert error["code"] == "no_float_targets"
    assert f"the device has {targets}" in error["message"]
