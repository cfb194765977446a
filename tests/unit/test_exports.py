"""Exported models predict what the net predicts: ONNX in onnxruntime, TensorFlow.js in TensorFlow.js."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from texelgrad import export_onnx, export_onnx_file, export_tfjs, exports
from texelgrad.errors import Invalid
from texelgrad.inputs import inputs_of
from texelgrad.layers import Layer
from texelgrad.layers.base import Activation
from texelgrad.normalize import normalized
from texelgrad.spec import JobSpec, parse_spec

from tests.kernels.cnns import nodes
from tests.kernels.nets import Inputs, forward
from tests.node import ROOT, node_program
from tests.tolerances import EXPORT_RTOL

Tensors = dict[str, NDArray[Any]]
DENSE = {"type": "dense", "units": 3}
FLAT = {"type": "flatten"}

NETS: dict[str, tuple[list[int], list[dict[str, Any]]]] = {
    "dense": ([5], [{"type": "dense", "units": 7, "activation": "relu"}, {"type": "dense", "units": 4, "activation": "tanh"}, {**DENSE, "activation": "sigmoid"}]),
    "no bias": ([5], [{"type": "dense", "units": 7, "use_bias": False}, {**DENSE, "use_bias": False}]),
    "flat": ([2, 3], [FLAT, DENSE]),
    "valid": ([9, 7, 2], [{"type": "conv2d", "filters": 5, "kernel": [3, 2], "activation": "relu"}, {"type": "max_pool2d", "size": 2}, FLAT, DENSE]),
    "same": ([9, 8, 3], [{"type": "conv2d", "filters": 4, "kernel": [4, 3], "stride": [2, 1], "padding": "same"}, {"type": "max_pool2d", "size": [3, 2], "stride": 2, "padding": "same"}, FLAT, DENSE]),
    "same, long strides": ([7, 8, 1], [{"type": "conv2d", "filters": 2, "kernel": 2, "stride": 3, "padding": "same", "use_bias": False}, FLAT, DENSE]),
    "explicit": ([6, 6, 2], [{"type": "conv2d", "filters": 3, "kernel": 3, "padding": [[2, 0], [1, 3]], "dilation": [2, 1]}, {"type": "conv2d", "filters": 3, "kernel": 2, "activation": "tanh"}, FLAT, DENSE]),
    "explicit pooling": ([6, 5, 2], [{"type": "max_pool2d", "size": [3, 2], "stride": [2, 1], "padding": [[1, 2], [0, 1]]}, FLAT, DENSE]),
    "groups": ([5, 5, 4], [{"type": "conv2d", "filters": 6, "kernel": 3, "groups": 2, "activation": "relu"}, FLAT, DENSE]),
    "depthwise": ([6, 5, 3], [{"type": "conv2d", "filters": 6, "kernel": [2, 3], "groups": 3, "padding": "same", "stride": 2}, FLAT, DENSE]),
    "embedding": ([7], [{"type": "embedding", "vocabulary": 9, "units": 4}, {"type": "conv1d", "filters": 3, "kernel": 2, "activation": "relu"}, FLAT, DENSE]),
    "sequence": ([12, 3], [{"type": "conv1d", "filters": 4, "kernel": 3, "stride": 2, "padding": "same", "activation": "relu"}, {"type": "conv1d", "filters": 5, "kernel": 2, "dilation": 2}, FLAT, DENSE]),
    "sequence, explicit": ([12, 4], [{"type": "conv1d", "filters": 6, "kernel": 3, "padding": [2, 0], "groups": 2}, FLAT, DENSE]),
    "transposed": ([4, 3, 2], [{"type": "conv2d_transpose", "filters": 3, "kernel": [3, 4], "stride": [2, 1]}, {"type": "conv2d_transpose", "filters": 2, "kernel": 3, "stride": 2, "padding": "same", "activation": "relu"}, FLAT, DENSE]),
    "transposed, short": ([3, 3, 2], [{"type": "conv2d_transpose", "filters": 3, "kernel": 1, "stride": 3}, {"type": "conv2d_transpose", "filters": 2, "kernel": [1, 2], "stride": 2, "padding": "same"}, FLAT, DENSE]),
    "transposed, explicit": ([3, 4, 2], [{"type": "conv2d_transpose", "filters": 3, "kernel": 3, "stride": 2, "padding": [[1, 2], [0, 1]]}, {"type": "conv2d_transpose", "filters": 2, "kernel": [1, 2], "stride": 2, "padding": [[1, 0], [0, 1]]}, FLAT, DENSE]),
    "transposed, dilated": ([3, 4, 2], [{"type": "conv2d_transpose", "filters": 3, "kernel": [2, 3], "stride": [1, 2], "dilation": [2, 1], "padding": "same"}, FLAT, DENSE]),
    "batch norm": ([5, 4, 3], [{"type": "conv2d", "filters": 4, "kernel": 2}, {"type": "batch_norm", "activation": "relu", "eps": 0.01}, FLAT, {"type": "dense", "units": 5}, {"type": "batch_norm"}, DENSE]),
    "layer norm": ([5, 4, 3], [{"type": "layer_norm"}, {"type": "conv2d", "filters": 4, "kernel": 2}, {"type": "layer_norm", "eps": 0.1}, FLAT, {"type": "dense", "units": 5}, {"type": "layer_norm", "activation": "tanh"}, DENSE]),
    "norms of flattened images": ([5, 4, 3], [{"type": "conv2d", "filters": 4, "kernel": 2}, FLAT, {"type": "layer_norm"}, {"type": "group_norm", "groups": 3, "activation": "tanh"}, {"type": "batch_norm"}, DENSE]),
    "group norm": ([5, 4, 6], [{"type": "group_norm", "groups": 3}, {"type": "conv2d", "filters": 4, "kernel": 2}, {"type": "group_norm", "groups": 2, "activation": "relu"}, FLAT, {"type": "dense", "units": 8}, {"type": "group_norm", "groups": 2}, DENSE]),
    "dropout": ([5], [{"type": "dropout", "rate": 0.5}, DENSE, {"type": "dropout", "rate": 0.2}]),
    "dropout beside": ([5], [
        {"type": "dense", "name": "a", "units": 3}, {"type": "dropout", "name": "b", "rate": 0.5}, {"type": "activation", "name": "c", "function": "linear"},
        {"type": "add", "name": "d", "inputs": ["a", "b", "c"]}, {"type": "multiply", "inputs": ["d", "a", "b"]}]),
    "mean": ([9, 8, 3], [{"type": "avg_pool2d", "size": [4, 3], "stride": [2, 1], "padding": "same"}, {"type": "conv2d", "filters": 4, "kernel": 2}, {"type": "avg_pool2d", "size": 2}, FLAT, DENSE]),
    "mean, explicit": ([6, 5, 2], [{"type": "avg_pool2d", "size": [3, 2], "stride": [2, 1], "padding": [[1, 2], [0, 1]]}, FLAT, DENSE]),
    "mean of sequences": ([12, 3], [{"type": "avg_pool1d", "size": 3, "stride": 2, "padding": "same"}, {"type": "conv1d", "filters": 4, "kernel": 2}, {"type": "avg_pool1d", "size": 2}, FLAT, DENSE]),
    "largest of sequences": ([13, 3], [{"type": "max_pool1d", "size": 4, "stride": 3, "padding": "same"}, {"type": "conv1d", "filters": 4, "kernel": 2}, {"type": "max_pool1d", "size": 2, "stride": 1}, FLAT, DENSE]),
    "sequence pooling, explicit": ([9, 2], [{"type": "max_pool1d", "size": 3, "padding": [1, 2]}, {"type": "avg_pool1d", "size": 2, "padding": [0, 1]}, FLAT, DENSE]),
    **{f"{kind} {axes}d": ([7, 6, 3][3 - axes - 1:], [{"type": f"conv{axes}d", "filters": 4, "kernel": 2}, {"type": f"{kind}{axes}d"}, DENSE]) for kind in ("global_max_pool", "global_avg_pool") for axes in (1, 2)},
    "joins": ([6, 4, 2], [
        {"type": "conv2d", "name": "a", "filters": 2, "kernel": 3, "padding": "same"},
        {"type": "multiply", "name": "b", "inputs": ["a", "input", "a"], "activation": "tanh"},
        {"type": "multiply", "name": "c", "inputs": ["a", "a"]},
        {"type": "concat", "name": "d", "inputs": ["b", "a", "input"]},
        {"type": "concat", "name": "e", "inputs": ["a", "c"]},
        {"type": "flatten", "name": "f"},
        {"type": "flatten", "name": "g", "inputs": ["d"]},
        {"type": "concat", "inputs": ["f", "g"]}, DENSE]),
    "moves": ([5, 6, 2], [
        {"type": "zero_pad2d", "padding": [[1, 0], [2, 3]]}, {"type": "conv2d", "filters": 4, "kernel": 2},
        {"type": "upsample2d", "size": [2, 3]}, {"type": "crop2d", "cropping": [[1, 0], [2, 1]]}, {"type": "conv2d", "filters": 2, "kernel": 1},
        {"type": "crop2d", "cropping": 1}, {"type": "zero_pad2d", "padding": 1}, {"type": "reshape", "shape": [27, 18]},
        {"type": "conv1d", "filters": 2, "kernel": 3}, FLAT, DENSE]),
    "graph": ([6, 6, 2], [
        {"type": "conv2d", "name": "a", "filters": 3, "kernel": 3, "padding": "same", "activation": "relu"},
        {"type": "conv2d", "name": "b", "filters": 3, "kernel": 1, "inputs": ["input"]},
        {"type": "add", "name": "c", "inputs": ["a", "b", "a"], "activation": "relu"},
        FLAT, DENSE]),
}  # fmt: skip
TFJS_REFUSES = {
    "explicit pooling": "explicit padding",
    "mean, explicit": "explicit padding",
    "sequence pooling, explicit": "explicit padding",
    "groups": "groups of several channels",
    "sequence, explicit": "in groups",
    "transposed, dilated": "with a dilation",
}


def to_npz(spec: JobSpec, tensors: Tensors) -> bytes:
    return b"".join(exports.to_npz(spec, tensors))


def to_onnx(spec: JobSpec, tensors: Tensors) -> bytes:
    return b"".join(exports.to_onnx(spec, tensors))


def to_tfjs(spec: JobSpec, tensors: Tensors) -> bytes:
    return b"".join(exports.to_tfjs(spec, tensors))


def spec_of(net: str) -> JobSpec:
    """The net, trained on mean squares."""
    shape, layers = NETS[net]
    return spec_for(shape, layers)


def spec_for(shape: list[int], layers: list[dict[str, Any]]) -> JobSpec:
    raw = {"loss": "mse", "optimizer": {"type": "sgd", "lr": 0.1}, "train": {"steps": 1}}
    return parse_spec({**raw, "model": {"input": shape, "layers": layers}})


def made(spec: JobSpec, *, normalize: bool) -> tuple[Tensors, NDArray[np.float32], Any]:
    """Weights that are not small, some rows, and what float64 predicts for them."""
    random = np.random.default_rng(4)
    dumped = spec.model_dump(mode="json")
    tensors: Tensors = {}
    for node in nodes(dumped):
        for name, shape in node.weights.items():
            scale = 1 / np.sqrt(np.prod(shape[:-1])) if name.endswith("kernel") else 1
            values = scale * random.normal(size=shape)
            tensors[name] = (np.abs(values) + 0.1 if name.endswith("var") else values).astype(np.float32)
    shape = inputs_of(spec.model.input)["input"]
    x = random.normal(size=(6, *shape)).astype(np.float32)
    if spec.model.layers[0].type == "embedding":
        x = random.integers(0, spec.model.layers[0].vocabulary, x.shape).astype(np.float32)
        normalize = False
    if normalize:
        channels = shape[-1]
        tensors["input.offset"] = random.normal(40, 3, channels)
        tensors["input.scale"] = random.uniform(0.1, 2, channels)
        x = (x / tensors["input.scale"] + tensors["input.offset"]).astype(np.float32)
    return tensors, x, forward(dumped, tensors, normalized(x, tensors))


def by_name(x: Inputs) -> dict[str, NDArray[Any]]:
    """What an exported model is fed: an input without a name is `x`."""
    return {**x} if isinstance(x, Mapping) else {"x": x}


def predicted_by_onnxruntime(file: bytes, x: Inputs) -> NDArray[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["y"], by_name(x))[0])


def predicted_by_tfjs(packed: bytes, x: Inputs, folder: Path) -> NDArray[Any]:
    """What TensorFlow.js's own loader and CPU backend make of it."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(folder)
    given = {name: {"shape": each.shape, "data": each.ravel().tolist()} for name, each in by_name(x).items()}
    (folder / "x.json").write_text(json.dumps(given))
    command = [node_program(), str(ROOT / "tests/unit/tfjs_probe.mjs"), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return np.array(answer["data"]).reshape(answer["shape"])


def assert_close(found: NDArray[Any], expected: NDArray[Any]) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXPORT_RTOL * np.abs(expected).max())


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("net", NETS)
def test_onnx_predicts_the_same(net: str, normalize: bool):
    """In onnxruntime, from inputs as they were before normalisation; the file is a valid one, and always the same."""
    spec = spec_of(net)
    tensors, x, expected = made(spec, normalize=normalize)
    file = to_onnx(spec, tensors)
    onnx.checker.check_model(onnx.load_model_from_string(file), full_check=True)
    assert_close(predicted_by_onnxruntime(file, x), expected)
    assert to_onnx(spec_of(net), dict(reversed(tensors.items()))) == file


@pytest.mark.parametrize("net", NETS)
def test_tfjs_predicts_the_same(net: str, tmp_path: Path):
    """Loaded by tf.loadLayersModel; what Keras can't say is refused."""
    spec = spec_of(net)
    tensors, x, expected = made(spec, normalize=net != "flat")
    if words := TFJS_REFUSES.get(net):
        with pytest.raises(Invalid, match=words) as caught:
            to_tfjs(spec, tensors)
        assert caught.value.faults[0].field == "format"
        return
    packed = to_tfjs(spec, tensors)
    assert_close(predicted_by_tfjs(packed, x, tmp_path), expected)
    assert to_tfjs(spec_of(net), dict(reversed(tensors.items()))) == packed


@pytest.mark.parametrize("kind", [kind for kind in Activation.__args__ if kind != "linear"])
def test_activations(kind: str, tmp_path: Path):
    """Each is the engine's function, on values of both signs and around its corners."""
    spec = spec_for([6], [{"type": "dense", "units": 6, "activation": kind}, {"type": "dense", "units": 6}])
    eye = np.eye(6, dtype=np.float32)
    tensors = {"dense_1.kernel": 4 * eye, "dense_2.kernel": eye}
    tensors |= {f"dense_{number}.bias": np.zeros(6, np.float32) for number in (1, 2)}
    x = np.linspace(-2, 2, 60).astype(np.float32).reshape(10, 6)
    dumped = spec.model_dump(mode="json")
    expected = forward(dumped, tensors, x)
    assert_close(predicted_by_onnxruntime(to_onnx(spec, tensors), x), expected)
    if kind in ("hard_sigmoid", "hard_swish"):
        with pytest.raises(Invalid, match=f"activation is {kind}"):
            to_tfjs(spec, tensors)
    else:
        assert_close(predicted_by_tfjs(to_tfjs(spec, tensors), x, tmp_path), expected)


@pytest.mark.parametrize("format_name", ["onnx", "tfjs"])
def test_layers_without_a_form_are_named(format_name: str, monkeypatch: pytest.MonkeyPatch):
    """Whoever adds a type of layer and forgets the exporters gets an answer that says so."""
    module = {"onnx": export_onnx, "tfjs": export_tfjs}[format_name]
    monkeypatch.delitem(module.LAYERS, "flatten")
    spec = spec_of("valid")
    tensors, _, _ = made(spec, normalize=False)
    with pytest.raises(Invalid) as caught:
        {"onnx": to_onnx, "tfjs": to_tfjs}[format_name](spec, tensors)
    (fault,) = caught.value.faults
    assert (fault.field, fault.value) == ("format", format_name)
    assert fault.message == "has no form of flatten_1, a layer flatten (model.layers.2)"


def test_a_scale_beyond_float32_is_no_tfjs_model():
    """It normalises in float32; ONNX does so in float64."""
    spec = spec_for([2], [{"type": "dense", "units": 1}])
    tensors = {
        "dense_1.kernel": np.ones((2, 1), np.float32),
        "dense_1.bias": np.zeros(1, np.float32),
        "input.offset": np.zeros(2),
        "input.scale": np.array([1.0, 1e40]),
    }
    with pytest.raises(Invalid, match="input.scale has 1e.40, beyond the float32 of TensorFlow.js"):
        to_tfjs(spec, tensors)
    tiny = np.array([[2, 3e-40]], np.float32)
    assert predicted_by_onnxruntime(to_onnx(spec, tensors), tiny)[0, 0] == pytest.approx(5, rel=1e-5)


def test_every_type_of_layer_has_a_form():
    """In either format; each is exported above."""
    (union, _) = get_args(Layer)
    kinds = {get_args(layer.model_fields["type"].annotation)[0] for layer in get_args(union)}
    assert kinds - set(export_onnx.LAYERS) == set()
    assert kinds - set(export_tfjs.LAYERS) == set()
    assert {layer["type"] for _, layers in NETS.values() for layer in layers} | {"activation"} == kinds


def test_large_weights_come_in_shards(tmp_path: Path):
    """Of 4 MiB, which the loader puts together again."""
    spec = spec_for([1200], [{"type": "dense", "units": 1000}, {"type": "dense", "units": 2}])
    tensors, x, expected = made(spec, normalize=False)
    packed = to_tfjs(spec, tensors)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        names = archive.namelist()
        assert names == ["model.json", "group1-shard1of2.bin", "group1-shard2of2.bin"]
        assert archive.getinfo(names[1]).file_size == 4 << 20
    assert_close(predicted_by_tfjs(packed, x, tmp_path), expected)


def test_npz_has_the_tensors():
    spec = spec_of("dense")
    tensors, _, _ = made(spec, normalize=True)
    with np.load(io.BytesIO(to_npz(spec, tensors))) as packed:
        assert set(packed.files) == set(tensors)
        assert all(np.array_equal(packed[name], tensor) for name, tensor in tensors.items())


def test_an_onnx_file_that_no_reader_takes(monkeypatch: pytest.MonkeyPatch):
    """Beyond 2 GiB, which is what their message holds: refused with the other formats, before a byte is written."""
    spec = spec_of("dense")
    tensors, _, _ = made(spec, normalize=False)
    size = len(to_onnx(spec, tensors))
    monkeypatch.setattr(export_onnx_file, "_MAX_BYTES", size - 100)
    with pytest.raises(Invalid, match="more than an ONNX file holds"):
        exports.to_onnx(spec, tensors)
