"""The command line against a scripted service; training and serving are tested end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from texelgrad import Client, cli

Service = dict[str, Any]
JOB: dict[str, Any] = {
    "id": "job_01",
    "name": "digits",
    "state": "failed",
    "cause": "non_finite_loss",
    "step": 7,
    "total_steps": 9,
    "metrics": {"loss": "NaN"},
}


def _serve(answers: Service, seen: list[httpx.Request], request: httpx.Request) -> httpx.Response:
    request.read()
    seen.append(request)
    status, body = answers[f"{request.method} {request.url.path}"]
    return (
        httpx.Response(status, json=body)
        if not isinstance(body, bytes)
        else httpx.Response(status, content=body)
    )


@pytest.fixture
def seen() -> list[httpx.Request]:
    """The requests that the service got."""
    return []


@pytest.fixture
def texelgrad(monkeypatch: pytest.MonkeyPatch, seen: list[httpx.Request]) -> Callable[..., Result]:
    """Runs the command: its words, then the service's answers by method and path."""

    def run(words: list[str], answers: Service) -> Result:
        transport = httpx.MockTransport(partial(_serve, answers, seen))
        monkeypatch.setattr(cli, "Client", partial(Client, transport=transport))
        return CliRunner().invoke(cli.main, ["--url", "http://service", *words])

    return run


def test_jobs_are_listed(texelgrad: Callable[..., Result], seen: list[httpx.Request]):
    """One line a job, with its cause and a loss that is not a number; the state is passed on as a filter."""
    page = {
        "items": [JOB, {**JOB, "id": "job_00", "state": "queued", "total_steps": None}],
        "next_cursor": None,
    }
    result = texelgrad(["jobs", "--status", "failed"], {"GET /v1/jobs": (200, page)})
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [
        word for word in ("job_01", "failed (non_finite_loss)", "7/9", "NaN") if word not in lines[1]
    ] == []
    assert "7/?" in lines[2]
    assert seen[0].url.params["status"] == "failed"


def test_weights_are_written(texelgrad: Callable[..., Result], tmp_path: Path, seen: list[httpx.Request]):
    """In the format asked for."""
    words = ["weights", "job_01", "-o", str(tmp_path / "w.npz"), "--format", "npz"]
    result = texelgrad(words, {"GET /v1/jobs/job_01/weights": (200, b"file")})
    assert result.exit_code == 0
    assert (tmp_path / "w.npz").read_bytes() == b"file"
    assert seen[0].url.params["format"] == "npz"


def test_cancelling(texelgrad: Callable[..., Result]):
    answer = {"POST /v1/jobs/job_01/cancel": (202, {**JOB, "state": "running"})}
    assert texelgrad(["cancel", "job_01"], answer).output == "running\n"


def test_diagnostics_are_json(texelgrad: Callable[..., Result]):
    """Fit for another program to read."""
    report = {"float32": True, "worst": "Infinity"}
    result = texelgrad(["diagnostics", "job_01"], {"GET /v1/jobs/job_01/diagnostics": (200, report)})
    assert json.loads(result.output) == report


def test_an_estimate_with_a_file_uploads_it(
    texelgrad: Callable[..., Result], tmp_path: Path, seen: list[httpx.Request]
):
    """The spec keeps what it says of its data and gets the new data set's id."""
    (tmp_path / "spec.json").write_text(json.dumps({"data": {"validation": {"fraction": 0.2}}}))
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    words = ["estimate", str(tmp_path / "spec.json"), "--data", str(tmp_path / "data.csv"), "--target", "b"]
    answers = {"POST /v1/datasets": (201, {"id": "ds_1"}), "POST /v1/estimates": (200, {"parameters": 3})}
    result = texelgrad(words, answers)
    assert json.loads(result.output) == {"parameters": 3}
    assert json.loads(seen[1].content) == {"data": {"validation": {"fraction": 0.2}, "dataset": "ds_1"}}


def test_a_refusal_is_readable(texelgrad: Callable[..., Result], tmp_path: Path):
    """Status 1, each fault on a line of its own, no traceback."""
    (tmp_path / "spec.json").write_text("{}")
    faults = [
        {"field": "loss", "value": None, "message": "is missing", "legal": "bce, mse"},
        {"field": "model.layers.0.units", "value": 0, "message": "is too small", "legal": "at least 1"},
    ]
    problem = {"code": "invalid", "detail": "two faults", "errors": faults}
    result = texelgrad(["train", str(tmp_path / "spec.json")], {"POST /v1/jobs": (422, problem)})
    assert result.exit_code == 1
    assert "loss: is missing (legal: bce, mse)" in result.stderr
    assert "model.layers.0.units: is too small (legal: at least 1)" in result.stderr


def test_a_failed_job_fails_the_command(texelgrad: Callable[..., Result], tmp_path: Path):
    """So that a script notices."""
    (tmp_path / "spec.json").write_text("{}")
    answers = {
        "POST /v1/jobs": (202, {**JOB, "state": "queued"}),
        "GET /v1/jobs/job_01": (200, {**JOB, "message": "at step 7", "renderer": "x", "software": True}),
    }
    result = texelgrad(["train", str(tmp_path / "spec.json")], answers)
    assert result.exit_code == 1
    assert "job job_01 failed: at step 7" in result.stderr


@pytest.mark.parametrize(("text", "complaint"), [("{", "is not JSON"), ("[]", "holds no JSON object")])
def test_a_spec_that_is_none(texelgrad: Callable[..., Result], tmp_path: Path, text: str, complaint: str):
    (tmp_path / "spec.json").write_text(text)
    result = texelgrad(["train", str(tmp_path / "spec.json")], {})
    assert result.exit_code == 1
    assert complaint in result.stderr
