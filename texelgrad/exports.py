"""Weights in other formats, made once from the safetensors file and stored; the same weights give the same bytes."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors
from sqlalchemy import update

from texelgrad import artifacts
from texelgrad.db import Database
from texelgrad.errors import NotFound
from texelgrad.models import Artifact

FORMATS = ("safetensors", "npz")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip file can have


def with_normalization(
    tensors: dict[str, NDArray[Any]], normalization: dict[str, Any] | None
) -> dict[str, NDArray[Any]]:
    """The tensors, and what inputs must go through before the first layer: (x - input.offset) * input.scale.

    No layer can be called so that its weights had these names: they end in kernel and bias.
    """
    if normalization is None:
        return tensors
    return tensors | {
        f"input.{name}": np.array(normalization[name], np.float64) for name in ("offset", "scale")
    }


def to_npz(tensors: dict[str, NDArray[Any]]) -> bytes:
    """An npz file of the tensors, by name; without compression and dates, which would differ between machines."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in sorted(tensors.items()):
            member = io.BytesIO()
            npy_format.write_array(member, np.ascontiguousarray(tensor), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), member.getvalue())
    return buffer.getvalue()


def weights_artifact(
    db: Database, attempt_id: str, format_name: str, normalization: dict[str, Any] | None = None
) -> Artifact:
    """The attempt's weights in one of FORMATS, with what normalises its inputs; raises NotFound where it has none."""
    with db.read() as session:
        source = artifacts.find_ready(session, attempt_id, "weights")
        if format_name == "safetensors" and normalization is None:
            return source
        try:
            return artifacts.find_ready(session, attempt_id, f"weights.{format_name}")
        except NotFound:
            tensors = load_safetensors(artifacts.read_all(session, source.id))
    whole = with_normalization(tensors, normalization)
    packed = to_npz(whole) if format_name == "npz" else save_safetensors(whole)
    # Two requests at once may both store it: the bytes are the same.
    artifact_id = artifacts.write_bytes(db, source.owner_id, f"weights.{format_name}", packed)
    with db.write() as session:
        session.execute(update(Artifact).where(Artifact.id == artifact_id).values(attempt_id=attempt_id))
        return session.get_one(Artifact, artifact_id)
