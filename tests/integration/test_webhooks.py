"""Webhooks against a receiver of our own, on both databases: signatures, tries, rotation, owners."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update
from typing_extensions import override

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.models_access import WebhookDelivery, WebhookSecret
from texelgrad.repository import outbox
from texelgrad.webhooks import PAUSES_S, Sender

from .http import fields, get, http_client, post_job
from .steps import claim, finish, succeed


class Receiver(ThreadingHTTPServer):
    """Remembers what it is sent, and answers with the statuses it is given, then with 204."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses: list[int] = []
        self.seen: list[tuple[dict[str, str], str]] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}/hook?a=b"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.seen.append(({**dict(self.headers.items()), "path": self.path}, body))
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running receiver."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(name="open_settings")
def fixture_open_settings(settings: Settings) -> Settings:
    """Settings that allow the receiver's host."""
    return settings.model_copy(update={"webhook_hosts": ["127.0.0.1"]})


@pytest.fixture
def client(open_settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API."""
    with http_client(open_settings) as opened:
        yield opened


def send_due(db: Database, settings: Settings) -> None:
    """One round of the sender, to its end; whatever waits for its next try is due now."""
    with db.write() as session:
        session.execute(update(WebhookDelivery).where(WebhookDelivery.state == "pending").values(next_at=0))
    sender = Sender(db, settings)
    sender.round()
    sender.close()


def signatures(headers: dict[str, str], body: str, *secrets: str) -> str:
    """The header that a receiver expects, worked out by the specification."""
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body}".encode()
    keys = [base64.b64decode(secret.split("_")[1]) for secret in secrets]
    macs = [hmac.new(key, text, hashlib.sha256).digest() for key in keys]
    return " ".join(f"v1,{base64.b64encode(mac).decode()}" for mac in macs)


def register(client: FlaskClient, receiver: Receiver) -> dict[str, Any]:
    """A webhook's description, with the secret if it is the first."""
    response = client.post("/v1/webhooks", json={"url": receiver.url})
    assert response.status_code == 201, response.text
    return response.get_json()


def test_the_end_of_a_job_is_told(
    client: FlaskClient, db: Database, open_settings: Settings, receiver: Receiver
):
    """Signed, once, with what a receiver needs; nothing is told before the end."""
    secret = register(client, receiver)["secret"]
    job = post_job(client, tags={"team": "edge"})
    claimed = claim(db)
    send_due(db, open_settings)
    assert receiver.seen == []
    succeed(db, claimed)
    earliest = int(time.time())
    send_due(db, open_settings)
    send_due(db, open_settings)
    ((headers, body),) = receiver.seen
    message = json.loads(body)
    assert message["type"] == "job.succeeded"
    assert {name: message["data"][name] for name in ("id", "state", "cause", "tags")} == {
        "id": job["id"],
        "state": "succeeded",
        "cause": "completed",
        "tags": {"team": "edge"},
    }
    assert headers["path"] == "/hook?a=b"
    assert headers["webhook-signature"] == signatures(headers, body, secret)
    assert earliest <= int(headers["webhook-timestamp"]) <= time.time()
    (delivery,) = get(client, f"/v1/webhooks/{get(client, '/v1/webhooks')['items'][0]['id']}/deliveries")[
        "items"
    ]
    assert (delivery["id"], delivery["state"], delivery["tries"]) == (headers["webhook-id"], "delivered", 1)


def test_the_other_ends(client: FlaskClient, db: Database, open_settings: Settings, receiver: Receiver):
    """A failed and a cancelled job are told as what they are; one that goes back to the queue is not."""
    register(client, receiver)
    post_job(client)
    finish(db, claim(db), "lost", "runner_died")
    finish(db, claim(db), "failed", "non_finite_loss", "NaN at step 3")
    client.post(f"/v1/jobs/{post_job(client)['id']}/cancel")
    send_due(db, open_settings)
    kinds = sorted(json.loads(body)["type"] for _, body in receiver.seen)
    assert kinds == ["job.cancelled", "job.failed"]


def test_tries(client: FlaskClient, db: Database, open_settings: Settings, receiver: Receiver):
    """The same message again after each refusal, with growing pauses, until it is taken; redirects are refusals."""
    webhook = register(client, receiver)["id"]
    receiver.statuses = [500, 302, 404]
    client.post(f"/v1/webhooks/{webhook}/test")
    for number, expected in enumerate(["500", "302", "404"]):
        earliest = time.time()
        send_due(db, open_settings)
        (delivery,) = get(client, f"/v1/webhooks/{webhook}/deliveries")["items"]
        assert (delivery["state"], delivery["tries"], delivery["answer"]) == ("pending", number + 1, expected)
        with db.read() as session:
            due = session.scalars(select(WebhookDelivery.next_at)).one()
        assert earliest <= due / 1e6 - PAUSES_S[number] <= time.time()
    send_due(db, open_settings)
    assert get(client, f"/v1/webhooks/{webhook}/deliveries")["items"][0]["state"] == "delivered"
    assert len({headers["webhook-id"] for headers, _ in receiver.seen}) == 1
    assert len(receiver.seen) == 4


@pytest.mark.parametrize(("statuses", "tries"), [([410], 1), ([500] * 8, 8)])
def test_giving_up(
    client: FlaskClient,
    db: Database,
    open_settings: Settings,
    receiver: Receiver,
    statuses: list[int],
    tries: int,
):
    """At once where the address is gone, else after the last pause."""
    webhook = register(client, receiver)["id"]
    receiver.statuses = list(statuses)
    client.post(f"/v1/webhooks/{webhook}/test")
    for _ in range(tries + 1):
        send_due(db, open_settings)
    (delivery,) = get(client, f"/v1/webhooks/{webhook}/deliveries")["items"]
    assert (delivery["state"], delivery["tries"], delivery["next_at"]) == ("failed", tries, None)
    assert len(receiver.seen) == tries


def test_a_receiver_that_is_away(client: FlaskClient, db: Database, settings: Settings, receiver: Receiver):
    """Neither a refused connection nor a host that may not be called stops the sender."""
    webhook = register(client, receiver)["id"]
    client.post(f"/v1/webhooks/{webhook}/test")
    send_due(db, settings)  # its host is not allowed here
    (delivery,) = get(client, f"/v1/webhooks/{webhook}/deliveries")["items"]
    assert "only https" in delivery["answer"]
    assert receiver.seen == []
    with db.write() as session:
        session.execute(update(outbox.Webhook).values(url="http://127.0.0.1:1/"))
    send_due(db, settings.model_copy(update={"webhook_hosts": ["127.0.0.1"]}))
    (delivery,) = get(client, f"/v1/webhooks/{webhook}/deliveries")["items"]
    assert delivery["answer"].startswith("ConnectionRefusedError")
    assert delivery["state"] == "pending"


def test_a_message_is_sent_by_one_sender(client: FlaskClient, db: Database, receiver: Receiver):
    """While one has it, others don't see it, until its lease ends."""
    webhook = register(client, receiver)["id"]
    client.post(f"/v1/webhooks/{webhook}/test")
    with db.write() as session:
        assert len(outbox.take_due(session, 10, 60)) == 1
    with db.write() as session:
        assert outbox.take_due(session, 10, 60) == []
    with db.write() as session:
        session.execute(update(WebhookDelivery).values(next_at=0))  # its lease has ended
        assert [delivery.tries for delivery, _ in outbox.take_due(session, 10, 60)] == [2]


def test_old_messages_are_forgotten(
    client: FlaskClient, db: Database, open_settings: Settings, receiver: Receiver
):
    """A month after they were made, unless they still wait."""
    webhook = register(client, receiver)["id"]
    client.post(f"/v1/webhooks/{webhook}/test")
    send_due(db, open_settings)
    client.post(f"/v1/webhooks/{webhook}/test")
    with db.write() as session:
        session.execute(update(WebhookDelivery).values(created_at=1))
        outbox.forget_old(session)
    assert [item["state"] for item in get(client, f"/v1/webhooks/{webhook}/deliveries")["items"]] == [
        "pending"
    ]


def test_a_secret_is_replaced(client: FlaskClient, db: Database, open_settings: Settings, receiver: Receiver):
    """For a day both sign, then only the new one; no answer shows it again."""
    first = register(client, receiver)
    assert "secret" not in register(client, receiver)
    second = client.post("/v1/webhooks/secret").get_json()["secret"]
    assert first["secret"] != second
    client.post(f"/v1/webhooks/{first['id']}/test")
    send_due(db, open_settings)
    headers, body = receiver.seen.pop()
    assert headers["webhook-signature"] == signatures(headers, body, second, first["secret"])
    with db.write() as session:
        old = update(WebhookSecret).where(WebhookSecret.expires_at.is_not(None))
        session.execute(old.values(expires_at=1))
    client.post(f"/v1/webhooks/{first['id']}/test")
    send_due(db, open_settings)
    headers, body = receiver.seen.pop()
    assert headers["webhook-signature"] == signatures(headers, body, second)
    assert "whsec_" not in client.get("/v1/webhooks").text


@pytest.mark.parametrize(
    "body",
    [
        {"url": "http://example.com/"},
        {"url": "https://user:pw@example.com/"},
        {"url": "https://10.0.0.1/"},
        {"url": "https://[::1]/"},
        {"url": "ftp://example.com/"},
        {"url": "https://"},
        {"url": "https://example.com:99999/"},
        {"url": "https://exa mple.com/"},
        {"url": "https://example.com/\r\nHost: x"},
        {"url": "https://example.com/" + "a" * 3000},
        {"url": 5},
        {},
        [],
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_addresses_that_are_refused(client: FlaskClient, body: Any):
    """422 that names the field; nothing is stored."""
    response = client.post("/v1/webhooks", json=body)
    assert response.status_code == 422
    assert fields(response) == ["url"]
    assert get(client, "/v1/webhooks")["items"] == []


def test_webhooks_belong_to_an_owner(
    client: FlaskClient, db: Database, open_settings: Settings, receiver: Receiver
):
    """Another's can't be seen, and hears nothing."""
    webhook = register(client, receiver)["id"]
    with http_client(open_settings.model_copy(update={"owner_id": "eve"})) as eve:
        assert eve.get("/v1/webhooks").get_json()["items"] == []
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/test"), ("GET", "/deliveries")):
            assert eve.open(f"/v1/webhooks/{webhook}{path}", method=method).status_code == 404
        eve.post(f"/v1/jobs/{post_job(eve)['id']}/cancel")
    send_due(db, open_settings)
    assert receiver.seen == []
    assert client.delete(f"/v1/webhooks/{webhook}").status_code == 204
    assert client.get(f"/v1/webhooks/{webhook}").status_code == 404


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_webhooks_are_limited(client: FlaskClient, receiver: Receiver):
    """Ten an owner."""
    for _ in range(10):
        register(client, receiver)
    assert client.post("/v1/webhooks", json={"url": receiver.url}).status_code == 409
