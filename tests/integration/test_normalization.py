"""Normalisation between page and API: the page fits it, the job shows it, the weights hold it; on both databases."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from safetensors.numpy import load, save

from texelgrad.config import Settings
from texelgrad.db import Database
from worker.recorder import Recorder

from .http import fields, get, http_client, npz, spec_for, upload
from .steps import advance, claim, finish, write_artifact

X = np.random.default_rng(5).normal([3, -70], [2, 11], (40, 2)).astype(np.float32)
Y = np.arange(40) % 2
FITTED: dict[str, Any] = {"kind": "standard", "offset": [3.1, -70.3], "scale": [0.5, 1 / 11]}
WEIGHTS = {
    "input.offset": np.array(FITTED["offset"]),
    "input.scale": np.array(FITTED["scale"]),
    "dense_1.kernel": np.ones((2, 1), np.float32),
}


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on the test's database."""
    with http_client(settings) as opened:
        yield opened


def test_from_the_page_to_the_exported_weights(client: FlaskClient, db: Database):
    """The page reads the data as it is stored; what it fitted is the job's, exactly, and comes with every format."""
    dataset = upload(client, npz(x=X, y=Y)).get_json()["id"]
    data = {"dataset": dataset, "validation": {"fraction": 0.25}, "normalize": "standard"}
    response = client.post("/v1/jobs", json=spec_for(dataset, data=data))
    assert response.status_code == 202, response.text
    job = response.get_json()
    assert job["normalization"] is None
    claimed = claim(db)
    advance(db, claimed, "starting")
    recorder = Recorder(db, lambda *_args, **_fields: None, allow_software=True)
    recorder.begin(claimed)
    document = recorder.job()
    assert document is not None
    assert document["spec"]["data"]["normalize"] == "standard"
    assert b"".join(recorder.open_data("x", 0, X.nbytes)) == X.tobytes()

    recorder.weights(io.BytesIO(save(WEIGHTS)))
    recorder.result({"record": {"backend": "webgl2", "normalization": FITTED}})
    finish(db, claimed, "succeeded", "completed")
    shown = get(client, f"/v1/jobs/{job['id']}")
    assert shown["normalization"] == FITTED
    assert shown["record"]["backend"] == "webgl2"
    path = f"/v1/jobs/{job['id']}/weights"
    assert client.get(path).data == save(WEIGHTS)
    with np.load(io.BytesIO(client.get(f"{path}?format=npz").data)) as packed:
        for name, tensor in load(client.get(path).data).items():
            assert np.array_equal(packed[name], tensor)
            assert packed[name].dtype == tensor.dtype


def test_without_it_nothing_changes(client: FlaskClient, db: Database):
    """Neither the job nor the file of weights."""
    dataset = upload(client, npz(x=X, y=Y)).get_json()["id"]
    job = client.post("/v1/jobs", json=spec_for(dataset)).get_json()
    claimed = claim(db)
    advance(db, claimed, "starting")
    recorder = Recorder(db, lambda *_args, **_fields: None, allow_software=True)
    recorder.begin(claimed)
    recorder.weights(io.BytesIO(b"weights"))
    recorder.result({"record": {"backend": "webgl2", "normalization": None}})
    finish(db, claimed, "succeeded", "completed")
    assert get(client, f"/v1/jobs/{job['id']}")["normalization"] is None
    assert client.get(f"/v1/jobs/{job['id']}/weights").data == b"weights"


def upload_weights(client: FlaskClient, **tensors: Any) -> str:
    """The id of an uploaded file."""
    response = client.post("/v1/weights", data=save(tensors), content_type="application/octet-stream")
    assert response.status_code == 201, response.text
    return response.get_json()["id"]


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, "the file of weights has no input.offset [2], input.scale [2]"),
        ({"input.offset": np.zeros(2)}, "the file of weights has no input.scale [2]"),
        ({"input.scale": np.ones(2)}, "the file of weights has no input.offset [2]"),
        ({"input.offset": np.zeros(3), "input.scale": np.ones(2)}, "input.offset is [3] in the file of weights, the input needs [2]"),
        ({"input.offset": np.zeros(2), "input.scale": np.ones(2)}, None),
    ],
)  # fmt: skip
def test_what_is_inherited_must_be_whole(client: FlaskClient, tensors: dict[str, Any], message: str | None):
    """Before anything is queued: half of it, or none in a file of which nobody knows what made it, is refused."""
    dataset = upload(client, npz(x=X, y=Y)).get_json()["id"]
    weights = upload_weights(client, **{"dense_1.kernel": WEIGHTS["dense_1.kernel"], "dense_1.bias": np.zeros(1, np.float32)}, **tensors)  # fmt: skip
    spec = spec_for(
        dataset, data={"dataset": dataset, "normalize": "inherit"}, fine_tune={"weights": weights}
    )
    for path in ("jobs", "estimates"):
        response = client.post(f"/v1/{path}", json=spec)
        if message is None:
            assert response.status_code in (200, 202), response.text
            continue
        assert response.status_code == 422, response.text
        (fault,) = response.get_json()["errors"]
        assert (fault["field"], fault["message"], fault["value"]) == ("data.normalize", message, "inherit")
        assert fault["legal"].startswith("none, standard or minmax; or weights with input.offset [2]")
    plain = spec | {"data": {"dataset": dataset, "normalize": "standard"}}
    assert client.post("/v1/jobs", json=plain).status_code == 202


def test_what_is_inherited_is_so_for_each_input(client: FlaskClient):
    """Of two inputs one alone would train on numbers that its layers have not seen; what is looked up needs none."""
    dataset = upload(client, npz(a=X, b=X, word=Y, y=Y)).get_json()["id"]
    layers = [
        {"type": "embedding", "inputs": ["word"], "vocabulary": 2, "units": 2},
        {"type": "flatten"},
        {"type": "concat", "inputs": ["a", "b", "flatten_1"]},
        {"type": "dense", "units": 1, "name": "head"},
    ]
    half = {"head.kernel": np.ones((6, 1), np.float32), "head.bias": np.zeros(1, np.float32), "a.offset": np.zeros(2), "a.scale": np.ones(2)}  # fmt: skip
    whole = half | {"b.offset": np.zeros(2), "b.scale": np.ones(2)}
    for tensors, faults in ((half, ["data.normalize"]), (whole, None)):
        response = client.post(
            "/v1/jobs",
            json=spec_for(
                dataset,
                model={"input": {"a": [2], "b": [2], "word": [1]}, "layers": layers},
                data={"dataset": dataset, "normalize": "inherit"},
                fine_tune={"weights": upload_weights(client, **tensors)},
            ),
        )
        assert response.status_code == (422 if faults else 202), response.text
        assert fields(response) == faults if faults else True
        if faults:
            assert "has no b.offset [2], b.scale [2]" in response.get_json()["errors"][0]["message"]


def test_weights_of_before_that_lack_it_are_refused(client: FlaskClient, db: Database):
    """Early versions kept it with the job alone: nothing that takes inputs as they are may be made without it."""
    dataset = upload(client, npz(x=X, y=Y)).get_json()["id"]
    job = client.post("/v1/jobs", json=spec_for(dataset, data={"dataset": dataset, "normalize": "minmax"}))
    old = job.get_json()["id"]
    claimed = claim(db)
    advance(db, claimed, "starting", "training", "saving")
    kernels = {"dense_1.kernel": WEIGHTS["dense_1.kernel"], "dense_1.bias": np.zeros(1, np.float32)}
    write_artifact(db, claimed, "weights", save(kernels))
    finish(db, claimed, "succeeded", "completed")

    for format_name in ("onnx", "tfjs"):
        refused = client.get(f"/v1/jobs/{old}/weights?format={format_name}")
        assert refused.status_code == 422
        assert "lack input.offset" in refused.get_json()["errors"][0]["message"]
    assert client.get(f"/v1/jobs/{old}/weights?format=npz").status_code == 200

    tuned = {"dataset": dataset, "normalize": "inherit"}
    for changes in ({"predict": {"job": old}}, {"fine_tune": {"job": old}, "data": tuned}):
        refused = client.post("/v1/jobs", json=spec_for(dataset, **changes))
        assert refused.status_code == 422, refused.text
        assert "without saying how" in refused.get_json()["errors"][0]["message"]
    again = client.post("/v1/jobs", json=spec_for(dataset, fine_tune={"job": old}))
    assert again.status_code == 202, again.text
