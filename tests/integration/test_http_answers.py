"""Real answers against what /openapi.json says of them: every field is described, and every described one is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.answers import SCHEMAS
from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.spec import JobSpec

from .http import http_client, post_job, spec_for, upload_points
from .steps import add_points, advance, claim, finish, write_artifact

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on a fresh SQLite file."""
    with http_client(settings) as opened:
        yield opened


def assert_described(description: dict[str, Any], method: str, path: str, response: TestResponse) -> None:
    """The answer's JSON follows the schema of its status."""
    answers = description["paths"][path][method]["responses"]
    schema = answers[str(response.status_code)]["content"]["application/json"]["schema"]
    jsonschema.validate(
        response.get_json(),
        {**schema, "components": description["components"]},
        jsonschema.Draft202012Validator,
    )


def test_answers_are_as_described(client: FlaskClient, db: Database):
    """A job's whole life, its data, workers and the service."""
    description = client.get("/openapi.json").get_json()
    dataset = upload_points(client)
    job = post_job(client, checkpoint={"every_steps": 1})["id"]
    claimed = claim(db)
    advance(db, claimed, "starting", "training")
    add_points(db, claimed, [(1, 0.5), (2, float("nan"))])
    write_artifact(db, claimed, "checkpoint", b"bytes", step=2)
    with db.write() as session:
        repository.append_log(session, claimed.attempt_id, claimed.token, "info", "line")
        repository.touch_worker(session, "w1", host="h", pid=1, queue="gpu", state="idle", software=True)
    finish(db, claimed, "failed", "internal", "bug")
    for path in ("", "/metrics", "/checkpoints", "/logs", "/why"):
        assert_described(
            description, "get", f"/v1/jobs/{{job_id}}{path}", client.get(f"/v1/jobs/{job}{path}")
        )
    for action in ("retry", "resume"):
        made = client.post(f"/v1/jobs/{job}/{action}")
        assert_described(description, "post", f"/v1/jobs/{{job_id}}/{action}", made)
    cancelled = client.post(f"/v1/jobs/{made.get_json()['id']}/cancel")
    assert_described(description, "post", "/v1/jobs/{job_id}/cancel", cancelled)
    for path in (
        "/v1/jobs",
        "/v1/datasets",
        "/v1/workers",
        "/v1/webhooks",
        "/v1/session",
        "/healthz",
        "/readyz",
    ):
        assert_described(description, "get", path, client.get(path))
    for path in ("", "/preview"):
        answer = client.get(f"/v1/datasets/{dataset}{path}")
        assert_described(description, "get", f"/v1/datasets/{{dataset_id}}{path}", answer)
    for path in ("/v1/jobs", "/v1/estimates"):
        assert_described(description, "post", path, client.post(path, json=spec_for(dataset)))
    announced = client.post("/v1/datasets/announce", json={"size": 5, "name": "n"})
    assert_described(description, "post", "/v1/datasets/announce", announced)
    assert_described(description, "post", "/v1/webhooks/secret", client.post("/v1/webhooks/secret"))


def test_every_operation_is_described(client: FlaskClient):
    """With what it answers when all is well, and with problem documents; headers that matter are named."""
    paths = client.get("/openapi.json").get_json()["paths"]
    assert not SCHEMAS.keys() & JobSpec.model_json_schema()["$defs"].keys()  # one name, one schema
    for path, operations in paths.items():
        for method, operation in operations.items():
            answers = operation["responses"]
            assert "default" in answers, path
            good = [answer for status, answer in answers.items() if status.startswith("2")]
            json = [
                answer["content"]["application/json"]
                for answer in good
                if "application/json" in answer.get("content", {})
            ]
            assert good, path
            assert method == "delete" or not json or "schema" in json[0] or "204" in answers, (method, path)
    headers = {
        name: [parameter["name"] for parameter in paths[path][method]["parameters"] if parameter["in"] == "header"]
        for name, path, method in (
            ("submit", "/v1/jobs", "post"), ("poll", "/v1/jobs/{job_id}", "get"), ("file", "/v1/jobs/{job_id}/weights", "get"),
        )
    }  # fmt: skip
    assert headers == {
        "submit": ["Idempotency-Key"],
        "poll": ["If-None-Match"],
        "file": ["If-None-Match", "Range", "If-Range"],
    }
