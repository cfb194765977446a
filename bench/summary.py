"""From single measurements to medians, spreads and ratios. Pure functions; runs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

OURS = "texelgrad"
# Relative difference to float64 of any of the first losses, above which a time does not count: exactness is asked of us; of a
# peer only that it trains the same net, since a fast one that is less exact is still fast.
TOLERANCE, PEER_TOLERANCE = 1e-3, 1e-2


@dataclass(frozen=True)
class Measurement:
    """One contender on one workload in one round. Times in milliseconds; None where it has none."""

    round: int
    workload: str
    contender: str
    error: str = ""  # why there is no time, or why it does not count
    ms_per_step: float | None = None
    steps: int | None = None
    load_ms: float | None = None  # of the library
    first_step_ms: float | None = None  # library loaded, browser fresh
    warm_first_step_ms: float | None = None  # once more in the same page
    page_cpu_ms: float | None = None  # a step
    gpu_cpu_ms: float | None = None  # a step
    losses: Sequence[float] = ()  # of the first steps
    last_loss: float | None = None
    loss_error: float | None = None  # greatest relative difference of `losses` to float64
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Row:
    """All rounds of one contender on one workload."""

    workload: str
    contender: str
    rounds: int
    errors: tuple[str, ...]
    ms_per_step: float | None  # median
    spread: float | None  # (greatest - least) / median
    times_ours: float | None  # median of the rounds' own ratios: what slows a round slows both
    first_step_ms: float | None
    warm_first_step_ms: float | None
    page_cpu_ms: float | None
    gpu_cpu_ms: float | None
    loss_error: float | None  # the worst round's


def relative_error(losses: Sequence[float], reference: Sequence[float]) -> float:
    """The greatest relative difference of the losses that both have; infinite where one is not finite."""
    if not losses or not reference:
        raise ValueError("no losses to compare")
    worst = 0.0
    for loss, wanted in zip(losses, reference, strict=False):
        difference = abs(loss - wanted) / max(abs(wanted), 1e-30)
        # not `max`, which may drop a NaN
        worst = difference if not difference <= worst else worst
        if math.isnan(worst):
            return math.inf
    return worst


def summarize(measurements: Sequence[Measurement]) -> list[Row]:
    """A row for each contender on each workload, in the order of their first appearance."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    ours: dict[tuple[str, int], float] = {}
    for m in measurements:
        groups.setdefault((m.workload, m.contender), []).append(m)
        if m.contender == OURS and not m.error and m.ms_per_step is not None:
            ours[m.workload, m.round] = m.ms_per_step
    rows: list[Row] = []
    for (workload, contender), group in groups.items():
        good = [m for m in group if not m.error]
        times = [m.ms_per_step for m in good if m.ms_per_step is not None]
        ratios = [
            m.ms_per_step / ours[workload, m.round]
            for m in good
            if m.ms_per_step is not None and (workload, m.round) in ours
        ]
        errors = [m.loss_error for m in group if m.loss_error is not None]
        rows.append(
            Row(
                workload,
                contender,
                rounds=len(times),
                errors=tuple(dict.fromkeys(m.error for m in group if m.error)),
                ms_per_step=_median(times),
                spread=(max(times) - min(times)) / median(times) if times else None,
                times_ours=_median(ratios),
                first_step_ms=_median_of(good, lambda m: m.first_step_ms),
                warm_first_step_ms=_median_of(good, lambda m: m.warm_first_step_ms),
                page_cpu_ms=_median_of(good, lambda m: m.page_cpu_ms),
                gpu_cpu_ms=_median_of(good, lambda m: m.gpu_cpu_ms),
                loss_error=max(errors) if errors else None,
            )
        )
    return rows


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _median_of(
    measurements: Sequence[Measurement], get: Callable[[Measurement], float | None]
) -> float | None:
    return _median([value for m in measurements if (value := get(m)) is not None])
