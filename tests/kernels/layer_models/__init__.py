"""Every layer type as the tests know it, independent of the engine: shapes, weights, NumPy and PyTorch."""

from __future__ import annotations

from .base import Layer, LayerModel, Shape
from .core import CORE

MODELS: dict[str, LayerModel] = {**CORE}

__all__ = ["MODELS", "Layer", "LayerModel", "Shape"]
