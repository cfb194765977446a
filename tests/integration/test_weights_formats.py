"""Weights in every format over HTTP: made once, stored, with a hash as ETag; on both databases."""

from __future__ import annotations

import hashlib
import io
import tracemalloc
import zipfile
from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
import pytest
from flask.testing import FlaskClient
from onnx import numpy_helper
from safetensors.numpy import save
from sqlalchemy import select

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.errors import Damaged
from texelgrad.exports import FORMATS, predictions_artifact, weights_artifact
from texelgrad.models import Artifact, ArtifactChunk

from .http import fields, http_client, post_job
from .steps import advance, claim, finish, succeed, write_artifact

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


@pytest.mark.parametrize("format_name", FORMATS)
def test_damaged_weights_are_told(client: FlaskClient, db: Database, format_name: str):
    """Neither the file nor what is made from it is given out; also not in part."""
    job = post_job(client)
    succeed(db, claim(db), save(WEIGHTS))
    with db.write() as session:
        for chunk in session.scalars(select(ArtifactChunk)):
            chunk.data = chunk.data[:-1] + b"?"
    for headers in ({}, {"Range": "bytes=0-9"}):
        answer = client.get(f"/v1/jobs/{job['id']}/weights?format={format_name}", headers=headers)
        assert (answer.status_code, answer.get_json()["code"]) == (500, "damaged")
        assert "SHA-256" in answer.get_json()["detail"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_large_damaged_weights_break_off(client: FlaskClient, db: Database):
    """Before their last piece: nobody takes them for whole. Ranges are given out as they are."""
    job = post_job(client)
    file = save({"dense_1.kernel": np.zeros(9 << 18, np.float32)})
    succeed(db, claim(db), file)
    address = f"/v1/jobs/{job['id']}/weights?format=safetensors"
    assert client.get(address).data == file
    with db.write() as session:
        chunk = session.scalars(select(ArtifactChunk).where(ArtifactChunk.seq == 3)).one()
        chunk.data = chunk.data[:-1] + b"?"
    read: list[bytes] = []
    with pytest.raises(Damaged, match="SHA-256"):
        read.extend(client.get(address).iter_encoded())
    assert 0 < len(b"".join(read)) < len(file)
    assert client.get(address, headers={"Range": "bytes=0-9"}).data == file[:10]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("format_name", ["npz", "onnx", "tfjs"])
def test_large_weights_take_little_memory(client: FlaskClient, db: Database, format_name: str):
    """48 MiB become a file of another format in less than 24 MiB: blocks of 4, and chunks on their way into the database."""
    job = post_job(client)
    kernel = np.arange(12 << 20, dtype=np.float32).reshape(4096, 3072)
    claimed = claim(db)
    succeed(db, claimed, save({**WEIGHTS, "dense_1.kernel": kernel}))
    tracemalloc.start()
    try:
        made = weights_artifact(db, claimed.attempt_id, job["spec"], format_name)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
    data = client.get(f"/v1/jobs/{job['id']}/weights?format={format_name}").data
    assert (made.size, hashlib.sha256(data).hexdigest()) == (len(data), made.sha256)
    if format_name == "onnx":
        found = {
            tensor.name: numpy_helper.to_array(tensor)
            for tensor in onnx.load_from_string(data).graph.initializer
        }
        np.testing.assert_array_equal(found["dense_1.kernel"], kernel)
        return
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        if format_name == "npz":
            np.testing.assert_array_equal(np.load(io.BytesIO(archive.read("dense_1.kernel.npy"))), kernel)
        else:
            shards = [archive.read(name) for name in archive.namelist()[1:]]
            assert {len(shard) for shard in shards[:-1]} == {4 << 20}
            np.testing.assert_array_equal(
                np.frombuffer(b"".join(shards), "<f4")[: kernel.size], kernel.ravel()
            )


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_predictions_as_text_take_little_memory(client: FlaskClient, db: Database):
    """A million outputs, some thousand lines at a time."""
    old = post_job(client)
    succeed(db, claim(db), save(WEIGHTS))
    job = client.post(f"/v1/jobs/{old['id']}/predictions", json={"dataset": old["dataset_id"]}).get_json()
    claimed = claim(db)
    advance(db, claimed, "starting", "training", "saving")
    outputs = np.arange(1 << 20, dtype=np.float32).reshape(-1, 4)
    write_artifact(db, claimed, "predictions", save({"outputs": outputs}))
    finish(db, claimed, "succeeded", "completed")
    tracemalloc.start()
    try:
        predictions_artifact(db, claimed.attempt_id, job["spec"], "csv")
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    text = client.get(f"/v1/jobs/{job['id']}/predictions?format=csv").data
    np.testing.assert_array_equal(
        np.loadtxt(io.BytesIO(text), delimiter=",", skiprows=1, dtype=np.float32), outputs
    )


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
