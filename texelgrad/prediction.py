"""Whether a data set has what trained weights take: the inputs by name, and in a table the columns that they were trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from texelgrad.errors import Fault
from texelgrad.inputs import array_of, arrays_of
from texelgrad.layers.embedding import Embedding
from texelgrad.network import lookups
from texelgrad.shapes import Arrays, held_faults, inputs_among
from texelgrad.spec import Model

_FIELD = "data.dataset"
_SHOWN = 20  # names of columns
_LONGEST = 64  # characters of a name that is shown


def column_order(trained: Sequence[str] | None, given: Sequence[str] | None) -> tuple[int, ...] | None:
    """Where each column that a model was trained on stands in other rows, both by name.

    None: they are taken as they stand, which is all that can be done where either has no names.
    """
    if trained is None or given is None or list(trained) == list(given):
        return None
    places = {name: place for place, name in enumerate(given)}
    return tuple(places[name] for name in trained)


def columns_of(arrays: Arrays) -> Mapping[str, Sequence[str] | None]:
    """The names of the columns of each array; None where it is of no table."""
    return {name: array.stats.columns for name, array in arrays.items()}


def prediction_faults(model: Model, trained_on: Arrays, arrays: Arrays) -> Iterator[Fault]:
    """Why a trained model can't take the inputs of these arrays, one fault for each; it is the data that can change."""
    given, wanted = inputs_among(arrays), arrays_of(model.input)
    if missing := [name for name in wanted if name not in given]:
        message = f"has no {', '.join(missing)} but {', '.join(given)}"
        yield Fault(_FIELD, message, [*given], f"a data set with {', '.join(wanted)}")
        return
    if extra := [name for name in given if name not in wanted]:
        message = f"has {', '.join(extra)}, which the model does not take"
        yield Fault(_FIELD, message, [*given], f"a data set with {', '.join(wanted)}")
    named = columns_of(trained_on)
    for name, shape in wanted.items():
        columns, of_model = given[name].stats.columns, named.get(name)
        if columns and of_model and {*columns} != {*of_model}:
            yield _columns_fault(of_model, columns)
        elif given[name].shape[1:] != shape:
            row = list(given[name].shape[1:])
            legal = f"rows of {list(shape)}" + (f": {_shown(of_model)}" if of_model else "")
            yield Fault(_FIELD, f"has rows of {row} in {name}, but the model takes {list(shape)}", row, legal)
    yield from _number_faults(model, arrays)
    yield from held_faults(_FIELD, arrays)


def order_faults(trained_on: Arrays, arrays: Arrays) -> Iterator[Fault]:
    """Whether a table to train on has the columns of the one before in another order: its weights belong to that one's."""
    before = columns_of(trained_on)
    for name, columns in columns_of(inputs_among(arrays)).items():
        trained = before.get(name)
        if trained and columns and trained != columns and {*trained} == {*columns}:
            message = f"has the columns that the weights were trained on in another order: {_shown(columns)}"
            yield Fault(_FIELD, message, None, _shown(trained))


def _columns_fault(trained: Sequence[str], given: Sequence[str]) -> Fault:
    """Columns are matched by name, so a name too few or too many means other data."""
    missing = [name for name in trained if name not in given]
    extra = [name for name in given if name not in trained]
    parts = [f"lacks {_shown(missing)}"] if missing else []
    parts += [f"has {_shown(extra)}, which the model was not trained on"] if extra else []
    legal = f"the columns {_shown(trained)}, in any order; of the targets' column say target"
    return Fault(_FIELD, " and ".join(parts), [name[:_LONGEST] for name in given[:_SHOWN]], legal)


def _number_faults(model: Model, arrays: Arrays) -> Iterator[Fault]:
    """Whether the numbers that embeddings look up are in their tables."""
    for name, places in lookups(model.input, model.layers).items():
        stats = arrays[array_of(name)].stats
        rows = min(cast(Embedding, model.layers[place]).vocabulary for place in places)
        if not (stats.integral and stats.min >= 0 and stats.max < rows):
            message = f"has numbers in {array_of(name)} that the model can't look up"
            wrong = stats.min if stats.min < 0 else stats.max
            yield Fault(_FIELD, message, wrong, f"whole numbers, 0 to {rows - 1}")


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(name[:_LONGEST] for name in names[:_SHOWN]) + more
