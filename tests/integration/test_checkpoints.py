"""Checkpoints: which are kept, when a resumed run says that its bits may differ, and how large they may be."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from sqlalchemy import delete, select, update
from typing_extensions import override

from texelgrad import repository
from texelgrad.db import Database
from texelgrad.errors import Invalid
from texelgrad.models import Artifact, ArtifactChunk, Attempt, Job
from texelgrad.repository import Claim
from texelgrad.repository.sweep import sweep_artifacts
from worker.port import Metrics
from worker.recorder import Recorder

from .steps import add_points, advance, claim, finish, queue_job, write_artifact


@pytest.fixture
def claimed(db: Database) -> Claim:
    """An attempt that trains."""
    queue_job(db)
    training = claim(db)
    advance(db, training, "starting", "training")
    return training


class Events:
    """What the supervisor hears, but for signs of life."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def __call__(self, event: str, **fields: Any) -> None:
        if event != "progress":
            self.seen.append({"event": event, **fields})


def _ignore(_event: str, **_fields: Any) -> None:
    """Nobody listens."""


@pytest.fixture
def recorder(db: Database) -> Recorder:
    """A recorder that serves an attempt, which has started."""
    queue_job(db)
    started = claim(db)
    advance(db, started, "starting")
    recorder = Recorder(db, _ignore, allow_software=True)
    recorder.begin(started)
    return recorder


def _prune(db: Database, claimed: Claim) -> list[int | None]:
    """Steps of the checkpoints that are left."""
    with db.write() as session:
        repository.prune_checkpoints(session, claimed.job_id)
    with db.read() as session:
        return [checkpoint.step for checkpoint in repository.ready_checkpoints(session, claimed.job_id)]


def test_without_validation_the_last_is_kept(db: Database, claimed: Claim):
    """And what is dropped, the keeper deletes."""
    for step in (10, 20, 30):
        write_artifact(db, claimed, "checkpoint", b"x" * step, step=step)
    assert _prune(db, claimed) == [30]
    with db.write() as session:
        assert sweep_artifacts(session, 16) == 2
    with db.read() as session:
        assert session.scalars(select(Artifact.step)).all() == [30]


def test_with_validation_the_best_is_kept_too(db: Database, claimed: Claim):
    """By the last validation at or before each; NaN is no best."""
    add_points(db, claimed, [(step, 1.0) for step in range(1, 50)])
    add_points(db, claimed, [(9, 0.5), (19, 0.2), (29, float("nan")), (40, 0.4)], key="val_loss")
    for step in (10, 20, 30, 40):
        write_artifact(db, claimed, "checkpoint", b"x", step=step)
        kept = _prune(db, claimed)
    assert kept == [40, 20]


def test_of_two_at_one_step_the_newer_is_kept(db: Database, claimed: Claim):
    """An attempt that was resumed writes the same step again."""
    write_artifact(db, claimed, "checkpoint", b"old", step=10)
    newer = write_artifact(db, claimed, "checkpoint", b"new", step=10)
    _prune(db, claimed)
    with db.read() as session:
        assert [c.id for c in repository.ready_checkpoints(session, claimed.job_id)] == [newer]


def test_the_recorder_prunes(db: Database, recorder: Recorder):
    for step in (5, 10, 15):
        recorder.checkpoint(step, io.BytesIO(b"checkpoint"))
    with db.read() as session:
        assert session.scalars(select(Artifact.step).where(Artifact.state == "ready")).all() == [15]


class MeanwhileBody(io.BytesIO):
    """A checkpoint under way, during which training goes on: points of later steps come between its pieces."""

    def __init__(self, recorder: Recorder, step: int, val_loss: float) -> None:
        super().__init__(bytes(3 << 20))
        self._recorder, self._step, self._val_loss = recorder, step, val_loss

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        """The next piece; a validation has ended meanwhile."""
        self._step += 1
        value = struct.pack("<d", self._val_loss)
        self._recorder.metrics(
            Metrics(("val_loss",), 1, struct.pack("<I", self._step), value, self._step, 100)
        )
        return super().read(size)


def test_points_that_come_meanwhile_belong_to_later_checkpoints(db: Database, recorder: Recorder):
    """The last is kept, and the best by what was validated before it, not by what came while it was stored."""
    for step, val_loss in ((10, 0.5), (20, 0.1), (30, 0.9), (40, 0.8)):
        recorder.checkpoint(step, MeanwhileBody(recorder, step, val_loss))
    with db.read() as session:
        ready = session.scalars(select(Artifact).where(Artifact.state == "ready").order_by(Artifact.step))
        assert [(kept.step, kept.size) for kept in ready] == [(30, 3 << 20), (40, 3 << 20)]
        curve = repository.curves(session, session.scalars(select(Attempt.job_id)).one())["val_loss"]
        assert curve.steps.tolist() == [step + n for step in (10, 20, 30, 40) for n in range(1, 5)]


@pytest.mark.parametrize("kind", ["weights", "checkpoint"])
def test_more_than_a_model_has_is_refused(db: Database, recorder: Recorder, kind: str):
    """A page can't fill the database: 17 parameters and a header don't take 5 MiB."""
    body = io.BytesIO(bytes(5 << 20))
    with pytest.raises(Invalid, match="larger than this model's can be"):
        recorder.checkpoint(1, body) if kind == "checkpoint" else recorder.weights(body)
    with db.read() as session:
        assert session.scalars(select(Artifact.state)).all() == ["staged"]  # and swept when the attempt ends


def _resume(db: Database, claimed: Claim, record: dict[str, Any], bit_exact: bool) -> Attempt:
    """End the attempt, claim the job again, and report this record."""
    finish(db, claimed, "lost", "runner_died")
    again = claim(db)
    advance(db, again, "starting", "training")
    with db.write() as session:
        repository.save_record(
            session, again.attempt_id, again.token, {**record, "resumed": {"step": 5, "bitExact": bit_exact}}
        )
        return session.get_one(Attempt, again.attempt_id)


@pytest.mark.parametrize(
    ("record", "bit_exact", "reason"),
    [
        ({"renderer": "A", "launch": {"chromium": "1"}}, True, None),
        ({"renderer": "B", "launch": {"chromium": "1"}}, False, "another renderer: the checkpoint is from A, what follows from B"),
        ({"renderer": "A", "launch": {"chromium": "2"}}, False, "another Chromium: the checkpoint is from 1, what follows from 2"),
        ({"renderer": "A", "launch": {"chromium": "1"}}, False, "another plan key"),
    ],
)  # fmt: skip
def test_a_resume_under_another_plan_key_says_why(
    db: Database, claimed: Claim, record: dict[str, Any], bit_exact: bool, reason: str | None
):
    """The page compares the keys; the attempts' rows tell what differs."""
    first = {"renderer": "A", "launch": {"chromium": "1"}}
    with db.write() as session:
        repository.save_record(session, claimed.attempt_id, claimed.token, first)
    write_artifact(db, claimed, "checkpoint", b"x", step=5)
    found = _resume(db, claimed, record, bit_exact).not_bit_exact
    assert found is None if reason is None else found is not None and reason in found


@pytest.mark.parametrize("same", [True, False])
def test_a_lost_attempt_has_said_that_its_bits_may_differ(db: Database, claimed: Claim, same: bool):
    """From its first checkpoint on: it may never come to post a result."""
    write_artifact(db, claimed, "checkpoint", _checkpoint("A"), step=5)
    finish(db, claimed, "lost", "runner_died")
    again = claim(db)
    advance(db, again, "starting")
    recorder = Recorder(db, _ignore, allow_software=True)
    recorder.begin(again)
    assert b"".join(recorder.open_resume()) == _checkpoint("A")
    recorder.checkpoint(10, io.BytesIO(_checkpoint("A" if same else "B")))
    with db.read() as session:
        assert (session.get_one(Attempt, again.attempt_id).not_bit_exact is None) is same


def _checkpoint(plan_key: str) -> bytes:
    return save({"w": np.zeros(2, np.float32)}, {"planKey": plan_key})


def test_doubt_is_inherited(db: Database, claimed: Claim):
    """What continues a run that may differ may differ, even under the same key."""
    with db.write() as session:
        repository.save_record(session, claimed.attempt_id, claimed.token, {"renderer": "A"})
    write_artifact(db, claimed, "checkpoint", b"x", step=5)
    doubtful = _resume(db, claimed, {"renderer": "B"}, bit_exact=False)
    second = Claim(claimed.job_id, doubtful.id, 2, doubtful.token, claimed.owner_id, claimed.spec, (), None)
    write_artifact(db, second, "checkpoint", b"y", step=9)
    third = _resume(db, second, {"renderer": "B"}, bit_exact=True)
    assert third.parent_id == doubtful.id
    assert third.not_bit_exact == doubtful.not_bit_exact


# ---- damage ---------------------------------------------------------------------------------------------------------

SIZE = (1 << 20) + 100  # in bytes: two chunks


def _overwrite(db: Database, artifact_id: str) -> None:
    """Other bytes in the place of the last 100."""
    with db.write() as session:
        last = update(ArtifactChunk).where(ArtifactChunk.artifact_id == artifact_id, ArtifactChunk.seq == 1)
        session.execute(last.values(data=b"?" * 100))


def _lose(db: Database, artifact_id: str) -> None:
    """The last chunk is gone."""
    with db.write() as session:
        session.execute(
            delete(ArtifactChunk).where(ArtifactChunk.artifact_id == artifact_id, ArtifactChunk.seq == 1)
        )


def _try_resume(db: Database, claimed: Claim) -> dict[str, Any] | None:
    """Ask for the checkpoint as the page does; what the supervisor hears where it is not given, with which the attempt then ends."""
    advance(db, claimed, "starting")
    events = Events()
    recorder = Recorder(db, events, allow_software=True)
    recorder.begin(claimed)
    try:
        assert len(b"".join(recorder.open_resume())) == SIZE
    except KeyError:
        (heard,) = events.seen
        finish(db, claimed, "lost", heard["code"], heard["message"])
        with db.write() as session:
            session.execute(update(Job).values(eligible_at=0))  # an environment fault waits a second
        return heard
    assert events.seen == []
    return None


@pytest.mark.parametrize("damage", [_overwrite, _lose])
def test_a_damaged_checkpoint_is_given_up_for_the_one_before(
    db: Database, claimed: Claim, damage: Callable[[Database, str], None]
):
    """It is never handed out, costs no try, and the job goes on: from the other one that is kept, at last from the start."""
    best, last = (write_artifact(db, claimed, "checkpoint", bytes(SIZE), step=step) for step in (10, 20))
    finish(db, claimed, "lost", "runner_died")
    damage(db, last)
    second = claim(db)
    assert second.resume is not None
    assert second.resume.artifact_id == last
    heard = _try_resume(db, second)
    assert heard is not None
    assert (heard["event"], heard["code"]) == ("failed", "checkpoint_damaged")
    assert "step 20" in heard["message"]

    third = claim(db)
    assert third.resume is not None
    assert (third.resume.artifact_id, third.resume.step) == (best, 10)
    assert _try_resume(db, third) is None
    finish(db, third, "lost", "runner_died")
    damage(db, best)
    assert _try_resume(db, claim(db)) is not None
    fifth = claim(db)
    assert fifth.resume is None
    with db.read() as session:
        job = session.get_one(Job, claimed.job_id)
        assert (job.state, job.lost_attempts, job.step) == ("running", 2, 0)
    with db.write() as session:
        assert sweep_artifacts(session, 16) == (4 if damage is _overwrite else 2)


def test_a_resume_of_a_damaged_checkpoint_begins_with_the_one_before(db: Database, claimed: Claim):
    """Also where that is the old job's; without any it starts anew, and what is damaged can be deleted."""
    best, last = (write_artifact(db, claimed, "checkpoint", bytes(SIZE), step=step) for step in (10, 20))
    finish(db, claimed, "failed", "internal")
    new = queue_job(db, parent_id=claimed.job_id, resume_artifact_id=last)
    for checkpoint in (last, best):
        _overwrite(db, checkpoint)
        following = claim(db)
        assert following.resume is not None
        assert following.resume.artifact_id == checkpoint
        assert _try_resume(db, following) is not None
    assert claim(db).resume is None
    with db.write() as session:
        assert session.get_one(Job, new).resume_artifact_id is None
        assert sweep_artifacts(session, 16) == 4
        assert session.scalars(select(Artifact.id)).all() == []
