"""Layers of a model: one class a type, its fields, shapes and limits. browser_runtime/nn/layers/ makes the graph of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from texelgrad.layers.activation import ActivationLayer
from texelgrad.layers.conv import Conv1d, Conv2d, Conv2dTranspose
from texelgrad.layers.dense import Dense
from texelgrad.layers.embedding import Embedding
from texelgrad.layers.merge import Add
from texelgrad.layers.norm import BatchNorm, GroupNorm, LayerNorm
from texelgrad.layers.pool import MaxPool2d
from texelgrad.layers.shape import Flatten

Layer = Annotated[
    Dense
    | BatchNorm
    | LayerNorm
    | GroupNorm
    | Conv2d
    | Conv1d
    | Conv2dTranspose
    | Embedding
    | MaxPool2d
    | Flatten
    | Add
    | ActivationLayer,
    Field(discriminator="type"),
]
