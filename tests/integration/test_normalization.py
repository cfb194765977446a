"""Normalisation from the spec to the exported weights, on both databases."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
from flask.testing import FlaskClient
from safetensors.numpy import load, save

from texelgrad.config import Settings
from texelgrad.db import Database
from worker.recorder import Recorder

from .http import get, http_client, npz, spec_for, upload
from .steps import claim, finish, succeed

X = np.random.default_rng(5).normal([3, -70], [2, 11], (40, 2)).astype(np.float32)
Y = np.arange(40) % 2
WEIGHTS = {"dense_1.kernel": np.ones((2, 1), np.float32)}


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on the test's database."""
    with http_client(settings) as opened:
        yield opened


def test_the_page_gets_normalised_inputs(client: FlaskClient, db: Database):
    """Its training rows have mean 0 and deviation 1; targets and the stored data stay as they are."""
    dataset = upload(client, npz(x=X, y=Y)).get_json()["id"]
    data = {"dataset": dataset, "validation": {"fraction": 0.25}, "normalize": "standard"}
    response = client.post("/v1/jobs", json=spec_for(dataset, data=data))
    assert response.status_code == 202, response.text
    job = response.get_json()
    assert job["spec"]["data"]["normalize"] == "standard"
    claimed = claim(db)
    recorder = Recorder(db, lambda *_args, **_fields: None, allow_software=True)
    recorder.begin(claimed)
    document = recorder.job()
    assert document is not None
    assert document["spec"]["data"]["normalize"] == "none"
    given = np.frombuffer(b"".join(recorder.open_data("x", 0, X.nbytes)), "<f4").reshape(X.shape)
    offset, scale = (np.array(job["normalization"][name]) for name in ("offset", "scale"))
    assert np.array_equal(given, ((X - offset) * scale).astype(np.float32))
    from texelgrad.normalize import training_rows

    rows = given[training_rows(0, 0.25, 40)]
    assert np.abs(rows.mean(axis=0)).max() < 1e-6
    assert np.abs(rows.std(axis=0) - 1).max() < 1e-6
    assert np.frombuffer(b"".join(recorder.open_data("y", 0, 160)), "<i4").tolist() == Y.tolist()
    assert get(client, f"/v1/datasets/{dataset}/preview?limit=1")["rows"][0]["x"] == X[0].tolist()

    finish(db, claimed, "failed", "internal")
    again = client.post(f"/v1/jobs/{job['id']}/retry").get_json()
    assert again["normalization"] == job["normalization"]
    succeed(db, claim(db), save(WEIGHTS))
    path = f"/v1/jobs/{again['id']}/weights"
    exported = load(client.get(path).data)
    with np.load(io.BytesIO(client.get(f"{path}?format=npz").data)) as packed:
        for tensors in (exported, packed):
            assert np.array_equal(tensors["input.offset"], offset)
            assert np.array_equal(tensors["input.scale"], scale)
            assert np.array_equal(tensors["dense_1.kernel"], WEIGHTS["dense_1.kernel"])
    assert client.get(path).headers["ETag"] == client.get(path).headers["ETag"]


def test_without_it_nothing_changes(client: FlaskClient, db: Database):
    """Neither the data nor the file of weights."""
    dataset = upload(client, npz(x=X, y=Y)).get_json()["id"]
    job = client.post("/v1/jobs", json=spec_for(dataset)).get_json()
    assert job["normalization"] is None
    claimed = claim(db)
    recorder = Recorder(db, lambda *_args, **_fields: None, allow_software=True)
    recorder.begin(claimed)
    assert b"".join(recorder.open_data("x", 0, X.nbytes)) == X.tobytes()
    succeed(db, claimed, save(WEIGHTS))
    assert client.get(f"/v1/jobs/{job['id']}/weights").data == save(WEIGHTS)
