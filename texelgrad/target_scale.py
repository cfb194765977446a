"""Whether the targets of a regression are numbers that training reaches; a warning only, since they may be meant so."""

from __future__ import annotations

from collections.abc import Iterator

from texelgrad.inputs import TARGET
from texelgrad.losses import CLASS_LOSSES, LossName
from texelgrad.shapes import Arrays

_FAR = 10.0  # a net begins with outputs near 0, and an optimizer such as Adam moves a weight by no more than lr a step


def scale_warnings(loss: LossName, arrays: Arrays) -> Iterator[dict[str, str]]:
    """Code and message where the loss is one of values, and a column of y has a mean or a deviation far from 0 and 1."""
    y = arrays.get(TARGET)
    if loss in CLASS_LOSSES or y is None or y.stats.mean is None or y.stats.std is None:
        return
    columns = y.stats.features or {"mean": [y.stats.mean], "std": [y.stats.std]}
    sizes = [max(abs(mean), std) for mean, std in zip(columns["mean"], columns["std"], strict=True)]
    worst = sizes.index(max(sizes))
    if sizes[worst] <= _FAR:
        return
    mean, std = columns["mean"][worst], columns["std"][worst]
    name = f"y[:, {worst}]" if len(sizes) > 1 else "y"
    centred = f"{name} {'+' if mean < 0 else '-'} {abs(mean):.4g}"
    message = (
        f"{name} has mean {mean:.4g} and standard deviation {std:.4g}, far from what outputs begin as, "
        f"which {loss} may never make up for: train on {f'({centred}) / {std:.4g}' if std > 0 else centred}"
    )
    yield {"code": "targets_not_scaled", "message": message}
