"""Jobs over HTTP, on both databases: queue, list, read, cancel, curves, weights, events."""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from flask.testing import FlaskClient
from safetensors.numpy import load, save

from api.streams import Cursor, stream
from texelgrad import artifacts, repository
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.domain import AttemptState, Cause

from .http import fields, get, http_client, parse_events, post_job, spec_for, upload_points
from .steps import add_points, advance, claim, finish, succeed, write_artifact

WEIGHTS = {
    "dense_1.kernel": np.arange(2, dtype=np.float32).reshape(2, 1),
    "dense_1.bias": np.array([-0.5], dtype=np.float32),
}


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on the test's database."""
    with http_client(settings) as opened:
        yield opened


def test_post_answers_202_with_the_job(client: FlaskClient):
    """Location leads to it; its spec has the defaults."""
    dataset = upload_points(client)
    response = client.post("/v1/jobs", json=spec_for(dataset, tags={"team": "edge"}))
    assert response.status_code == 202
    job = response.get_json()
    assert response.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert (job["state"], job["dataset_id"], job["total_steps"]) == ("queued", dataset, 8)
    assert job["spec"]["model"]["layers"][0]["init"] == "glorot_uniform"
    assert job["tags"] == {"team": "edge"}
    assert get(client, response.headers["Location"]) == job


def test_a_synthetic_job_has_a_data_set(client: FlaskClient, db: Database):
    """It is made once; the worker gets arrays like any others, and the numbers are the generator's."""
    from texelgrad.synthetic import two_class_points

    data = {"synthetic": {"kind": "two_class_points", "rows": 30, "seed": 5}}
    first, second = (post_job(client, data=data, train={"steps": 3}) for _ in range(2))
    assert first["dataset_id"] == second["dataset_id"]
    x = next(array for array in claim(db).data if array.name == "x")
    assert (x.shape, x.dtype, x.role) == ((30, 2), "float32", "input")
    with db.read() as session:
        stored = np.frombuffer(artifacts.read_all(session, x.artifact_id), "<f4").reshape(30, 2)
    assert np.array_equal(stored, two_class_points(30, 5)[0].astype(np.float32))


def test_every_fault_of_a_spec_at_once(client: FlaskClient):
    """422 names each field with its value and what would be legal; nothing is queued."""
    raw = spec_for(upload_points(client), loss="l7", backend="cpu", nonsense=1)
    response = client.post("/v1/jobs", json=raw)
    assert response.status_code == 422
    assert sorted(fields(response)) == ["backend", "loss", "nonsense"]
    assert {"field", "value", "message", "legal"} == set(response.get_json()["errors"][0])
    assert get(client, "/v1/jobs")["items"] == []


def test_faults_of_every_kind_in_one_answer(client: FlaskClient):
    """A wrong field, a share that keeps no row, a deadline that has passed, a loss that does not suit the data."""
    raw = spec_for(upload_points(client), backend="cuda", deadline="2020-01-01T00:00:00Z")
    raw["model"]["layers"][0]["units"] = 2
    raw["data"]["validation"] = {"fraction": 0.01}
    raw["limits"] = {"wall_s": 10**9}
    assert sorted(fields(client.post("/v1/jobs", json=raw))) == [
        "backend", "data.validation.fraction", "deadline", "limits.wall_s", "model.layers.0.units",
    ]  # fmt: skip


def test_an_empty_spec(client: FlaskClient):
    """Names all that it lacks, the data too, and what each would be."""
    response = client.post("/v1/jobs", json={})
    assert sorted(fields(response)) == ["data", "loss", "model", "optimizer", "train"]
    assert all(fault["legal"] for fault in response.get_json()["errors"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": {"input": [3], "layers": [{"type": "dense", "units": 1}]}}, ["model.input"]),
        ({"model": {"input": [2], "layers": [{"type": "dense", "units": 2}]}}, ["model.layers.0.units"]),
        ({"loss": "softmax_cross_entropy", "metrics": []}, ["model.layers.0.units"]),
        ({"train": {"epochs": 1, "batch_size": 21}}, ["train.batch_size"]),
        ({"data": {"dataset": "ds_" + "0" * 26}}, ["data.dataset"]),
        ({"data": {}}, ["data"]),
        ({"limits": {"wall_s": 10**6}}, ["limits.wall_s"]),
    ],
)
def test_what_does_not_fit_the_data_or_the_service(
    client: FlaskClient, changes: dict[str, Any], expected: list[str]
):
    """Shapes, labels, batches and limits are checked before anything is queued, by /estimates too."""
    raw = spec_for(upload_points(client), **changes)
    for path in ("/v1/jobs", "/v1/estimates"):
        response = client.post(path, json=raw)
        assert response.status_code == 422
        assert fields(response) == expected
    assert get(client, "/v1/jobs")["items"] == []


def test_estimates(client: FlaskClient):
    """What a job would take, and nothing is queued."""
    raw = spec_for(
        upload_points(client), data={"dataset": upload_points(client), "validation": {"fraction": 0.25}}
    )
    response = client.post("/v1/estimates", json=raw)
    assert response.status_code == 200
    estimate = response.get_json()
    assert estimate["parameters"] == 3
    assert (estimate["train_rows"], estimate["validation_rows"]) == (15, 5)
    assert (estimate["steps_per_epoch"], estimate["total_steps"]) == (3, 6)
    assert estimate["texture_bytes"] > 0
    assert get(client, "/v1/jobs")["items"] == []


def test_the_same_key_is_the_same_job(client: FlaskClient):
    """A repeated POST makes no second job; another body under the key is refused."""
    raw = spec_for(upload_points(client))
    headers = {"Idempotency-Key": "k1"}
    first, second = (client.post("/v1/jobs", json=raw, headers=headers).get_json() for _ in range(2))
    assert first["id"] == second["id"]
    other = client.post("/v1/jobs", json={**raw, "name": "other"}, headers=headers)
    assert other.status_code == 422
    assert fields(other) == ["Idempotency-Key"]
    assert len(get(client, "/v1/jobs")["items"]) == 1


def test_the_same_key_at_the_same_time(settings: Settings):
    """Of requests that race, one makes the job and all answer it."""
    with http_client(settings) as client:
        raw = spec_for(upload_points(client))
        ids: list[str] = []
        start = threading.Barrier(4)

        def post() -> None:
            start.wait()
            response = client.application.test_client().post(
                "/v1/jobs", json=raw, headers={"Idempotency-Key": "race"}
            )
            ids.append(response.get_json().get("id", response.text))

        threads = [threading.Thread(target=post) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ids) == 4
        assert len(set(ids)) == 1
        assert len(get(client, "/v1/jobs")["items"]) == 1


def test_pages_of_jobs(client: FlaskClient):
    """Newest first, each job once, the last page without a cursor."""
    ids = [post_job(client)["id"] for _ in range(5)]
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = get(client, f"/v1/jobs?limit=2{cursor and '&cursor=' + cursor}")
        seen += [job["id"] for job in page["items"]]
        cursor = page["next_cursor"]
    assert seen == ids[::-1]


def test_filters(client: FlaskClient):
    """By state, name and tags; several tags must all match."""
    first = post_job(client, name="a", tags={"team": "edge", "run": "1"})["id"]
    second = post_job(client, name="b", tags={"team": "edge", "run": "2"})["id"]
    client.post(f"/v1/jobs/{first}/cancel")

    def found(query: str) -> list[str]:
        return [job["id"] for job in get(client, f"/v1/jobs?{query}")["items"]]

    assert found("status=cancelled") == [first]
    assert found("status=queued") == [second]
    assert found("name=a") == [first]
    assert found("tag=team:edge") == [second, first]
    assert found("tag=team:edge&tag=run:2") == [second]
    assert found("tag=team:cloud") == []


def test_polling_with_an_etag(client: FlaskClient, db: Database):
    """304 while nothing changes; Retry-After until the job is final."""
    job = post_job(client)
    path = f"/v1/jobs/{job['id']}"
    first = client.get(path)
    assert first.headers["Retry-After"] == "1"
    headers = {"If-None-Match": first.headers["ETag"]}
    assert client.get(path, headers=headers).status_code == 304
    claimed = claim(db)
    changed = client.get(path, headers=headers)
    assert changed.status_code == 200
    assert changed.get_json()["attempts"][0]["id"] == claimed.attempt_id
    succeed(db, claimed, save(WEIGHTS))
    final = client.get(path)
    assert final.get_json()["state"] == "succeeded"
    assert "Retry-After" not in final.headers


def test_cancel(client: FlaskClient, db: Database):
    """At once while queued, asked for while running, 409 after another end."""
    queued = post_job(client)["id"]
    response = client.post(f"/v1/jobs/{queued}/cancel")
    assert (response.status_code, response.get_json()["state"]) == (202, "cancelled")
    running = post_job(client)["id"]
    claimed = claim(db)
    response = client.post(f"/v1/jobs/{running}/cancel")
    assert (response.status_code, response.get_json()["state"]) == (202, "running")
    assert response.get_json()["cancel_requested_at"]
    finish(db, claimed, "cancelled", "cancelled")
    assert get(client, f"/v1/jobs/{running}")["state"] == "cancelled"
    done = post_job(client)["id"]
    succeed(db, claim(db), save(WEIGHTS))
    response = client.post(f"/v1/jobs/{done}/cancel")
    assert response.status_code == 409
    assert fields(response) == []


def test_curves_keep_spikes_and_non_finite_numbers(client: FlaskClient, db: Database):
    """Thinned to the points asked for; NaN and infinities are strings."""
    job = post_job(client)
    claimed = claim(db)
    points = [(step, 1 / step) for step in range(1, 10_001)]
    points[5_000] = (5_001, 1e9)
    points[7_000] = (7_001, math.nan)
    points[8_000] = (8_001, math.inf)
    add_points(db, claimed, points)
    add_points(db, claimed, [(10_000, 0.125)], key="val_loss")
    path = f"/v1/jobs/{job['id']}/metrics"
    whole = get(client, path + "?max_points=20000")["series"]["loss"]
    assert whole["total"] == len(whole["steps"]) == 10_000
    assert whole["values"][0] == 1.0
    thin = get(client, path + "?max_points=50&keys=loss")["series"]
    assert list(thin) == ["loss"]
    assert len(thin["loss"]["steps"]) <= 50
    kept = dict(zip(thin["loss"]["steps"], thin["loss"]["values"], strict=True))
    assert (kept[5_001], kept[7_001], kept[8_001]) == (1e9, "NaN", "Infinity")
    assert kept[1] == 1.0
    assert kept[10_000] == 1e-4


def test_weights(client: FlaskClient, db: Database):
    """409 before they are there; then the file as it was stored, and an npz of the same arrays."""
    job = post_job(client)
    path = f"/v1/jobs/{job['id']}/weights"
    assert client.get(path).status_code == 409
    stored = save(WEIGHTS)
    succeed(db, claim(db), stored)
    response = client.get(path)
    assert response.status_code == 200
    assert response.data == stored
    assert response.headers["Content-Disposition"] == f'attachment; filename="{job["id"]}.safetensors"'
    assert load(response.data)["dense_1.bias"].tolist() == [-0.5]
    packed = [client.get(path + "?format=npz") for _ in range(2)]
    assert packed[0].data == packed[1].data
    assert packed[0].headers["ETag"] == packed[1].headers["ETag"] != response.headers["ETag"]
    with np.load(io.BytesIO(packed[0].data)) as arrays:
        assert sorted(arrays) == sorted(WEIGHTS)
        for name, expected in WEIGHTS.items():
            assert arrays[name].dtype == np.float32
            assert np.array_equal(arrays[name], expected)


def test_a_download_can_be_resumed(client: FlaskClient, db: Database):
    """Ranges, If-Range, If-None-Match, and ranges that can't be served."""
    job = post_job(client)
    stored = save({"w": np.random.default_rng(0).random(700_000, dtype=np.float32)})
    succeed(db, claim(db), stored)
    path = f"/v1/jobs/{job['id']}/weights"
    tag = client.head(path).headers["ETag"]

    def ask(**headers: str) -> Any:
        return client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    size = len(stored)
    middle = ask(Range="bytes=1048570-2097160")
    assert middle.status_code == 206
    assert middle.headers["Content-Range"] == f"bytes 1048570-2097160/{size}"
    assert middle.data == stored[1048570:2097161]
    assert ask(Range="bytes=-10").data == stored[-10:]
    assert ask(Range=f"bytes={size - 5}-").data == stored[-5:]
    assert ask(Range="bytes=0-", If_Range=tag).status_code == 206
    changed = ask(Range="bytes=5-", If_Range='"other"')
    assert (changed.status_code, changed.data) == (200, stored)
    assert ask(If_None_Match=tag).status_code == 304
    beyond = ask(Range=f"bytes={size}-")
    assert beyond.status_code == 416
    assert beyond.headers["Content-Range"] == f"bytes */{size}"


def test_a_failed_job_has_no_weights(client: FlaskClient, db: Database):
    """404, although its attempt had stored some; the reason stands in the job."""
    job = post_job(client)
    claimed = claim(db)
    advance(db, claimed, "starting", "training")
    write_artifact(db, claimed, "weights", save(WEIGHTS))
    finish(db, claimed, "failed", "non_finite_loss", "loss is NaN at step 3")
    assert client.get(f"/v1/jobs/{job['id']}/weights").status_code == 404
    failed = get(client, f"/v1/jobs/{job['id']}")
    assert (failed["state"], failed["cause"]) == ("failed", "non_finite_loss")
    assert failed["message"] == "loss is NaN at step 3"


def test_diagnostics(client: FlaskClient, db: Database):
    """409 while they may come, then the report with its non-finite numbers; 404 where none will come."""
    job = post_job(client)
    path = f"/v1/jobs/{job['id']}/diagnostics"
    assert client.get(path).status_code == 409
    claimed = claim(db)
    with db.write() as session:
        report = {"renderer": "R", "worst": math.inf}
        repository.save_diagnostics(session, claimed.attempt_id, claimed.token, report)
    assert get(client, path) == {"renderer": "R", "worst": "Infinity", "attempt_id": claimed.attempt_id}
    other = post_job(client, diagnostics="none")
    assert client.get(f"/v1/jobs/{other['id']}/diagnostics").status_code == 404


def test_events_of_a_job_that_has_ended(client: FlaskClient, db: Database):
    """The whole story, points before the end; the end of the stream; and 204 for a browser that comes again."""
    job = post_job(client)
    claimed = claim(db)
    advance(db, claimed, "starting", "training")
    add_points(db, claimed, [(1, 0.5), (2, math.nan)])
    finish(db, claimed, "failed", "internal", "bug")
    path = f"/v1/jobs/{job['id']}/events"
    response = client.get(path)
    assert response.content_type == "text/event-stream; charset=utf-8"
    messages = parse_events(response.text)
    assert messages[-1][1:] == ("state", messages[-1][2])
    assert messages[-1][2]["state"] == "failed"
    metrics = [data for _, kind, data in messages if kind == "metrics"]
    assert metrics == [
        {
            "attempt_id": claimed.attempt_id,
            "resumed_from_step": None,
            "steps": [1, 2],
            "values": {"loss": [0.5, "NaN"]},
        }
    ]
    last = messages[-1][0]
    assert client.get(path, headers={"Last-Event-ID": last}).status_code == 204
    kinds = [kind for _, kind, _ in messages]
    assert kinds[-4:] == ["metrics", "attempt", "progress", "state"]
    for place, (seen, _, _) in enumerate(messages[:-1]):
        rest = parse_events(client.get(path, headers={"Last-Event-ID": seen}).text)
        assert [message for message in rest if message[1] != "progress"] == [
            message for message in messages[place + 1 :] if message[1] != "progress"
        ]


def test_events_come_while_the_job_runs(client: FlaskClient, db: Database):
    """Points reach a listener before the job has ended, and the stream ends with the job."""
    job = post_job(client)
    claimed = claim(db)
    advance(db, claimed, "starting", "training")
    response = client.get(f"/v1/jobs/{job['id']}/events", buffered=False)
    stream = cast("Iterator[bytes]", iter(response.response))
    seen = b""
    while b'"training"' not in seen:
        seen += next(stream)
    add_points(db, claimed, [(1, 0.25)])
    with db.write() as session:
        repository.record_progress(session, claimed.attempt_id, claimed.token, 1, 8, {"loss": 0.25})
    seen = b""
    while b"event: progress" not in seen:
        seen += next(stream)
    assert b"event: metrics" in seen
    finish(db, claimed, "failed", "internal")
    assert b'"failed"' in b"".join(stream)


@pytest.mark.parametrize("text", ["x", "1.2", "1.att_x.2", "-1", "1.att_" + "0" * 26 + ".x"])
def test_an_event_id_that_is_none(client: FlaskClient, text: str):
    """422, not a stream that starts somewhere; it names what the caller wrote."""
    path = f"/v1/jobs/{post_job(client)['id']}/events"
    by_header = client.get(path, headers={"Last-Event-ID": text})
    by_query = client.get(path, query_string={"after": text})
    assert (by_header.status_code, by_query.status_code) == (422, 422)
    assert (fields(by_header), fields(by_query)) == (["Last-Event-ID"], ["after"])


def test_a_job_that_is_deleted_ends_its_stream(client: FlaskClient, db: Database):
    """With an event, not in the middle of nothing."""
    job = post_job(client)["id"]
    messages = stream(db, "local", job, Cursor())
    while "queued" not in next(messages):
        pass
    client.post(f"/v1/jobs/{job}/cancel")
    assert client.delete(f"/v1/jobs/{job}").status_code == 204
    assert [kind for _, kind, _ in parse_events("".join(messages))] == ["deleted"]


def test_curves_that_are_not_there(client: FlaskClient, db: Database):
    """422 names those that are; before the first points any key may still come."""
    path = f"/v1/jobs/{post_job(client)['id']}/metrics"
    assert get(client, f"{path}?keys=nope")["series"] == {}
    claimed = claim(db)
    add_points(db, claimed, [(1, 0.5)])
    add_points(db, claimed, [(1, 0.5)], key="val_loss")
    assert list(get(client, f"{path}?keys=val_loss")["series"]) == ["val_loss"]
    response = client.get(f"{path}?keys=loss,nope")
    assert (response.status_code, fields(response)) == (422, ["keys"])
    assert response.get_json()["errors"][0]["legal"] == "loss, val_loss"


def test_a_failure_has_its_step(client: FlaskClient, db: Database):
    """The page's, or where it named none the one that the job had reached."""
    job = post_job(client)["id"]
    claimed = claim(db)
    with db.write() as session:
        repository.record_progress(session, claimed.attempt_id, claimed.token, 7, 8)
    with db.write() as session:
        repository.finish_attempt(
            session, claimed.attempt_id, claimed.token, AttemptState.FAILED, Cause.INTERNAL, "bug",
            {"field": None, "step": None},
        )  # fmt: skip
    assert get(client, f"/v1/jobs/{job}")["failure"] == {"field": None, "step": 7}


def test_what_a_job_waits_for(client: FlaskClient, db: Database):
    """Said of a queued job that no worker which is there may ever take."""
    job = post_job(client, allow_software=False)["id"]

    def code() -> str | None:
        waits = get(client, f"/v1/jobs/{job}")["waiting_for"]
        return waits and waits["code"]

    assert code() == "no_workers"
    with db.write() as session:
        repository.touch_worker(session, "w1", host="h", pid=1, queue="gpu", state="idle", software=True)
    assert code() == "needs_hardware"
    with db.write() as session:
        repository.touch_worker(session, "w2", host="h", pid=1, queue="gpu", state="busy", software=False)
    assert code() is None


def test_streams_are_limited(settings: Settings):
    """Beyond the limit 503; a closed stream frees its place."""
    with http_client(settings.model_copy(update={"max_streams": 1})) as client:
        path = f"/v1/jobs/{post_job(client)['id']}/events"
        first = client.get(path, buffered=False)
        next(iter(first.response))
        assert client.get(path).status_code == 503
        first.close()
        again = client.get(path, buffered=False)
        assert again.status_code == 200
        again.close()


def test_a_lost_attempt_and_its_successor(client: FlaskClient, db: Database):
    """The job lists both; its renderer is the newest attempt's."""
    job = post_job(client)
    finish(db, claim(db), "lost", "runner_died")
    second = claim(db, "w2")
    with db.write() as session:
        repository.save_record(session, second.attempt_id, second.token, {"renderer": "R", "software": True})
    found = get(client, f"/v1/jobs/{job['id']}")
    assert [(a["number"], a["state"], a["cause"]) for a in found["attempts"]] == [
        (1, AttemptState.LOST, "runner_died"),
        (2, AttemptState.CLAIMED, None),
    ]
    assert (found["renderer"], found["software"]) == ("R", True)
    assert get(client, "/v1/jobs")["items"][0]["renderer"] == "R"
