"""CSV files: separators, headers, names of classes; and what uploads lose as float32."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from texelgrad.config import Settings
from texelgrad.datasets import NamedArray, content_hash, normalise, read_upload
from texelgrad.errors import Invalid
from texelgrad.rows import Columns

IRIS = "length,width,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n6.3,3.3,virginica\n4.9,3.0,setosa\n"


def read(text: str, target: str | None = "species") -> list[NamedArray]:
    """The arrays of a table."""
    return read_upload(io.BytesIO(text.encode()), "csv", Settings(), Columns(target))


def refusal(text: str, target: str | None = "species") -> Invalid:
    """How a table is refused."""
    with pytest.raises(Invalid) as caught:
        read(text, target)
    return caught.value


def test_names_of_classes_become_numbers():
    """In sorted order, whatever comes first; the names are kept."""
    x, y = read(IRIS)
    assert x.data.tolist() == [
        [np.float32(a), np.float32(b)] for a, b in ((5.1, 3.5), (7, 3.2), (6.3, 3.3), (4.9, 3))
    ]
    assert (y.info.dtype, y.data.tolist()) == ("int32", [0, 1, 2, 0])
    assert y.info.stats.classes == ["setosa", "versicolor", "virginica"]
    assert y.info.stats.counts == {"0": 2, "1": 1, "2": 1}
    shuffled = read("species,a\nb,1\na,2\n")[1]
    assert (shuffled.data.tolist(), shuffled.info.stats.classes) == ([1, 0], ["a", "b"])


def test_the_names_are_part_of_the_content():
    """Equal numbers of other classes, or in other columns, are another data set."""
    texts = (IRIS, IRIS.replace("setosa", "rosa"), IRIS.replace("width", "depth"), IRIS.replace(",", ";"))
    one, classes, columns, same = (content_hash(read(text)) for text in texts)
    assert len({one, classes, columns}) == 3
    assert one == same
    plain = [read("a,species\n1,0\n2,1\n"), normalise(np.array([1.0, 2.0]), np.array([0, 1]))]
    assert content_hash(plain[0]) != content_hash(plain[1])
    assert [array.info.stats.columns for array in plain[0]] == [["a"], None]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(separator: str):
    """As the header says."""
    x, y = read(IRIS.replace(",", separator))
    assert (x.info.shape, y.data.tolist()) == ((4, 2), [0, 1, 2, 0])


@pytest.mark.parametrize(
    ("text", "target", "field", "words"),
    [
        ("5.1,3.5,0\n4.9,3.0,1\n", "0", "file", "no header: its first line is of numbers"),
        ("a,species\n1,x\n", None, "line 2, column species", "is not a finite number"),
        ("a,species\n1,x\n2,3\n4,y\n", "species", "line 2, column species", "no number, as others are"),
        ("a,species\n1,x\n2,\n", "species", "line 3, column species", "is empty"),
        ("a,species\n1,nan\n", "species", "line 2, column species", "not a finite number"),
        ("a,species\n1,x\u202ey\n", "species", "line 2, column species", "name that can't be shown"),
        ("a,species\nred,x\n", "species", "line 2, column a", "not a finite number"),
    ],
)
def test_tables_that_are_refused(text: str, target: str | None, field: str, words: str):
    """With the place of each fault."""
    faults = {fault.field: fault.message for fault in refusal(text, target).faults}
    assert words in faults[field]


@pytest.mark.parametrize(("text", "target"), [("some words, and no table", None), ("words\n", "y")])
def test_text_that_is_no_table(text: str, target: str | None):
    """It may have been told to be no CSV at all: the fault says for what it was taken."""
    assert refusal(text, target).faults[0].message.startswith("is taken for CSV, and has no ")


def test_an_underscore_is_in_no_number():
    """Python's float takes it; here it is refused among numbers, and a name in a column of targets."""
    fault, *_ = refusal("a,species\n1_000,0\n2,1\n").faults
    assert (fault.field, fault.message, fault.value) == (
        "line 2, column a",
        "is not a finite number",
        "1_000",
    )
    assert refusal("a,species\n1,1_0\n2,1\n").faults[0].message == "is no number, as others are"
    assert read("a,species\n1,1_0\n2,1_1\n")[1].info.stats.classes == ["1_0", "1_1"]
    assert read("1_0,species\n1,0\n2,1\n")[0].info.stats.columns == ["1_0"]


def test_faults_of_all_lines_are_counted():
    """Twenty are told, the rest is a number."""
    found = refusal("a,species\n" + "x,1\n" * 500 + "1,1\n")
    assert (len(found.faults), found.more) == (20, 480)


@pytest.mark.parametrize(
    ("target", "legal"),
    [(None, "--target 'the kind'"), ("a", "only the targets may be names of classes")],
)
def test_a_column_of_text_is_one_fault(target: str | None, legal: str):
    """Named, with its first cell and what to do; what else was found in the same lines is told and counted beside it."""
    found = refusal("a,the kind,b\n" + "1,oak,?\n1,elm,2\n" * 30, target)
    column, *others = found.faults
    assert (column.field, column.value) == ("column the kind", "oak")
    assert column.message == "has no finite number in any of its 60 rows"
    assert legal in str(column.legal)
    assert {fault.field.partition(", ")[2] for fault in others} == {"column b"}
    assert len(others) + found.more == 30


@pytest.mark.parametrize(
    ("values", "field"),
    [([2**40, 2**40 + 1, 0, 1], "y"), ([2**24, 2**24 + 1, 2**32], "y")],
)
def test_labels_that_would_merge_are_refused(values: list[int], field: str):
    """Whole numbers that float32 can't tell apart."""
    with pytest.raises(Invalid) as caught:
        normalise(np.arange(len(values)), np.array(values))
    assert [fault.field for fault in caught.value.faults] == [field]


@pytest.mark.parametrize(
    ("x", "y", "warnings"),
    [
        ([1.0, 2.0], [0, 1], [None, None]),
        ([1e-300, 0.0], [0, 1], [["1 value other than 0 is below what float32 keeps, and stored as 0"], None]),
        ([1e-40, -1e-50], [0, 1], [["1 value other than 0 is below what float32 keeps, and stored as 0", "1 value is subnormal in float32 (below 1.2e-38): GPUs take them as 0, unless data.normalize makes them larger"], None]),
        ([1.0, 2.0], [0, 2**40], [None, ["whole numbers beyond int32 are kept as float32: they can't be class numbers"]]),
        ([1.0, 2.0], [2**24, 2**24 + 1], [None, None]),
        ([2**24, 2**24 + 2, 1e9], [0, 1, 2], [None, None]),
        ([2**24 + 1, 5, 6], [0, 1, 2], [["1 whole number is beyond 2^24 and between what float32 keeps, and rounded"], None]),
        ([2**53 + 1, -(2**62) - 1, 2**62], [0, 1, 2], [["2 whole numbers are beyond 2^24 and between what float32 keeps, and rounded"], None]),
        ([1.0, 2.0], [[2**24 + 1, 0], [0, 0.5]], [None, ["1 whole number is beyond 2^24 and between what float32 keeps, and rounded"]]),
    ],
)  # fmt: skip
def test_what_float32_loses_is_a_warning(x: Any, y: Any, warnings: Any):
    """Of an array's own; nothing is said where nothing is lost."""
    made = normalise(np.array(x), np.array(y))
    assert [array.info.stats.warnings for array in made] == warnings


def test_whole_numbers_that_are_rounded_are_named_by_their_column():
    """Of a table's inputs: a time in microseconds is of no use rounded, and must be found among others."""
    rows = "".join(f"{2**40 + row},{row},{2**30 + row},{row % 2}\n" for row in range(3))
    x, _ = read(f"at,age,id,species\n{rows}")
    text = "4 whole numbers are beyond 2^24 and between what float32 keeps, and rounded, in columns at, id"
    assert x.info.stats.warnings == [text]
