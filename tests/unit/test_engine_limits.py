"""What the service refuses before a job is queued is what the engine's planner would refuse, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from texelgrad.config import Settings
from texelgrad.errors import Fault
from texelgrad.shapes import ArrayInfo, Stats, data_faults, limit_faults
from texelgrad.spec import parse_spec

from tests.node import call

STATS = Stats(0, 1, integral=True, row_sums_one=True)
SETTINGS = Settings(max_parameters=10**12)
Layer = dict[str, Any]


def dense(units: int) -> Layer:
    """A dense layer."""
    return {"type": "dense", "units": units}


def conv(filters: int, kernel: int, padding: str = "same", groups: int = 1) -> Layer:
    """A convolution."""
    return {"type": "conv2d", "filters": filters, "kernel": kernel, "padding": padding, "groups": groups}


def pool(size: list[int], stride: int = 1) -> Layer:
    """A max pooling."""
    return {"type": "max_pool2d", "size": size, "stride": stride, "padding": "same"}


FLATTEN = {"type": "flatten"}
LAYER_NORM = {"type": "layer_norm"}
TRANSPOSE = {"type": "conv2d_transpose", "filters": 1, "kernel": 2, "stride": [1, 2], "padding": "same"}


def group_norm(groups: int) -> Layer:
    """A group normalization."""
    return {"type": "group_norm", "groups": groups}


GRID: list[tuple[list[int], list[Layer], str, int, int | None]] = [
    # widths of a dense layer's input: 4 values a trip, and 32 trips besides
    *[([width], [dense(1)], "mse", 4, None) for width in (130_940, 130_944, 130_945, 131_073)],
    *[([1], [dense(width), dense(2)], "mse", 4, None) for width in (65_532, 65_536)],
    *[([side, side, 3], [FLATTEN, dense(1)], "mse", 2, None) for side in (208, 209)],
    *[([side, side, 1], [conv(1, 1), FLATTEN, dense(1)], "mse", 2, None) for side in (180, 181)],
    # classes: 6 trips for 4 of them
    *[([1], [dense(classes)], "softmax_cross_entropy", 4, None) for classes in (21_844, 21_845, 65_536)],
    ([1], [dense(65_536)], "mse", 4, None),
    ([1], [dense(65_536)], "bce", 4, 4),
    # softmax over channels: 10 trips for 4 of them, in each of 4 rows, also where a GPU has fragments enough for 8
    *[([1], [dense(channels) | {"activation": "softmax"}, dense(1)], "mse", 512, None) for channels in (3272, 3273)],
    *[([1], [dense(channels) | {"activation": "softmax"}, dense(1)], "mse", 4, None) for channels in (3272, 3273)],
    *[([1], [dense(channels), {"type": "activation", "function": "softmax"}, dense(1)], "mse", 4, None) for channels in (3272, 3273)],
    # losses of images: a row's texels in one sum
    *[([side, side, 1], [{"type": "max_pool2d", "size": 1, "stride": 1}, conv(1, 1)], "mae", 2, None) for side in (181, 182)],
    # batches: 16 rows a trip
    *[([1], [dense(1)], "mse", rows, batch) for rows, batch in ((524_288, None), (524_289, None), (600_000, 524_288), (600_000, 524_289))],
    # convolutions: places times texels of channels, of the input, and of the output where a gradient goes back
    *[([9, 9, 4], [conv(4, kernel), FLATTEN, dense(1)], "mse", 2, None) for kernel in (181, 182)],
    *[([9, 9, channels], [conv(1, 16), FLATTEN, dense(1)], "mse", 2, None) for channels in (512, 516)],
    *[([9, 9, 1], [conv(filters, 16), FLATTEN, dense(1)], "mse", 2, None) for filters in (512, 516)],
    *[([9, 9, 1], [conv(1, 1), conv(filters, 16), FLATTEN, dense(1)], "mse", 2, None) for filters in (512, 516)],
    # the gradient of their weights: a line of pixels at least
    *[([1, width, 1], [conv(1, 1), FLATTEN, dense(1)], "mse", 2, None) for width in (30_000, 32_767)],
    *[([1, width, 1], [conv(1, 1), pool([1, 1000], 1000), FLATTEN, dense(1)], "mse", 2, None) for width in (32_767, 32_768)],
    *[([64, 64, 1], [conv(4, 1), FLATTEN, dense(1)], "mse", rows, None) for rows in (1000, 10_000)],
    *[([16, 16, 4], [conv(256, 8), FLATTEN, dense(1)], "mse", rows, None) for rows in (64, 448, 480, 512, 1024)],
    # groups: of whole texels, of any size, of one channel each
    *[([9, 9, 4 * channels], [conv(8, 16, groups=2), FLATTEN, dense(1)], "mse", 2, None) for channels in (128, 256, 258)],
    *[([9, 9, 2 * channels], [conv(6, 16, groups=2), FLATTEN, dense(1)], "mse", 2, None) for channels in (128, 129)],
    *[([9, 9, 1], [conv(6, 1), conv(filters, 16, groups=2), FLATTEN, dense(1)], "mse", 2, None) for filters in (256, 258)],
    *[([9, 9, 8], [conv(8, kernel, groups=8), FLATTEN, dense(1)], "mse", 2, None) for kernel in (181, 182)],
    *[([1, width, 6], [conv(2, 1, groups=2), pool([1, 1000], 1000), FLATTEN, dense(1)], "mse", 2, None) for width in (8190, 8191)],
    *[([1, width, 2], [conv(2, 1, groups=2), pool([1, 1000], 1000), FLATTEN, dense(1)], "mse", 2, None) for width in (32_767, 32_768)],
    # channels that are normalized together: a fragment goes through those of a pixel twice
    *[([width], [LAYER_NORM, dense(1)], "mse", 2, None) for width in (64_520, 64_521, 70_000)],
    *[([1, 2, width], [LAYER_NORM, FLATTEN, dense(1)], "mse", 2, None) for width in (64_520, 64_524)],
    *[([2 * width], [group_norm(2), dense(1)], "mse", 2, None) for width in (64_520, 64_521, 64_524)],
    *[([2, 2, width], [group_norm(1), {"type": "batch_norm"}, pool([2, 2], 2), FLATTEN, dense(1)], "mse", 2, None) for width in (64_520, 64_521)],
    # embeddings: places of any number, in parts
    *[([length], [{"type": "embedding", "vocabulary": 3, "units": 1}, FLATTEN, dense(1)], "mse", rows, None) for length, rows in ((32_000, 1000), (32_736, 16))],
    # transposed: lines of what is made; one row
    *[([1, width, 1], [TRANSPOSE, pool([1, 1000], 1000), FLATTEN, dense(1)], "mse", 2, None) for width in (16_383, 16_384)],
    *[([width, 1], [{"type": "conv1d", "filters": 1, "kernel": 1}, {"type": "conv1d", "filters": 1, "kernel": 1, "stride": 1000}, FLATTEN, dense(1)], "mse", 2, None) for width in (32_767, 32_768)],
    *[([40, 4 * channels], [{"type": "conv1d", "filters": 1, "kernel": 32}, FLATTEN, dense(1)], "mse", 2, None) for channels in (1024, 1025)],
    # windows of a pooling: where a gradient goes back, those before count for each
    *[([40, 40, 1], [pool(size), FLATTEN, dense(1)], "mse", 2, None) for size in ([4, 8], [181, 181], [182, 182])],
    *[([40, 40, 1], [conv(1, 1), pool(size), FLATTEN, dense(1)], "mse", 2, None) for size in ([4, 8], [1, 90], [1, 91], [9, 10], [10, 10])],
]  # fmt: skip


RENDERERS = {
    "software": {"maxDrawBuffers": 8, "maxTextureSize": 8192, "maxArrayLayers": 256, "software": True},
    "gpu": {"maxDrawBuffers": 8, "maxTextureSize": 8192, "maxArrayLayers": 256, "software": False},
}


def faults_of(
    sample: list[int], layers: list[Layer], loss: str, rows: int, batch: int | None, *, renderer: str = "software"
) -> tuple[list[Fault], str]:  # fmt: skip
    """The service's faults, and what the engine says on a renderer: its error's message, or nothing."""
    spec = parse_spec(
        {
            "model": {"input": sample, "layers": layers},
            "loss": loss,
            "optimizer": {"type": "sgd", "lr": 0.1},
            "train": {"steps": 1, "batch_size": batch},
        }
    )
    output = spec.model.network.output
    shapes = {
        "x": (rows, *sample),
        "y": (rows,) if loss == "softmax_cross_entropy" or output == (1,) else (rows, *output),
    }
    arrays = {name: ArrayInfo("float32", shape, STATS) for name, shape in shapes.items()}
    ours = [*limit_faults(dict(spec), SETTINGS), *data_faults(dict(spec), arrays)]
    made = {name: {"shape": list(shape)} for name, shape in shapes.items()}
    theirs = call("/tests/unit/plan_probe.js", "tryEstimate", spec.model_dump(), made, RENDERERS[renderer])
    error = theirs.get("error", {})
    assert error.get("code") in (None, "too_large"), error
    return ours, error.get("message", "")


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("case", GRID, ids=[str(number) for number in range(len(GRID))])
def test_the_service_refuses_what_the_planner_refuses(
    case: tuple[list[int], list[Layer], str, int, int | None], renderer: str
):
    """On both sides of each limit; with one fault, its value and what would be legal."""
    ours, theirs = faults_of(*case, renderer=renderer)
    assert bool(ours) == bool(theirs), (ours, theirs)
    assert len(ours) <= 1
    for fault in ours:
        assert fault.legal
        assert fault.field.startswith(("model.", "train.batch_size"))


def test_the_grid_has_both_sides():
    """It would show nothing if the planner took all of it, or none."""
    refused = [bool(faults_of(*case)[1]) for case in GRID]
    assert 10 < sum(refused) < len(refused) - 10
