"""The client against scripted answers: errors, retries, resumed downloads, waiting."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import numpy as np
import pytest
from safetensors.numpy import save

import texelgrad.client
import texelgrad.transport
from texelgrad import Client
from texelgrad.client import ApiError, JobEnded, Unreachable
from texelgrad.errors import Invalid

Answer = httpx.Response | Exception
WEIGHTS = {
    "dense_1.kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "dense_1.bias": np.zeros(3, np.float32),
}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texelgrad.client, "_POLL_S", 0.0)
    monkeypatch.setattr(texelgrad.transport, "_RETRY_S", 0.0)


class Script:
    """Gives one answer after the other, and remembers what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client_of(script: Callable[[httpx.Request], httpx.Response]) -> Client:
    """A client whose requests go to the script."""
    return Client("http://service/", transport=httpx.MockTransport(script))


def _problem(status: int, code: str, errors: list[dict[str, Any]] | None = None) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": "no", "errors": errors or []})


def _job(state: str, **more: Any) -> httpx.Response:
    return httpx.Response(200, json={"id": "job_1", "state": state, **more}, headers={"ETag": f'"{state}"'})


def test_a_problem_document_becomes_an_error_with_its_faults():
    fault = {"field": "loss", "value": "hinge", "message": "is unknown", "legal": "bce, mse"}
    with client_of(Script(_problem(422, "invalid", [fault]))) as client, pytest.raises(ApiError) as caught:
        client.create_job({})
    assert (caught.value.status, caught.value.code) == (422, "invalid")
    assert caught.value.faults[0].as_dict() == fault
    assert "loss: is unknown (legal: bce, mse)" in str(caught.value)


def test_an_answer_that_is_no_problem_document_is_shown():
    script = Script(httpx.Response(502, text="<html>bad gateway"))
    with client_of(script) as client, pytest.raises(ApiError, match="bad gateway"):
        client.job("job_1")


def test_no_answer_says_how_to_start_the_service():
    script = Script(*[httpx.ConnectError("refused")] * 3)
    with client_of(script) as client, pytest.raises(Unreachable, match=r"http://service .*texelgrad serve"):
        client.job("job_1")
    assert len(script.requests) == 3


def test_a_job_is_sent_again_under_the_same_key():
    """A broken connection or a 503 may hide that it was queued: the key makes the second time harmless."""
    script = Script(httpx.ReadError("reset"), _problem(503, "unavailable"), _job("queued"))
    with client_of(script) as client:
        assert client.create_job({"name": "x"})["state"] == "queued"
    keys = [request.headers["Idempotency-Key"] for request in script.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_cancellation_is_not_sent_again():
    script = Script(httpx.ReadError("reset"))
    with client_of(script) as client, pytest.raises(Unreachable):
        client.cancel("job_1")
    assert len(script.requests) == 1


@pytest.mark.parametrize("how", ["retry", "resume"])
def test_a_following_job_is_asked_for_again_under_the_same_key(how: str):
    """So that a broken connection makes no second one."""
    script = Script(httpx.ReadError("reset"), _job("queued"))
    with client_of(script) as client:
        assert getattr(client, how)("job_0")["id"] == "job_1"
    assert {request.url.path for request in script.requests} == {f"/v1/jobs/job_0/{how}"}
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1


def test_a_deletion_is_not_sent_again():
    """The second time the job would be unknown."""
    script = Script(httpx.Response(204), httpx.ReadError("reset"))
    with client_of(script) as client:
        client.delete("job_1")
        with pytest.raises(Unreachable):
            client.delete("job_1")
    assert [request.method for request in script.requests] == ["DELETE", "DELETE"]


def test_what_is_known_of_a_job():
    """Why it waits, its log in all its pages, its checkpoints."""
    pages = [{"items": [{"seq": 1}], "next_cursor": "1.1"}, {"items": [{"seq": 2}], "next_cursor": None}]
    checkpoints = {"items": [{"id": "art_1"}], "next_cursor": None}
    script = Script(*(httpx.Response(200, json=body) for body in ({"summary": "busy"}, *pages, checkpoints)))
    with client_of(script) as client:
        assert client.why("job_1") == {"summary": "busy"}
        assert [line["seq"] for line in client.logs("job_1", level="error")] == [1, 2]
        assert client.checkpoints("job_1") == [{"id": "art_1"}]
    assert dict(script.requests[2].url.params) == {"level": "error", "cursor": "1.1"}


def test_a_checkpoint_is_written(tmp_path: Path):
    """Its bytes, under the name asked for."""
    script = Script(httpx.Response(200, content=b"state"))
    with client_of(script) as client:
        assert client.download_checkpoint("job_1", "art_1", tmp_path / "c").read_bytes() == b"state"
    assert script.requests[0].url.path == "/v1/jobs/job_1/checkpoints/art_1"


def test_waiting_asks_only_for_changes():
    """Polling sends the last ETag; progress hears of changes alone."""
    script = Script(
        _job("queued"), httpx.Response(304), _job("running"), httpx.Response(304), _job("succeeded")
    )
    states: list[str] = []
    with client_of(script) as client:
        job = client.wait("job_1", lambda job: states.append(job["state"]))
    assert states == ["queued", "running", "succeeded"]
    assert job["state"] == "succeeded"
    assert [request.headers.get("If-None-Match") for request in script.requests] == [
        None,
        '"queued"',
        '"queued"',
        '"running"',
        '"running"',
    ]


def test_waiting_ends_at_its_limit():
    with client_of(lambda _: _job("running")) as client, pytest.raises(TimeoutError, match="job_1"):
        client.wait("job_1", timeout_s=0.01)


def test_training_that_fails_raises_with_the_cause():
    script = Script(_job("queued"), _job("failed", cause="non_finite_loss", message="at step 3"))
    with client_of(script) as client, pytest.raises(JobEnded, match="at step 3") as caught:
        client.train({})
    assert caught.value.code == "non_finite_loss"


def test_pages_are_followed():
    pages = [
        {"items": [{"id": 1}, {"id": 2}], "next_cursor": "c"},
        {"items": [{"id": 3}], "next_cursor": None},
    ]
    script = Script(*(httpx.Response(200, json=page) for page in pages))
    with client_of(script) as client:
        assert [job["id"] for job in client.jobs(status="failed", tag="a:b")] == [1, 2, 3]
    assert dict(script.requests[0].url.params) == {"status": "failed", "tag": "a:b"}
    assert dict(script.requests[1].url.params) == {"status": "failed", "tag": "a:b", "cursor": "c"}


def test_curves_are_exact():
    series = {"loss": {"steps": [1, 2, 3], "values": [0.5, "NaN", "-Infinity"], "total": 3}}
    with client_of(Script(httpx.Response(200, json={"series": series}))) as client:
        curve = client.metrics("job_1")["loss"]
    assert curve.steps.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(curve.values, [0.5, np.nan, -np.inf])


class Breaking(httpx.SyncByteStream):
    """A body that breaks off."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self._data
        raise httpx.ReadError("reset")


def test_a_broken_download_goes_on_where_it_stopped():
    file = save(WEIGHTS)
    script = Script(
        httpx.Response(200, stream=Breaking(file[:50]), headers={"ETag": '"hash"'}),
        httpx.Response(206, content=file[50:], headers={"ETag": '"hash"'}),
    )
    with client_of(script) as client:
        weights = client.weights("job_1")
    assert {name: value.tolist() for name, value in weights.items()} == {
        name: value.tolist() for name, value in WEIGHTS.items()
    }
    assert script.requests[1].headers["Range"] == "bytes=50-"
    assert script.requests[1].headers["If-Range"] == '"hash"'


def test_a_download_that_changed_meanwhile_is_refused(tmp_path: Path):
    """The parts of two files are never joined, and no file appears."""
    script = Script(
        httpx.Response(200, stream=Breaking(b"old"), headers={"ETag": '"1"'}),
        httpx.Response(200, content=b"new file", headers={"ETag": '"2"'}),
    )
    with client_of(script) as client, pytest.raises(Unreachable, match="changed"):
        client.download_weights("job_1", tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_weights_that_are_not_there_yet():
    script = Script(_problem(409, "conflict"))
    with client_of(script) as client, pytest.raises(ApiError, match="409"):
        client.weights("job_1")


@pytest.mark.parametrize("status", [404, 409])
def test_a_refused_download_leaves_no_file(tmp_path: Path, status: int):
    """Neither the file nor its unfinished beginning."""
    with client_of(Script(_problem(status, "no"))) as client, pytest.raises(ApiError, match=str(status)):
        client.download_weights("job_1", tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_numpy_scalars_in_a_spec_are_numbers():
    """A seed or a width that came out of NumPy is what it says."""
    script = Script(_job("queued"), _job("queued"))
    spec = {"a": np.int64(64), "b": [np.float32(0.5), np.bool_(True)], "c": (1, None)}
    with client_of(script) as client:
        client.create_job(spec)
        client.estimate(spec)
    for request in script.requests:
        assert json.loads(request.content) == {"a": 64, "b": [0.5, True], "c": [1, None]}


def test_what_json_can_not_hold_is_named_by_field():
    """Every field at once, before anything is sent."""
    spec: dict[str, Any] = {
        "train": {"seed": math.nan, "lr": np.float32(np.inf)},
        "layers": [1, np.zeros(2), {3: None}],
    }
    script = Script()
    with client_of(script) as client, pytest.raises(Invalid) as caught:
        client.create_job(spec)
    assert [fault.field for fault in caught.value.faults] == [
        "train.seed",
        "train.lr",
        "layers.1",
        "layers.2.3",
    ]
    with client_of(script) as client, pytest.raises(Invalid, match="is list"):
        client.estimate([spec])  # pyright: ignore[reportArgumentType]
    assert script.requests == []


def test_arrays_and_files_are_uploaded_as_what_they_are(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "d.npz", allow_pickle=False, x=np.zeros((2, 1)), y=np.zeros(2))
    script = Script(*(httpx.Response(201, json={"id": "ds_1"}) for _ in range(3)))
    with client_of(script) as client:
        client.upload_dataset({"x": np.zeros((2, 1)), "y": np.zeros(2)}, name="arrays")
        client.upload_dataset(tmp_path / "t.csv", target="b", weight="a")
        client.upload_dataset(str(tmp_path / "d.npz"))
    arrays, table, packed = script.requests
    assert arrays.headers["Content-Type"] == "application/zip"
    assert arrays.content.startswith(b"PK")
    assert dict(arrays.url.params) == {"name": "arrays"}
    assert (table.headers["Content-Type"], table.content) == ("text/csv", b"a,b\n1,2\n")
    assert dict(table.url.params) == {"target": "b", "weight": "a", "name": "t.csv"}
    assert packed.content == (tmp_path / "d.npz").read_bytes()
    assert int(packed.headers["Content-Length"]) == len(packed.content)


@pytest.mark.parametrize("of", ["id", "arrays", "file"])
def test_predictions_of_what_is_there_or_uploaded_first(tmp_path: Path, of: str):
    """A data set by its id, arrays by name, or a file."""
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    data = {"id": "ds_1", "arrays": {"x": np.zeros((2, 1))}, "file": tmp_path / "t.csv"}[of]
    uploaded = [httpx.Response(201, json={"id": "ds_1"})] if of != "id" else []
    script = Script(*uploaded, _job("queued"), _job("succeeded"))
    with client_of(script) as client:
        assert client.predict("job_1", data)["state"] == "succeeded"
    paths = [(request.method, request.url.path) for request in script.requests]
    assert paths[: len(uploaded)] == [("POST", "/v1/datasets")] * len(uploaded)
    assert paths[len(uploaded)] == ("POST", "/v1/jobs/job_1/predictions")
    assert json.loads(script.requests[len(uploaded)].content) == {"dataset": "ds_1"}


@pytest.mark.parametrize("data", [np.zeros((2, 1)), [[1.0]], None])
def test_what_is_no_data_set_is_refused(data: Any):
    """Before anything is sent, with what is one."""
    script = Script()
    with client_of(script) as client:
        for call in (client.upload_dataset, partial(client.predict, "job_1")):
            with pytest.raises(Invalid) as caught:
                call(data)
            (fault,) = caught.value.faults
            assert (fault.field, fault.value) == ("data", type(data).__name__)
            assert '{"x": x' in str(fault.legal)
        with pytest.raises(Invalid, match=r"dataset\.x: is numpy\.ndarray"):
            client.create_predictions("job_1", {"x": np.zeros(2)})  # pyright: ignore[reportArgumentType]
    assert script.requests == []


def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEXELGRAD_URL", "http://farm:9/")
    with Client() as client:
        assert client.base_url == "http://farm:9"


@pytest.mark.parametrize("url", ["foo", "http://", "ftp://host", "http://[::1", "http://host:port"])
def test_an_address_that_is_none(url: str):
    """Is told before anything is sent, with what one looks like."""
    with pytest.raises(Invalid, match="address") as caught:
        Client(url)
    (fault,) = caught.value.faults
    assert (fault.field, fault.value) == ("url", url.rstrip("/"))


def test_a_key_that_no_header_holds():
    """A line end, or letters of another alphabet."""
    for key in ("tg_ключ", "tg_a\nb"):
        with pytest.raises(Invalid, match="api_key"):
            Client("http://service", api_key=key)


def test_an_answer_of_something_else():
    """Of another program at that address: no traceback of a JSON parser."""
    page = httpx.Response(200, text="<html>It works!</html>")
    with client_of(lambda _request: page) as client, pytest.raises(ApiError, match="is it texelgrad"):
        client.job("job_1")


@pytest.mark.parametrize("name", ["../datasets", "..", "a/b?c#d"])
def test_an_id_is_one_segment_of_a_path(name: str):
    """Whatever stands in it: no other thing is read or deleted."""
    script = Script(_job("failed"), httpx.Response(204), httpx.Response(200, json={"items": []}))
    with client_of(script) as client:
        client.job(name)
        client.delete(name)
        client.checkpoints(name)
    paths = [request.url.raw_path.decode().split("/") for request in script.requests]
    assert [[*path[:3], *path[4:]] for path in paths] == [["", "v1", "jobs"]] * 2 + [
        ["", "v1", "jobs", "checkpoints"]
    ]
    assert [unquote(path[3]) for path in paths] == [name] * 3
