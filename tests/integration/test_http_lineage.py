"""Jobs after jobs over HTTP, on both databases: retry, resume, delete, checkpoints, logs, deadlines, why."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from safetensors.numpy import save
from sqlalchemy import func, select, update

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.models import Artifact, ArtifactChunk, Job, Worker
from texelgrad.repository.sweep import sweep_artifacts
from texelgrad.times import parse_time, time_text

from .http import fields, get, http_client, parse_events, post_job, spec_for, upload_points
from .steps import add_points, advance, claim, finish, succeed, try_claim, write_artifact

CHECKPOINT = save({})


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on the test's database."""
    with http_client(settings) as opened:
        yield opened


def fail_with_checkpoint(client: FlaskClient, db: Database, step: int = 5, **changes: Any) -> str:
    """The id of a job that failed after a checkpoint at `step`, with points up to two steps later."""
    job = post_job(client, **changes)
    claimed = claim(db)
    assert claimed.job_id == job["id"]
    advance(db, claimed, "starting", "training")
    add_points(db, claimed, [(at, 1 / at) for at in range(1, step + 3)])
    write_artifact(db, claimed, "checkpoint", CHECKPOINT, step=step)
    finish(db, claimed, "failed", "internal", "bug")
    return job["id"]


def test_a_retry_is_a_new_job(client: FlaskClient, db: Database):
    """The same spec and data, from the start; the old job stays what it was."""
    old = fail_with_checkpoint(client, db, tags={"team": "edge"})
    response = client.post(f"/v1/jobs/{old}/retry")
    assert response.status_code == 202
    new = response.get_json()
    assert response.headers["Location"] == f"/v1/jobs/{new['id']}"
    before = get(client, f"/v1/jobs/{old}")
    assert (new["parent_id"], new["state"], new["tags"]) == (old, "queued", {"team": "edge"})
    assert (new["spec"], new["dataset_id"]) == (before["spec"], before["dataset_id"])
    assert before["state"] == "failed"
    claimed = claim(db)
    assert (claimed.job_id, claimed.resume) == (new["id"], None)
    assert [job["id"] for job in get(client, f"/v1/jobs?parent={old}")["items"]] == [new["id"]]
    succeed(db, claimed, save({}))
    assert client.post(f"/v1/jobs/{new['id']}/retry").status_code == 202


def test_a_resume_goes_on_from_the_last_checkpoint(client: FlaskClient, db: Database):
    """Its curve is one line, without what came after the checkpoint; and it can itself be resumed from there."""
    old = fail_with_checkpoint(client, db)
    new = client.post(f"/v1/jobs/{old}/resume").get_json()
    assert new["parent_id"] == old
    claimed = claim(db, "w2")
    assert claimed.resume is not None
    assert claimed.resume.step == 5
    add_points(db, claimed, [(6, 60.0)])
    loss = get(client, f"/v1/jobs/{new['id']}/metrics")["series"]["loss"]
    assert loss["steps"] == [1, 2, 3, 4, 5, 6]
    assert loss["values"][-1] == 60.0
    finish(db, claimed, "cancelled", "cancelled")
    third = client.post(f"/v1/jobs/{new['id']}/resume").get_json()
    again = claim(db)
    assert (again.job_id, again.resume) == (third["id"], claimed.resume)
    advance(db, again, "starting", "training")
    further = write_artifact(db, again, "checkpoint", CHECKPOINT, step=8)
    finish(db, again, "lost", "runner_died")
    last = claim(db)
    assert last.resume is not None
    assert (last.resume.artifact_id, last.resume.step) == (further, 8)


def test_a_resumed_job_says_where_it_began(client: FlaskClient, db: Database):
    """From the first answer on, alone and in lists, whatever its later tries went on from; of others it is null."""
    old = fail_with_checkpoint(client, db)
    retried = client.post(f"/v1/jobs/{old}/retry").get_json()
    finish(db, claim(db), "failed", "internal")
    new = client.post(f"/v1/jobs/{old}/resume").get_json()
    assert (retried["resumed_from_step"], new["resumed_from_step"]) == (None, 5)
    first = claim(db)
    advance(db, first, "starting", "training")
    write_artifact(db, first, "checkpoint", CHECKPOINT, step=8)
    finish(db, first, "lost", "runner_died")
    assert claim(db).resume is not None
    assert get(client, f"/v1/jobs/{new['id']}")["resumed_from_step"] == 5
    listed = {job["id"]: job["resumed_from_step"] for job in get(client, "/v1/jobs")["items"]}
    assert listed == {old: None, retried["id"]: None, new["id"]: 5}


@pytest.mark.parametrize("states", [("starting", "training"), ("starting",)])
def test_where_a_job_began_stays_when_that_checkpoint_proves_damaged(
    client: FlaskClient, db: Database, states: tuple[str, ...]
):
    """Also of one that ended before it trained; only what has not begun begins elsewhere, and a resume of what has."""
    old = fail_with_checkpoint(client, db)
    ended = client.post(f"/v1/jobs/{old}/resume").get_json()["id"]
    claimed = claim(db)
    advance(db, claimed, *states)
    finish(db, claimed, "failed", "internal")
    other = client.post(f"/v1/jobs/{old}/resume").get_json()["id"]
    found = claim(db)
    advance(db, found, "starting")
    assert found.resume is not None
    with db.write() as session:
        repository.drop_damaged_checkpoint(session, found.attempt_id, found.token, found.resume.artifact_id)
    finish(db, found, "lost", "checkpoint_damaged")
    with db.write() as session:
        session.execute(update(Job).values(eligible_at=0))  # an environment fault waits a second

    def begun() -> dict[str, int | None]:
        listed = {job["id"]: job["resumed_from_step"] for job in get(client, "/v1/jobs")["items"]}
        assert listed == {job: get(client, f"/v1/jobs/{job}")["resumed_from_step"] for job in listed}
        return listed

    assert begun() == {old: None, ended: 5, other: None}
    assert get(client, f"/v1/jobs/{ended}")["attempts"][0]["resumed_from_step"] == 5
    assert get(client, f"/v1/jobs/{ended}")["resumable_from_step"] is None
    succeed(db, claim(db))  # from the start
    assert begun() == {old: None, ended: 5, other: None}


def test_a_fresh_stream_has_the_whole_curve(client: FlaskClient, db: Database):
    """Of a resumed job too: what it resumed from, up to there, then each try's points before the try's end."""
    old = fail_with_checkpoint(client, db)
    new = client.post(f"/v1/jobs/{old}/resume").get_json()["id"]
    first = claim(db, "w1")
    advance(db, first, "starting", "training")
    add_points(db, first, [(6, 60.0), (7, 70.0)])
    write_artifact(db, first, "checkpoint", CHECKPOINT, step=6)
    finish(db, first, "lost", "runner_died")
    second = claim(db, "w2")
    advance(db, second, "starting", "training")
    add_points(db, second, [(7, 71.0), (8, 80.0)])
    finish(db, second, "failed", "internal")
    messages = parse_events(client.get(f"/v1/jobs/{new}/events").text)
    points = [step for _, kind, data in messages if kind == "metrics" for step in data["steps"]]
    assert points == [1, 2, 3, 4, 5, 6, 7, 8]
    loss = get(client, f"/v1/jobs/{new}/metrics")["series"]["loss"]
    values = [value for _, kind, data in messages if kind == "metrics" for value in data["values"]["loss"]]
    assert (loss["steps"], loss["values"]) == (points, values)
    told = [
        kind if kind == "metrics" else f"{data['number']} {data['state']}"
        for _, kind, data in messages
        if kind in ("metrics", "attempt")
    ]
    assert told == [
        "metrics", "1 claimed", "1 starting", "1 training", "metrics", "1 lost",
        "2 claimed", "2 starting", "2 training", "metrics", "2 failed",
    ]  # fmt: skip
    for place, (seen, _, _) in enumerate(messages[:-1]):
        rest = parse_events(client.get(f"/v1/jobs/{new}/events", headers={"Last-Event-ID": seen}).text)
        expected = [message for message in messages[place + 1 :] if message[1] != "progress"]
        assert [message for message in rest if message[1] != "progress"] == expected


def test_what_can_be_resumed_says_so(client: FlaskClient, db: Database):
    """The job and /why name the step while a resume would be accepted from there; also of a checkpoint of its parent."""
    old = fail_with_checkpoint(client, db)
    bare = post_job(client)["id"]
    finish(db, claim(db), "failed", "internal")

    def told(job: str) -> tuple[int | None, list[str]]:
        reasons = get(client, f"/v1/jobs/{job}/why")["reasons"]
        step = get(client, f"/v1/jobs/{job}")["resumable_from_step"]
        return step, [reason["text"] for reason in reasons if reason["code"] == "resumable"]

    assert told(old) == (5, ["Its checkpoint of step 5 is kept: a resume goes on from there."])
    assert told(bare) == (None, [])
    new = client.post(f"/v1/jobs/{old}/resume").get_json()
    assert (new["resumable_from_step"], told(new["id"])) == (None, (None, []))
    finish(db, claim(db), "cancelled", "cancelled")
    assert told(new["id"])[0] == 5
    last = client.post(f"/v1/jobs/{new['id']}/resume").get_json()["id"]
    succeed(db, claim(db))
    assert told(last) == (None, [])


def test_what_can_not_be_retried_or_resumed(client: FlaskClient, db: Database):
    """409 before the end; a resume also after success and without a checkpoint."""
    job = post_job(client)["id"]
    for action in ("retry", "resume"):
        response = client.post(f"/v1/jobs/{job}/{action}")
        assert (response.status_code, fields(response)) == (409, [])
    client.post(f"/v1/jobs/{job}/cancel")
    assert "retry" in client.post(f"/v1/jobs/{job}/resume").get_json()["detail"]
    done = post_job(client)["id"]
    succeed(db, claim(db))
    assert client.post(f"/v1/jobs/{done}/resume").status_code == 409
    assert len(get(client, "/v1/jobs")["items"]) == 2


def test_a_repeated_retry_makes_one_job(client: FlaskClient, db: Database):
    """Under one key; the key of a retry can't ask for a resume."""
    old = fail_with_checkpoint(client, db)
    headers = {"Idempotency-Key": "k"}
    ids = {client.post(f"/v1/jobs/{old}/retry", headers=headers).get_json()["id"] for _ in range(3)}
    assert len(ids) == 1
    assert client.post(f"/v1/jobs/{old}/resume", headers=headers).status_code == 422
    assert len(get(client, "/v1/jobs")["items"]) == 2


def test_deleting_a_job(client: FlaskClient, db: Database):
    """It and all that hung on it is gone; its bytes go with the sweep; a retry loses its parent, not its life."""
    old = fail_with_checkpoint(client, db)
    retry = client.post(f"/v1/jobs/{old}/retry").get_json()["id"]
    assert client.delete(f"/v1/jobs/{retry}").status_code == 409
    response = client.delete(f"/v1/jobs/{old}")
    assert (response.status_code, response.data) == (204, b"")
    assert client.get(f"/v1/jobs/{old}").status_code == 404
    assert client.delete(f"/v1/jobs/{old}").status_code == 404
    assert get(client, f"/v1/jobs/{retry}")["parent_id"] is None
    with db.write() as session:
        loose = select(Artifact.id).where(Artifact.kind == "checkpoint", Artifact.attempt_id.is_(None))
        (artifact_id,) = session.scalars(loose).all()
        session.execute(update(Artifact).where(Artifact.id == artifact_id).values(created_at=0))
        while sweep_artifacts(session, 1):
            pass
        chunks = select(func.count()).where(ArtifactChunk.artifact_id == artifact_id)
        assert session.scalar(chunks) == 0
    assert claim(db).job_id == retry


def test_a_job_that_is_continued_stays(client: FlaskClient, db: Database):
    """While its checkpoint is wanted and while another's curve begins in it; the answer names that other."""
    old = fail_with_checkpoint(client, db)
    heir = client.post(f"/v1/jobs/{old}/resume").get_json()["id"]
    for _ in range(2):  # queued, then ended
        response = client.delete(f"/v1/jobs/{old}")
        assert response.status_code == 409
        assert heir in response.get_json()["detail"]
        if (claimed := try_claim(db)) is not None:
            finish(db, claimed, "failed", "internal")
    assert client.delete(f"/v1/jobs/{heir}").status_code == 204
    assert client.delete(f"/v1/jobs/{old}").status_code == 204


def test_deleting_a_data_set(client: FlaskClient):
    """Once no job uses it; the same content can then be uploaded anew."""
    job = post_job(client)
    path = f"/v1/datasets/{job['dataset_id']}"
    response = client.delete(path)
    assert (response.status_code, fields(response)) == (409, [])
    client.post(f"/v1/jobs/{job['id']}/cancel")
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert upload_points(client) != job["dataset_id"]


def test_checkpoints(client: FlaskClient, db: Database):
    """Listed with their steps, the furthest first, and each a file by range; staged ones are not there."""
    job = post_job(client)
    path = f"/v1/jobs/{job['id']}/checkpoints"
    assert get(client, path)["items"] == []
    claimed = claim(db)
    advance(db, claimed, "starting", "training")
    ids = [write_artifact(db, claimed, "checkpoint", b"bytes%d" % step, step=step) for step in (3, 6)]
    items = get(client, path)["items"]
    assert [(item["id"], item["step"], item["size"]) for item in items] == [(ids[1], 6, 6), (ids[0], 3, 6)]
    assert client.get(items[0]["file"]).data == b"bytes6"
    part = client.get(items[1]["file"], headers={"Range": "bytes=5-"})
    assert (part.status_code, part.data) == (206, b"3")
    assert part.headers["ETag"] == f'"{items[1]["sha256"]}"'
    other = post_job(client)["id"]
    assert client.get(f"/v1/jobs/{other}/checkpoints/{ids[0]}").status_code == 404


def test_logs_in_pages(client: FlaskClient, db: Database):
    """All attempts' lines in their order, each with its end; by level."""
    job = post_job(client)
    for worker in ("w1", "w2"):
        claimed = claim(db, worker)
        for number, level in enumerate(("info", "error", "info")):
            with db.write() as session:
                text = f"{worker} {number}"
                repository.append_log(session, claimed.attempt_id, claimed.token, level, text)
        finish(db, claimed, "lost", "runner_died", f"of {worker}")
    path = f"/v1/jobs/{job['id']}/logs"
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = get(client, f"{path}?limit=2{cursor and '&cursor=' + cursor}")
        seen += [line["message"] for line in page["items"]]
        cursor = page["next_cursor"]
    ends = [
        [f"{worker} {n}" for n in range(3)] + [f"lost: runner_died: of {worker}"] for worker in ("w1", "w2")
    ]
    assert seen == ends[0] + ends[1]
    errors = get(client, f"{path}?level=error")["items"]
    assert [(line["attempt"], line["message"]) for line in errors] == [(1, "w1 1"), (2, "w2 1")]


@pytest.mark.parametrize(
    ("outcome", "cause", "message", "line"),
    [
        ("succeeded", "completed", None, ("info", "succeeded: completed")),
        ("failed", "non_finite_loss", "at step 3", ("error", "failed: non_finite_loss: at step 3")),
        ("cancelled", "cancelled", None, ("info", "cancelled: cancelled")),
        ("lost", "stalled", "no progress", ("warning", "lost: stalled: no progress")),
    ],
)
def test_the_log_says_how_an_attempt_ended(
    client: FlaskClient, db: Database, outcome: str, cause: str, message: str | None, line: tuple[str, str]
):
    """Also where its page wrote nothing."""
    job = post_job(client)
    claimed = claim(db)
    advance(db, claimed, "starting", "training", "saving")
    write_artifact(db, claimed, "weights", b"weights")
    finish(db, claimed, outcome, cause, message)
    (last,) = get(client, f"/v1/jobs/{job['id']}/logs")["items"]
    assert (last["level"], last["message"]) == line


def test_the_log_says_that_a_worker_was_lost(client: FlaskClient, db: Database):
    """Whoever noticed it: nobody of that worker's is left to write."""
    job = post_job(client)
    claim(db, lease_s=-1)
    with db.write() as session:
        repository.reap_expired(session)
    claim(db, "w2")
    with db.write() as session:
        repository.release_attempts(session, "w2")
    lines = get(client, f"/v1/jobs/{job['id']}/logs?level=warning")["items"]
    assert [(line["attempt"], line["message"].split(": ")[1]) for line in lines] == [
        (1, "lease_expired"),
        (2, "worker_died"),
    ]


def test_a_deadline_aborts_what_still_waits(client: FlaskClient, db: Database):
    """The keeper aborts it, nobody can claim it before that, /why says so, and a retry has as long again."""
    deadline = time_text(time.time_ns() // 1000 + 3600 * 1_000_000)
    job = post_job(client, deadline=deadline)
    assert job["deadline_at"] == deadline
    with db.write() as session:
        session.execute(update(Job).values(deadline_at=1, created_at=0))
    assert try_claim(db) is None
    with db.write() as session:
        assert repository.abort_overdue(session) == [job["id"]]
    why = get(client, f"/v1/jobs/{job['id']}/why")
    assert (why["state"], why["reasons"][0]["code"]) == ("aborted", "deadline")
    with db.write() as session:
        session.execute(update(Job).values(deadline_at=60_000_000))
    again = client.post(f"/v1/jobs/{job['id']}/retry").get_json()
    left = parse_time(again["deadline_at"]) - parse_time(again["created_at"])
    assert abs(left - 60_000_000) < 1_000_000
    assert again["spec"]["deadline"] == again["deadline_at"]


@pytest.mark.parametrize(
    "deadline", ["2020-01-01T00:00:00Z", "2027-02-30T00:00:00Z", "2027-01-01T00:00:00", "tomorrow", 5]
)
def test_a_deadline_that_is_none(client: FlaskClient, deadline: Any):
    """Passed, no such day, without an offset, no time."""
    response = client.post("/v1/jobs", json=spec_for(upload_points(client), deadline=deadline))
    assert response.status_code == 422
    assert fields(response) == ["deadline"]


def test_why(client: FlaskClient, db: Database):
    """From the queue to the end, with the place in the queue and the workers' faults."""
    first, second = post_job(client)["id"], post_job(client)["id"]

    def codes(job: str) -> list[str]:
        answer = get(client, f"/v1/jobs/{job}/why")
        assert answer["summary"] == answer["reasons"][0]["text"]
        return [reason["code"] for reason in answer["reasons"]]

    assert codes(second) == ["no_workers", "behind_others"]
    assert get(client, f"/v1/jobs/{second}/why")["queue_position"] == 2
    with db.write() as session:
        repository.touch_worker(
            session, "w1", host="h", pid=1, queue="gpu", state="broken", fault="no Chromium"
        )
    assert codes(first) == ["workers_broken"]
    assert "no Chromium" in get(client, f"/v1/jobs/{first}/why")["summary"]
    with db.write() as session:
        repository.touch_worker(session, "w1", host="h", pid=1, queue="gpu", state="busy")
    finish(db, claim(db), "lost", "stalled", "no progress for 60 s")
    assert codes(first) == ["workers_busy", "attempt_lost"]
    claimed = claim(db)
    assert codes(first) == ["running", "attempt_lost"]
    finish(db, claimed, "failed", "non_finite_loss", "loss is NaN at step 3")
    assert codes(first) == ["non_finite_loss", "attempt_lost"]
    assert "loss is NaN at step 3" in get(client, f"/v1/jobs/{first}/why")["summary"]


def test_jobs_that_nobody_takes_are_not_ahead(client: FlaskClient, db: Database):
    """Those that need a GPU where no worker has one, or whose deadline has passed; with a GPU they count again."""
    post_job(client, allow_software=False)
    overdue = post_job(client, deadline=time_text(time.time_ns() // 1000 + 3600 * 1_000_000))["id"]
    with db.write() as session:
        session.execute(update(Job).where(Job.id == overdue).values(deadline_at=1))
    last = post_job(client)["id"]

    def place() -> int:
        return get(client, f"/v1/jobs/{last}/why")["queue_position"]

    def worker(name: str, state: str, *, software: bool) -> None:
        with db.write() as session:
            repository.touch_worker(session, name, host="h", pid=1, queue="gpu", state=state)
            session.execute(update(Worker).where(Worker.id == name).values(software=software))

    assert place() == 2
    worker("soft", "busy", software=True)
    assert place() == 1
    worker("hard", "broken", software=False)
    assert place() == 1
    worker("hard", "busy", software=False)
    assert place() == 2


def test_workers_and_data_sets_by_filter(client: FlaskClient, db: Database):
    """Pages and filters as for jobs."""
    for name, queue in (("a", "gpu"), ("b", "cpu"), ("c", "gpu")):
        with db.write() as session:
            repository.touch_worker(session, name, host="h", pid=1, queue=queue, state="idle")
    page = get(client, "/v1/workers?queue=gpu&limit=1")
    assert [worker["id"] for worker in page["items"]] == ["a"]
    rest = get(client, f"/v1/workers?queue=gpu&cursor={page['next_cursor']}")
    assert ([worker["id"] for worker in rest["items"]], rest["next_cursor"]) == (["c"], None)
    assert get(client, "/v1/workers?state=busy")["items"] == []
    dataset = upload_points(client)
    name = get(client, f"/v1/datasets/{dataset}")["name"]
    assert [item["id"] for item in get(client, f"/v1/datasets?name={name}")["items"]] == [dataset]
    assert get(client, "/v1/datasets?name=other")["items"] == []
