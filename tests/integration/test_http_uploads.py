"""Data sets in pieces, and rows of them, over HTTP on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update
from werkzeug.test import TestResponse

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.models import Artifact
from texelgrad.models_access import Upload
from texelgrad.repository import uploads
from texelgrad.repository.sweep import sweep_artifacts

from .http import fields, get, http_client, upload
from tests.uploads import CORPUS, X, Y, npz, zipped

MIB = 1 << 20


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on the test's database."""
    with http_client(settings) as opened:
        yield opened


def large() -> bytes:
    """An npz of 2.5 MiB."""
    noise = np.random.default_rng(1).random((320_000, 2), dtype=np.float32)
    return npz(x=noise, y=np.arange(320_000) % 3)


def announce(client: FlaskClient, size: int, **options: Any) -> dict[str, Any]:
    """The announced upload."""
    response = client.post("/v1/datasets/announce", json={"size": size, "name": "large", **options})
    assert response.status_code == 201, response.text
    assert response.headers["Location"] == response.get_json()["content"]
    return response.get_json()


def put(client: FlaskClient, address: str, offset: int, data: bytes) -> TestResponse:
    """Send a piece."""
    kind = "application/octet-stream"
    return client.put(f"{address}?offset={offset}", data=data, content_type=kind)


def test_in_pieces(client: FlaskClient):
    """Of any length: whole MiB are kept, the rest is sent again; the end is as if it had come at once."""
    data = large()
    assert 2 * MIB < len(data) < 4 * MIB
    begun = announce(client, len(data))
    address, offset, rounds = begun["content"], 0, 0
    while True:
        response = put(client, address, offset, data[offset : offset + MIB + 500_000])
        rounds += 1
        if response.status_code == 201:
            break
        assert response.status_code == 200
        state = response.get_json()
        assert state["received"] == offset + MIB
        assert get(client, address) == state
        offset = state["received"]
    assert rounds == 3 or len(data) - offset <= MIB + 500_000
    dataset = response.get_json()
    assert (dataset["id"], dataset["name"], dataset["rows"]) == (begun["id"], "large", 320_000)
    assert get(client, f"/v1/datasets/{begun['id']}") == dataset
    assert client.get(address).status_code == 404
    assert upload(client, data).get_json()["id"] == begun["id"]


def test_the_wrong_place(client: FlaskClient):
    """409 says where to go on; nothing is stored."""
    data = large()
    address = announce(client, len(data))["content"]
    put(client, address, 0, data[:MIB])
    for offset in (0, 1, MIB - 1, MIB + 1, 2 * MIB):
        response = put(client, address, offset, data[:MIB])
        assert response.status_code == 409
        assert f"offset {MIB}" in response.get_json()["detail"]
    assert put(client, address, MIB, data[MIB:] + b"x").status_code == 409
    assert get(client, address)["received"] == MIB
    assert put(client, address, MIB, b"").get_json()["received"] == MIB
    assert put(client, address, MIB, data[MIB:]).status_code == 201


def test_content_that_is_not_right(client: FlaskClient):
    """422 at the end, as for an upload at once; the announcement is gone, so that it can be made anew."""
    for data, options, expected in (
        (b"not a zip", {"format": "npz"}, ["file"]),
        (CORPUS["csv"], {"format": "csv", "target": "q", "weight": "z"}, ["target", "weight"]),
        (b"\xff\xd8 not anything", {}, ["file"]),
    ):
        address = announce(client, len(data), **options)["content"]
        response = put(client, address, 0, data)
        assert (response.status_code, fields(response)) == (422, expected)
        assert client.get(address).status_code == 404
    data = CORPUS["csv"]
    done = put(client, announce(client, len(data), format="csv", target="y")["content"], 0, data)
    assert done.status_code == 201
    again = put(client, announce(client, len(data), target="y")["content"], 0, data)
    assert (again.status_code, again.get_json()["id"]) == (200, done.get_json()["id"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ["size"]),
        ([], ["size"]),
        ({"size": 0}, ["size"]),
        ({"size": True}, ["size"]),
        ({"size": 1, "format": "xlsx", "nam": "a"}, ["nam", "format"]),
        ({"size": 1, "name": "a\u0000"}, ["name"]),
        ({"size": 1, "name": 5, "target": 5, "weight": []}, ["name", "target", "weight"]),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_announcements_that_are_not_right(client: FlaskClient, body: Any, expected: list[str]):
    """422 with every fault."""
    response = client.post("/v1/datasets/announce", json=body)
    assert (response.status_code, fields(response)) == (422, expected)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_too_large_an_announcement(client: FlaskClient):
    """Refused before a byte is sent."""
    assert client.post("/v1/datasets/announce", json={"size": 1 << 50}).status_code == 413


def test_giving_up(client: FlaskClient, db: Database):
    """By hand, or after a day; the sweep leaves what is under way and takes what is not."""
    data = large()
    first, second = (announce(client, len(data)) for _ in range(2))
    for begun in (first, second):
        put(client, begun["content"], 0, data[:MIB])
    with db.write() as session:
        session.execute(update(Artifact).values(created_at=1))
        assert sweep_artifacts(session, 100) == 0
    assert client.delete(f"/v1/datasets/{first['id']}").status_code == 204
    assert client.get(first["content"]).status_code == 404
    assert get(client, second["content"])["received"] == MIB
    with db.write() as session:
        session.execute(update(Upload).values(created_at=1))
        uploads.forget_stale(session)
        while sweep_artifacts(session, 100):
            pass
        assert session.scalars(select(Artifact.id).where(Artifact.kind == "upload")).all() == []
    assert client.get(second["content"]).status_code == 404


def test_another_owners_upload_is_not_there(client: FlaskClient, settings: Settings):
    """It can neither be read, nor continued, nor given up."""
    begun = announce(client, 10)
    with http_client(settings.model_copy(update={"owner_id": "eve"})) as eve:
        assert eve.get(begun["content"]).status_code == 404
        assert put(eve, begun["content"], 0, b"0123456789").status_code == 404
        assert eve.delete(f"/v1/datasets/{begun['id']}").status_code == 404
    assert get(client, begun["content"])["received"] == 0


def test_rows(client: FlaskClient):
    """As they are stored, from anywhere, no more than there are."""
    dataset = upload(client, npz(x=X, y=Y)).get_json()["id"]
    path = f"/v1/datasets/{dataset}/preview"
    assert get(client, f"{path}?offset=4") == {
        "offset": 4,
        "total": 6,
        "rows": [{"x": [8.0, 9.0], "y": 1}, {"x": [10.0, 11.0], "y": 2}],
    }
    assert len(get(client, f"{path}?limit=2")["rows"]) == 2
    assert get(client, f"{path}?offset=6")["rows"] == []
    assert get(client, f"{path}?offset=99999999999")["rows"] == []


def test_inputs_by_name(client: FlaskClient):
    """Each array is described, and shown beside the others of its row; another order of them is the same data set."""
    given = {"image": X.reshape(6, 1, 2), "word": Y, "y": Y}
    answer = upload(client, npz(**given))
    made = answer.get_json()
    assert {name: (array["role"], array["shape"]) for name, array in made["arrays"].items()} == {
        "image": ("input", [6, 1, 2]),
        "word": ("input", [6, 1]),
        "y": ("target", [6]),
    }
    assert get(client, f"/v1/datasets/{made['id']}/preview?offset=4&limit=1")["rows"] == [
        {"image": [[8.0, 9.0]], "word": [1.0], "y": 1}
    ]
    again = upload(client, npz(**dict(reversed(given.items()))))
    assert (answer.status_code, again.status_code) == (201, 200)
    assert again.get_json()["id"] == made["id"]


def test_images_over_http(client: FlaskClient):
    """With their classes' names, and pixels that can be looked at."""
    dataset = upload(client, CORPUS["images"]).get_json()
    assert dataset["arrays"]["x"]["shape"] == [3, 4, 4, 1]
    assert dataset["arrays"]["y"]["stats"]["classes"] == ["cat", "dog"]
    rows = get(client, f"/v1/datasets/{dataset['id']}/preview?limit=1")["rows"]
    assert rows[0]["x"][0][1] == [pytest.approx(1 / 255)]
    assert upload(client, zipped({"a.png": b""})).status_code == 422


def test_weights_of_a_table_in_pieces(client: FlaskClient):
    """The column that the announcement names."""
    data = b"a,w,y\n1,2,0\n2,0.5,1\n"
    address = announce(client, len(data), format="csv", target="y", weight="w")["content"]
    arrays = put(client, address, 0, data).get_json()["arrays"]
    assert {name: array["role"] for name, array in arrays.items()} == {
        "x": "input",
        "y": "target",
        "w": "weight",
    }


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_pair_over_http(client: FlaskClient):
    """Two files in one form; what is missing or does not belong is named."""
    import io

    from tests.uploads import npy

    alone = client.post("/v1/datasets", data={"x": (io.BytesIO(npy(X)), "x.npy")})
    assert (alone.status_code, list(alone.get_json()["arrays"])) == (201, ["x"])
    both = {"x": (io.BytesIO(npy(X)), "x.npy"), "y": (io.BytesIO(npy(Y)), "y.npy"), "name": "pair"}
    response = client.post("/v1/datasets", data=both)
    assert (response.status_code, response.get_json()["name"]) == (201, "pair")
    wrong = {"y": (io.BytesIO(npy(X)), "x.npy"), "z": (io.BytesIO(b""), "z.npy")}
    assert fields(client.post("/v1/datasets?target=a", data=wrong)) == ["z", "x", "target"]
    for query, form in (("?format=npy", {}), ("", {"format": "npy"})):
        again = {**form, "x": (io.BytesIO(npy(X)), "x.npy")}
        assert client.post(f"/v1/datasets{query}", data=again).status_code == 200
    refused = client.post("/v1/datasets?format=csv", data={"x": (io.BytesIO(npy(X)), "x.npy")})
    (fault,) = refused.get_json()["errors"]
    assert (fault["field"], fault["value"], fault["legal"]) == ("format", "csv", "npy")
