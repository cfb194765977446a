"""What a step costs: draws, GL calls, memory; nothing allocated, nothing asked, nothing left behind."""

from __future__ import annotations

from typing import Any

import pytest

from .harness import BrowserPage
from .specs import OPTIMIZERS, Spec, data_for, mlp

PAGE = "/tests/kernels/budget_page.js"

# What a step may never do: wait for the GPU, make or delete objects, allocate, upload.
FORBIDDEN = (
    "create",
    "delete",
    "get",
    "is",
    "readPixels",
    "bufferData",
    "tex",
    "compile",
    "link",
    "finish",
    "check",
    "fence",
)


def measure(page: BrowserPage, spec: Spec, rows: int, *, steps: int, more: int = 0, warmup: int = 200, **options: Any) -> dict[str, Any]:  # fmt: skip
    """See budget_page.js. The spec must have enough steps."""
    outputs = spec["model"]["layers"][-1]["units"]
    x, y = data_for(rows, spec["model"]["input"][0], outputs, spec["loss"])
    return page.call(PAGE, "measure", spec, x, y, {"warmup": warmup, "steps": steps, "more": more, **options})


@pytest.mark.parametrize(("optimizer", "most"), [("sgd", 8), ("momentum", 8), ("adam", 8)])
@pytest.mark.parametrize(("sizes", "loss"), [((2, 32, 1), "bce"), ((64, 64, 10), "softmax_cross_entropy")])
def test_two_dense_layers(
    browser_page: BrowserPage, sizes: tuple[int, ...], loss: str, optimizer: str, most: int
):
    """At most 8 draws a step, as the record says; within a step only binds, uniforms' offsets and draws."""
    spec = mlp(sizes, loss, optimizer=optimizer, steps=1000)
    got = measure(browser_page, spec, 100, steps=600)
    steady = got["flights"][got["firstSteady"] :]
    assert sum(flight["count"] for flight in steady) == 600
    per_step = got["record"]["drawsPerStep"]
    assert per_step <= most
    for flight in steady:
        calls, count = flight["calls"], flight["count"]
        assert calls["drawArrays"] == per_step * count + 1, (
            "the draws of the steps, and one that sums their losses"
        )
        assert not [name for name in calls if name.startswith(FORBIDDEN)], calls
        # one upload of the scalars for the whole flight; six calls of its own; 4 calls a draw and 2 a texture that it reads
        assert calls["bufferSubData"] == 1
        assert sum(calls.values()) <= 13 * per_step * count + 20
    # The record's figure was counted on the first of the longest flights.
    longest = max(got["flights"], key=lambda flight: flight["count"])
    assert got["record"]["glCallsPerStep"] == pytest.approx(sum(longest["calls"].values()) / longest["count"])
    assert got["record"]["glCallsPerStep"] <= 13 * per_step


@pytest.mark.parametrize(
    ("sizes", "rows", "passes"),
    [
        ((2, 32, 1), 100, 2),  # the loss and its gradient; both updates
        ((2, 128, 1), 100, 2),
        ((2, 32, 32, 1), 100, 6),  # two hidden layers, the loss, a gradient each; all updates
        ((2, 256, 256, 1), 500, 7),  # a stored gradient is one pass with the input's
    ],
)
def test_updates_of_small_layers_are_one_render_pass(
    browser_page: BrowserPage, sizes: tuple[int, ...], rows: int, passes: int
):
    """A step binds as few framebuffers as its draws depend on each other's results."""
    # What any browser has, where SwiftShader has 6 or 8 render targets by its version; a stored gradient has more rows a fragment.
    device = {
        "maxDrawBuffers": 4,
        "rows": {"activation": 4, "weight": 2, "gradient": 4, "regions": {"texels": 17_500, "alike": False}},
    }
    got = measure(browser_page, mlp(sizes, "bce", steps=40), rows, steps=20, warmup=20, device=device)
    for flight in got["flights"]:
        assert flight["passes"] == flight["calls"]["bindFramebuffer"] == passes * flight["count"] + 1


def test_a_step_of_large_products_on_a_gpu(browser_page: BrowserPage):
    """Gradients in parts, stored and gated ones: each is kept up to the end, where all updates are one render pass."""
    rows = {
        "activation": {"few": 1, "usual": 4, "many": 8}, "weight": 4, "gradient": 8, "samples": 16, "texels": 2,
        "regions": {"texels": 17_500, "alike": True}, "gated": {"products": 2**23},
        "parts": {"fragments": 512, "turns": 40_960, "samples": 64, "least": 4, "most": 32},
    }  # fmt: skip
    can = browser_page.call(PAGE, "deviceRecord")["maxDrawBuffers"] >= 8
    got = measure(
        browser_page, mlp((2, 256, 256, 1), "bce", steps=4), 500, steps=2, warmup=2, device={"rows": rows}
    )
    # Three forward with the loss; the last layer's parts, the first one's; the middle's with the inputs' gradient, from gates; the updates. With fewer
    # targets the gradients of the middle are two passes.
    for flight in got["flights"]:
        assert flight["passes"] == (8 if can else 9) * flight["count"] + 1


def test_telemetry_is_read_in_bursts_without_waiting(browser_page: BrowserPage):
    """No read into client memory; buffers, fences and error checks once a burst, not once a step; none stays."""
    spec = mlp((2, 32, 1), "bce", steps=3000)
    got = measure(browser_page, spec, 100, steps=2000, warmup=500, chunk=100)
    steady = got["steady"]
    assert got["clientReads"] == 0
    bursts = 2000 // 100
    for name in (
        "fenceSync",
        "readPixels",
        "createBuffer",
        "bufferData",
        "getBufferSubData",
        "deleteBuffer",
        "deleteSync",
    ):
        assert steady[name] == bursts
    assert steady["getError"] <= bursts + 2
    unexpected = {
        "createTexture",
        "createFramebuffer",
        "createProgram",
        "texSubImage3D",
        "texStorage3D",
        "finish",
    }
    assert not unexpected & set(steady)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_memory_is_flat_and_given_back(browser_page: BrowserPage, optimizer: str):
    """Planned texture bytes are the allocated ones; 2,000 more steps with epochs and validation change nothing; nothing is left."""
    spec = mlp((6, 17, 5), "softmax_cross_entropy", optimizer=optimizer, steps=2300, batch_size=16)
    spec |= {"data": {"validation": {"fraction": 0.2}}}
    got = measure(browser_page, spec, 100, steps=100, more=2000)
    allocated = got["compiled"]["live"]
    assert got["idle"] == {**got["idle"], "textures": 0, "textureBytes": 0, "framebuffers": 0, "buffers": 0}
    assert (
        allocated["textureBytes"] == got["record"]["plannedTextureBytes"] == got["compiled"]["textureBytes"]
    )
    assert got["record"]["peakTextureBytes"] == allocated["textureBytes"]
    assert got["record"]["textures"] == allocated["textures"]
    assert got["earlyLive"] == got["lateLive"]
    assert got["early"] == got["late"]
    assert got["late"]["Texture"] == got["lateLive"]["textures"] == allocated["textures"]
    assert got["late"]["Framebuffer"] == got["lateLive"]["framebuffers"] > 0
    for key in ("textures", "textureBytes", "framebuffers", "buffers"):
        assert got["disposed"][key] == 0
    assert set(got["disposedCounts"].values()) == {0}


ESTIMATED: list[tuple[Spec, int]] = [
    (mlp((2, 32, 1), "bce"), 100),
    (mlp((64, 64, 10), "softmax_cross_entropy", optimizer="adam", epochs=3, batch_size=32) | {"data": {"validation": {"fraction": 0.2}}}, 1797),
    (mlp((5, 7, 300), "mse", optimizer="momentum", batch_size=7, activation="tanh"), 23),
    (mlp((1, 1), "mse"), 1),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "rows"), ESTIMATED)
def test_estimate_is_what_the_device_makes(browser_page: BrowserPage, spec: Spec, rows: int):
    """From the device's limits alone, what it then allocates and draws."""
    inputs, outputs = spec["model"]["input"][0], spec["model"]["layers"][-1]["units"]
    x, y = data_for(rows, inputs, outputs, spec["loss"])
    shapes = {"x": {"shape": list(x.shape)}, "y": {"shape": list(y.shape)}}
    limits = browser_page.call(PAGE, "deviceRecord")
    estimate = browser_page.call(PAGE, "estimate", spec, shapes, limits)
    got = browser_page.call(PAGE, "measure", spec, x, y, {"warmup": 1, "steps": 1, "more": 0})
    record = got["record"]
    assert (
        estimate["textureBytes"] == record["plannedTextureBytes"] == got["compiled"]["live"]["textureBytes"]
    )
    assert estimate["textures"] == got["compiled"]["live"]["textures"]
    assert estimate["drawsPerStep"] == record["drawsPerStep"]
    assert estimate["parameters"] == record["parameters"]
