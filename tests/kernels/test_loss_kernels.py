"""Every loss with its options, riding along with a dense layer and by itself, on rows and on images, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .cnns import FLATTEN, Layer, Shape, cnn, conv, dense, images_for, pool, weights_of
from .harness import BrowserPage, PageError
from .nets import forward, row_losses
from .oracle import Floats
from .specs import Array
from .steps import check_padding, check_reduction, check_values, inspect
from .test_gradients import check as check_gradients
from .test_kernels import DEVICES, device_id

ENGINE = "/tests/kernels/engine_page.js"
Net = tuple[Shape, list[Layer]]
LOSSES: dict[str, dict[str, Any]] = {
    "bce, weighted": {"type": "bce", "pos_weight": 2.5},
    "bce, smoothed": {"type": "bce", "label_smoothing": 0.2, "pos_weight": 0.3},
    "mae": {"type": "mae"},
    "huber": {"type": "huber", "delta": 0.7},
    "hinge": {"type": "hinge"},
}  # fmt: skip
NETS: dict[str, Net] = {
    "one texel": ((5,), [dense(7, "tanh"), dense(3)]),
    "two texels": ((5,), [dense(7, "tanh"), dense(6)]),
    "images": ((5, 4, 2), [conv(3, 2, "tanh"), conv(5, 2, "linear", padding="same")]),
    "flattened images": ((4, 3, 2), [conv(3, 2, "linear"), FLATTEN]),
}


def check(
    page: BrowserPage, net: Net, loss: dict[str, Any] | str, *, rows: int = 13, labels: str = "index", device: dict[str, Any] | None = None
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step, a last short batch of 5 rows."""
    spec = cnn(*net, loss, batch_size=8)
    x, y = images_for(spec, rows, labels=labels)
    options = {"steps": 2, "batch": 1, "device": device or {}}
    step = inspect(page, spec, x, y, weights=weights_of(spec), **options)
    check_padding(step)
    check_reduction(step)
    return set(check_values(step))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("net", NETS)
def test_pointwise_losses(browser_page: BrowserPage, net: str, loss: str):
    """Any layer may be the last: targets lie as outputs do."""
    kernels = check(browser_page, NETS[net], LOSSES[loss])
    assert ("pointwise_loss.frag.glsl" in kernels) == ("images" in net)


def test_weights_of_each_output(browser_page: BrowserPage):
    """A list has one for each output, of a row or of an image."""
    for name, outputs in (("two texels", 6), ("flattened images", 3 * 2 * 3)):
        weights = [0.5 + 0.25 * n for n in range(outputs)]
        check(browser_page, NETS[name], {"type": "bce", "pos_weight": weights})


@pytest.mark.parametrize("labels", ["index", "values"])
@pytest.mark.parametrize(
    ("classes", "samples"),
    [(3, 1), (10, 1), (37, 1), (37, 2), (70, 16), (258, 4), (300, 16)],
)
def test_softmax_with_weights_and_smoothing(
    browser_page: BrowserPage, classes: int, samples: int, labels: str
):
    """Rows of one texel, of a few, and of so many that statistics take a draw of their own, several texels at once or one."""
    device = {"rows": {"activation": 4, "weight": 4, "gradient": 8, "samples": samples}}
    weights = [round(0.2 + 0.1 * n, 1) for n in range(classes)]
    for options in (
        {"class_weights": weights},
        {"label_smoothing": 0.1},
        {"class_weights": weights, "label_smoothing": 0.3},
    ):
        check(browser_page, ((4,), [dense(5, "tanh"), dense(classes)]), {"type": "softmax_cross_entropy", **options}, labels=labels, device=device)  # fmt: skip


QUICK = [DEVICES[index] for index in (2, 15)]


@pytest.mark.parametrize("device", [pytest.param(d, id=device_id(d), marks=() if d in QUICK else pytest.mark.full) for d in DEVICES])  # fmt: skip
def test_devices(browser_page: BrowserPage, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 2 render targets."""
    if device["maxDrawBuffers"] == 1:
        with pytest.raises(PageError, match="render targets; the device has"):
            check(browser_page, NETS["images"], LOSSES["huber"], device=device)
        return
    check(browser_page, NETS["images"], LOSSES["bce, smoothed"], device=device)
    weights = {"type": "softmax_cross_entropy", "class_weights": [0.5, 2.0, 1.0]}
    check(browser_page, NETS["one texel"], weights, device=device)


@pytest.mark.parametrize("loss", [*LOSSES, "weighted softmax"])
def test_gradients(browser_page: BrowserPage, loss: str):
    """Central differences of whole nets; of an autoencoder of images too."""
    softmax = {"type": "softmax_cross_entropy", "class_weights": [0.5, 2.0, 1.0], "label_smoothing": 0.2}
    options = LOSSES.get(loss, softmax)
    for net in ("one texel", "images") if loss in LOSSES else ("one texel",):
        spec = cnn(*NETS[net], options, optimizer={"type": "sgd", "lr": 1.0}, steps=1)
        x, y = images_for(spec, 3)
        found = (weights_of(spec, seed=seed) for seed in range(1, 2000))
        smooth = (weights for weights in found if far_from_kinks(loss, forward(spec, weights, x), y))
        check_gradients(browser_page, spec, x, y, smooth)


def far_from_kinks(loss: str, z: Floats, y: Array) -> bool:
    """Whether no step of a difference crosses where the loss has a corner, or its slope has one."""
    if loss not in LOSSES:
        return True
    d = z - y.reshape(z.shape)
    corners = {"mae": np.abs(d), "huber": np.abs(np.abs(d) - 0.7), "hinge": np.abs(1 - np.abs(z))}
    return loss not in corners or corners[loss].min() > 0.003


def test_targets_of_hinge(browser_page: BrowserPage):
    """0 and 1 or -1 and 1 are the same classes; the accuracy knows both."""
    spec = cnn(*NETS["one texel"], "hinge", steps=3, batch_size=4) | {"metrics": ["accuracy"]}
    spec["data"] = {"validation": {"fraction": 0.3}}
    x, y = images_for(spec, 13)
    first, second = (browser_page.call(ENGINE, "run", spec, x, t) for t in (y, 2 * y - 1))
    assert first["history"] == second["history"]
    assert "val_accuracy" in first["history"][-1]
    with pytest.raises(PageError, match="is 0.5; legal: whole numbers from -1 to 1"):
        browser_page.call(ENGINE, "run", spec, x, 0.5 * y)


def test_an_autoencoder(browser_page: BrowserPage):
    """Images from images: targets [height, width, channels], predictions likewise, and a loss that falls."""
    layers = [
        conv(8, 3, "relu", padding="same"),
        pool(2, stride=1, padding="same"),
        conv(2, 3, "sigmoid", padding="same"),
    ]
    spec = cnn((6, 5, 2), layers, "mse", optimizer={"type": "adam", "lr": 0.01}, steps=60, batch_size=16)
    x = np.random.default_rng(1).random((40, 6, 5, 2)).astype(np.float32)
    run = browser_page.call(ENGINE, "run", spec, x, x)
    losses = [point["loss"] for point in run["history"]]
    assert losses[-1] < 0.6 * losses[0]
    reports = browser_page.call(ENGINE, "runAndDiagnose", spec, x, x)
    assert len(reports["report"]["firstLosses"]) == 10
    assert max(item["relativeError"] for item in reports["report"]["firstLosses"]) < 1e-5


def test_what_is_reported_is_the_loss_of_the_spec(browser_page: BrowserPage):
    """The first loss of a run is the mean of row losses, each weighted as it is."""
    for loss in (
        LOSSES["bce, smoothed"],
        {"type": "softmax_cross_entropy", "class_weights": [0.5, 2.0, 1.0]},
    ):
        spec = cnn((5,), [dense(3)], loss, steps=1)
        x, y = images_for(spec, 13)
        weights = weights_of(spec)
        run = browser_page.call(ENGINE, "run", spec, x, y, {"initialWeights": weights})
        z = x.astype(np.float64) @ weights["dense_1.kernel"] + weights["dense_1.bias"]
        assert run["history"][0]["loss"] == pytest.approx(row_losses(loss, z, y).mean(), rel=1e-6)
