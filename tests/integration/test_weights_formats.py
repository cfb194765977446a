"""Weights in every format over HTTP: made once, stored, with a hash as ETag; on both databases."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest
from flask.testing import FlaskClient
from safetensors.numpy import save
from sqlalchemy import select

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.models import Artifact

from .http import fields, http_client, post_job
from .steps import claim, succeed

WEIGHTS = {
    "dense_1.kernel": np.array([[2.0], [-3.0]], np.float32),
    "dense_1.bias": np.array([0.5], np.float32),
}


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on the test's database."""
    with http_client(settings) as opened:
        yield opened


def test_derived_formats(client: FlaskClient, db: Database):
    """ONNX predicts, TensorFlow.js has its files, each is stored at the first call and the same at the second."""
    job = post_job(client)
    succeed(db, claim(db), save(WEIGHTS))
    path = f"/v1/jobs/{job['id']}/weights?format="
    answers = {name: [client.get(path + name) for _ in range(2)] for name in ("npz", "onnx", "tfjs")}
    for name, (first, second) in answers.items():
        assert first.status_code == 200, first.text
        assert (first.data, first.headers["ETag"]) == (second.data, second.headers["ETag"])
        suffix = "tfjs.zip" if name == "tfjs" else name
        assert first.headers["Content-Disposition"] == f'attachment; filename="{job["id"]}.{suffix}"'
        part = client.get(path + name, headers={"Range": "bytes=10-19"})
        assert (part.status_code, part.data) == (206, first.data[10:20])
    with db.read() as session:
        kinds = session.scalars(select(Artifact.kind).where(Artifact.kind.startswith("weights"))).all()
    assert sorted(kinds) == ["weights", "weights.npz", "weights.onnx", "weights.tfjs"]

    net = onnxruntime.InferenceSession(answers["onnx"][0].data, providers=["CPUExecutionProvider"])
    assert np.asarray(net.run(None, {"x": np.array([[1, 1], [2, 0]], np.float32)})[0]).tolist() == [
        [-0.5],
        [4.5],
    ]
    with zipfile.ZipFile(io.BytesIO(answers["tfjs"][0].data)) as archive:
        assert archive.namelist() == ["model.json", "group1-shard1of1.bin"]
        assert np.frombuffer(archive.read("group1-shard1of1.bin"), "<f4").tolist() == [2, -3, 0.5]


def test_what_a_format_can_not_say(client: FlaskClient, db: Database):
    """422 names the layer; other formats have it."""
    model = {"input": [2], "layers": [{"type": "dense", "units": 1, "activation": "hard_swish"}]}
    job = post_job(client, model=model, loss="mse")
    succeed(db, claim(db), save(WEIGHTS))
    refused = client.get(f"/v1/jobs/{job['id']}/weights?format=tfjs")
    assert refused.status_code == 422
    assert fields(refused) == ["format"]
    assert "dense_1, whose activation is hard_swish" in refused.text
    assert client.get(f"/v1/jobs/{job['id']}/weights?format=onnx").status_code == 200
    unknown = client.get(f"/v1/jobs/{job['id']}/weights?format=keras")
    assert (unknown.status_code, fields(unknown)) == (422, ["format"])
