"""One training step as the engine ran it, each kernel checked against the oracle on what it really read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import oracle
from .harness import BrowserPage
from .op_oracles import ORACLES, OpRun
from .oracle import Approx, Floats
from .specs import Array, Spec

PROBE = "/tests/kernels/engine_probe.js"


def inspect(page: BrowserPage, spec: Spec, x: Array, y: Array, **options: Any) -> dict[str, Any]:
    """The groups of one step: what each kernel read and wrote. Options: those of engine_probe.js's `inspect`."""
    return page.call(PROBE, "inspect", spec, x, y, options)


def padded_matrix(tensor: dict[str, Any]) -> Floats:
    """All rows and lanes that a tensor's layers hold, padding included: [groups * layers, 4 * texels a row]."""
    layout = tensor["layout"]
    by_layer = tensor["texels"].reshape(layout["layers"], layout["groups"], -1)
    return by_layer.transpose(1, 0, 2).reshape(layout["groups"] * layout["layers"], -1).astype(np.float64)


def split_padding(tensor: dict[str, Any], step: dict[str, Any], name: str) -> tuple[Floats, Floats]:
    """A tensor's values, and all that pads them; a parameter's bias is the last row of its values."""
    layout = tensor["layout"]
    if tensor["kind"] == "rows":
        return _split_rows(tensor, step["rows"])
    matrix = padded_matrix(tensor)
    inside = np.zeros(matrix.shape, bool)
    if not tensor["batched"]:
        rows = _weight_rows(layout)
    else:
        first = step["firstRow"] if name in ("x", "target") else 0
        rows = np.arange(first, first + step["rows"])
        # the other batches of the epoch are neither this batch's values nor padding
        inside[:first] = inside[first + step["aligned"] :] = True
    # a pixel starts a texel, so its last lanes may be padding
    pixel, channel = np.divmod(np.arange(layout["columns"]), layout["channels"])
    place = np.ix_(rows, pixel * 4 * layout["texelsPerPixel"] + channel)
    inside[place] = True
    return matrix[place], matrix[~inside]


def _weight_rows(layout: dict[str, Any]) -> NDArray[np.int64]:
    """Where the rows of a parameter lie, the bias last: each block starts on a multiple of 4. A gradient may lie there in parts."""
    block, row = np.divmod(np.arange(layout["rows"]), layout["blockRows"])
    rows = block * layout["blockStride"] + row
    if layout["biasRow"] >= 0:
        end = layout["biasRow"]
        rows = np.append(rows, end)
    else:
        end = (layout["rows"] // layout["blockRows"]) * layout["blockStride"] - 1
    per_part = layout["layers"] * (end // layout["layers"] + 1)
    parts = layout["groups"] * layout["layers"] // per_part
    return np.concatenate([part * per_part + rows for part in range(parts)])


def _split_rows(tensor: dict[str, Any], rows: int) -> tuple[Floats, Floats]:
    """Row losses: lane i of texel (group, column) holds what that column's fragment adds to row group * R + i."""
    texels_per_row, per_texel = tensor["layout"]["texelsPerRow"], tensor["rowsPerTexel"]
    parts = tensor["texels"][0].astype(np.float64).reshape(-1, texels_per_row, 4)
    sums = parts.sum(axis=1)[:, :per_texel].reshape(-1)
    past = parts[:, :, :per_texel].transpose(0, 2, 1).reshape(-1, texels_per_row)[rows:]
    return sums[:rows], np.concatenate([parts[:, :, per_texel:].reshape(-1), past.reshape(-1)])


def check_padding(step: dict[str, Any]) -> None:
    """Every lane past the last column and every row past the last row is 0, in all that was read and written."""
    for group in step["groups"]:
        for name, tensor in (*group["inputs"].items(), *group["outputs"].items()):
            _, padding = split_padding(tensor, step, name)
            assert not np.any(padding), (
                f"{group['shaders']}: {name} has {np.count_nonzero(padding)} stray values"
            )


class BoundsTooWide(AssertionError):
    """The net is so badly conditioned that no value of it would be wrong: a case to leave out, never one that passes."""


def check_values(step: dict[str, Any]) -> dict[str, float]:
    """Every stored value within its bound; returns the worst error / bound of each kernel."""
    worst: dict[str, float] = {}
    for group in step["groups"]:
        for name, got, wanted in _compare(group, step):
            scale = np.abs(wanted.value).max(initial=0)
            usable = wanted.error <= np.maximum(0.01 * np.abs(wanted.value), 1e-4 * scale + 1e-30)
            if usable.mean() <= 0.7:
                raise BoundsTooWide(f"{name}: the bounds are too wide to prove anything")
            assert np.isfinite(got).all(), f"{name} is not finite"
            off = np.abs(got - wanted.value)
            ratio = np.divide(off, wanted.error, out=np.where(off > 0, np.inf, 0.0), where=wanted.error > 0)
            at = np.unravel_index(ratio.argmax(), ratio.shape)
            where = f"{group['shaders']}: {name}{list(map(int, at))}"
            assert ratio[at] <= 1, f"{where} is {got[at]}, not {wanted.value[at]} within {wanted.error[at]}"
            key = "+".join(group["shaders"])
            worst[key] = max(worst.get(key, 0), float(ratio[at]))
    return worst


def _compare(group: dict[str, Any], step: dict[str, Any]) -> Iterator[tuple[str, Floats, Approx]]:
    """Each tensor that a group stored, beside what its ops should have made of what it read."""
    values: dict[str, Approx] = {}
    stored = {name: split_padding(tensor, step, name)[0] for name, tensor in group["outputs"].items()}
    for name, tensor in group["inputs"].items():
        values[name] = oracle.exact(split_padding(tensor, step, name)[0])
    for op in group["ops"]:
        made = run_op(op, values, group, stored, step)
        for key, name in op["outputs"].items():
            values[name] = made[key]
            if name in stored:
                got = stored[name]
                if op["type"] in GRADIENTS_OF_WEIGHTS:  # the next draw adds up its parts as they were stored
                    parts = got.reshape(-1, *made[key].value.shape)
                    got, size = parts.sum(axis=0), np.abs(parts).sum(axis=0)
                    values[name] = Approx(got, (len(parts) - 1) * oracle.U * size)
                yield name, got, made[key]


GRADIENTS_OF_WEIGHTS = (
    "sample_norm_grad_weights",
    "batch_norm_grad_weights",
    "affine_grad_weights",
    "conv2d_grad_weights",
    "embedding_grad_weights",
)


def run_op(
    op: dict[str, Any], values: dict[str, Approx], group: dict[str, Any], stored: dict[str, Floats], step: dict[str, Any]
) -> dict[str, Approx]:  # fmt: skip
    """One primitive op; what a kernel's loops read is exact."""
    tensors = {**group["outputs"], **group["inputs"]}
    names = {**op["outputs"], **op["inputs"]}
    layouts = {key: tensors[name]["layout"] for key, name in names.items() if name in tensors}
    return ORACLES[op["type"]](
        OpRun(
            inputs={key: values[name] for key, name in op["inputs"].items()},
            attrs=op["attrs"],
            layouts=layouts,
            stored={key: stored[name] for key, name in op["outputs"].items() if name in stored},
            step=step,
        )
    )


def check_reduction(step: dict[str, Any]) -> None:
    """The batch's loss is the sum of its row losses, within the roundings of a blocked sum."""
    (rows,) = [g["outputs"]["loss"] for g in step["groups"] if "loss" in g["outputs"]]
    parts = rows["texels"][0].astype(np.float64)
    bound = (min(len(parts), 64) + -(-len(parts) // 64) + 4) * oracle.U * np.abs(parts).sum() + oracle.TINY
    assert abs(step["sums"]["loss"] - parts.sum()) <= bound
    assert step["sums"]["finite"]
