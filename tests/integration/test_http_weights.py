"""Jobs that begin with weights that are there already, over HTTP, on both databases: fine-tuning, predictions, uploads."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from numpy.typing import NDArray
from safetensors.numpy import load, save
from sqlalchemy import select, update

from texelgrad import submit
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.models import CHUNK_BYTES, Artifact, Job
from texelgrad.repository.sweep import sweep_artifacts

from .http import fields, get, http_client, npz, post_job, spec_for, upload, upload_points
from .steps import advance, claim, finish, write_artifact

WEIGHTS: dict[str, NDArray[Any]] = {
    "dense_1.kernel": np.array([[0.5], [-2.0]], np.float32),
    "dense_1.bias": np.array([0.25], np.float32),
}
BINARY = "application/octet-stream"
HOUR_US = 3600 * 1_000_000


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on the test's database."""
    with http_client(settings) as opened:
        yield opened


def trained(client: FlaskClient, db: Database, **changes: Any) -> str:
    """The id of a job that has succeeded with WEIGHTS."""
    job = post_job(client, **changes)
    made = claim(db)
    assert made.job_id == job["id"]
    advance(db, made, "starting", "training", "saving")
    write_artifact(db, made, "weights", save(WEIGHTS))
    finish(db, made, "succeeded", "completed")
    return job["id"]


def uploaded(client: FlaskClient, tensors: dict[str, NDArray[Any]] = WEIGHTS) -> str:
    response = client.post("/v1/weights", data=save(tensors), content_type=BINARY)
    assert response.status_code == 201, response.text
    return response.get_json()["id"]


def refused(client: FlaskClient, **changes: Any) -> list[dict[str, Any]]:
    response = client.post("/v1/jobs", json=spec_for(upload_points(client), **changes))
    assert response.status_code == 422, response.text
    return response.get_json()["errors"]


# ---- fine-tuning ----------------------------------------------------------------------------------------------------


def test_a_job_begins_with_the_weights_of_an_earlier_one(client: FlaskClient, db: Database):
    """The worker gets that file; a retry does too; the earlier job can't be deleted while another began with it."""
    old = trained(client, db)
    job = post_job(client, fine_tune={"job": old})
    assert job["spec"]["fine_tune"] == {"job": old, "weights": None, "layers": None}
    made = claim(db)
    weights = client.get(f"/v1/jobs/{old}/weights").data
    with db.read() as session:
        from texelgrad import artifacts

        assert made.weights_artifact_id is not None
        assert artifacts.read_all(session, made.weights_artifact_id) == weights
    finish(db, made, "failed", "internal")
    again = client.post(f"/v1/jobs/{job['id']}/retry").get_json()
    assert claim(db).weights_artifact_id == made.weights_artifact_id
    response = client.delete(f"/v1/jobs/{old}")
    assert response.status_code == 409
    assert job["id"] in response.get_json()["detail"]
    assert again["id"] in response.get_json()["detail"]


def test_a_job_begins_with_uploaded_weights(client: FlaskClient, db: Database):
    """The answer shows the tensors; a day later the file is gone, but not while a job began with it."""
    response = client.post("/v1/weights", data=save(WEIGHTS), content_type=BINARY)
    assert response.status_code == 201
    answer = response.get_json()
    assert answer["tensors"] == {"dense_1.kernel": [2, 1], "dense_1.bias": [1]}
    used, unused = answer["id"], uploaded(client)
    job = post_job(client, fine_tune={"weights": used, "layers": ["dense_1"]})
    assert claim(db).weights_artifact_id == used
    with db.write() as session:
        assert sweep_artifacts(session, 100) == 0
        session.execute(update(Artifact).values(created_at=Artifact.created_at - 25 * HOUR_US))
    with db.write() as session:
        sweep_artifacts(session, 100)
    with db.read() as session:
        assert session.get(Artifact, used) is not None
        assert session.get(Artifact, unused) is None
        assert session.get_one(Job, job["id"]).weights_artifact_id == used


def test_a_file_that_is_being_deleted_is_no_longer_found(client: FlaskClient, db: Database):
    """Its chunks go a few at a time; from the first on it is gone."""
    wide = {"wide.kernel": np.zeros((CHUNK_BYTES, 1), np.float32)}
    weights = uploaded(client, WEIGHTS | wide)
    with db.write() as session:
        session.execute(update(Artifact).values(created_at=Artifact.created_at - 25 * HOUR_US))
    with db.write() as session:
        assert sweep_artifacts(session, 1) == 1
    with db.read() as session:
        assert session.get_one(Artifact, weights).state == "dropped"
    (fault,) = refused(client, fine_tune={"weights": weights})
    assert fault["message"] == "there is no such file"


def test_a_file_may_go_between_the_check_and_the_job(
    client: FlaskClient, db: Database, monkeypatch: pytest.MonkeyPatch
):
    """Then the job is refused as if it had gone before, and nothing of it is kept."""
    weights = uploaded(client)
    check = submit.check_job

    def and_sweep(*given: Any) -> Any:
        checked = check(*given)
        with db.write() as session:
            session.execute(
                update(Artifact)
                .where(Artifact.id == weights)
                .values(created_at=Artifact.created_at - 25 * HOUR_US)
            )
        with db.write() as session:
            sweep_artifacts(session, 100)
        return checked

    monkeypatch.setattr(submit, "check_job", and_sweep)
    (fault,) = refused(client, fine_tune={"weights": weights})
    assert (fault["field"], fault["message"]) == ("fine_tune", "the file has been deleted meanwhile")
    with db.read() as session:
        assert session.scalars(select(Job.id)).all() == []


def test_layers_that_the_file_lacks_come_from_the_seed(client: FlaskClient):
    """A model with a layer more is fine."""
    layers = [{"type": "dense", "units": 1}, {"type": "dense", "units": 1}]
    wider = post_job(client, model={"input": [2], "layers": layers}, fine_tune={"weights": uploaded(client)})
    assert wider["state"] == "queued"


def test_shapes_are_checked_before_anything_is_queued(client: FlaskClient, db: Database):
    """The fault names the tensor, its shape in the file and the one that the model needs."""
    old = trained(client, db)
    model = {"input": [2], "layers": [{"type": "dense", "units": 3}, {"type": "dense", "units": 1}]}
    (kernel, bias) = refused(client, model=model, fine_tune={"job": old})
    assert kernel["field"] == "fine_tune"
    assert "dense_1.kernel is [2, 1] in the file, [2, 3] in the model" in kernel["message"]
    assert kernel["value"] == [2, 1]
    assert "[2, 3]" in kernel["legal"]
    assert "dense_1.bias" in bias["message"]
    (missing,) = [
        fault
        for fault in refused(client, model=model, fine_tune={"job": old, "layers": ["dense_2"]})
        if "kernel" in fault["message"]
    ]
    assert (missing["field"], missing["value"]) == ("fine_tune.layers.0", "dense_2.kernel")
    other = uploaded(client, {"other.kernel": np.ones((2, 2), np.float32)})
    (none,) = refused(client, fine_tune={"weights": other})
    assert none["value"] == ["other.kernel"]
    assert client.get("/v1/jobs").get_json()["items"][0]["id"] == old


def test_weights_that_are_not_there(client: FlaskClient, db: Database):
    """Of no job, of one that has not succeeded, of another owner, and of no file at all."""
    queued = post_job(client)["id"]
    assert [fault["field"] for fault in refused(client, fine_tune={})] == ["fine_tune"]
    (fault,) = refused(client, fine_tune={"job": queued})
    assert fault["field"] == "fine_tune.job"
    assert "is queued" in fault["message"]
    for name, prefix in (("job", "job_"), ("weights", "art_")):
        (fault,) = refused(client, fine_tune={name: prefix + "0" * 26})
        assert fault["field"] == f"fine_tune.{name}"
    foreign = uploaded(client)
    with db.write() as session:
        session.execute(update(Artifact).where(Artifact.id == foreign).values(owner_id="somebody"))
    (fault,) = refused(client, fine_tune={"weights": foreign})
    assert fault["field"] == "fine_tune.weights"


def broken_files() -> Iterator[tuple[str, bytes]]:
    good = save(WEIGHTS)
    yield "empty", b""
    yield "no header", b"x" * 100
    yield "cut", good[:-1]
    yield "longer", good + b"x"
    yield "integers", save({"dense_1.kernel": np.ones((2, 1), np.int32)})
    yield "NaN", save({"dense_1.kernel": np.array([[np.nan], [1]], np.float32)})
    yield "no tensors", save({})
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    for name, header in {
        "overlap": {"a": entry, "b": entry},
        "shape": {"a": entry | {"shape": [3]}},
        "negative": {"a": entry | {"shape": [-1, -2]}},
        "text": {"a": entry | {"shape": "2"}},
        "a list": [1],
    }.items():
        text = json.dumps(header).encode()
        yield name, len(text).to_bytes(8, "little") + text + bytes(8)


@pytest.mark.parametrize(
    ("why", "data"), [*broken_files()], ids=lambda item: item if isinstance(item, str) else ""
)
def test_files_that_are_no_weights(client: FlaskClient, why: str, data: bytes):
    """Refused with 422 before anything is kept."""
    response = client.post("/v1/weights", data=data, content_type=BINARY)
    assert response.status_code == 422, why
    assert fields(response) == ["file"]


def test_weights_beyond_float32(client: FlaskClient):
    """Refused as of data, with the largest: layers begin with float32. Offsets and scales of inputs stay float64."""
    for number in (1e300, -3.5e38):
        tensors = {"dense_1.kernel": np.array([[1.0], [number]])}
        response = client.post("/v1/weights", data=save(tensors), content_type=BINARY)
        (fault,) = response.get_json()["errors"]
        assert fault == {
            "field": "file",
            "message": "dense_1.kernel has values beyond float32",
            "value": abs(number),
            "legal": "up to 3.4e38",
        }
    largest = {"dense_1.kernel": np.full((2, 1), float(np.finfo(np.float32).max))}
    subnormal = {"input.offset": np.zeros(2), "input.scale": np.full(2, 1e40)}
    uploaded(client, largest | subnormal | {"image.scale": np.full(2, -1e40), "empty.bias": np.zeros(0)})


# ---- predictions ----------------------------------------------------------------------------------------------------


def test_inputs_without_targets_are_for_predictions(client: FlaskClient, db: Database):
    """A job that predicts takes them, and an estimate of one; one that trains names the data set."""
    old = trained(client, db)
    bare = upload(client, npz(x=np.ones((3, 2)))).get_json()
    assert list(bare["arrays"]) == ["x"]
    job = predict(client, old, dataset=bare["id"]).get_json()
    assert job["total_steps"] == 3
    estimate = client.post("/v1/estimates", json=job["spec"]).get_json()
    assert estimate["total_steps"] == 3
    labelled = upload(client, npz(x=np.ones((3, 2)), y=np.zeros(3))).get_json()["id"]
    twin = {**job["spec"], "data": {"dataset": labelled}}
    assert client.post("/v1/estimates", json=twin).get_json() == estimate
    assert [array.name for array in claim(db).data] == ["x"]
    response = client.post("/v1/jobs", json=spec_for(bare["id"]))
    assert fields(response) == ["data.dataset"]
    (fault,) = response.get_json()["errors"]
    assert (fault["value"], "no targets y" in fault["message"]) == (bare["id"], True)


def predict(client: FlaskClient, job: str, **body: Any) -> Any:
    return client.post(f"/v1/jobs/{job}/predictions", json=body)


def test_predictions_are_a_job(client: FlaskClient, db: Database):
    """Queued, claimed and retried as others are; its file comes as safetensors, npz and CSV."""
    old = trained(client, db, tags={"team": "edge"})
    dataset = upload(client, npz(x=np.ones((3, 2)), y=np.array([0.5, 7.0, 9.0]))).get_json()["id"]
    response = predict(client, old, dataset=dataset)
    assert response.status_code == 202, response.text
    job = response.get_json()
    assert response.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert (job["kind"], job["state"], job["total_steps"]) == ("predict", "queued", 3)
    assert (job["name"], job["tags"]) == ("predictions of points", {"team": "edge"})
    assert get(client, f"/v1/jobs/{old}")["kind"] == "train"
    path = f"/v1/jobs/{job['id']}/predictions"
    assert client.get(path).status_code == 409
    made = claim(db)
    assert made.weights_artifact_id is not None
    assert made.spec["predict"] == {"job": old}
    advance(db, made, "starting", "training", "saving")
    outputs = np.array([[0.1], [-2.5], [1e-8]], np.float32)
    write_artifact(db, made, "predictions", save({"outputs": outputs}))
    assert finish(db, made, "lost", "runner_died") == "queued"
    made = claim(db)
    advance(db, made, "starting", "training", "saving")
    write_artifact(db, made, "predictions", save({"outputs": outputs}))
    assert finish(db, made, "succeeded", "completed") == "succeeded"
    np.testing.assert_array_equal(load(client.get(path).data)["outputs"], outputs)
    archive = np.load(io.BytesIO(client.get(f"{path}?format=npz").data))
    np.testing.assert_array_equal(archive["outputs"], outputs)
    table = list(csv.reader(io.StringIO(client.get(f"{path}?format=csv").text)))
    assert table == [["output_0"], ["0.1"], ["-2.5"], ["1e-08"]]
    assert client.get(path, headers={"Range": "bytes=0-7"}).status_code == 206
    assert client.get(f"/v1/jobs/{job['id']}/weights").status_code == 404
    assert client.get(f"/v1/jobs/{old}/predictions").status_code == 404
    assert predict(client, job["id"], dataset=dataset).status_code == 409
    assert client.post(f"/v1/jobs/{job['id']}/retry").get_json()["kind"] == "predict"
    assert client.delete(f"/v1/jobs/{old}").status_code == 409


def test_what_can_not_be_predicted(client: FlaskClient, db: Database):
    """A job that has not succeeded, other inputs, no data set, fields that there are not; in the words of this request."""
    queued = post_job(client)["id"]
    dataset = upload_points(client)
    response = predict(client, queued, dataset=dataset)
    assert (response.status_code, response.get_json()["detail"]) == (
        409,
        f"job {queued} is queued and has no weights yet: only one that has succeeded predicts",
    )
    claimed = claim(db)
    finish(db, claimed, "failed", "internal")
    old = trained(client, db)
    assert fields(predict(client, old)) == ["dataset"]
    assert fields(predict(client, old, dataset=None)) == ["dataset"]
    assert fields(predict(client, old, dataset=3)) == ["dataset"]
    assert fields(client.post(f"/v1/jobs/{old}/predictions", json=[])) == ["(the whole)"]
    assert fields(predict(client, old, dataset=dataset, rows=3)) == ["rows"]
    assert fields(predict(client, old, dataset="ds_" + "0" * 26)) == ["dataset"]
    wide = upload(client, npz(x=np.ones((3, 4)), y=np.arange(3))).get_json()["id"]
    (fault,) = predict(client, old, dataset=wide).get_json()["errors"]
    assert (fault["field"], fault["message"]) == ("dataset", "has rows of [4] in x, but the model takes [2]")
    assert (fault["value"], fault["legal"]) == ([4], "rows of [2]")
    other = upload(client, npz(image=np.ones((3, 2)))).get_json()["id"]
    (fault,) = predict(client, old, dataset=other).get_json()["errors"]
    assert (fault["field"], fault["message"]) == ("dataset", "has no x but image")
    assert predict(client, queued, dataset=dataset).status_code == 409, "failed for good"
    assert predict(client, "job_" + "0" * 26, dataset=dataset).status_code == 404


TABLE = b"width;height;kind;weight\n1;2;0;1\n3;1;1;1\n2;2;0;1\n"


def table(client: FlaskClient, text: bytes, **columns: str) -> str:
    """The id of a table's data set."""
    query = "&".join(f"{field}={name}" for field, name in columns.items())
    response = upload(client, text, f"?{query}", "text/csv")
    assert response.status_code == 201, response.text
    return response.get_json()["id"]


def test_columns_are_matched_by_name(client: FlaskClient, db: Database):
    """Whatever their order in the table to predict for; by position only where one side has no names."""
    dataset = table(client, TABLE, target="kind", weight="weight")
    old = trained(client, db, data={"dataset": dataset}, train={"steps": 1})

    def order(rows: bytes | None = None, **arrays: Any) -> tuple[int, ...] | None:
        """Where the model's columns stand in the table, as the worker gets it."""
        other = table(client, rows) if rows else upload(client, npz(**arrays)).get_json()["id"]
        assert predict(client, old, dataset=other).status_code == 202
        (array,) = claim(db).data
        return array.order

    assert order(b"height,width\n2,1\n") == (1, 0)
    assert order(b"width,height\n5,6\n") is None
    assert order(x=np.ones((3, 2))) is None
    assert predict(client, old, dataset=dataset).status_code == 202
    x = next(array for array in claim(db).data if array.name == "x")
    assert x.order is None
    plain = trained(client, db)
    assert predict(client, plain, dataset=table(client, b"b,a\n7,7\n")).status_code == 202
    assert claim(db).data[0].order is None, "nobody knows what the columns of an npz are"


def test_tuning_on_columns_in_another_order(client: FlaskClient, db: Database):
    """Is refused where a layer that reads them, or what normalises them, is kept: a column's weights are that column's."""
    old = trained(client, db, data={"dataset": table(client, TABLE, target="kind", weight="weight")}, train={"steps": 1})  # fmt: skip
    moved = table(client, b"kind,height,width\n0,2,1\n1,1,3\n", target="kind")
    spec = spec_for(moved, train={"steps": 1}, fine_tune={"job": old})
    response = client.post("/v1/jobs", json=spec)
    assert fields(response) == ["data.dataset"]
    assert response.get_json()["errors"][0]["legal"] == "width, height"
    same = table(client, b"kind,width,height\n0,2,1\n1,1,3\n", target="kind")
    other = table(client, b"kind,depth,width\n0,2,1\n1,1,3\n", target="kind")  # another matter: new features
    for dataset in (same, other, upload_points(client)):
        response = client.post("/v1/jobs", json={**spec, "data": {"dataset": dataset}})
        assert response.status_code == 202, response.text
    behind = [{"type": "dense", "units": 2, "name": "new"}, {"type": "dense", "units": 1, "name": "dense_1"}]
    later = spec | {
        "model": {"input": [2], "layers": behind},
        "fine_tune": {"job": old, "layers": ["dense_1"]},
    }
    response = client.post("/v1/jobs", json=later)
    assert response.status_code == 202, response.text
    for first in ({"type": "batch_norm"}, {"type": "dropout", "rate": 0.5}):  # leave each column where it is
        layers = [first, {"type": "dense", "units": 1, "name": "dense_1"}]
        response = client.post("/v1/jobs", json=later | {"model": {"input": [2], "layers": layers}})
        assert fields(response) == ["data.dataset"]
    layers = [
        {"type": "dense", "units": 1, "name": "new"},
        {"type": "dense", "units": 1, "name": "dense_1", "inputs": ["input"]},
        {"type": "add", "inputs": ["new", "dense_1"]},
    ]
    response = client.post("/v1/jobs", json=later | {"model": {"input": [2], "layers": layers}})
    assert fields(response) == ["data.dataset"]


def test_many_columns_are_not_all_shown(client: FlaskClient):
    """A description stays a description; they are known all the same."""
    few, many = (table(client, b"%s\n%s\n" % (b",".join(b"c%d" % i for i in range(n)), b",".join([b"1"] * n))) for n in (1000, 1001))  # fmt: skip
    shown = [get(client, f"/v1/datasets/{each}")["arrays"]["x"]["stats"] for each in (few, many)]
    assert len(shown[0]["columns"]) == 1000
    assert "columns" not in shown[1]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("width,depth", "lacks height and has depth, which the model was not trained on"),
        ("width", "lacks height"),
        ("height,width,kind", "has kind, which the model was not trained on"),
        ("Width,height", "lacks width and has Width, which the model was not trained on"),
    ],
)
def test_columns_that_are_not_the_models(client: FlaskClient, db: Database, header: str, message: str):
    """One fault, whatever the number of columns: what is missing, what is too much, and what there should be."""
    data = {"dataset": table(client, TABLE, target="kind", weight="weight")}
    old = trained(client, db, data=data, train={"steps": 1})
    cells = ",".join("1" for _ in header.split(","))
    response = predict(client, old, dataset=table(client, f"{header}\n{cells}\n".encode()))
    assert response.status_code == 422, response.text
    (fault,) = response.get_json()["errors"]
    assert (fault["field"], fault["message"], fault["value"]) == ("dataset", message, header.split(","))
    assert fault["legal"].startswith("the columns width, height, in any order")


def test_batches_and_a_split_are_for_training(client: FlaskClient, db: Database):
    """A job that predicts takes any number of rows, whatever its spec says of batches and validation; so does its estimate."""
    old = trained(client, db)
    dataset = upload(client, npz(x=np.ones((1, 2)), y=np.array([1.0]))).get_json()["id"]
    spec = spec_for(dataset, predict={"job": old})
    spec["train"] = {"steps": 1, "batch_size": 32}
    spec["data"] = {"dataset": dataset, "validation": {"rows": [3, 40]}}
    response = client.post("/v1/jobs", json=spec)
    assert response.status_code == 202, response.text
    assert response.get_json()["total_steps"] == 1
    response = client.post("/v1/estimates", json=spec)
    assert response.status_code == 200, response.text
    estimate = response.get_json()
    assert (estimate["train_rows"], estimate["total_steps"], estimate["flops_per_step"]) == (0, 1, 6)


def test_the_same_key_predicts_once(client: FlaskClient, db: Database):
    """Idempotency-Key: the same body answers the same job, another one is refused."""
    old = trained(client, db)
    first, second = upload_points(client), upload_points(client, 30)
    path, headers = f"/v1/jobs/{old}/predictions", {"Idempotency-Key": "k1"}
    one = client.post(path, json={"dataset": first}, headers=headers).get_json()["id"]
    assert client.post(path, json={"dataset": first}, headers=headers).get_json()["id"] == one
    assert fields(client.post(path, json={"dataset": second}, headers=headers)) == ["Idempotency-Key"]
