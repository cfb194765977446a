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

from .http import get, http_client, npz, spec_for, upload
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
