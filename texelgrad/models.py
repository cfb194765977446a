"""The tables. Times are integer microseconds since 1970 UTC; ids are text (see domain.new_id). No queries here."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

CHUNK_BYTES = 1 << 20  # of an artifact
RESULTS = frozenset({"weights", "predictions"})
"""Kinds of artifacts that an attempt is made for: readable once it has succeeded."""

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

ID = String(32)


class Base(DeclarativeBase):
    """Names every constraint, so that a migration can change it on any database."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        int: BigInteger,
        str: Text,
        bytes: LargeBinary,
        dict[str, Any]: JSON(none_as_null=True),
        list[int]: JSON(none_as_null=True),
        list[str]: JSON(none_as_null=True),
    }


class Dataset(Base):
    """A named set of arrays of one owner; the same content is stored once an owner."""

    __tablename__ = "dataset"
    __table_args__ = (UniqueConstraint("owner_id", "sha256"), Index(None, "owner_id", "id"))

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner_id: Mapped[str]
    name: Mapped[str]
    sha256: Mapped[str]  # of the arrays' descriptions and bytes, in hex
    rows: Mapped[int]
    created_at: Mapped[int]


class DatasetArray(Base):
    """One array of a data set: raw little-endian bytes in C order, in one artifact."""

    __tablename__ = "dataset_array"

    dataset_id: Mapped[str] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    role: Mapped[str]  # input | target | weight
    dtype: Mapped[str]  # float32 | int32
    shape: Mapped[list[int]]  # rows first
    stats: Mapped[dict[str, Any]]  # min, max, integral, row_sums_one
    artifact_id: Mapped[str] = mapped_column(ForeignKey("artifact.id"))


class Job(Base):
    """One training run that somebody asked for."""

    __tablename__ = "job"
    __table_args__ = (
        Index(None, "owner_id", "id"),
        Index(None, "owner_id", "state"),
        Index("ix_job_claim", "queue", "state", "eligible_at"),
    )

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner_id: Mapped[str]
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("job.id"))  # retried or resumed from
    # The checkpoint of an ancestor that attempts continue while the job has none; another one where it proves damaged.
    resume_artifact_id: Mapped[str | None] = mapped_column(ForeignKey("artifact.id", use_alter=True))
    # What it begins with, or predicts with, instead of weights that its seed gives.
    weights_artifact_id: Mapped[str | None] = mapped_column(
        ForeignKey("artifact.id", use_alter=True), index=True
    )
    # Fitted by the page on the rows that train: kind, offset, scale.
    normalization: Mapped[dict[str, Any] | None]
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("dataset.id"), index=True)
    name: Mapped[str]
    spec_version: Mapped[int]
    spec: Mapped[dict[str, Any]]  # validated, defaults filled in
    queue: Mapped[str]
    needs_hardware: Mapped[bool]  # only a worker with a hardware renderer may claim it
    state: Mapped[str]
    cause: Mapped[str | None]  # of the last attempt that ended
    message: Mapped[str | None]
    failure: Mapped[dict[str, Any] | None]  # what the page reported besides
    max_attempts: Mapped[int]
    lost_attempts: Mapped[int] = mapped_column(default=0)  # that count against max_attempts
    environment_faults: Mapped[int] = mapped_column(default=0)
    event_seq: Mapped[int] = mapped_column(default=0)
    step: Mapped[int] = mapped_column(default=0)
    total_steps: Mapped[int | None]
    last_metrics: Mapped[dict[str, Any]] = mapped_column(default=dict)  # non-finite numbers as strings
    created_at: Mapped[int]
    eligible_at: Mapped[int]  # may be claimed from then on
    deadline_at: Mapped[int | None]  # aborted if still queued then
    started_at: Mapped[int | None]
    ended_at: Mapped[int | None]
    cancel_requested_at: Mapped[int | None]


class JobTag(Base):
    """One tag of a job, for filtering."""

    __tablename__ = "job_tag"
    __table_args__ = (Index(None, "name", "value"),)

    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class IdempotencyKey(Base):
    """What a POST under this key created; the same key with another body is refused."""

    __tablename__ = "idempotency_key"

    owner_id: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_sha256: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[int]


class Attempt(Base):
    """One try at a job by one worker; whoever holds its token while it is live may write to it."""

    __tablename__ = "attempt"
    __table_args__ = (UniqueConstraint("job_id", "number"), Index("ix_attempt_lease", "state", "lease_until"))

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner_id: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"))
    number: Mapped[int]  # within the job, from 1
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("attempt.id"))  # whose checkpoint it continues
    resumed_from_step: Mapped[int | None]
    not_bit_exact: Mapped[str | None]  # why a resumed run may differ in bits
    worker_id: Mapped[str]
    token: Mapped[str]
    lease_until: Mapped[int]
    state: Mapped[str]
    cause: Mapped[str | None]
    message: Mapped[str | None]
    created_at: Mapped[int]
    training_at: Mapped[int | None]
    ended_at: Mapped[int | None]
    backend: Mapped[str | None]
    renderer: Mapped[str | None]
    software: Mapped[bool | None]
    plan_key: Mapped[str | None]
    record: Mapped[dict[str, Any] | None]
    diagnostics: Mapped[dict[str, Any] | None]


class MetricChunk(Base):
    """Points of an attempt's curves: `steps` are uint32, `values` float64 with one row of `keys` a step."""

    __tablename__ = "metric_chunk"

    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    first_step: Mapped[int]
    last_step: Mapped[int]
    keys: Mapped[list[str]]
    steps: Mapped[bytes]
    values: Mapped[bytes]  # bytes, since SQLite turns a NaN in a column into NULL


class LogLine(Base):
    """A line of an attempt's log."""

    __tablename__ = "log_line"

    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[int]
    level: Mapped[str]
    message: Mapped[str]


class Event(Base):
    """Something that happened to a job; `seq` counts within the job from 1 without gaps."""

    __tablename__ = "event"

    job_id: Mapped[str] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[int]
    type: Mapped[str]
    data: Mapped[dict[str, Any]]


class Artifact(Base):
    """A file in chunks: weights, a checkpoint, or an array of a data set. Readable once `ready`."""

    __tablename__ = "artifact"
    __table_args__ = (Index(None, "attempt_id", "kind", "state"),)

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner_id: Mapped[str]
    attempt_id: Mapped[str | None] = mapped_column(ForeignKey("attempt.id", ondelete="CASCADE"))
    kind: Mapped[str]
    step: Mapped[int | None]  # of a checkpoint
    sha256: Mapped[str | None]  # in hex, once complete
    size: Mapped[int]  # in bytes
    chunk_size: Mapped[int]  # in bytes, of every chunk but the last
    state: Mapped[str]  # staged | ready | dropped
    created_at: Mapped[int]


class ArtifactChunk(Base):
    """One piece of an artifact, counted from 0."""

    __tablename__ = "artifact_chunk"

    artifact_id: Mapped[str] = mapped_column(ForeignKey("artifact.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    data: Mapped[bytes]


class Worker(Base):
    """A worker process as it last described itself."""

    __tablename__ = "worker"

    id: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str]
    pid: Mapped[int]
    queue: Mapped[str]
    state: Mapped[str]  # starting | idle | busy | draining | broken | stopped
    draining: Mapped[bool] = mapped_column(default=False)  # asked to take no more jobs
    engine_hash: Mapped[str | None]
    renderer: Mapped[str | None]
    gpu: Mapped[str | None]
    software: Mapped[bool | None]
    attempt_id: Mapped[str | None]  # the current one
    proof: Mapped[dict[str, Any] | None]  # the device record of the last proof
    proved_at: Mapped[int | None]
    fault: Mapped[str | None]  # why it is broken
    started_at: Mapped[int]
    seen_at: Mapped[int]


class Lease(Base):
    """Who is the only one to do something at present, such as the keeper."""

    __tablename__ = "lease"

    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    until: Mapped[int]
