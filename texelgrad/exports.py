"""Weights and predictions in other formats, made once from the safetensors file and stored; the same weights give the same bytes."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from numpy.lib import format as npy_format
from numpy.typing import NDArray
from sqlalchemy import update

from texelgrad import artifacts
from texelgrad.db import Database
from texelgrad.errors import Fault, Invalid, NotFound
from texelgrad.models import Artifact
from texelgrad.normalize import lacks_normalization
from texelgrad.spec import JobSpec, parse_spec
from texelgrad.tensor_file import BLOCK_BYTES, Pieces, Tensors, opened_tensors, pieces_of

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip file can have
_CSV_VALUES = 1 << 16  # outputs that are text at once
Member = tuple[str, int, Pieces]
"""A file of a zip: its name, size in bytes, and content."""


def to_npz(_spec: JobSpec, tensors: Tensors) -> Pieces:
    """An npz file of the tensors, by name."""
    return _zip(_npy(name, tensor) for name, tensor in sorted(tensors.items()))


def _npy(name: str, tensor: NDArray[Any]) -> Member:
    header = io.BytesIO()
    npy_format.write_array_header_1_0(header, npy_format.header_data_from_array_1_0(tensor))
    size = header.tell() + tensor.nbytes
    return f"{name}.npy", size, chain([header.getvalue()], pieces_of(tensor))


def to_onnx(spec: JobSpec, tensors: Tensors) -> Pieces:
    """An ONNX file of the whole model."""
    from texelgrad import export_onnx

    return export_onnx.to_onnx(spec, tensors)


def to_tfjs(spec: JobSpec, tensors: Tensors) -> Pieces:
    """A zip file of the whole model for TensorFlow.js."""
    from texelgrad import export_tfjs

    files = export_tfjs.to_tfjs(spec, tensors)
    return _zip((name, len(data), iter([data])) for name, data in files)


def to_csv(_spec: JobSpec, tensors: Tensors) -> Pieces:
    """A line a row: each output in as few digits as give the same float32."""
    outputs = tensors["outputs"].reshape(len(tensors["outputs"]), -1)
    yield (",".join(f"output_{n}" for n in range(outputs.shape[1])) + "\n").encode()
    step = max(1, _CSV_VALUES // max(1, outputs.shape[1]))
    for start in range(0, len(outputs), step):
        yield "".join(",".join(map(str, row)) + "\n" for row in outputs[start : start + step]).encode()


_MAKERS: dict[str, Callable[[JobSpec, Tensors], Pieces]] = {"npz": to_npz, "onnx": to_onnx, "tfjs": to_tfjs}
FORMATS = ("safetensors", *_MAKERS)
_PREDICTION_MAKERS: dict[str, Callable[[JobSpec, Tensors], Pieces]] = {"npz": to_npz, "csv": to_csv}
PREDICTION_FORMATS = ("safetensors", *_PREDICTION_MAKERS)
SUFFIXES = {"tfjs": "tfjs.zip"}
"""Of file names; the format's own name for all others."""


def weights_artifact(db: Database, attempt_id: str, spec: dict[str, Any], format_name: str) -> Artifact:
    """The attempt's weights in one of FORMATS, of the job's spec; raises NotFound where it has none.

    Raises Invalid where the format has no form of a layer, Damaged where what it would be made from is not what was stored.
    """
    return _derived(db, attempt_id, "weights", spec, format_name, _MAKERS)


def predictions_artifact(db: Database, attempt_id: str, spec: dict[str, Any], format_name: str) -> Artifact:
    """The attempt's predictions in one of PREDICTION_FORMATS; raises NotFound where it has none."""
    return _derived(db, attempt_id, "predictions", spec, format_name, _PREDICTION_MAKERS)


def _derived(
    db: Database,
    attempt_id: str,
    kind: str,
    spec: dict[str, Any],
    format_name: str,
    makers: Mapping[str, Callable[[JobSpec, Tensors], Pieces]],
) -> Artifact:
    """An attempt's file of a kind, in a format that is made from it when it is first asked for."""
    with db.read() as session:
        source = artifacts.find_ready(session, attempt_id, kind)
        if format_name == "safetensors":
            return source
        try:
            return artifacts.find_ready(session, attempt_id, f"{kind}.{format_name}")
        except NotFound:
            pass
    with opened_tensors(db, source.id) as tensors:
        if kind == "weights" and format_name != "npz":
            _check_whole(spec, tensors, format_name)
        made = makers[format_name](parse_spec(spec), tensors)
        # Two requests at once may both store it: the bytes are the same.
        artifact_id = artifacts.write_pieces(db, source.owner_id, f"{kind}.{format_name}", made)
    with db.write() as session:
        session.execute(update(Artifact).where(Artifact.id == artifact_id).values(attempt_id=attempt_id))
        return session.get_one(Artifact, artifact_id)


def _check_whole(spec: dict[str, Any], tensors: Tensors, format_name: str) -> None:
    """A model that takes inputs as they are needs what normalises them; raises Invalid."""
    if lacks_normalization(spec, tensors):
        message = "can't be made: the weights lack input.offset, as an early version stored them"
        legal = "safetensors or npz with the job's normalization, or train again"
        raise Invalid([Fault("format", message, format_name, legal)])


def _zip(members: Iterable[Member]) -> Pieces:
    """A zip file without compression and dates, which would differ between machines; it is made in a temporary file."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, size, pieces in members:
                info = zipfile.ZipInfo(name, _EPOCH)
                info.file_size = size
                with archive.open(info, "w") as member:
                    for piece in pieces:
                        member.write(piece)
        file.seek(0)
        while block := file.read(BLOCK_BYTES):
            yield block
