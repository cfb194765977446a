"""Files of weights that jobs begin with: uploaded, found, and held against a model before anything is queued."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, cast

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from texelgrad import artifacts
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.domain import JobState
from texelgrad.errors import Fault, Invalid, NotFound
from texelgrad.layers.base import LayerBase
from texelgrad.models import Artifact
from texelgrad.normalize import keeps_float64, lacks_normalization
from texelgrad.quota import Quota, check_bytes, check_disk
from texelgrad.repository import current_attempt, get_job
from texelgrad.spec import Model
from texelgrad.spec_weights import FineTune, Predict

UPLOADED = "uploaded_weights"
"""Kind of the artifacts that POST /v1/weights makes."""
_MAX_HEADER = 4 << 20  # bytes
_MAX_TENSORS = 10_000
_BLOCK = 1 << 20  # bytes
_MAX = float(np.finfo(np.float32).max)
_DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}

Shapes = Mapping[str, tuple[int, ...]]


def store_weights(
    db: Database, settings: Settings, owner_id: str, file: IO[bytes], quota: Quota
) -> tuple[Artifact, Shapes]:
    """Keep a safetensors file of float32 or float64 tensors; raises Invalid with every fault, or TooMany."""
    file.seek(0, 2)
    size = file.tell()
    check_disk(db, settings, size)
    with db.write() as session:
        check_bytes(session, owner_id, quota, size)
    file.seek(0)
    shapes = _checked(file, size)
    file.seek(0)
    pieces = iter(lambda: file.read(_BLOCK), b"")
    artifact_id = artifacts.write_pieces(db, owner_id, UPLOADED, pieces)
    with db.read() as session:
        return session.get_one(Artifact, artifact_id), shapes


def find_weights(
    session: Session,
    owner_id: str,
    fine_tune: FineTune | None,
    predict: Predict | None,
    normalize: str | None = None,
) -> Artifact | Fault:
    """The file that a job is to begin with, or why there is none; `normalize` is its own data.normalize."""
    if predict is not None or (fine_tune is not None and fine_tune.job is not None):
        job_id = predict.job if predict else cast(FineTune, fine_tune).job
        field = "predict.job" if predict else "fine_tune.job"
        inputs_too = predict is not None or normalize == "inherit"
        return _of_job(session, owner_id, str(job_id), field, inputs_too=inputs_too)
    asked = cast(FineTune, fine_tune).weights
    if asked is None:
        return Fault("fine_tune", "needs one of job and weights", None, "job or weights")
    found = session.scalars(
        select(Artifact).where(
            Artifact.id == asked,
            Artifact.owner_id == owner_id,
            Artifact.kind == UPLOADED,
            Artifact.state == "ready",
        )
    ).one_or_none()
    legal = "an id that POST /v1/weights gave"
    return found or Fault("fine_tune.weights", "there is no such file", asked, legal)


def hold_weights(session: Session, artifact_id: str, field: str) -> None:
    """Keep a file from the sweep until the transaction ends; raises Invalid where it went since it was found."""
    query = select(Artifact.id).where(Artifact.id == artifact_id, Artifact.state == "ready")
    if session.scalars(query.with_for_update(read=True)).one_or_none() is None:
        raise Invalid(
            [Fault(field, "the file has been deleted meanwhile", artifact_id, "a file that is kept")]
        )


def _of_job(
    session: Session, owner_id: str, job_id: str, field: str, *, inputs_too: bool
) -> Artifact | Fault:
    legal = "a job that has succeeded"
    try:
        job = get_job(session, owner_id, job_id)
    except NotFound:
        return Fault(field, "there is no such job", job_id, legal)
    attempt = current_attempt(session, job_id)
    if job.state != JobState.SUCCEEDED or attempt is None:
        return Fault(field, f"is {job.state} and has no weights", job_id, legal)
    try:
        found = artifacts.find_ready(session, attempt.id, "weights")
    except NotFound:
        return Fault(field, "made predictions and has no weights", job_id, "a job that trained")
    if inputs_too and lacks_normalization(job.spec, shapes_of(session, found.id)):
        message = "normalised its inputs, and an early version stored its weights without saying how"
        return Fault(field, message, job_id, "a job trained again")
    return found


def shapes_of(session: Session, artifact_id: str) -> Shapes:
    """The tensors of a stored file, from its header."""
    start = b"".join(artifacts.open_range(session, artifact_id, 0, 8))
    (size,) = struct.unpack("<Q", start)
    header: dict[str, Any] = json.loads(b"".join(artifacts.open_range(session, artifact_id, 8, 8 + size)))
    return {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}


def fit_faults(model: Model, shapes: Shapes, layers: Sequence[str] | None, field: str) -> Iterator[Fault]:
    """Where the tensors of a file do not fit the layers that are to begin with them; all that have some where None."""
    found = False
    for layer, wanted in tensors_of(model):
        name = str(layer.name)
        place = f"{field}.layers.{layers.index(name)}" if layers and name in layers else field
        there = [tensor for tensor in wanted if tensor in shapes]
        if not wanted or (name not in layers if layers is not None else not there):
            continue
        found = True
        for tensor, shape in wanted.items():
            if tensor not in shapes:
                yield Fault(place, f"the file has no {tensor}", tensor, f"{tensor} {list(shape)}")
            elif shapes[tensor] != shape:
                message = f"{tensor} is {list(shapes[tensor])} in the file, {list(shape)} in the model"
                yield Fault(place, message, list(shapes[tensor]), f"{list(shape)}, or name other layers")
    if not found:
        legal = "a file with tensors named <layer>.kernel, <layer>.bias, ..."
        yield Fault(field, "the file has tensors of no layer of this model", sorted(shapes)[:20], legal)


def tensors_of(model: Model) -> Iterator[tuple[LayerBase, Shapes]]:
    """Each layer, and the tensors that it trains or keeps, as files name them."""
    for shape in model.network.layers:
        layer = model.layers[shape.index]
        yield layer, {f"{layer.name}.{part}": size for part, size in layer.tensors(shape).items()}


def _checked(file: IO[bytes], size: int) -> Shapes:
    """The shapes of an untrusted file whose every byte belongs to a tensor of finite numbers, within float32 where layers begin with them."""
    header, start = _header(file, size)
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if not 1 <= len(entries) <= _MAX_TENSORS:
        raise _refused(f"has {len(entries)} tensors", f"1 to {_MAX_TENSORS}")
    places: list[tuple[int, int, str, np.dtype[Any]]] = []
    shapes: dict[str, tuple[int, ...]] = {}
    for name, entry in entries.items():
        try:
            dtype, shape, (begin, end) = _DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
            whole = all(type(number) is int and 0 <= number < 2**53 for number in (*shape, begin, end))
        except (KeyError, TypeError, ValueError):
            raise _refused(f"{name[:100]} is no tensor of F32 or F64", "F32, F64") from None
        if not whole or end - begin != math.prod(shape) * dtype.itemsize:
            raise _refused(f"{name[:100]} has a shape that does not fit its bytes", None)
        places.append((begin, end, name, dtype))
        shapes[name] = tuple(shape)
    last = max(end for _, end, _, _ in places)
    if start + last != size:
        raise _refused(f"has {size - start} bytes of tensors, its header says {last}", None)
    at = 0
    for begin, end, name, dtype in sorted(places):
        if begin != at:
            raise _refused("has tensors that overlap, or gaps between them", None)
        file.seek(start + begin)
        for left in range(end - begin, 0, -_BLOCK):
            values = np.frombuffer(file.read(min(left, _BLOCK)), dtype)
            if not np.isfinite(values).all():
                raise _refused(f"{name[:100]} has values that are not finite", None)
            if (largest := float(np.abs(values).max(initial=0))) > _MAX and not keeps_float64(name):
                raise _refused(f"{name[:100]} has values beyond float32", "up to 3.4e38", largest)
        at = end
    return shapes


def _header(file: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    try:
        start = file.read(8)
        (length,) = struct.unpack("<Q", start)
        if start.startswith(b"PK"):
            raise _refused("is a zip file, as npz files are", None)
        if not 2 <= length <= min(_MAX_HEADER, size - 8):
            message = f"is no safetensors file: its header would have {length} of {size} bytes"
            raise _refused(message, f"safetensors with a header of at most {_MAX_HEADER} bytes")
        header = json.loads(file.read(length))
    except (struct.error, ValueError, RecursionError) as error:
        raise _refused("is no safetensors file: it has no header", None) from error
    if not isinstance(header, dict):
        raise _refused("has a header that is no object", None)
    return cast(dict[str, Any], header), 8 + length


def _refused(message: str, legal: str | None, value: float | None = None) -> Invalid:
    return Invalid([Fault("file", message, value, legal or "safetensors of F32 or F64")])
