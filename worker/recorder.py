"""The attempt's port into the database: what the page sends becomes rows, each write fenced by the attempt's token."""

from __future__ import annotations

import json
import logging
import math
import struct
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import IO, Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from typing_extensions import override

from texelgrad import artifacts, repository
from texelgrad.db import Database
from texelgrad.domain import AttemptState, Cause
from texelgrad.errors import Damaged, Fault, Fenced, Invalid
from texelgrad.inputs import inputs_of
from texelgrad.losses import loss_type
from texelgrad.models import Artifact
from texelgrad.repository import Claim, DataArray, Resume, datasets
from texelgrad.shapes import estimate
from texelgrad.spec import parse_spec
from texelgrad.target_scale import scale_warnings
from worker.port import AttemptPort, Metrics

_log = logging.getLogger(__name__)
_ITEM_BYTES = 4  # of float32 and int32
_PIECE_BYTES = 1 << 20
_CHECKPOINT_COPIES = 3  # of each parameter: itself, and what an optimizer keeps of it
_NORMALIZATION_BYTES = 16  # offset and scale, float64, of each feature or channel
_HEADER_BYTES = 4 << 20  # names, shapes and the spec
_MAX_LINES = 1000  # of one attempt's log
_ORDER = (AttemptState.STARTING, AttemptState.TRAINING, AttemptState.SAVING)

Emit = Callable[..., None]
"""Reports an event to the supervisor: its name, and fields that JSON can hold."""


class Recorder(AttemptPort):
    """Serves one claim once `begin` gave it; before that, the page finds no job."""

    def __init__(self, db: Database, emit: Emit, *, allow_software: bool) -> None:
        self._db = db
        self._emit = emit
        self._allow_software = allow_software
        self._claim: Claim | None = None
        self._limit_bytes: dict[str, int] = {}
        self._checks: dict[str, artifacts.Check] = {}  # of the data, by the names of its arrays
        self._resumed_key: str | None = None
        self._checkpoint_key: str | None = None
        self._state = AttemptState.STARTING
        self._begun_s = self._handed_over_s = 0.0  # of the monotonic clock
        self._lines = 0
        self._lock = threading.Lock()

    def begin(self, claim: Claim) -> None:
        """Serve this claim, whose attempt is `starting`."""
        self._begun_s = time.monotonic()
        self._claim = claim
        spec = parse_spec(claim.spec)
        parameters = _ITEM_BYTES * estimate(spec, None).parameters
        inputs = inputs_of(spec.model.input).values()
        normalization = _NORMALIZATION_BYTES * sum(shape[-1] for shape in inputs)
        outputs = math.prod(spec.model.network.output)
        rows = max((array.shape[0] for array in claim.data), default=0)
        self._limit_bytes = {
            "predictions": _ITEM_BYTES * rows * outputs + _HEADER_BYTES,
            "weights": parameters + normalization + _HEADER_BYTES,
            # Early stopping keeps the best weights beside the last.
            "checkpoint": (_CHECKPOINT_COPIES + 1) * parameters + _HEADER_BYTES,
        }

    @override
    def job(self) -> dict[str, Any] | None:
        claim = self._claim
        if claim is None:
            return None
        self._handed_over_s = time.monotonic()
        self._emit("progress")
        allowed: bool | None = claim.spec["allow_software"]
        resume = None
        if claim.resume:
            resume = {"url": "resume", "step": claim.resume.step, "measured": claim.resume.measured}
        return {
            "job_id": claim.job_id,
            "attempt_id": claim.attempt_id,
            "spec": claim.spec,
            "data": {f"{role}s": _describe(claim.data, role) for role in ("input", "target", "weight")},
            "resume": resume,
            "initial": {"url": "initial"} if claim.weights_artifact_id else None,
            "allow_software": self._allow_software if allowed is None else allowed,
        }

    @override
    def data_size(self, name: str) -> int:
        return math.prod(self._array(name).shape) * _ITEM_BYTES

    @override
    def open_data(self, name: str, start: int, end: int) -> Iterator[bytes]:
        return self._read_data(self._array(name), start, end)

    @override
    def open_resume(self) -> Iterator[bytes]:
        resume = self._claimed().resume
        if resume is None:
            raise KeyError("resume")
        self._check_resume(resume)
        return self._read_resume(resume.artifact_id)

    @override
    def open_initial(self) -> Iterator[bytes]:
        artifact_id = self._claimed().weights_artifact_id
        if artifact_id is None:
            raise KeyError("initial")
        self._check_initial(artifact_id)
        return self._read(artifact_id, 0, None)

    @override
    def metrics(self, points: Metrics) -> None:
        with self._writing(AttemptState.TRAINING) as (session, attempt):
            last: dict[str, Any] = {}
            if points.count:
                repository.append_metrics(
                    session, *attempt, points.keys, points.count, points.steps, points.values
                )
                row = struct.unpack(f"<{len(points.keys)}d", points.values[-8 * len(points.keys) :])
                last = dict(zip(points.keys, row, strict=True))
            repository.record_progress(session, *attempt, points.step, points.total_steps, last)

    @override
    def diagnostics(self, report: dict[str, Any]) -> None:
        with self._writing() as (session, attempt):
            repository.save_diagnostics(session, *attempt, report)

    @override
    def checkpoint(self, step: int, body: IO[bytes]) -> None:
        with self._writing(AttemptState.TRAINING):
            pass
        self._store("checkpoint", body, step)
        with self._writing() as (session, attempt):
            if self._resumed_key != self._checkpoint_key and self._claimed().resume is not None:
                # Now, since an attempt that is lost before its result leaves no other record of it.
                repository.doubt_bits(session, *attempt)
            repository.prune_checkpoints(session, self._claimed().job_id)

    @override
    def weights(self, body: IO[bytes]) -> None:
        with self._writing(AttemptState.SAVING):
            pass
        self._store("weights", body, None)

    @override
    def predictions(self, body: IO[bytes]) -> None:
        with self._writing(AttemptState.SAVING):
            pass
        self._store("predictions", body, None)

    @override
    def result(self, result: dict[str, Any]) -> None:
        record: dict[str, Any] = result["record"]
        handover_ms = 1e3 * (self._handed_over_s - self._begun_s)
        timings = {**record.get("timings", {}), "handoverMs": handover_ms}
        with self._writing(AttemptState.SAVING) as (session, attempt):
            warnings = [*record.get("warnings", ()), *self._of_targets(session)]
            record = {**record, "timings": timings, "warnings": warnings}
            repository.save_record(session, *attempt, record)
        self._emit("saved")

    def _of_targets(self, session: Session) -> Iterator[dict[str, str]]:
        """What the statistics of the data, which the page has not, say of how well it can have trained."""
        claim = self._claimed()
        spec = parse_spec(claim.spec)
        if spec.predict is None and (loss := loss_type(spec.loss)):
            job = repository.get_job(session, claim.owner_id, claim.job_id)
            yield from scale_warnings(loss, datasets.array_infos(session, job.dataset_id))

    @override
    def failure(self, failure: dict[str, Any]) -> None:
        code, message = str(failure.pop("code", "internal")), str(failure.pop("message", ""))
        self._emit("failed", code=code, message=message, failure=failure)

    def log(self, level: str, message: str) -> None:
        """Keep a line of the page's console: debug, info, warning or error. Of a flood only the beginning is kept."""
        self._lines += 1
        if self._lines == _MAX_LINES:
            level, message = "warning", "further lines are not kept"
        if self._lines <= _MAX_LINES:
            with self._writing() as (session, attempt):
                repository.append_log(session, *attempt, level, message)

    def _claimed(self) -> Claim:
        if self._claim is None:
            raise KeyError("no job yet")
        return self._claim

    def _array(self, name: str) -> DataArray:
        return {array.name: array for array in self._claimed().data}[name]

    def _check_resume(self, resume: Resume) -> None:
        """Give up a damaged checkpoint, and the attempt with it: the next goes on from the one before. Raises KeyError then."""
        with self._guarded(), self._db.read() as session:
            if artifacts.is_intact(session, resume.artifact_id, lambda: self._emit("progress")):
                return
        with self._writing() as (session, attempt):
            repository.drop_damaged_checkpoint(session, *attempt, resume.artifact_id)
        message = f"the checkpoint of step {resume.step} has not the SHA-256 of what was stored: it is not used again"
        self._emit("failed", code=Cause.CHECKPOINT_DAMAGED, message=message, failure={})
        raise KeyError("resume")

    def _check_initial(self, artifact_id: str) -> None:
        """End the attempt, and the job, where the weights are damaged: there are no others. Raises KeyError then."""
        with self._guarded(), self._db.read() as session:
            if artifacts.is_intact(session, artifact_id, lambda: self._emit("progress")):
                return
        message = f"the weights to begin with, {artifact_id}, have not the SHA-256 of what was stored"
        self._emit("failed", code=Cause.WEIGHTS_DAMAGED, message=message, failure={})
        raise KeyError("initial")

    def _read_resume(self, artifact_id: str) -> Iterator[bytes]:
        start = b""
        for piece in self._read(artifact_id, 0, None):
            if not start:
                start = piece
                self._resumed_key = _plan_key(start)
            yield piece

    def _read_data(self, array: DataArray, start: int, end: int) -> Iterator[bytes]:
        """Compared with what was stored by the time the page has read the whole array, in order, which it does before it trains."""
        with self._guarded(), self._db.read() as session:
            if array.name not in self._checks:
                self._checks[array.name] = artifacts.Check(session.get_one(Artifact, array.artifact_id))
            for piece in artifacts.open_range(session, array.artifact_id, start, end):
                self._emit("progress")
                self._checks[array.name].take(start, piece)
                yield piece
                start += len(piece)

    def _read(self, artifact_id: str, start: int, end: int | None) -> Iterator[bytes]:
        with self._guarded(), self._db.read() as session:
            for piece in artifacts.open_range(session, artifact_id, start, end):
                self._emit("progress")
                yield piece

    def _store(self, kind: str, body: IO[bytes], step: int | None) -> None:
        claim = self._claimed()
        with self._guarded():
            writer = artifacts.open_writer(
                self._db, claim.owner_id, claim.attempt_id, claim.token, kind, step
            )
            limit = self._limit_bytes[kind]
            while piece := body.read(_PIECE_BYTES):
                if writer.size + len(piece) > limit:
                    raise Invalid([Fault(kind, f"is larger than this model's can be: {limit} bytes")])
                if kind == "checkpoint" and not writer.size:
                    self._checkpoint_key = _plan_key(piece)
                writer.append(piece)
                self._emit("progress")
            writer.commit()

    @contextmanager
    def _writing(self, state: AttemptState | None = None) -> Generator[tuple[Session, tuple[str, str]]]:
        """A transaction, with the attempt's id and token; takes the attempt to `state` first where it is not there."""
        claim = self._claimed()
        with self._lock:
            with self._guarded(), self._db.write() as session:
                attempt = (claim.attempt_id, claim.token)
                reached = self._state
                if state is not None:
                    for following in _ORDER[_ORDER.index(reached) + 1 : _ORDER.index(state) + 1]:
                        repository.advance_attempt(session, *attempt, following)
                        reached = following
                yield session, attempt
            self._state = reached
        self._emit("progress")

    @contextmanager
    def _guarded(self) -> Generator[None]:
        """Tell the supervisor what the page can't: that the attempt is fenced, or that the database failed us.

        Nothing is tried again: whether a transaction whose answer got lost has committed, nobody can tell, and points
        of a curve must not double. The next attempt goes on from the last checkpoint.
        """
        try:
            yield
        except Fenced:
            self._emit("fenced")
            raise
        except (Invalid, KeyError):
            raise
        except Damaged as error:  # weights and checkpoints are checked before they are read
            self._emit("failed", code=Cause.DATA_DAMAGED, message=str(error), failure={})
            raise
        except Exception as error:
            _log.exception("can't store what the page sent")
            cause = Cause.NO_STORAGE if isinstance(error, DBAPIError) else Cause.RUNNER_DIED
            reason = (
                error.orig if isinstance(error, DBAPIError) else error
            )  # without the statement and its bytes
            message = f"the runner could not keep what the page sent, or read what it asked for: {reason}"
            self._emit("failed", code=cause, message=message, failure={})
            raise


def _plan_key(start: bytes) -> str | None:
    """The plan key in the header of a checkpoint, a safetensors file, whose first bytes are given; None without one."""
    try:
        (size,) = struct.unpack_from("<Q", start)
        return str(json.loads(start[8 : 8 + size])["__metadata__"]["planKey"])
    except (struct.error, ValueError, KeyError, TypeError):
        return None


def _describe(arrays: tuple[DataArray, ...], role: str) -> dict[str, Any]:
    return {
        array.name: {"shape": list(array.shape), "dtype": array.dtype, "url": f"data/{array.name}"}
        | ({} if array.order is None else {"order": list(array.order)})
        for array in arrays
        if array.role == role
    }
