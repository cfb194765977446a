"""Bad input over HTTP: uploads, parameters, bodies, foreign pages; and what the service says of itself."""

from __future__ import annotations

import io
import json
import struct
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient

from texelgrad.config import Settings
from texelgrad.db import Database, downgrade
from texelgrad.hints import Publisher

from .http import fields, http_client, npz, spec_for, upload, upload_points

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
X, Y = np.arange(12.0).reshape(6, 2), np.arange(6) % 3


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on a fresh SQLite file."""
    with http_client(settings) as opened:
        yield opened


def lying_npz(shape: str, payload: bytes = b"") -> bytes:
    """An npz whose x says it has another shape than its bytes."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + payload
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", member)
        archive.writestr("y.npy", npy(Y))
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    """The bytes of an npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def bomb() -> bytes:
    """An npz whose directory promises 1 GiB in a few bytes."""
    data = bytearray(npz(x=X, y=Y))
    place = data.rfind(b"PK\x01\x02", 0, data.rfind(b"PK\x01\x02"))
    data[place + 24 : place + 28] = struct.pack("<I", 1 << 30)
    return bytes(data)


def flipped() -> bytes:
    """An npz with one wrong bit in its packed bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, x=X, y=Y)
    data = bytearray(buffer.getvalue())
    data[data.index(struct.pack("<d", 7.0))] ^= 1
    return bytes(data)


def test_upload_npz(client: FlaskClient):
    """Arrays are normalised and described; the same content is stored once, under any packing."""
    response = upload(client, npz(x=X, y=Y), "?name=six")
    assert response.status_code == 201
    dataset = response.get_json()
    assert response.headers["Location"] == f"/v1/datasets/{dataset['id']}"
    assert (dataset["name"], dataset["rows"]) == ("six", 6)
    assert dataset["arrays"]["x"] == {
        "role": "input",
        "dtype": "float32",
        "shape": [6, 2],
        "stats": {
            "min": 0.0,
            "max": 11.0,
            "integral": True,
            "row_sums_one": False,
            "mean": 5.5,
            "std": float(np.arange(12).std()),
            "counts": None,
            "classes": None,
            "columns": None,
            "warnings": None,
            "features": {
                "min": [0.0, 1.0],
                "max": [10.0, 11.0],
                "mean": [5.0, 6.0],
                "std": pytest.approx([float(np.arange(0, 12, 2).std())] * 2),
            },
        },
    }
    assert dataset["arrays"]["y"]["stats"]["counts"] == {"0": 2, "1": 2, "2": 2}
    assert dataset["arrays"]["y"]["dtype"] == "int32"
    assert client.get(f"/v1/datasets/{dataset['id']}").get_json() == dataset
    form = {"file": (io.BytesIO(npz(x=X.astype("f2"), y=Y.astype("f8"))), "again.npz")}
    again = client.post("/v1/datasets", data=form)
    assert again.status_code == 200
    assert again.get_json() == dataset | {"deduplicated": True, "uploaded_as": "again.npz"}
    (listed,) = client.get("/v1/datasets").get_json()["items"]
    assert "features" not in listed["arrays"]["x"]["stats"]


def test_upload_csv(client: FlaskClient):
    """Raw with a query, or as a form; a byte order mark and blank lines do no harm."""
    text = "\ufeffa,label,b\n1,0,2\n\n3,1,4\n".encode()
    raw = upload(client, text, "?target=label&name=t", "text/csv")
    assert raw.status_code == 201
    arrays = raw.get_json()["arrays"]
    assert arrays["x"]["shape"] == [2, 2]
    assert (arrays["y"]["dtype"], arrays["y"]["shape"]) == ("int32", [2])
    form = {"file": (io.BytesIO(text), "t.csv"), "target": "label", "name": "t"}
    assert client.post("/v1/datasets", data=form).get_json()["id"] == raw.get_json()["id"]


def test_upload_csv_with_names_of_classes(client: FlaskClient):
    """Their numbers are stored, their names shown; what float32 loses is said."""
    response = upload(client, b"a;kind\n1e-300;oak\n2;elm\n", "?target=kind", "text/csv")
    dataset = client.get(response.headers["Location"]).get_json()
    assert dataset["arrays"]["y"]["stats"]["classes"] == ["elm", "oak"]
    assert dataset["warnings"] == ["x: 1 value other than 0 is below what float32 keeps, and stored as 0"]


def test_a_wrong_name_and_a_wrong_file(client: FlaskClient):
    """Both in one answer."""
    assert fields(upload(client, b"a,b\n1,x\n", f"?target=b&name={'n' * 201}&format=npz")) == [
        "name",
        "target",
    ]


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "a\x1fb", "n" * 201])
def test_names_that_can_not_be_kept_or_shown(client: FlaskClient, text: str):
    """Half a character, which JSON can name, or what can't be shown: 422 with each field. Whole ones are right."""
    named = dict.fromkeys(("name", "target", "weight"), text)
    response = client.post("/v1/datasets/announce", json={"size": 10, **named})
    assert (response.status_code, fields(response)) == (422, ["name", "target", "weight"])
    whole = client.post(
        "/v1/datasets/announce", json={"size": 10, "name": "\U0001f600", "target": "\U0001f600"}
    )
    assert whole.get_json()["name"] == "\U0001f600"


def test_pages_of_datasets(client: FlaskClient):
    """Newest first, with a cursor."""
    ids = [upload_points(client, rows) for rows in (4, 6, 8)]
    page = client.get("/v1/datasets?limit=2").get_json()
    assert [item["id"] for item in page["items"]] == [ids[2], ids[1]]
    rest = client.get(f"/v1/datasets?cursor={page['next_cursor']}").get_json()
    assert [item["id"] for item in rest["items"]] == [ids[0]]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize(
    ("data", "query", "expected"),
    [
        (b"", "?format=npz", ["file"]),
        (b"not a zip", "?format=npz", ["file"]),
        (npz(x=X, y=Y)[:-20], "?format=npz", ["file"]),
        (npz(y=Y), "", ["file"]),
        (npz(x=X, y=Y, z=Y), "", ["file"]),
        (bomb(), "", ["file"]),
        (flipped(), "", ["x"]),
        (npz(x=X, y=Y[:5]), "", ["y"]),
        (npz(x=X[:0], y=Y[:0]), "", ["x", "y"]),
        (npz(x=np.float64(3), y=Y), "", ["x"]),
        (npz(x=np.full((6, 2), np.nan), y=Y), "", ["x"]),
        (npz(x=np.full((6, 2), np.inf), y=np.full(6, np.nan)), "", ["x", "y"]),
        (npz(x=np.full((6, 2), 1e300), y=Y), "", ["x"]),
        (npz(x=X.astype(complex), y=Y), "", ["x"]),
        (npz(x=X.astype(str), y=np.array([object()] * 6)), "", ["x", "y"]),
        (npz(x=np.zeros((6, 1, 1, 1, 1, 1)), y=Y), "", ["x"]),
        (npz(x=X, y=Y), "?target=a", ["target"]),
        (npz(x=X, y=Y), "?format=xlsx", ["format"]),
        (npz(x=X, y=Y), "?nam=a", ["nam"]),
        (npz(x=X, y=Y), "?name=%00", ["name"]),
        (lying_npz("(1000000000000, 8)"), "", ["x"]),
        (lying_npz("(-1, 8)"), "", ["x"]),
        (lying_npz("(2, 1)", bytes(8)), "", ["x"]),
        (lying_npz("(1, 1)", bytes(16)), "", ["x"]),
        (lying_npz("__import__('os')"), "", ["x"]),
        (b"", "?format=csv&target=a", ["file"]),
        (b"a,b\n", "?target=a", ["file"]),
        (b"\x00\xff", "", ["file"]),
        (b"a,b\n1,2\n", "?target=c", ["target"]),
        (b"a\n1\n", "?target=a", ["file"]),
        (b"a,a\n1,2\n", "?target=a", ["file"]),
        (b"a,b\n1,2,3\n", "?target=a", ["line 2"]),
        (b"a,b\n1,\n", "?target=a", ["line 2, column b"]),
        (b"a,b\n1,x\nnan,2\n", "?target=a", ["line 2, column b", "line 3, column a"]),
        (b'a,b\n1,"2\n', "?target=a", ["file"]),
        (b"a,b\n1,\xff\n", "?target=a", ["file"]),
    ],
)
def test_a_file_that_is_not_right(client: FlaskClient, data: bytes, query: str, expected: list[str]):
    """422 with each fault's field, and nothing is stored."""
    response = upload(client, data, query)
    assert response.status_code == 422
    assert fields(response) == expected
    assert client.get("/v1/datasets").get_json()["items"] == []


def test_a_csv_with_many_faults_names_twenty(client: FlaskClient):
    """An answer does not grow with the file, and says how many more there are."""
    response = upload(client, b"a,b\nx,1\n" + b"x,y\n" * 100_000, "?target=a")
    assert len(fields(response)) == 20
    assert response.get_json()["more"] == 100_000 - 20


def test_forms_that_are_not_right(client: FlaskClient):
    """Without a file, or with fields that are none."""
    response = client.post("/v1/datasets", data={"fil": (io.BytesIO(b"x"), "d.npz"), "nam": "a"})
    assert response.status_code == 422
    assert sorted(fields(response)) == ["fil", "file", "nam"]


def test_limits_of_uploads(settings: Settings):
    """Too large packed is 413 before it is read, too large unpacked 422."""
    small = settings.model_copy(update={"max_upload_bytes": 1000, "max_data_bytes": 500})
    with http_client(small) as client:
        response = upload(client, bytes(1001))
        assert (response.status_code, fields(response)) == (413, ["(body)"])
        assert response.get_json()["code"] == "too_large"
        assert response.get_json()["errors"][0]["value"] == 1001
        for part in ("1001 bytes", "at most 1000", "TEXELGRAD_MAX_UPLOAD_BYTES"):
            assert part in response.get_json()["detail"]
        assert fields(upload(client, npz(x=np.zeros((100, 2)), y=np.zeros(100)))) == ["file"]
        assert fields(upload(client, b"a,b\n" + b"1,2\n" * 40, "?target=a")) == ["file"]


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{", "application/json", 422),
        (b"", "application/json", 422),
        (b"\xff", "application/json", 422),
        (b'{"train": NaN}', "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b'{"train": ' + b"9" * 5000 + b"}", "application/json", 422),
        (b"{}", "application/octet-stream", 422),
        (b"{}", "text/plain", 415),
        (b"a=b", "application/x-www-form-urlencoded", 415),
        (b" " * (2 << 20), "application/json", 413),
    ],
)
def test_bodies_that_are_no_spec(client: FlaskClient, body: bytes, content_type: str, status: int):
    """Malformed, of another type, or too large: an answer that says so, never a 500."""
    response = client.post("/v1/jobs", data=body, content_type=content_type)
    assert response.status_code == status
    assert response.content_type == "application/problem+json"
    assert "set_int_max_str_digits" not in response.text, "how to change Python is no advice"


@pytest.mark.parametrize("body", [[], None, "x"])
def test_a_spec_that_is_no_object(client: FlaskClient, body: Any):
    """It is told all that a job needs, its data too, which in a page are not part of the spec."""
    (fault,) = client.post("/v1/jobs", data=json.dumps(body), content_type="application/json").get_json()[
        "errors"
    ]
    assert (fault["field"], fault["message"]) == ("(the whole)", "is not an object")
    assert fault["legal"] == "an object with model, loss, optimizer, train, data"


def test_a_spec_that_is_too_large(client: FlaskClient):
    """413 with the size, the limit and the setting."""
    response = client.post("/v1/jobs", data=b" " * (2 << 20), content_type="application/json")
    assert fields(response) == ["(body)"]
    assert response.get_json()["code"] == "too_large"
    for part in (str(2 << 20), str(1 << 20), "TEXELGRAD_MAX_SPEC_BYTES"):
        assert part in response.get_json()["detail"]


def test_a_key_that_stands_twice(client: FlaskClient):
    """Of two values for one key nobody knows which was meant."""
    body = json.dumps(spec_for("ds_" + "0" * 26))[:-1] + ', "train": {"steps": 1}}'
    response = client.post("/v1/jobs", data=body, content_type="application/json")
    assert response.status_code == 422
    assert "'train' stands twice" in response.get_json()["detail"]


def test_many_faults_are_counted(client: FlaskClient):
    """A hundred are listed; the rest is a number."""
    layers = [{"type": "dense", "units": 0}] * 250
    response = client.post(
        "/v1/jobs", json=spec_for("ds_" + "0" * 26, model={"input": [2], "layers": layers})
    )
    problem = response.get_json()
    assert len(problem["errors"]) == 100
    assert problem["more"] + 100 >= 250
    assert problem["detail"].endswith(f"; and {problem['more'] + 90} more")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/jobs?limit=0", ["limit"]),
        ("/v1/jobs?limit=x&status=done&foo=1", ["limit", "status", "foo"]),
        ("/v1/jobs?cursor=x", ["cursor"]),
        ("/v1/jobs?tag=team", ["tag"]),
        ("/v1/jobs/job_x/logs?cursor=1", ["cursor"]),
        ("/v1/jobs/job_x/logs?cursor=1.x", ["cursor"]),
        ("/v1/jobs/job_x/logs?level=loud", ["level"]),
        ("/v1/workers?state=gone", ["state"]),
        ("/v1/datasets?cursor=job_" + "0" * 26, ["cursor"]),
        ("/v1/jobs/job_x/metrics?max_points=7", ["max_points"]),
        ("/v1/jobs/job_x/weights?format=keras", ["format"]),
    ],
)
def test_parameters_that_are_wrong(client: FlaskClient, path: str, expected: list[str]):
    """Each is named, unknown ones too."""
    response = client.get(path)
    assert response.status_code == 422
    assert fields(response) == expected


@pytest.mark.parametrize(
    "path", ["", "/metrics", "/weights", "/diagnostics", "/events", "/checkpoints", "/logs", "/why"]
)
def test_a_job_that_is_not_there(client: FlaskClient, path: str):
    """404 as a problem document."""
    response = client.get(f"/v1/jobs/job_{'0' * 26}{path}")
    assert response.status_code == 404
    assert fields(response) == []


def test_an_address_that_is_not_there(client: FlaskClient):
    """404 names it, and where the right ones are listed."""
    response = client.get("/v1/job")
    assert (response.status_code, fields(response)) == (404, [])
    assert response.get_json()["code"] == "not_found"
    assert response.get_json()["detail"] == "There is nothing at /v1/job; /openapi.json lists every address."


def test_another_owners_things_do_not_exist(settings: Settings):
    """Jobs and data sets are found by their owner only."""
    with http_client(settings) as client:
        dataset = upload_points(client)
        job = client.post("/v1/jobs", json=spec_for(dataset)).get_json()["id"]
    with http_client(settings.model_copy(update={"owner_id": "somebody"})) as client:
        assert client.get(f"/v1/jobs/{job}").status_code == 404
        for action in ("cancel", "retry", "resume"):
            assert client.post(f"/v1/jobs/{job}/{action}").status_code == 404
        for part in ("metrics", "checkpoints", "logs", "why", "events", "weights", "diagnostics"):
            assert client.get(f"/v1/jobs/{job}/{part}").status_code == 404
        assert client.delete(f"/v1/jobs/{job}").status_code == 404
        assert client.delete(f"/v1/datasets/{dataset}").status_code == 404
        assert client.get(f"/v1/datasets/{dataset}").status_code == 404
        assert fields(client.post("/v1/jobs", json=spec_for(dataset))) == ["data.dataset"]
        assert client.get("/v1/jobs").get_json()["items"] == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 202),
        ({"Origin": "http://localhost"}, 202),
        ({"Sec-Fetch-Site": "same-origin"}, 202),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1234"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:8321"}, 421),
    ],
)
def test_foreign_pages_can_change_nothing(client: FlaskClient, headers: dict[str, str], status: int):
    """Neither by a form, nor by fetch, nor by a name that resolves to us."""
    response = client.post("/v1/jobs", json=spec_for(upload_points(client)), headers=headers)
    assert response.status_code == status


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost", "[::1]:9"])
def test_our_own_names(client: FlaskClient, host: str):
    """Loopback under any port."""
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/jobs", "/nope", "/healthz", "/openapi.json", "/"])
def test_answers_are_hardened(client: FlaskClient, path: str):
    """No sniffing, no foreign scripts, no CORS, on errors and pages too."""
    headers = client.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers


def test_methods_that_are_not_allowed(client: FlaskClient):
    """405 names those that are."""
    response = client.put("/v1/jobs", json={})
    assert response.status_code == 405
    assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}


def test_health(client: FlaskClient, db: Database):
    """Ready only while the database is migrated to this code's head."""
    assert client.get("/healthz").get_json() == {"status": "ok"}
    assert client.get("/readyz").status_code == 200
    downgrade(db, "base")
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.get_json()["code"] == "not_migrated"
    assert client.get("/healthz").status_code == 200
    # Without tables the API says that the database is to blame, not that it crashed.
    assert client.get("/v1/jobs").status_code == 503


def test_health_without_a_database(tmp_path: Path, settings: Settings):
    """A server that is away makes it unready, not dead."""
    url = f"postgresql://nobody@/nothing?host={tmp_path}"
    with http_client(settings.model_copy(update={"database_url": url})) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503


def test_a_slow_broker_delays_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    """Jobs are queued while the broker has not answered about the first one's hint: nothing here would let it go on."""
    asked, answered = threading.Event(), threading.Event()

    def waiting(*_: object) -> int:
        asked.set()
        answered.wait()
        return 0

    monkeypatch.setattr(Publisher, "waiting", waiting)
    with http_client(settings) as client:
        raw = spec_for(upload_points(client))
        try:
            for _ in range(5):
                assert client.post("/v1/jobs", json=raw).status_code == 202
            assert asked.wait(60)
        finally:
            answered.set()


def test_openapi_names_every_route(client: FlaskClient):
    """Paths, the job spec and problem documents; every reference leads somewhere."""
    description = client.get("/openapi.json").get_json()
    assert set(description["paths"]) == {
        "/healthz",
        "/readyz",
        "/v1/datasets",
        "/v1/datasets/announce",
        "/v1/datasets/{dataset_id}",
        "/v1/datasets/{dataset_id}/content",
        "/v1/datasets/{dataset_id}/preview",
        "/v1/estimates",
        "/v1/jobs",
        "/v1/jobs/{job_id}",
        "/v1/jobs/{job_id}/cancel",
        "/v1/jobs/{job_id}/checkpoints",
        "/v1/jobs/{job_id}/checkpoints/{artifact_id}",
        "/v1/jobs/{job_id}/diagnostics",
        "/v1/jobs/{job_id}/events",
        "/v1/jobs/{job_id}/logs",
        "/v1/jobs/{job_id}/metrics",
        "/v1/jobs/{job_id}/predictions",
        "/v1/jobs/{job_id}/resume",
        "/v1/jobs/{job_id}/retry",
        "/v1/jobs/{job_id}/weights",
        "/v1/jobs/{job_id}/why",
        "/v1/session",
        "/v1/webhooks",
        "/v1/webhooks/secret",
        "/v1/webhooks/{webhook_id}",
        "/v1/webhooks/{webhook_id}/deliveries",
        "/v1/webhooks/{webhook_id}/test",
        "/v1/weights",
        "/v1/workers",
    }
    post = description["paths"]["/v1/jobs"]["post"]
    assert post["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/JobSpec")
    schemas = description["components"]["schemas"]
    text = json.dumps(description)
    for reference in {part.split('"')[0] for part in text.split('"$ref": "')[1:]}:
        assert reference.removeprefix("#/components/schemas/") in schemas, reference


@pytest.mark.parametrize("depth", [101, 900, 100_000])
@pytest.mark.parametrize("around", [("[", "]"), ('{"a":', "}")])
def test_json_that_is_nested_too_deeply(client: FlaskClient, depth: int, around: tuple[str, str]):
    """In words and not in Python's; a hundred levels are only a wrong spec."""
    opening, closing = around

    def post(levels: int) -> Any:
        body = opening * levels + "1" + closing * levels
        return client.post("/v1/jobs", data=body, content_type="application/json").get_json()["errors"]

    (fault,) = post(depth)
    assert (fault["field"], fault["message"]) == ("(the whole)", "is nested too deeply")
    assert "at most 100" in fault["legal"]
    assert "nested" not in str(post(100))


@pytest.mark.parametrize("split", [{}, {"validation": {"fraction": 0}}])
def test_metrics_without_validation_rows(client: FlaskClient, split: dict[str, Any]):
    """They are measured on nothing else: better refused than never there."""
    spec = spec_for(upload_points(client), metrics=["accuracy", {"type": "f1"}])
    (fault,) = client.post("/v1/jobs", json={**spec, "data": {**spec["data"], **split}}).get_json()["errors"]
    assert (fault["field"], fault["value"]) == ("metrics", ["accuracy", "f1"])
    assert "data.validation" in fault["legal"]
    kept = {**spec, "data": {**spec["data"], "validation": {"fraction": 0.2}}}
    assert client.post("/v1/jobs", json=kept).status_code == 202
