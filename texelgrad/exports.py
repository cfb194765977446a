"""Weights in other formats, made once from the safetensors file and stored; the same weights give the same bytes."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from safetensors.numpy import load as load_safetensors
from sqlalchemy import update

from texelgrad import artifacts
from texelgrad.db import Database
from texelgrad.errors import NotFound
from texelgrad.models import Artifact

FORMATS = ("safetensors", "npz")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip file can have


def to_npz(tensors: dict[str, NDArray[Any]]) -> bytes:
    """An npz file of the tensors, by name; without compression and dates, which would differ between machines."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in sorted(tensors.items()):
            member = io.BytesIO()
            npy_format.write_array(member, np.ascontiguousarray(tensor), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), member.getvalue())
    return buffer.getvalue()


def weights_artifact(db: Database, attempt_id: str, format_name: str) -> Artifact:
    """The attempt's weights in one of FORMATS; raises NotFound where it has none."""
    with db.read() as session:
        source = artifacts.find_ready(session, attempt_id, "weights")
        if format_name == "safetensors":
            return source
        try:
            return artifacts.find_ready(session, attempt_id, f"weights.{format_name}")
        except NotFound:
            tensors = load_safetensors(artifacts.read_all(session, source.id))
    # Two requests at once may both store it: the bytes are the same.
    artifact_id = artifacts.write_pieces(db, source.owner_id, f"weights.{format_name}", [to_npz(tensors)])
    with db.write() as session:
        session.execute(update(Artifact).where(Artifact.id == artifact_id).values(attempt_id=attempt_id))
        return session.get_one(Artifact, artifact_id)
