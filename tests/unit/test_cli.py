"""The command line against a scripted service; training and serving are tested end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from click import Choice
from click.testing import CliRunner, Result

from texelgrad import Client, cli, cli_jobs
from texelgrad.exports import FORMATS

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


SPEC: dict[str, Any] = {
    "model": {"input": [1], "layers": [{"type": "dense", "units": 1}]},
    "loss": "mse",
    "optimizer": {"type": "sgd", "lr": 0.1},
    "data": {"validation": {"fraction": 0.2}},
    "train": {"steps": 3},
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
        for module in (cli, cli_jobs):
            monkeypatch.setattr(module, "Client", partial(Client, transport=transport))
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


def test_predictions_are_written(texelgrad: Callable[..., Result], tmp_path: Path, seen: list[httpx.Request]):
    """A job on the data set predicts; its file comes in the format that its name says, or that is asked for."""
    warning = {"code": "predictions_not_finite", "message": "3 of 9 predictions are NaN or infinite"}
    made = JOB | {"id": "job_02", "state": "succeeded", "record": {"warnings": [warning]}}
    answers: Service = {
        "POST /v1/jobs/job_01/predictions": (202, made),
        "GET /v1/jobs/job_02": (200, made),
        "GET /v1/jobs/job_02/predictions": (200, b"file"),
    }
    out = tmp_path / "p.csv"
    result = texelgrad(["predict", "job_01", "ds_1", "-o", str(out)], answers)
    assert result.exit_code == 0, result.output
    assert "warning 3 of 9 predictions are NaN" in result.stderr
    assert out.read_bytes() == b"file"
    assert json.loads(seen[0].content) == {"dataset": "ds_1"}
    assert seen[-1].url.params["format"] == "csv"
    odd = texelgrad(["predict", "job_01", "ds_1", "-o", str(tmp_path / "p.txt")], answers)
    assert odd.exit_code == 2
    assert "csv, npz, safetensors" in odd.output


def test_training_data_that_is_missing(
    texelgrad: Callable[..., Result], tmp_path: Path, seen: list[httpx.Request]
):
    """Said before anything is sent, with the option that names it."""
    path, table = tmp_path / "spec.json", tmp_path / "t.csv"
    path.write_text(json.dumps({"data": {"validation": {"fraction": 0.2}}}))
    table.write_text("a,y\n1,0\n")
    for command in ("train", "estimate"):
        without = texelgrad([command, str(path)], {})
        assert without.exit_code == 2
        assert "--data" in without.output
        forgotten = texelgrad([command, str(path), "--data", str(table)], {})
        assert forgotten.exit_code == 2
        assert "--target" in forgotten.output
    assert seen == []


def test_predictions_for_a_table(texelgrad: Callable[..., Result], tmp_path: Path, seen: list[httpx.Request]):
    """It needs no targets; where it has some, their column is named, as for training, and is no input."""
    made = JOB | {"id": "job_02", "state": "succeeded"}
    answers: Service = {
        "POST /v1/datasets": (201, {"id": "ds_7"}),
        "POST /v1/jobs/job_01/predictions": (202, made),
        "GET /v1/jobs/job_02": (200, made),
        "GET /v1/jobs/job_02/predictions": (200, b"file"),
    }
    table, out = tmp_path / "rows.csv", ["-o", str(tmp_path / "p.csv")]
    table.write_text("a,y\n1,0\n")
    missing = texelgrad(["predict", "job_01", "rows.csv", *out], answers)
    assert missing.exit_code == 2
    assert "neither a data set's id" in missing.output
    stored = texelgrad(["predict", "job_01", "ds_1", "--target", "y", *out], answers)
    assert stored.exit_code == 2
    assert seen == []
    result = texelgrad(["predict", "job_01", str(table), "--target", "y", "--weight", "w", *out], answers)
    assert result.exit_code == 0, result.output
    assert (seen[0].url.params["target"], seen[0].url.params["weight"]) == ("y", "w")
    seen.clear()
    bare = texelgrad(["predict", "job_01", str(table), *out], answers)
    assert bare.exit_code == 0, bare.output
    assert "target" not in seen[0].url.params
    assert json.loads(seen[1].content) == {"dataset": "ds_7"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("w.npz", "npz"),
        ("w.ONNX", "onnx"),
        ("w.zip", "tfjs"),
        ("w.safetensors", "safetensors"),
        ("w", "safetensors"),
    ],
)
def test_the_file_s_name_says_the_format(
    texelgrad: Callable[..., Result], tmp_path: Path, seen: list[httpx.Request], name: str, kind: str
):
    """Without --format; no file holds another format than its name says."""
    result = texelgrad(
        ["weights", "job_01", "-o", str(tmp_path / name)], {"GET /v1/jobs/job_01/weights": (200, b"file")}
    )
    assert result.exit_code == 0
    assert seen[-1].url.params["format"] == kind


def test_a_name_that_says_no_format_is_refused(texelgrad: Callable[..., Result], tmp_path: Path):
    """Before anything is asked of the service; --format is named where the command has it."""
    (tmp_path / "s.json").write_text("{}")
    for words, has_option in ((["weights", "job_01"], True), (["train", str(tmp_path / "s.json")], False)):
        result = texelgrad([*words, "--out", str(tmp_path / "w.txt")], {})
        assert result.exit_code == 2
        assert "end it with one of .safetensors, .npz, .onnx, .tfjs, .zip" in " ".join(result.output.split())
        assert ("--format" in result.output) == has_option


def test_weights_come_in_every_format_of_the_service():
    """The command needs none of what makes them, so it lists them itself."""
    (option,) = [parameter for parameter in cli_jobs.weights.params if parameter.name == "format_"]
    assert isinstance(option.type, Choice)
    assert tuple(option.type.choices) == FORMATS


def test_cancelling(texelgrad: Callable[..., Result]):
    answer = {"POST /v1/jobs/job_01/cancel": (202, {**JOB, "state": "running"})}
    assert texelgrad(["cancel", "job_01"], answer).output == "running\n"


@pytest.mark.parametrize("command", ["retry", "resume"])
def test_following_up(texelgrad: Callable[..., Result], seen: list[httpx.Request], command: str):
    """The new job's id alone, for a script; under a key, so that a repeated request makes no second one."""
    answer = {f"POST /v1/jobs/job_01/{command}": (202, {**JOB, "id": "job_02", "state": "queued"})}
    assert texelgrad([command, "job_01"], answer).output == "job_02\n"
    assert seen[0].headers["Idempotency-Key"]


def test_deleting(texelgrad: Callable[..., Result]):
    """A refusal fails the command."""
    call = "DELETE /v1/jobs/job_01"
    assert texelgrad(["delete", "job_01"], {call: (204, b"")}).output == "job_01 is deleted\n"
    problem = {"code": "conflict", "detail": "job_01 is running", "errors": []}
    refused = texelgrad(["delete", "job_01"], {call: (409, problem)})
    assert refused.exit_code == 1
    assert "job_01 is running" in refused.stderr


def test_why(texelgrad: Callable[..., Result]):
    """The most telling reason first, each on a line."""
    reasons = [
        {"code": "soon", "text": "A worker is idle."},
        {"code": "deadline", "text": "It is aborted soon."},
    ]
    answer = {"GET /v1/jobs/job_01/why": (200, {"summary": "A worker is idle.", "reasons": reasons})}
    assert texelgrad(["why", "job_01"], answer).output == "A worker is idle.\nIt is aborted soon.\n"


def test_logs(texelgrad: Callable[..., Result], seen: list[httpx.Request]):
    """A line with its time, try and level, as it is: rich would take brackets for markup."""
    line = {
        "at": "2027-01-31T18:00:00Z",
        "attempt": 2,
        "level": "error",
        "message": "failed: [red] at step 3",
    }
    page = {"items": [line], "next_cursor": None}
    result = texelgrad(["logs", "job_01", "--level", "error"], {"GET /v1/jobs/job_01/logs": (200, page)})
    assert result.output == "2027-01-31T18:00:00Z try 2 error: failed: [red] at step 3\n"
    assert seen[0].url.params["level"] == "error"


CHECKPOINTS = {
    "items": [
        {"id": f"art_{step}", "step": step, "size": 9, "created_at": "2027-01-31T18:00:00Z"}
        for step in (6, 3)
    ],
    "next_cursor": None,
}


def test_checkpoints_are_listed(texelgrad: Callable[..., Result]):
    """One line each."""
    lines = texelgrad(["checkpoints", "job_01"], {"GET /v1/jobs/job_01/checkpoints": (200, CHECKPOINTS)})
    assert [line.split() for line in lines.output.splitlines()[1:]] == [
        ["art_6", "6", "9", "2027-01-31T18:00:00Z"],
        ["art_3", "3", "9", "2027-01-31T18:00:00Z"],
    ]


@pytest.mark.parametrize(("words", "chosen"), [([], "art_6"), (["--id", "art_3"], "art_3")])
def test_a_checkpoint_is_written(
    texelgrad: Callable[..., Result], tmp_path: Path, words: list[str], chosen: str
):
    """The furthest, unless another is named."""
    answers = {
        "GET /v1/jobs/job_01/checkpoints": (200, CHECKPOINTS),
        f"GET /v1/jobs/job_01/checkpoints/{chosen}": (200, b"state"),
    }
    result = texelgrad(["checkpoints", "job_01", "--out", str(tmp_path / "c"), *words], answers)
    assert (result.exit_code, (tmp_path / "c").read_bytes()) == (0, b"state")


def test_a_checkpoint_that_is_not_there(texelgrad: Callable[..., Result], tmp_path: Path):
    """Neither of a job without one, nor by an id without a file to write."""
    none = {"GET /v1/jobs/job_01/checkpoints": (200, {"items": [], "next_cursor": None})}
    result = texelgrad(["checkpoints", "job_01", "--out", str(tmp_path / "c")], none)
    assert result.exit_code == 1
    assert "has no checkpoint" in result.stderr
    assert texelgrad(["checkpoints", "job_01", "--id", "art_3"], {}).exit_code == 2


def test_diagnostics_are_json(texelgrad: Callable[..., Result]):
    """Fit for another program to read."""
    report = {"float32": True, "worst": "Infinity"}
    result = texelgrad(["diagnostics", "job_01"], {"GET /v1/jobs/job_01/diagnostics": (200, report)})
    assert json.loads(result.output) == report


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., str]:
    """Writes a spec with some sections replaced, and data.csv beside it; returns the spec's path."""

    def write(**sections: Any) -> str:
        (tmp_path / "data.csv").write_text("a,b\n1,2\n")
        (tmp_path / "spec.json").write_text(json.dumps({**SPEC, **sections}))
        return str(tmp_path / "spec.json")

    return write


def test_an_estimate_with_a_file_uploads_it(
    texelgrad: Callable[..., Result], tmp_path: Path, spec: Callable[..., str], seen: list[httpx.Request]
):
    """The spec keeps what it says of its data and gets the new data set's id."""
    words = ["estimate", spec(), "--data", str(tmp_path / "data.csv"), "--target", "b"]
    answers = {"POST /v1/datasets": (201, {"id": "ds_1"}), "POST /v1/estimates": (200, {"parameters": 3})}
    result = texelgrad(words, answers)
    assert json.loads(result.output) == {"parameters": 3}
    assert json.loads(seen[1].content)["data"] == {"validation": {"fraction": 0.2}, "dataset": "ds_1"}


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"data": None}, "data: "),
        ({"data": [1]}, "data: "),
        ({"data": {"synthetic": {"kind": "xor", "rows": 9}}}, "takes one of dataset and synthetic"),
        ({"optimizer": {"type": "sgd", "lr": float("nan")}}, "optimizer.lr: is nan, which JSON can't hold"),
        ({"loss": "l7", "train": {}}, "loss: "),
    ],
)
def test_a_wrong_spec_is_refused_before_its_data_is_sent(
    texelgrad: Callable[..., Result],
    tmp_path: Path,
    spec: Callable[..., str],
    seen: list[httpx.Request],
    sections: dict[str, Any],
    complaint: str,
):
    """By field, without a traceback; a gigabyte is not uploaded for a typing error."""
    result = texelgrad(["train", spec(**sections), "--data", str(tmp_path / "data.csv"), "--target", "b"], {})
    assert (result.exit_code, seen) == (1, [])
    assert complaint in result.stderr


@pytest.mark.parametrize(("target", "complaint"), [("none/w", "no folder"), ("", "is a folder")])
def test_weights_that_could_not_be_written_are_not_trained(
    texelgrad: Callable[..., Result],
    tmp_path: Path,
    spec: Callable[..., str],
    seen: list[httpx.Request],
    target: str,
    complaint: str,
):
    """Nobody waits an hour to learn of a missing folder."""
    result = texelgrad(["train", spec(), "--out", str(tmp_path / target)], {})
    assert (result.exit_code, seen) == (2, [])
    assert complaint in result.stderr


@pytest.mark.parametrize(
    ("name", "value", "legal"),
    [
        ("LOG_LEVEL", "loud", "DEBUG, INFO"),
        ("GPU_RECIPE", "metal", "vulkan"),
        ("DATABASE_URL", "mysql://here", "postgresql://"),
        ("ALLOWED_HOSTS", "a,b", "JSON list"),
    ],
)
def test_a_wrong_setting_is_told_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, legal: str
):
    """The variable, its value and what is legal; no traceback, no folder, no process."""
    monkeypatch.setenv(f"TEXELGRAD_{name}", value)
    result = CliRunner().invoke(cli.main, ["serve", "--data-dir", str(tmp_path / "d")])
    assert result.exit_code == 1
    assert [word for word in (f"TEXELGRAD_{name}", repr(value), legal) if word not in result.stderr] == []
    assert "ready" not in result.output
    assert not (tmp_path / "d").exists()


def test_a_database_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Without its password and without a traceback."""
    monkeypatch.setenv("TEXELGRAD_DATABASE_URL", "postgresql://u:secret@127.0.0.1:9/db")
    (tmp_path / "d").mkdir()
    result = CliRunner().invoke(cli.main, ["serve", "--port", "0", "--data-dir", str(tmp_path / "d")])
    assert result.exit_code == 1
    assert "u:***@127.0.0.1:9/db can't be used" in result.stderr
    assert "secret" not in result.stderr


def test_lines_are_whole_where_no_terminal_reads(texelgrad: Callable[..., Result]):
    """A long name or message would be folded in the middle of what a script looks for."""
    name = "a name of more than thirty letters " * 9
    page = {"items": [{**JOB, "name": name}], "next_cursor": None}
    lines = texelgrad(["jobs"], {"GET /v1/jobs": (200, page)}).output.splitlines()
    assert len(lines) == 2
    assert name.strip() in lines[1]
    problem = {"code": "conflict", "detail": name, "errors": []}
    assert (
        name.strip()
        in texelgrad(["cancel", "job_01"], {"POST /v1/jobs/job_01/cancel": (409, problem)}).stderr
    )


def test_a_refusal_is_readable(texelgrad: Callable[..., Result], tmp_path: Path):
    """Status 1, each fault on a line of its own, no traceback."""
    (tmp_path / "spec.json").write_text('{"data": {"dataset": "ds_1"}}')
    faults = [
        {"field": "loss", "value": None, "message": "is missing", "legal": "bce, mse"},
        {"field": "model.layers.0.units", "value": 0, "message": "is too small", "legal": "at least 1"},
    ]
    problem = {"code": "invalid", "detail": "two faults", "errors": faults}
    result = texelgrad(["train", str(tmp_path / "spec.json")], {"POST /v1/jobs": (422, problem)})
    assert result.exit_code == 1
    assert "loss: is missing (legal: bce, mse)" in result.stderr
    assert "model.layers.0.units: is too small (legal: at least 1)" in result.stderr


def test_what_a_run_ended_with_is_told(texelgrad: Callable[..., Result], tmp_path: Path):
    """The weights that an early stop restored, what the page warned of, and a bar that is full."""
    (tmp_path / "spec.json").write_text('{"data": {"dataset": "ds_1"}}')
    record = {
        "early_stopping": {"metric": "val_loss", "best_step": 4, "restored": True},
        "warnings": [{"code": "weights_not_finite", "message": "3 of 9 weights are NaN or infinite"}],
    }
    done = {**JOB, "state": "succeeded", "record": record, "renderer": "x", "software": False}
    answers: Service = {
        "POST /v1/jobs": (202, {**JOB, "state": "queued"}),
        "GET /v1/jobs/job_01": (200, done),
    }
    result = texelgrad(["train", str(tmp_path / "spec.json")], answers)
    assert result.exit_code == 0, result.output
    assert "weights of step 4, the best val_loss" in result.stdout
    assert "7/7 steps" in result.stdout
    assert "warning 3 of 9 weights are NaN" in result.stderr


def test_a_failed_job_fails_the_command(texelgrad: Callable[..., Result], tmp_path: Path):
    """So that a script notices."""
    (tmp_path / "spec.json").write_text('{"data": {"dataset": "ds_1"}}')
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


@pytest.mark.parametrize("job_id", ["", "job_1#2", "../jobs", "a b?x=1"])
@pytest.mark.parametrize("command", ["why", "logs", "cancel", "retry", "delete", "checkpoints"])
def test_what_is_no_id_never_reaches_the_service(
    texelgrad: Callable[..., Result], seen: list[httpx.Request], command: str, job_id: str
):
    """It would be another path there."""
    result = texelgrad([command, job_id], {})
    assert result.exit_code == 2
    assert "is no job's id" in result.output
    assert not seen
