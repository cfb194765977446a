"""Layers of a model: one class a type, its fields, shapes and limits. browser_runtime/nn/layers/ makes the graph of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from texelgrad.layers.activation import ActivationLayer
from texelgrad.layers.conv import Conv1d, Conv2d, Conv2dTranspose
from texelgrad.layers.dense import Dense
from texelgrad.layers.dropout import Dropout
from texelgrad.layers.embedding import Embedding
from texelgrad.layers.merge import Add, Concat, Multiply
from texelgrad.layers.norm import BatchNorm, GroupNorm, LayerNorm
from texelgrad.layers.pool import (
    AvgPool1d,
    AvgPool2d,
    GlobalAvgPool1d,
    GlobalAvgPool2d,
    GlobalMaxPool1d,
    GlobalMaxPool2d,
    MaxPool1d,
    MaxPool2d,
)
from texelgrad.layers.shape import Crop2d, Flatten, Reshape, Upsample2d, ZeroPad2d

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
    | MaxPool1d
    | AvgPool1d
    | GlobalMaxPool1d
    | GlobalAvgPool1d
    | AvgPool2d
    | GlobalMaxPool2d
    | GlobalAvgPool2d
    | Dropout
    | Flatten
    | Reshape
    | Upsample2d
    | ZeroPad2d
    | Crop2d
    | Add
    | Multiply
    | Concat
    | ActivationLayer,
    Field(discriminator="type"),
]
