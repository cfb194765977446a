"""Every layer type as the tests know it, independent of the engine: shapes, weights, NumPy and PyTorch."""

from __future__ import annotations

from .activation import ACTIVATION
from .base import Layer, LayerModel, Shape
from .core import CORE
from .dropout import DROPOUT
from .linear import LINEAR
from .norm import NORM
from .shape import SHAPE

MODELS: dict[str, LayerModel] = {**CORE, **LINEAR, **NORM, **ACTIVATION, **SHAPE, **DROPOUT}

__all__ = ["MODELS", "Layer", "LayerModel", "Shape"]
