"""The service's bound of the texture memory against what the engine's planner really allocates."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from texelgrad.shapes import ArrayInfo, Stats, estimate
from texelgrad.spec import parse_spec

from tests.kernels.cnns import (
    FLATTEN,
    Layer,
    activation,
    add,
    conv,
    conv1d,
    dense,
    embedding,
    pool,
    transpose,
)
from tests.kernels.shape_nets import concat
from tests.node import estimates

SGD, MOMENTUM, ADAM = (
    {"type": "sgd", "lr": 0.1},
    {"type": "sgd", "lr": 0.1, "momentum": 0.9},
    {"type": "adam"},
)


OUTPUTS: dict[str, tuple[tuple[int, ...], list[Layer], Any, dict[str, Any]]] = {
    "autoencoder": ((12, 12, 3), [conv(16, padding="same"), conv(3, padding="same")], "mse", ADAM),
    "large images": ((64, 64, 1), [conv(8, padding="same"), conv(1, padding="same")], "huber", SGD),
    "flattened": ((6, 5, 3), [conv(5, 2), FLATTEN], "bce", MOMENTUM),
    "weighted": ((20,), [dense(64, "relu"), dense(40)], {"type": "bce", "pos_weight": 2.0}, ADAM),
    "frozen": ((8, 8, 1), [conv(64, 5, trainable=False), FLATTEN, dense(200, trainable=False), dense(3)], "mse", ADAM),
    "rmsprop": ((50,), [dense(300, "relu"), dense(3)], "mse", {"type": "rmsprop", "momentum": 0.9}),
}  # fmt: skip


@pytest.mark.parametrize("train", [{}, {"clip": {"global_norm": 1.0}}, {"accumulate_steps": 3}])
@pytest.mark.parametrize("net", OUTPUTS)
def test_losses_of_images_frozen_layers_and_stored_gradients(net: str, train: dict[str, Any]):
    """Targets as large as outputs; frozen weights once; gradients that wait for the norm of all."""
    sample, layers, loss, optimizer = OUTPUTS[net]
    check(sample, layers, 200, 32, loss, optimizer, 0.2, None, **train)


@pytest.mark.parametrize(
    ("sizes", "rows", "batch", "train"),
    [
        ((1000, 1024), 300, 150, {"clip": {"global_norm": 1.0}, "accumulate_steps": 3}),
        ((1000, 2049), 300, 130, {"accumulate_steps": 3}),
    ],
)
def test_spread_weights_whose_gradients_are_stored(
    sizes: tuple[int, int], rows: int, batch: int, train: dict[str, Any]
):
    """Of rows that are no multiple of 32."""
    check(
        (sizes[0],), [dense(sizes[1]), dense(5)], rows, batch, "softmax_cross_entropy", SGD, 0, None, **train
    )


def test_a_device_between_those_of_small_and_of_large_blocks():
    """Rows of 1,000 values fit its blocks, those of 1,091 do not: it holds tensors of two kinds where others have one."""
    layers = [
        dense(4096, "relu"),
        dense(1091, "tanh", use_bias=False, trainable=False),
        dense(4063, "tanh", trainable=False),
        dense(10),
    ]
    check((1000,), layers, 2000, 100, "softmax_cross_entropy", SGD, 0, None, accumulate_steps=3)


@pytest.mark.parametrize(
    ("widths", "rows", "batch", "loss", "optimizer", "fraction", "columns"),
    [
        ([2, 32, 1], 100, None, "bce", SGD, 0, None),
        ([2, 256, 256, 1], 500, None, "bce", SGD, 0, None),
        # gradients that a GPU stores as gates
        ([2, 257, 270, 1], 500, None, "bce", SGD, 0, None),
        ([2, 257, 270, 1], 500, None, "bce", ADAM, 0, None),
        ([784, 511, 1], 1000, 128, "bce", ADAM, 0.2, None),
        ([1024, 2048, 2048, 1], 2000, 256, "bce", SGD, 0, None),
        # operands that it computes, below the results
        ([4, 256, 256, 256, 3], 500, None, "mse", ADAM, 0.2, 3),
        ([2, 128, 128, 128, 1], 4000, 2000, "bce", SGD, 0.5, None),
        ([2000, 8, 1], 9000, 4500, "mse", SGD, 0, None),
        ([64, 64, 10], 1797, 128, "softmax_cross_entropy", ADAM, 0.2, None),
        ([64, 64, 10], 1797, 32, "softmax_cross_entropy", MOMENTUM, 0.2, None),
        ([64, 64, 10], 1797, 128, "softmax_cross_entropy", ADAM, 0.2, 10),
        ([784, 512, 512, 10], 60_000, 128, "softmax_cross_entropy", ADAM, 0, None),
        ([1024, 2048, 2048, 1000], 2000, 256, "softmax_cross_entropy", SGD, 0, None),
        # products that take rows from uniform blocks; widths that fill their quads and do not
        ([1024, 1024, 1024, 1024, 10], 3000, 256, "softmax_cross_entropy", SGD, 0.2, None),
        ([300, 1284, 516, 700, 2000], 4000, 500, "mse", ADAM, 0.2, 2000),
        ([770, 384, 64, 770, 1], 200, 17, "bce", ADAM, 0.2, None),  # nobody needs the gradient of the inputs
        (
            [64, 384, 390, 1],
            2000,
            500,
            "bce",
            ADAM,
            0.2,
            None,
        ),  # a product that would, with a gradient that is gated
        ([768, 768, 768, 768, 768], 8000, 4000, "mse", SGD, 0.2, 768),
        ([64, 770, 770, 770, 770, 770, 770], 20_000, 8192, "mse", MOMENTUM, 0.2, 770),
        ([64, 257], 512, 64, "softmax_cross_entropy", ADAM, 0.2, None),
        ([1, 1000], 3000, None, "mse", SGD, 0.5, 1000),  # row losses of 250 texels a row
        ([1, 1], 1, None, "mse", SGD, 0, None),
        ([1, 1], 100_000, None, "mse", SGD, 0, None),
        ([3, 64, 3], 300, 64, "mse", SGD, 0, 3),
        ([3, 5, 7, 2], 17, 4, "mse", MOMENTUM, 0.3, 2),
        ([1000, 1], 10, None, "mse", ADAM, 0, None),
        ([300, 7], 257, 1, "bce", ADAM, 0.5, 7),
        ([10, 2000, 2], 200, 16, "softmax_cross_entropy", ADAM, 0.2, None),
        ([30, 16, 16, 16, 16, 16, 1], 569, 64, "bce", ADAM, 0.25, None),
        (
            [30, *[16] * 10, 1],
            2000,
            512,
            "mse",
            SGD,
            0.2,
            None,
        ),  # small gradients that live on for the updates
        ([30, *[16] * 10, 1], 2000, 600, "mse", ADAM, 0, None),
        ([13, 128, 64, 32, 16, 1], 506, 32, "mse", ADAM, 0.2, None),  # weights of all widths in one texture
        ([784, 10], 600_000, 128, "softmax_cross_entropy", ADAM, 0.1, None),  # streamed
        ([2, 10], 40_000_000, 100, "softmax_cross_entropy", SGD, 0, None),
        ([5000, 2], 100_000, 60_000, "mse", SGD, 0.1, 2),  # a ring of all two batches
    ],
)
def test_the_estimate_is_a_bound_within_twice_the_plan(
    widths: list[int],
    rows: int,
    batch: int | None,
    loss: str,
    optimizer: dict[str, Any],
    fraction: float,
    columns: int | None,
):
    """Never below what the engine takes, never above twice of it, or 2.5 times of the smallest nets; parameters and steps are equal."""
    layers: list[dict[str, Any]] = [
        {"type": "dense", "units": width, "activation": "relu"} for width in widths[1:]
    ]
    layers[-1]["activation"] = "linear"
    # The bound counts a hidden layer that few inputs make and few outputs read; the page computes it where it is read.
    computed = len(widths) == 3 and max(widths[0], widths[2]) <= 4
    within = 2.5 if computed else 2
    check((widths[0],), layers, rows, batch, loss, optimizer, fraction, columns, within)


CONV_NETS: dict[str, tuple[tuple[int, ...], list[Layer]]] = {
    "digits": ((8, 8, 1), [conv(16), pool(), FLATTEN, dense(64, "relu"), dense(10)]),
    "mnist": ((28, 28, 1), [conv(32), pool(), conv(64), pool(), FLATTEN, dense(128, "relu"), dense(10)]),
    "deep": ((32, 32, 3), [*[conv(16, padding="same")] * 4, pool(), *[conv(32, padding="same")] * 4, pool(4), FLATTEN, dense(2)]),
    "odd": ((17, 5, 3), [conv(5, (3, 2), stride=2), conv(9, 2, dilation=(2, 1)), FLATTEN, dense(7, "tanh"), dense(3)]),
    "pool first": ((30, 30, 4), [pool(3), conv(8, 5), FLATTEN, dense(2)]),
    "large windows": ((64, 64, 1), [conv(4, 31), pool(17), FLATTEN, dense(2)]),
    "many channels": ((4, 4, 256), [conv(256, 3, padding="same"), FLATTEN, dense(10)]),
    "a time series": ((1, 400, 6), [conv(32, (1, 9), stride=(1, 2)), pool((1, 4)), FLATTEN, dense(4)]),
    "separable": ((16, 16, 3), [conv(32), conv(32, groups=32), conv(64, 1), conv(64, groups=64, stride=2), conv(6, 1), conv(9, 2, groups=3), FLATTEN, dense(10)]),
    "autoencoder": ((16, 16, 3), [conv(16, stride=2, padding="same"), conv(8, stride=2, padding="same"), transpose(16, stride=2, padding="same"), transpose(3, stride=2, padding="same"), FLATTEN, dense(10)]),
    "a sequence": ((400, 6), [conv1d(32, 9, stride=2), conv1d(32, 5, groups=4), FLATTEN, dense(4)]),
    "words": ((100,), [embedding(5000, 64), conv1d(32, 5), FLATTEN, dense(10)]),
    "few words": ((7,), [embedding(3, 2), FLATTEN, dense(4)]),
    "one pixel": ((1, 1, 1), [conv(1, 1), FLATTEN, dense(2)]),
    "residual": ((16, 16, 3), [conv(16, padding="same"), conv(16, padding="same"), add("conv2d_1", "conv2d_2", activation="relu"), conv(16, padding="same"), add("add_1", "conv2d_3"), FLATTEN, dense(2)]),
    "activations": ((16, 16, 3), [conv(16, activation="gelu", padding="same"), conv(8, activation="softmax"), activation("silu"), pool(), activation("relu"), FLATTEN, dense(64), activation("tanh"), dense(2)]),
    "activations of their own": ((60,), [layer for width in (64, 64, 64, 64) for layer in (dense(width), activation("relu"))] + [dense(2)]),
    "inputs kept": ((60,), [dense(width, "gelu") for width in (64, 64, 64, 64)] + [dense(2)]),
    "layer norm": ((30,), [dense(64), {"type": "layer_norm", "activation": "relu"}, dense(64), {"type": "layer_norm", "activation": "relu"}, dense(2)]),
    "layer norm of pixels": ((16, 16, 3), [conv(8, padding="same"), {"type": "layer_norm"}, conv(4, padding="same"), {"type": "layer_norm"}, FLATTEN, dense(2)]),
    "group norm": ((24, 24, 3), [conv(12, padding="same"), {"type": "group_norm", "groups": 4}, conv(12), {"type": "group_norm", "groups": 12}, pool(), FLATTEN, dense(2)]),
    "group norm alone": ((40, 40, 1), [{"type": "group_norm", "groups": 1}, FLATTEN, dense(2)]),
    "batch norm": ((30,), [dense(64), {"type": "batch_norm", "activation": "relu"}, dense(64), {"type": "batch_norm"}, dense(2)]),
    "batch norm of images": ((24, 24, 3), [conv(16, padding="same"), {"type": "batch_norm", "activation": "relu"}, conv(8, padding="same"), {"type": "batch_norm"}, pool(), FLATTEN, dense(2)]),
    "norms of flattened images": ((12, 12, 3), [conv(6), FLATTEN, {"type": "layer_norm"}, {"type": "group_norm", "groups": 2, "activation": "relu"}, {"type": "batch_norm"}, dense(2)]),
    "norms of one channel": ((9, 9, 1), [{"type": "batch_norm"}, {"type": "group_norm", "groups": 1}, {"type": "layer_norm"}, FLATTEN, dense(2)]),
    "six branches": ((16, 16, 1), [*(conv(16, padding="same", activation="relu", name=f"b{i}", inputs=["input"]) for i in range(6)), add(*(f"b{i}" for i in range(6))), FLATTEN, dense(3)]),
    "residual mlp": ((30,), [dense(64, "relu"), dense(64, "relu", use_bias=False), add("dense_1", "dense_2", activation="tanh"), dense(64), add("add_1", "dense_3", "dense_1"), dense(2)]),
}  # fmt: skip


@pytest.mark.parametrize("optimizer", [SGD, MOMENTUM, ADAM], ids=["sgd", "momentum", "adam"])
@pytest.mark.parametrize(("rows", "batch"), [(1797, 32), (1000, 256), (5, None)])
@pytest.mark.parametrize("net", CONV_NETS)
def test_the_estimate_of_conv_nets(net: str, rows: int, batch: int | None, optimizer: dict[str, Any]):
    """The same for convolution and pooling: activations of every layer, gradients of weights in parts."""
    shape, layers = CONV_NETS[net]
    check(shape, layers, rows, batch, "softmax_cross_entropy", optimizer, 0.2, None)


SIDE = st.one_of(st.integers(1, 12), st.integers(1, 40))
SLIDING = st.one_of(
    st.builds(
        conv, st.sampled_from([1, 3, 4, 8, 16, 33, 64]), st.integers(1, 5), stride=st.integers(1, 2), padding=st.just("same")
    ),
    st.builds(pool, st.integers(1, 4), padding=st.just("same")),
    st.sampled_from([{"type": "batch_norm"}, {"type": "layer_norm"}, {"type": "group_norm", "groups": 1}]),
)  # fmt: skip


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    shape=st.tuples(SIDE, SIDE, st.sampled_from([1, 3, 4, 16, 33])),
    sliding=st.lists(SLIDING, max_size=7),
    units=st.lists(st.sampled_from([1, 4, 8, 16, 64, 300]), max_size=3),
    rows=st.sampled_from([2, 17, 300, 1000]),
    batch=st.none() | st.integers(1, 128),
    optimizer=st.sampled_from([SGD, MOMENTUM, ADAM]),
    fraction=st.sampled_from([0, 0.2, 0.5]),
)
def test_the_estimate_of_any_net(
    shape: tuple[int, int, int], sliding: list[Layer], units: list[int], rows: int, batch: int | None,
    optimizer: dict[str, Any], fraction: float,
):  # fmt: skip
    """Sizes that rise and fall, folded tensors beside plain ones."""
    if batch is not None:
        batch = min(batch, rows - math.floor(rows * fraction))
    layers = [*sliding, FLATTEN, *(dense(width, "relu") for width in units), dense(5)]
    check(shape, layers, rows, batch, "softmax_cross_entropy", optimizer, fraction, None)


WIDTH = st.sampled_from([1, 2, 4, 7, 9, 17, 60, 65, 129, 200, 255, 511])
WIDE = st.sampled_from([8, 64, 257, 764, 770, 900, 1000, 1024, 2048, 4096])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    widths=st.lists(WIDTH, min_size=1, max_size=6),
    bias=st.booleans(),
    outputs=st.sampled_from([1, 5]),
    rows=st.sampled_from([2, 600, 4096, 10_000]),
    batch=st.integers(1, 5000),
    loss=st.sampled_from(["bce", "softmax_cross_entropy"]),
    optimizer=st.sampled_from([SGD, ADAM]),
)
# on a GPU a gradient of 495 fragments is summed in parts, one of 528, with a bias, is not
@example(
    widths=[2, 65, 60, 129, 8, 4], bias=False, outputs=5, rows=4096, batch=2047, loss="bce", optimizer=SGD
)
# what is predicted is wider than all that training, or evaluation, has textures for
@example(widths=[2, 129, 7, 255], bias=True, outputs=5, rows=10_000, batch=5000, loss="bce", optimizer=SGD)
@example(widths=[65, 7, 255, 2, 511], bias=True, outputs=5, rows=3, batch=1, loss="bce", optimizer=ADAM)
def test_no_dense_net_takes_more_than_the_estimate(
    widths: list[int], bias: bool, outputs: int, rows: int, batch: int, loss: str, optimizer: dict[str, Any]
):
    """Long batches, whose weight gradients are summed in parts, and widths that rise and fall."""
    layers = [*(dense(width, "relu", use_bias=bias) for width in widths[1:]), dense(outputs)]
    if loss == "bce" and outputs > 1:
        layers = [*layers[:-2], dense(widths[-1], use_bias=bias)]
    if outputs == 1:
        loss = "bce"
    check((widths[0],), layers, rows, min(batch, math.ceil(rows / 2)), loss, optimizer, 0.5, None, within=8)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    widths=st.lists(st.tuples(WIDE, st.integers(0, 2)), min_size=1, max_size=4),
    rows=st.sampled_from([300, 2000, 20_000]),
    batch=st.sampled_from([100, 256, 1000, 4096, 9000]),
    optimizer=st.sampled_from([SGD, ADAM]),
    act=st.sampled_from(["relu", "gelu"]),
    fraction=st.sampled_from([0, 0.2]),
)
def test_the_estimate_of_wide_nets(
    widths: list[tuple[int, int]], rows: int, batch: int, optimizer: dict[str, Any], act: str, fraction: float
):
    """Products that take rows from uniform blocks, beside smaller and larger ones that do not, and sums that read both."""
    layers: list[Layer] = []
    for width, sums in widths:
        layers.append(dense(width, act, name=f"first_{len(layers)}"))
        for _ in range(sums):
            name = f"{len(layers)}"
            layers.append(dense(width, act, name=f"next_{name}"))
            layers.append(add(layers[-2]["name"], f"next_{name}", activation=act, name=f"sum_{name}"))
    most = rows - round(rows * fraction)
    check((300,), [*layers, dense(70)], rows, min(batch, most), "mse", optimizer, fraction, None)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    inputs=st.integers(1, 4),
    branches=st.lists(st.lists(st.sampled_from([8, 60, 128, 132, 256, 300]), min_size=1, max_size=3), min_size=1, max_size=4),
    rows=st.sampled_from([300, 2000, 9000]),
    batch=st.sampled_from([64, 300, 500, 1024, 2000]),
    optimizer=st.sampled_from([SGD, ADAM]),
    outputs=st.sampled_from([1, 7]),
    fraction=st.sampled_from([0, 0.2]),
)  # fmt: skip
def test_the_estimate_of_branches_from_few_inputs(
    inputs: int, branches: list[list[int]], rows: int, batch: int, optimizer: dict[str, Any], outputs: int, fraction: float
):  # fmt: skip
    """Operands that are computed lie below the results, and live as long as the later of both."""
    layers: list[Layer] = []
    ends: list[str] = []
    for branch, widths in enumerate(branches):
        before = "input"
        for width in widths:
            layers.append(dense(width, "relu", name=f"b{branch}_{len(layers)}", inputs=[before]))
            before = layers[-1]["name"]
        ends.append(before)
    joined = [concat(*ends)] if len(ends) > 1 else []
    most = rows - round(rows * fraction)
    check(
        (inputs,),
        [*layers, *joined, dense(outputs)],
        rows,
        min(batch, most),
        "mse",
        optimizer,
        fraction,
        None,
        within=8,
    )


IMAGES = (4, 4, 8)


@st.composite
def graphs(draw: st.DrawFn) -> list[Layer]:
    """Layers of images that read any before them, several times too; what nobody else reads is joined in the end."""
    channels = {"input": IMAGES[2]}
    layers: list[Layer] = []
    for number in range(draw(st.integers(1, 7))):
        name = f"layer{number}"
        first = draw(st.sampled_from([*channels]))
        alike = st.sampled_from([other for other in channels if channels[other] == channels[first]])
        match draw(st.sampled_from(["conv", "concat", "add", "multiply"])):
            case "conv":
                channels[name] = draw(st.sampled_from([1, 2, 4, 8, 33, 64]))
                act = draw(st.sampled_from(["linear", "relu", "gelu"]))
                layer = conv(
                    channels[name], draw(st.sampled_from([1, 3])), act, padding="same", inputs=[first]
                )
            case "concat":
                joined = [first, *draw(st.lists(st.sampled_from([*channels]), min_size=1, max_size=6))]
                layer, channels[name] = concat(*joined), sum(channels[other] for other in joined)
            case merge:
                merged = [first, *draw(st.lists(alike, min_size=1, max_size=5))]
                layer = {
                    "type": merge,
                    "inputs": merged,
                    "activation": draw(st.sampled_from(["linear", "relu"])),
                }
                channels[name] = channels[first]
        assume(channels[name] <= 1000)
        layers.append(layer | {"name": name})
    read = {other for layer in layers for other in layer["inputs"]}
    ends = [layer["name"] for layer in layers if layer["name"] not in read]
    return layers if len(ends) == 1 else [*layers, concat(*ends)]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    graph=graphs(),
    rows=st.sampled_from([2, 300, 1000]),
    batch=st.integers(1, 200),
    optimizer=st.sampled_from([SGD, ADAM]),
)
# a concatenation's parts are of three kinds on a GPU, each with textures of its own
@example(
    graph=[
        conv(2, 1, inputs=["input"], name="a"),
        concat(*["a"] * 7, "input", name="b"),
        concat(*["input"] * 4, "a", "b"),
    ],
    rows=2,
    batch=2,
    optimizer=SGD,
)
# gradients of one value wait for each other
@example(
    graph=[
        conv(33, 3, padding="same", name="a"),
        conv(2, 1, "linear", inputs=["a"], name="b"),
        conv(4, 1, "gelu", inputs=["a"], name="c"),
        concat("b", "c"),
    ],
    rows=300,
    batch=128,
    optimizer=ADAM,
)
# from 2,048 fragments on a GPU writes 8 rows a fragment, in textures of their own
@example(
    graph=[
        concat(*["input"] * 3, name="a"),
        conv(2, 1, "linear", padding="same", inputs=["a"]),
    ],
    rows=300,
    batch=1,
    optimizer=SGD,
)
# one of many inputs that nothing trains
@example(graph=[concat(*["input"] * 8)], rows=1000, batch=200, optimizer=SGD)
def test_no_graph_takes_more_than_the_estimate(
    graph: list[Layer], rows: int, batch: int, optimizer: dict[str, Any]
):
    """Values and gradients that wait for others, on both renderers; how far above it is does not matter here."""
    layers = [*graph, FLATTEN, dense(3)]
    check(
        IMAGES, layers, rows, min(batch, rows // 2), "softmax_cross_entropy", optimizer, 0.5, None, within=8
    )


def check(
    shape: tuple[int, ...], layers: list[Layer], rows: int, batch: int | None, loss: Any, optimizer: dict[str, Any],
    fraction: float, columns: int | None, within: float = 2, **train: Any,
) -> None:  # fmt: skip
    """Python's bound against what the page's planner takes on the renderer that needs more, `within` so many times that."""
    spec = parse_spec(
        {
            "model": {"input": list(shape), "layers": json.loads(json.dumps(layers))},
            "loss": loss,
            "metrics": ["accuracy"] if loss in ("bce", "softmax_cross_entropy") else [],
            "optimizer": optimizer,
            "data": {"validation": {"fraction": fraction if rows * fraction >= 1 else 0}},
            "train": {"epochs": 3, "batch_size": batch, **train},
        }
    )
    stats = Stats(0, 1, integral=True, row_sums_one=True)
    classes = loss == "softmax_cross_entropy" and columns is None
    output = spec.model.network.output
    shapes = {"x": (rows, *shape), "y": (rows,) if classes else (rows, *output)}
    if rows % 2:  # they weigh differently
        shapes["weight"] = (rows,)
    names = {"x": "x", "y": "y", "weight": "w"}
    made = estimate(spec, {names[name]: ArrayInfo("float32", of, stats) for name, of in shapes.items()})
    arrays = {name: {"shape": list(of)} for name, of in shapes.items()}
    planned = estimates(spec.model_dump(), arrays)
    for exact in planned:
        assert made.parameters == exact["parameters"]
        assert made.total_steps == exact["totalSteps"]
    taken = max(exact["textureBytes"] for exact in planned)
    assert made.texture_bytes is not None
    assert taken <= made.texture_bytes <= within * taken
