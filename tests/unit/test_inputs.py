"""Models of several inputs by name: what is refused on both sides, what a data set must hold, memory, exports."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from texelgrad.datasets import NamedArray, read_upload
from texelgrad.errors import Fault, Invalid
from texelgrad.inputs import MAX_INPUTS
from texelgrad.normalize import normalized, tensors_of
from texelgrad.rows import Columns
from texelgrad.shapes import ArrayInfo, Stats, data_faults, estimate
from texelgrad.spec import check_spec, parse_spec

from .test_exports import predicted_by_onnxruntime, predicted_by_tfjs, to_onnx, to_tfjs
from .test_formats import SETTINGS
from .test_network import infer, plain
from tests.kernels.cnns import FLATTEN, Layer, cnn, conv, dense, embedding, pool, several_for, weights_of
from tests.kernels.nets import forward
from tests.node import estimates
from tests.tolerances import EXPORT_RTOL
from tests.uploads import npz

INPUTS: dict[str, tuple[int, ...]] = {"image": (6, 5, 2), "words": (3,), "plain": (4,)}
LAYERS: list[Layer] = [
    conv(3, 2, inputs=["image"]), pool(2), FLATTEN | {"name": "seen"},
    embedding(9, 4, inputs=["words"]), FLATTEN | {"name": "read"},
    {"type": "concat", "inputs": ["seen", "read", "plain"]}, dense(5, "tanh"), dense(3),
]  # fmt: skip
PLAIN = Stats(0, 1, integral=True, row_sums_one=False)


def spec_of(inputs: Any = INPUTS, layers: list[Layer] = LAYERS, **data: Any) -> dict[str, Any]:
    return plain(cnn(inputs, layers, "mse", batch_size=8) | {"data": data})


def both(raw: dict[str, Any]) -> tuple[str, str]:
    """The field that the service and the page name first."""
    _, _, faults = check_spec(raw)
    return faults[0].field, infer(raw)["error"]["field"]


def test_a_map_of_one_input_is_that_input():
    """The same shapes and weights as without a name."""
    named, alone = (
        spec_of(given, [conv(3, 2), FLATTEN, dense(3)]) for given in ({"image": (6, 5, 2)}, (6, 5, 2))
    )
    assert parse_spec(named).model.network == parse_spec(alone).model.network
    assert infer(named) == infer(alone)


DENSE = dense(3)
REFUSED: dict[str, tuple[Any, list[Layer], str]] = {
    "none": ({}, [DENSE], "model.input"),
    "too many": ({f"x{i}": (1,) for i in range(MAX_INPUTS + 1)}, [DENSE], "model.input"),
    "no shape": ({"a": ()}, [DENSE], "model.input.a"),
    "no length": ({"a": (2, 0)}, [DENSE], "model.input.a.1"),
    "no name": ({"a b": (2,)}, [DENSE], "model.input.a b"),
    **{
        f"called {name}": ({name: (2,)}, [DENSE], "model.input" + ("" if name == "input" else f".{name}"))
        for name in ("input", "x", "y", "w", "target", "loss", "correct")
    },
    "a layer's name": ({"a": (2,)}, [dense(2, name="a"), DENSE], "model.layers.0.name"),
    "which": ({"a": (2,), "b": (2,)}, [DENSE, dense(3, inputs=["b"])], "model.layers.0.inputs"),
    "unread": ({"a": (2,), "b": (2,)}, [dense(3, inputs=["a"])], "model.input.b"),
    "unknown": ({"a": (2,)}, [dense(3, inputs=["input"])], "model.layers.0.inputs.0"),
    "unlike": ({"a": (2,), "b": (3,)}, [{"type": "add", "inputs": ["a", "b"]}, DENSE], "model.layers.0.inputs.1"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_both(case: str):
    """The service and the page name the same field."""
    inputs, layers, field = REFUSED[case]
    assert both(spec_of(inputs, layers)) == (field, field)


def test_the_unread_input_is_named():
    """Also in words."""
    _, _, faults = check_spec(spec_of({"a": (2,), "b": (2,)}, [dense(3, inputs=["a"])]))
    assert [fault.message for fault in faults] == ["no layer reads b"]


def test_numbers_that_are_looked_up_are_not_normalised():
    """Other inputs are; where there are no others, nothing could be."""
    parse_spec(spec_of(normalize="standard"))
    assert "error" not in infer(spec_of(normalize="standard"))
    words = spec_of({"a": (3,)}, [FLATTEN, embedding(9, 4), FLATTEN, DENSE], normalize="minmax")
    assert both(words) == ("data.normalize", "data.normalize")


# ---- data sets -------------------------------------------------------------------------------------------------------


def arrays(rows: int = 5) -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {
        "image": random.normal(size=(rows, 6, 5, 2)),
        "words": random.integers(0, 9, (rows, 3)),
        "age": random.integers(1, 90, rows),
        "y": np.arange(rows),
    }


def read(kind: str, given: dict[str, Any]) -> list[NamedArray]:
    packed = npz(**given) if kind == "npz" else save({k: np.ascontiguousarray(v) for k, v in given.items()})
    return read_upload(io.BytesIO(packed), kind, SETTINGS, Columns())


def faults_of(kind: str, given: dict[str, Any]) -> list[Fault]:
    with pytest.raises(Invalid) as caught:
        read(kind, given)
    return [*caught.value.faults]


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_every_array_is_an_input_of_its_name(kind: str):
    """But y and w; each with its shape and statistics, a column as one number a row."""
    given = arrays() | {"w": np.ones(5)}
    found = {array.name: array for array in read(kind, given)}
    assert {name: (a.role, a.info.dtype, a.info.shape) for name, a in found.items()} == {
        "age": ("input", "float32", (5, 1)),
        "image": ("input", "float32", (5, 6, 5, 2)),
        "words": ("input", "float32", (5, 3)),
        "y": ("target", "int32", (5,)),
        "w": ("weight", "float32", (5,)),
    }
    assert found["words"].info.stats.integral
    assert found["words"].info.stats.max == given["words"].max()
    np.testing.assert_array_equal(found["image"].data, given["image"].astype(np.float32))


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_arrays_that_are_no_data_set(kind: str):
    """The array that is wrong is named, with what would be legal."""
    given = arrays()
    (fault,) = faults_of(kind, given | {"age": given["age"][:3]})
    assert (fault.field, fault.message, fault.legal) == ("age", "has 3 rows, image has 5", "5 rows")
    (fault,) = faults_of(kind, given | {"image": np.full((5, 2), np.nan)})
    assert fault.field == "image"
    (fault,) = faults_of(kind, {"y": given["y"]})
    assert (fault.field, fault.message) == ("file", "has no input x, only y")
    (fault,) = faults_of(kind, given | {"x": given["age"]})
    assert (fault.field, fault.legal) == ("file", "x alone, or inputs with names of their own")
    (fault,) = faults_of(kind, given | {"a b": given["age"], "loss": given["age"]})
    assert (fault.field, fault.value) == ("file", ["a b", "loss"])
    (fault,) = faults_of(kind, {f"a{i}": given["age"] for i in range(MAX_INPUTS + 1)})
    assert (fault.field, fault.legal) == ("file", f"at most {MAX_INPUTS}")


def infos(rows: int, **changes: ArrayInfo) -> dict[str, ArrayInfo]:
    found = {name: ArrayInfo("float32", (rows, *shape), PLAIN) for name, shape in INPUTS.items()}
    return found | {"y": ArrayInfo("float32", (rows, 3), PLAIN)} | changes


def test_data_that_does_not_fit():
    """A missing array, one too many, another shape, a number that is not there: each by its name."""
    spec = dict(parse_spec(spec_of()))

    def found(given: dict[str, ArrayInfo]) -> list[tuple[str, str | None]]:
        return [(fault.field, fault.legal) for fault in data_faults(spec, given)]

    assert found(infos(20)) == []
    lacking = {name: array for name, array in infos(20).items() if name != "plain"}
    assert found(lacking) == [("model.input.plain", "inputs named image, words")]
    alone = {"x": ArrayInfo("float32", (20, 4), PLAIN), "y": infos(20)["y"]}
    assert found(alone) == [("model.input", "a shape")], "other names are one fault, not one for each"
    assert found(infos(20, more=infos(20)["plain"])) == [
        ("model.input", "a map with image, words, plain, more")
    ]
    assert found(infos(20, plain=ArrayInfo("float32", (20, 5), PLAIN))) == [("model.input.plain", "[5]")]
    far = ArrayInfo("float32", (20, 3), Stats(0, 9, integral=True, row_sums_one=False))
    assert found(infos(20, words=far)) == [("model.layers.3.vocabulary", "at least 10")]
    assert found(infos(20, plain=ArrayInfo("float32", (20, 4), far.stats))) == []


# ---- cost and exports ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "weighted"), [(40, False), (33, True), (400_000, False)])
def test_memory_is_that_of_the_page(rows: int, weighted: bool):
    """Within twice what the page allocates, also where the data is streamed."""
    spec = parse_spec(spec_of(validation={"fraction": 0.25}))
    given = infos(rows) | ({"w": ArrayInfo("float32", (rows,), PLAIN)} if weighted else {})
    made = estimate(spec, given)
    data: dict[str, Any] = {
        "x": {name: {"shape": list(given[name].shape)} for name in INPUTS},
        "y": {"shape": list(given["y"].shape)},
        **({"weight": {"shape": [rows]}} if weighted else {}),
    }
    planned = estimates(spec.model_dump(), data)
    taken = max(exact["textureBytes"] for exact in planned)
    assert made.texture_bytes is not None
    assert taken <= made.texture_bytes <= 2 * taken
    for exact in planned:
        assert (made.parameters, made.total_steps) == (exact["parameters"], exact["totalSteps"])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    shapes=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple), min_size=1, max_size=8),
    rows=st.integers(2, 3000),
    batch=st.integers(1, 200),
)
@example([(700,), (9,), (2,), (9,), (1,), (3,), (2,)], 50, 16)
@example([(100,), (300,), (100,), (2,), (100,), (5,)], 50, 1)
@example([(1,), (8,), (1,), (3,), (1,)], 2, 1)
@example([(18, 27, 3), (33,), (100,), (3,), (1,), (1,), (33,)], 3, 1)
@example([(9,), (1,), (11, 4, 4), (300,), (700,)], 50, 64)
def test_memory_of_any_inputs(shapes: list[tuple[int, ...]], rows: int, batch: int):
    """Each read flat, all joined: within twice what the page allocates."""
    inputs = {f"i{number}": shape for number, shape in enumerate(shapes)}
    flats = [FLATTEN | {"name": f"f{number}", "inputs": [f"i{number}"]} for number in range(len(shapes))]
    joined = [{"type": "concat", "inputs": [str(flat["name"]) for flat in flats]}] if len(flats) > 1 else []
    spec = parse_spec(plain(cnn(inputs, [*flats, *joined, dense(3)], "mse", batch_size=min(batch, rows))))
    given = {name: ArrayInfo("float32", (rows, *shape), PLAIN) for name, shape in inputs.items()}
    made = estimate(spec, given | {"y": ArrayInfo("float32", (rows, 3), PLAIN)})
    data = {
        "x": {name: {"shape": [rows, *shape]} for name, shape in inputs.items()},
        "y": {"shape": [rows, 3]},
    }
    taken = max(exact["textureBytes"] for exact in estimates(spec.model_dump(), data))
    assert made.texture_bytes is not None
    assert taken <= made.texture_bytes <= 2 * taken


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("format_name", ["onnx", "tfjs"])
def test_exports_have_the_inputs_by_name(format_name: str, normalize: bool, tmp_path: Any):
    """As before normalisation; the numbers that are looked up as they are."""
    raw = spec_of()
    spec, tensors, x = parse_spec(raw), weights_of(raw), several_for(raw, 6)
    random = np.random.default_rng(2)
    for name in ("image", "plain") if normalize else ():
        offset, scale = tensors_of(name)
        tensors[offset], tensors[scale] = (
            random.normal(40, 3, x[name].shape[-1]),
            random.uniform(0.1, 2, x[name].shape[-1]),
        )
        x[name] = (x[name] / tensors[scale] + tensors[offset]).astype(np.float32)
    wanted = forward(raw, tensors, {name: normalized(values, tensors, name) for name, values in x.items()})
    got = (
        predicted_by_onnxruntime(to_onnx(spec, tensors), x)
        if format_name == "onnx"
        else predicted_by_tfjs(to_tfjs(spec, tensors), x, tmp_path)
    )
    assert np.abs(got - wanted).max() <= EXPORT_RTOL * np.abs(wanted).max()
