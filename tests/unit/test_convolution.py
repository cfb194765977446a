"""Which algorithm the planner gives a convolution, what it says both cost, and that the service's memory bound follows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelgrad.shapes import ArrayInfo, Stats, estimate
from texelgrad.spec import parse_spec

from tests.kernels.cnns import FLATTEN, Layer, conv, conv1d, dense, pool, transpose
from tests.node import call

LIMITS = {"maxDrawBuffers": 8, "maxTextureSize": 8192, "maxArrayLayers": 256}
RENDERERS = {"software": True, "gpu": False}
STATS = Stats(0, 1, integral=True, row_sums_one=True)
MIB = 1 << 20


def plan(shape: tuple[int, ...], layers: list[Layer], renderer: str, rows: int = 100, batch: int = 64) -> tuple[dict[str, Any], int]:  # fmt: skip
    """The page's estimate of a net with these layers first, and the service's bound of its bytes."""
    few = [pool(1, stride=40)] if len(shape) == 3 else []  # pixels for the dense layer
    model = {"input": list(shape), "layers": [*layers, *few, FLATTEN, dense(3)]}
    spec = parse_spec(
        {
            "model": model,
            "loss": "mse",
            "optimizer": {"type": "adam"},
            "train": {"steps": 1, "batch_size": batch},
        }
    )
    shapes = {"x": (rows, *shape), "y": (rows, 3)}
    arrays = {name: {"shape": list(of)} for name, of in shapes.items()}
    limits = LIMITS | {"software": RENDERERS[renderer]}
    page = call("/browser_runtime/train/estimate.js", "estimate", spec.model_dump(), arrays, limits)
    bound = estimate(
        spec, {name: ArrayInfo("float32", of, STATS) for name, of in shapes.items()}
    ).texture_bytes
    assert bound is not None
    return page, bound


def choice(*args: Any, **options: Any) -> dict[str, Any]:
    """Of the first layer."""
    return plan(*args, **options)[0]["convolutions"][0]


CHOSEN: list[tuple[tuple[int, ...], Layer, str, str]] = [
    # where three quarters of the lanes are empty, both renderers gain
    ((28, 28, 1), conv(32), "im2col", "im2col"),
    ((28, 28, 1), conv(8), "im2col", "im2col"),
    ((28, 28, 1), conv(4), "im2col", "direct"),
    ((28, 28, 3), conv(32), "im2col", "direct"),
    ((28, 28, 3), conv(64), "im2col", "im2col"),
    ((28, 28, 2), conv(8), "im2col", "direct"),
    ((28, 28, 2), conv(3), "direct", "direct"),
    ((400, 1), conv1d(16, 9), "im2col", "im2col"),
    # full lanes: nothing to gain
    ((28, 28, 4), conv(64), "direct", "direct"),
    ((28, 28, 32), conv(64), "direct", "direct"),
    ((28, 28, 1), conv(32, 1), "direct", "direct"),
    # half as many products where nothing is trained
    ((28, 28, 3), conv(32, trainable=False), "direct", "direct"),
]


@pytest.mark.parametrize(("shape", "layer", "software", "gpu"), CHOSEN)
def test_what_is_cheaper_is_chosen(shape: tuple[int, ...], layer: Layer, software: str, gpu: str):
    """By empty lanes, filters that share the patches, and the renderer; one more draw a step."""
    for renderer, wanted in (("software", software), ("gpu", gpu)):
        page, _ = plan(shape, [layer], renderer)
        assert page["convolutions"][0]["algorithm"] == wanted
        full, _ = plan((*shape[:-1], 4), [layer], renderer)
        assert page["drawsPerStep"] - full["drawsPerStep"] == (wanted == "im2col")


def test_the_figures_by_hand():
    """28 x 28 x 1 -> 32, 3 x 3: 676 windows, 8 texels of filters, 9 taps or 3 texels."""
    made = choice((28, 28, 1), [conv(32)], "gpu")
    windows, filters = 26 * 26, 8
    # forward: 4 lanes of 4 filters a trip, weights shared by 4 samples; the weights' gradient: as many products, 2 loads
    assert made["direct"] == {
        "multiplyAdds": windows * filters * 9 * (16 + 16), "loads": windows * filters * 9 * (2 + 2), "stores": 0,
        "bytes": 9 * 4 * 8 * 16,
    }  # fmt: skip
    patches = {key: made["im2col"][key] for key in ("multiplyAdds", "loads", "stores")}
    assert patches == {
        "multiplyAdds": windows * filters * 3 * (16 + 16),
        "loads": windows * filters * 3 * (2 + 2) + windows * 3 * 4,
        "stores": windows * 3,
    }
    # of the 256 rows that are evaluated at once, and 12 rows of weights
    assert made["im2col"]["bytes"] == 256 // 4 * windows * 3 * 4 * 16 + 12 * 8 * 16


def test_patches_that_do_not_fit_are_not_stored():
    """Above 256 MiB, and where no texture is large enough."""
    for side, most in ((140, False), (160, True)):
        made = choice((side, side, 1), [conv(16)], "software")
        assert (made["im2col"]["bytes"] > 256 * MIB) is most
        assert made["algorithm"] == ("direct" if most else "im2col")
    made = choice((800, 800, 1), [conv(1)], "software", batch=4)
    assert made["im2col"]["bytes"] is None
    assert made["algorithm"] == "direct"


@pytest.mark.parametrize("renderer", RENDERERS)
def test_all_patches_of_a_plan_share_a_budget(renderer: str):
    """Eight convolutions that would each be chosen alone: the first one takes patches of 142 MiB, then none fits."""
    side = 112
    inputs = {f"i{n}": [side, side, 1] for n in range(8)}
    branches = [
        layer
        for n, name in enumerate(inputs)
        for layer in (
            conv(32, name=f"c{n}", inputs=[name]),
            pool(1, stride=40, name=f"p{n}", inputs=[f"c{n}"]),
        )
    ]
    joined = {"type": "concat", "inputs": [f"p{n}" for n in range(8)]}
    model = {"input": inputs, "layers": [*branches, joined, FLATTEN, dense(3)]}
    spec = parse_spec(
        {
            "model": model,
            "loss": "mse",
            "optimizer": {"type": "adam"},
            "train": {"steps": 1, "batch_size": 16},
        }
    )
    arrays = {**dict.fromkeys(inputs, (20, side, side, 1)), "y": (20, 3)}
    data = {"x": {name: {"shape": list(arrays[name])} for name in inputs}, "y": {"shape": [20, 3]}}
    limits = LIMITS | {"software": RENDERERS[renderer]}
    page = call("/browser_runtime/train/estimate.js", "estimate", spec.model_dump(), data, limits)
    chosen = [choice["algorithm"] for choice in page["convolutions"]]
    taken = [choice["im2col"]["bytes"] for choice in page["convolutions"]]
    assert chosen == ["im2col"] + ["direct"] * 7
    assert 128 * MIB < taken[0] < 256 * MIB


def test_the_service_knows_the_budget():
    """A deep net, three of whose convolutions of 5 x 5 may store their patches: 72 MiB each."""
    layers = [conv(16, 5, padding="same"), conv(5, 1)] * 8
    page, bound = plan((24, 24, 5), layers, "software", rows=300, batch=256)
    chosen = [choice["algorithm"] for choice in page["convolutions"]]
    assert chosen[::2] == ["im2col"] * 3 + ["direct"] * 5
    assert page["textureBytes"] <= bound <= 2 * page["textureBytes"]


def test_groups_and_transposed_convolutions_have_one_way():
    """Their products are others."""
    for layers in ([conv(4, groups=2)], [transpose(4)]):
        made = choice((8, 8, 2), layers, "software")
        assert made["algorithm"] == "direct"
        assert made["im2col"] is None


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    side=st.integers(4, 60),
    channels=st.integers(1, 9),
    filters=st.sampled_from([1, 3, 4, 8, 16, 33, 64]),
    kernel=st.integers(1, 4),
    trainable=st.booleans(),
    batch=st.sampled_from([1, 16, 100]),
)
def test_the_service_counts_what_any_renderer_stores(
    side: int, channels: int, filters: int, kernel: int, trainable: bool, batch: int
):
    """Its bound holds for each, and is never twice what the hungriest takes."""
    layers = [conv(filters, kernel, trainable=trainable)]
    planned = [plan((side, side, channels), layers, renderer, batch=batch) for renderer in RENDERERS]
    ((bound,), taken) = {bound for _, bound in planned}, [page["textureBytes"] for page, _ in planned]
    assert max(taken) <= bound <= 2 * max(taken)
