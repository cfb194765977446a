"""Every layer type as the tests know it, independent of the engine: shapes, weights, NumPy and PyTorch."""

from __future__ import annotations

from .base import Layer, LayerModel, Shape
from .core import CORE
from .linear import LINEAR

MODELS: dict[str, LayerModel] = {**CORE, **LINEAR}

__all__ = ["MODELS", "Layer", "LayerModel", "Shape"]
