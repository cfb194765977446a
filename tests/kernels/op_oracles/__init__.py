"""The oracle of every primitive op of the engine's graph: its value in float64, and how far a kernel may be off."""

from __future__ import annotations

from .activation import ACTIVATION
from .base import OpRun, Oracle
from .core import CORE
from .dropout import DROPOUT
from .linear import LINEAR
from .losses import LOSSES
from .norm import NORM
from .optimizers import OPTIMIZERS
from .shape import SHAPE

ORACLES: dict[str, Oracle] = {
    **CORE,
    **LINEAR,
    **LOSSES,
    **NORM,
    **ACTIVATION,
    **OPTIMIZERS,
    **SHAPE,
    **DROPOUT,
}

__all__ = ["ORACLES", "OpRun", "Oracle"]
