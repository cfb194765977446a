"""The inputs of a model by name. One shape alone is a model of one input, `input`, whose array is `x`.

The page's nn/inputs.js says the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from texelgrad.errors import Fault, Invalid
from texelgrad.spec_forms import NAME, WORDS

Shape = tuple[int, ...]
ModelInput = Sequence[int] | Mapping[str, Sequence[int]]
"""`model.input` of a spec: the shape of one row, or such shapes by name."""

INPUT = "input"
"""What layers call the input of a model that has one without a name."""
TARGET, WEIGHT = "y", "w"
"""Arrays of a data set that are no inputs: the targets, and what each row counts for."""
RESERVED = (INPUT, "x", "target", "loss", "correct")
"""What no layer may be called: the input without a name, and tensors that every graph has."""
NO_INPUTS = (*RESERVED, TARGET, WEIGHT)
"""What an input may not be called: of these its array could not be told from others."""
MAX_INPUTS = 8
ARRAYS = "x or named inputs, perhaps y, perhaps w"
"""The arrays that a data set may have, in words."""


def inputs_of(model_input: ModelInput) -> dict[str, Shape]:
    """Shape of one row of each input, in the order of the spec."""
    named = model_input if isinstance(model_input, Mapping) else {INPUT: model_input}
    return {name: tuple(shape) for name, shape in named.items()}


def array_of(name: str) -> str:
    """Name of an input's array in data sets and exported models."""
    return "x" if name == INPUT else name


def arrays_of(model_input: ModelInput) -> dict[str, Shape]:
    """Shape of one row of each input, by the names of their arrays."""
    return {array_of(name): shape for name, shape in inputs_of(model_input).items()}


def field_of(name: str) -> str:
    """Where an input stands in the spec."""
    return "model.input" if name == INPUT else f"model.input.{name}"


def check_names(names: Sequence[str]) -> None:
    """Whether arrays of these names are a data set; raises Invalid with every fault."""
    inputs = sorted({*names} - {TARGET, WEIGHT})
    faults: list[Fault] = []
    if not inputs:
        there = f"has no input x, only {', '.join(_shown(names))}" if names else "is empty: it has no arrays"
        faults.append(Fault("file", there, _shown(names), ARRAYS))
    if len(inputs) > MAX_INPUTS:
        faults.append(Fault("file", "has too many inputs", _shown(inputs), f"at most {MAX_INPUTS}"))
    if len(inputs) > 1 and array_of(INPUT) in inputs:
        message = "has an input x, which has no name, beside others"
        faults.append(Fault("file", message, _shown(inputs), "x alone, or inputs with names of their own"))
    bad = [name for name in inputs if not re.fullmatch(NAME, name) or name in NO_INPUTS]
    if bad := [name for name in bad if name != array_of(INPUT)]:
        message = "has arrays whose names no input can have"
        legal = f"{ARRAYS}; a name is {WORDS[NAME]}, and none of {', '.join(NO_INPUTS)}"
        faults.append(Fault("file", message, _shown(bad), legal))
    if faults:
        raise Invalid(faults)


def _shown(names: Sequence[str]) -> list[str]:
    return [name[:64] for name in sorted(names)[:20]]
