"""Who gets in over HTTP, on both databases: keys, roles, owners, sessions, quotas, rates, and full houses."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.test import TestResponse

from api import create_app
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.errors import Unavailable
from texelgrad.keys import NewKey, Role, keys_required, new_key
from texelgrad.models_access import ApiKey, WebSession
from texelgrad.repository import keys

from .http import fields, http_client, post_job, spec_for, upload_points
from .steps import claim, finish

OPEN = {"/healthz", "/readyz", "/openapi.json", "/", "/login", "/assets/api.js"}


@pytest.fixture(name="guarded")
def fixture_guarded(settings: Settings) -> Settings:
    """Settings of a service that asks for keys."""
    return settings.model_copy(update={"require_keys": True})


@pytest.fixture
def client(guarded: Settings) -> Iterator[FlaskClient]:
    """A client of a service that asks for keys."""
    with http_client(guarded) as opened:
        yield opened


def make_key(
    db: Database, owner: str = "ada", role: str = "user", **limits: int
) -> tuple[str, dict[str, str]]:
    """A key's id and the headers that show it."""
    new: NewKey = new_key()
    with db.write() as session:
        key = keys.create_key(session, owner, Role(role), "", new, **limits)
    return key.id, {"Authorization": f"Bearer {new.text}"}


def with_headers(client: FlaskClient, headers: dict[str, str]) -> FlaskClient:
    """Another client of the same application that shows these headers each time."""
    other = client.application.test_client()
    for name, value in headers.items():
        other.environ_base[f"HTTP_{name.upper().replace('-', '_')}"] = value
    return other


def test_nothing_is_open_but_what_must_be(client: FlaskClient):
    """Every route asks for a key, with any method, before anything else is looked at."""
    rules = [rule for rule in client.application.url_map.iter_rules() if rule.rule != "/v1/session"]
    asked = 0
    for rule in rules:
        path = rule.rule.replace("<path:filename>", "api.js").replace("<", "").replace(">", "")
        for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}:
            with client.open(path, method=method) as response:
                is_open = path in OPEN or path.startswith(("/runs/", "/assets/"))
                assert (response.status_code == 401) != is_open, (method, path, response.status_code)
            asked += 1
    assert asked > 20
    response = client.get("/v1/jobs")
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert response.get_json()["code"] == "unauthorized"


@pytest.mark.parametrize("shown", ["Bearer tg_wrong", "Bearer ", "tg_", "Basic YTpi"])
def test_a_wrong_key(client: FlaskClient, shown: str):
    """401, also where none would be needed."""
    assert client.get("/v1/jobs", headers={"Authorization": shown}).status_code == 401


def test_a_key_opens_its_owners_things_only(client: FlaskClient, db: Database):
    """What somebody else made is not there, whatever is asked of it."""
    ada, eve = (with_headers(client, make_key(db, owner)[1]) for owner in ("ada", "eve"))
    job = post_job(ada)
    assert [item["id"] for item in ada.get("/v1/jobs").get_json()["items"]] == [job["id"]]
    assert eve.get("/v1/jobs").get_json()["items"] == []
    assert eve.get("/v1/datasets").get_json()["items"] == []
    for path in ("", "/metrics", "/events", "/weights", "/diagnostics", "/checkpoints", "/logs", "/why"):
        assert eve.get(f"/v1/jobs/{job['id']}{path}").status_code == 404, path
    for action in ("cancel", "retry", "resume"):
        assert eve.post(f"/v1/jobs/{job['id']}/{action}").status_code == 404, action
    assert eve.delete(f"/v1/jobs/{job['id']}").status_code == 404
    assert eve.delete(f"/v1/datasets/{job['dataset_id']}").status_code == 404
    stolen = eve.post("/v1/jobs", json=spec_for(job["dataset_id"]))
    assert (stolen.status_code, fields(stolen)) == (422, ["data.dataset"])
    headers = {"Idempotency-Key": "k"}
    raw = spec_for(job["dataset_id"])
    mine = ada.post("/v1/jobs", json=raw, headers=headers).get_json()["id"]
    assert eve.post("/v1/jobs", json=spec_for(upload_points(eve)), headers=headers).get_json()["id"] != mine


def test_roles(client: FlaskClient, db: Database):
    """A reader changes nothing, and only an admin sees what a worker does for others."""
    user, reader, admin = (
        with_headers(client, make_key(db, "ada", role)[1]) for role in ("user", "read", "admin")
    )
    job = post_job(user)
    assert reader.get(f"/v1/jobs/{job['id']}").status_code == 200
    assert reader.post("/v1/estimates", json=spec_for(job["dataset_id"])).status_code == 200
    for response in (
        reader.post("/v1/jobs", json=spec_for(job["dataset_id"])),
        reader.post(f"/v1/jobs/{job['id']}/cancel"),
        reader.delete(f"/v1/jobs/{job['id']}"),
        reader.post("/v1/datasets", data=b"x", content_type="text/csv"),
    ):
        assert (response.status_code, response.get_json()["code"]) == (403, "forbidden")
    attempt = claim(db).attempt_id
    with db.write() as session:
        from texelgrad import repository

        repository.touch_worker(session, "w", host="h", pid=1, queue="gpu", state="busy", attempt_id=attempt)
    seen = [c.get("/v1/workers").get_json()["items"][0]["attempt_id"] for c in (user, reader, admin)]
    assert seen == [None, None, attempt]


def test_a_revoked_key_is_worthless_at_once(client: FlaskClient, db: Database):
    """With every session that it opened."""
    key_id, headers = make_key(db)
    browser = client.application.test_client()
    text = headers["Authorization"].removeprefix("Bearer ")
    assert browser.post("/v1/session", json={"key": text}).status_code == 204
    assert browser.get("/v1/jobs").status_code == 200
    assert with_headers(client, headers).get("/v1/jobs").status_code == 200
    with db.write() as session:
        keys.revoke_key(session, key_id)
    assert browser.get("/v1/jobs").status_code == 401
    assert with_headers(client, headers).get("/v1/jobs").status_code == 401


def test_a_session(client: FlaskClient, db: Database):
    """The cookie is out of reach of scripts and other sites; it ends by log-out and by itself."""
    _, headers = make_key(db, "ada", "read")
    browser = client.application.test_client()
    for wrong in ("tg_wrong", "tg_\ud800"):
        assert browser.post("/v1/session", json={"key": wrong}).status_code == 401
    for body in ({}, [], {"key": 5}):
        assert fields(browser.post("/v1/session", json=body)) == ["key"]
    key = {"key": headers["Authorization"].removeprefix("Bearer ")}
    foreign = browser.post("/v1/session", json=key, headers={"Origin": "http://evil.example"})
    assert foreign.status_code == 403
    response = browser.post("/v1/session", json=key)
    cookie = response.headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"))
    assert key["key"] not in cookie
    who = browser.get("/v1/session").get_json()
    assert (who["owner_id"], who["role"]) == ("ada", "read")
    assert (
        browser.post("/v1/estimates", json={}, headers={"Origin": "http://evil.example"}).status_code == 403
    )
    assert browser.delete("/v1/session").status_code == 204
    assert browser.get("/v1/session").status_code == 401
    browser.post("/v1/session", json=key)
    with db.write() as session:
        session.execute(update(WebSession).values(expires_at=1))
    assert browser.get("/v1/jobs").status_code == 401


def test_only_hashes_are_stored(client: FlaskClient, db: Database):
    """Neither a key nor a cookie can be read from the database."""
    _, headers = make_key(db)
    text = headers["Authorization"].removeprefix("Bearer ")
    browser = client.application.test_client()
    cookie = browser.post("/v1/session", json={"key": text}).headers["Set-Cookie"]
    value = cookie.split("=", 1)[1].split(";")[0]
    with db.read() as session:
        rows = [vars(row) for table in (ApiKey, WebSession) for row in session.query(table)]
    assert len(rows) == 2
    assert not any(text in str(row) or value in str(row) for row in rows)
    assert len(text) == 46  # tg_ and 256 bits in base64


def test_the_quota_of_jobs(client: FlaskClient, db: Database):
    """Queued and running ones count; 429 says how many, and a key's own limit goes first."""
    ada = with_headers(client, make_key(db, max_jobs=2)[1])
    raw = spec_for(upload_points(ada))
    first, second = (ada.post("/v1/jobs", json=raw).get_json()["id"] for _ in range(2))
    response = ada.post("/v1/jobs", json=raw)
    assert (response.status_code, response.get_json()["code"]) == (429, "too_many")
    assert int(response.headers["Retry-After"]) > 0
    assert "2 are allowed" in response.get_json()["detail"]
    finish(db, claim(db), "failed", "internal")
    assert ada.post(f"/v1/jobs/{first}/retry").status_code == 202
    assert ada.post(f"/v1/jobs/{first}/retry").status_code == 429
    ada.post(f"/v1/jobs/{second}/cancel")
    assert ada.post("/v1/jobs", json=raw).status_code == 202
    eve = with_headers(client, make_key(db, "eve")[1])
    assert eve.post("/v1/jobs", json=spec_for(upload_points(eve))).status_code == 202


def test_the_quota_holds_when_many_ask_at_once(client: FlaskClient, db: Database):
    """Of requests that race for the last places, no more get in than there are."""
    ada = with_headers(client, make_key(db, max_jobs=3)[1])
    raw = spec_for(upload_points(ada))
    start = threading.Barrier(6)
    statuses: list[int] = []

    def post() -> None:
        own = with_headers(ada, {"Authorization": ada.environ_base["HTTP_AUTHORIZATION"]})
        start.wait()
        statuses.append(own.post("/v1/jobs", json=raw).status_code)

    threads = [threading.Thread(target=post) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [202] * 3 + [429] * 3


def test_the_quota_of_bytes(client: FlaskClient, db: Database):
    """Counted unpacked; the same content again costs nothing; deleting frees."""
    ada = with_headers(client, make_key(db, max_bytes=500)[1])
    dataset = upload_points(ada, 20)  # 20 rows of two float32 and an int32: 240 bytes
    assert upload_points(ada, 20) == dataset
    import numpy as np

    from .http import npz, upload

    large = npz(x=np.zeros((30, 2)), y=np.arange(30))
    response = upload(ada, large)
    assert (response.status_code, response.get_json()["code"]) == (429, "too_many")
    assert "240 bytes" in response.get_json()["detail"]
    ada.delete(f"/v1/datasets/{dataset}")
    assert upload(ada, large).status_code == 201


def test_rates(client: FlaskClient, db: Database):
    """Each key by itself, with the time to wait."""
    slow = with_headers(client, make_key(db, rate_per_minute=12)[1])
    statuses = [slow.get("/v1/jobs").status_code for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    assert 1 <= int(slow.get("/v1/jobs").headers["Retry-After"]) <= 5
    assert with_headers(client, make_key(db)[1]).get("/v1/jobs").status_code == 200


def test_guessing_is_slowed_down(client: FlaskClient):
    """An address that shows one wrong key after the other gets 429."""
    statuses = [client.get("/v1/jobs", headers={"Authorization": "Bearer x"}).status_code for _ in range(30)]
    assert [status for status, _ in itertools.groupby(statuses)] == [401, 429]


def test_a_full_queue(settings: Settings):
    """503 with the figure instead of a queue without end; what is there stays."""
    with http_client(settings.model_copy(update={"max_queued": 2})) as client:
        raw = spec_for(upload_points(client))
        assert [client.post("/v1/jobs", json=raw).status_code for _ in range(3)] == [202, 202, 503]
        response = client.post("/v1/jobs", json=raw)
        assert response.get_json()["code"] == "overloaded"
        assert "2 jobs wait" in response.get_json()["detail"]
        assert response.headers["Retry-After"] == "30"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_full_disk(settings: Settings):
    """Jobs and data sets are refused with the figure; reading goes on."""
    with http_client(settings) as client:
        raw = spec_for(upload_points(client))
    with http_client(settings.model_copy(update={"min_free_bytes": 1 << 60})) as client:
        upload: TestResponse = client.post("/v1/datasets", data=b"x", content_type="application/octet-stream")
        for response in (client.post("/v1/jobs", json=raw), upload):
            assert (response.status_code, response.get_json()["code"]) == (503, "overloaded")
            assert f"{1 << 60}"[:4] in response.get_json()["detail"]
        assert client.get("/v1/jobs").status_code == 200


@pytest.mark.parametrize(
    ("host", "require", "needed"),
    [
        ("127.0.0.1", None, False),
        ("127.8.8.8", None, False),
        ("::1", None, False),
        ("localhost", None, False),
        ("0.0.0.0", None, True),
        ("::", None, True),
        ("192.168.1.5", None, True),
        ("farm", None, True),
        ("127.0.0.1", True, True),
        ("127.0.0.1", False, False),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_when_keys_are_needed(settings: Settings, host: str, require: bool | None, needed: bool):
    """On any address that somebody else can reach."""
    changed = settings.model_copy(update={"host": host, "require_keys": require})
    assert keys_required(changed) == needed


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_no_open_door_to_a_network(settings: Settings):
    """Without keys on a foreign address the service does not start."""
    with pytest.raises(Unavailable, match=r"0\.0\.0\.0"):
        create_app(settings.model_copy(update={"host": "0.0.0.0", "require_keys": False}))


@pytest.mark.parametrize(
    ("remote", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("::ffff:127.0.0.1", {}, 200),
        ("172.17.0.1", {}, 401),
        ("", {}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 401),
        ("127.0.0.1", {"Forwarded": "for=1.2.3.4"}, 401),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_without_keys_only_this_machine_gets_in(
    settings: Settings, remote: str, headers: dict[str, str], status: int
):
    """Even where something other than our settings opened the socket to a network."""
    with http_client(settings) as client:
        options: dict[str, Any] = {"environ_base": {"REMOTE_ADDR": remote}, "headers": headers}
        assert client.get("/v1/jobs", **options).status_code == status
