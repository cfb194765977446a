"""Data sets: what is stored of them besides their bytes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import IdPrefix, new_id
from texelgrad.errors import Conflict, NotFound
from texelgrad.models import Dataset, DatasetArray, Job
from texelgrad.shapes import ArrayInfo, Stats

_SAME = select(Dataset.id).where(
    Dataset.owner_id == bindparam("owner"), Dataset.sha256 == bindparam("sha256")
)


def create_dataset(
    session: Session,
    owner_id: str,
    name: str,
    sha256: str,
    arrays: Sequence[tuple[str, str, ArrayInfo, str]],
    dataset_id: str | None = None,
) -> Dataset:
    """Note a data set whose arrays are stored: (name, role, description, artifact id) each; with an id of its own."""
    dataset = Dataset(
        id=dataset_id or new_id(IdPrefix.DATASET),
        owner_id=owner_id,
        name=name,
        sha256=sha256,
        rows=arrays[0][2].rows,
        created_at=now_us(session),
    )
    session.add(dataset)
    session.flush()
    for array_name, role, info, artifact_id in arrays:
        session.add(
            DatasetArray(
                dataset_id=dataset.id,
                name=array_name,
                role=role,
                dtype=info.dtype,
                shape=list(info.shape),
                stats=vars(info.stats),
                artifact_id=artifact_id,
            )
        )
    session.flush()
    return dataset


def find_same(session: Session, owner_id: str, sha256: str) -> str | None:
    """The id of the owner's data set with this content."""
    return session.scalars(_SAME, {"owner": owner_id, "sha256": sha256}).one_or_none()


def get_dataset(session: Session, owner_id: str, dataset_id: str) -> Dataset:
    """One data set; raises NotFound, also where another owner has it."""
    dataset = session.get(Dataset, dataset_id)
    if dataset is None or dataset.owner_id != owner_id:
        raise NotFound(f"there is no data set {dataset_id}")
    return dataset


def list_datasets(
    session: Session, owner_id: str, limit: int, before: str | None = None, name: str | None = None
) -> Sequence[Dataset]:
    """At most `limit` data sets, newest first, older than the data set `before`; of one name or of all."""
    query = select(Dataset).where(Dataset.owner_id == owner_id)
    if before is not None:
        query = query.where(Dataset.id < before)
    if name is not None:
        query = query.where(Dataset.name == name)
    return session.scalars(query.order_by(Dataset.id.desc()).limit(limit)).all()


def delete_dataset(session: Session, owner_id: str, dataset_id: str) -> None:
    """Delete a data set that no job uses; the keeper removes the bytes bit by bit. Raises NotFound or Conflict."""
    dataset = get_dataset(session, owner_id, dataset_id)
    users = session.scalars(select(Job.id).where(Job.dataset_id == dataset_id).limit(1)).all()
    if users:
        raise Conflict(f"data set {dataset_id} is used by job {users[0]}: delete the jobs that use it first")
    session.delete(dataset)
    session.flush()


def arrays_of(session: Session, dataset_id: str) -> Sequence[DatasetArray]:
    """The arrays of a data set, by name."""
    query = select(DatasetArray).where(DatasetArray.dataset_id == dataset_id).order_by(DatasetArray.name)
    return session.scalars(query).all()


def array_infos(session: Session, dataset_id: str | None) -> dict[str, ArrayInfo]:
    """The descriptions of a data set's arrays, by name; none of none."""
    return {
        array.name: ArrayInfo(array.dtype, tuple(array.shape), Stats(**array.stats))
        for array in (arrays_of(session, dataset_id) if dataset_id else ())
    }
