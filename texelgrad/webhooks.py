"""Sends the outbox: signed as Standard Webhooks 1.0 says, tried again with growing pauses, at least once each.

A message keeps its id at every try, so that a receiver can tell a repetition.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.models_access import Webhook, WebhookDelivery
from texelgrad.outbound import Refused, post
from texelgrad.repository import outbox

_log = logging.getLogger(__name__)
PAUSES_S = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
"""Seconds before each further try, as the specification suggests; after the last the message is given up."""

_AT_ONCE = 4
_TRY_S = 10.0
_LEASE_S = 60.0  # longer than any try: a sender that dies in one leaves it to the next


def sign(message_id: str, timestamp: int, body: str, secrets: Sequence[str]) -> str:
    """The `webhook-signature` header: one signature for each secret that is valid now."""
    text = f"{message_id}.{timestamp}.{body}".encode()
    signatures: list[str] = []
    for secret in secrets:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signatures.append("v1," + base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode())
    return " ".join(signatures)


class Sender:
    """Sends what is due, a few at once, in threads of its own."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db, self._settings = db, settings
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="webhooks")
        self._free = threading.Semaphore(_AT_ONCE)

    def round(self) -> None:
        """Take what is due and start to send it; never waits for a receiver."""
        places = 0
        while places < _AT_ONCE and self._free.acquire(blocking=False):
            places += 1
        due: Sequence[tuple[WebhookDelivery, Webhook]] = ()
        try:
            if places:
                with self._db.write() as session:
                    due = outbox.take_due(session, places, _LEASE_S)
                    outbox.forget_old(session)
            for delivery, webhook in due:
                self._pool.submit(self._send, delivery, webhook)
        finally:
            for _ in range(places - len(due)):
                self._free.release()

    def close(self) -> None:
        """Wait for the tries under way; each is limited."""
        self._pool.shutdown()

    def _send(self, delivery: WebhookDelivery, webhook: Webhook) -> None:
        try:
            answer, taken, final = self._try(delivery, webhook)
            again_s = None if final or delivery.tries > len(PAUSES_S) else PAUSES_S[delivery.tries - 1]
            if not taken:
                _log.warning("webhook %s did not take %s: %s", webhook.id, delivery.id, answer)
            with self._db.write() as session:
                outbox.record_answer(session, delivery.id, answer, taken=taken, again_s=again_s)
        except Exception:  # noqa: BLE001 - the lease on the message ends, and it is tried again
            _log.exception("webhook %s: sending %s failed", webhook.id, delivery.id)
        finally:
            self._free.release()

    def _try(self, delivery: WebhookDelivery, webhook: Webhook) -> tuple[str, bool, bool]:
        """One try: what came back, whether the message was taken, whether to give it up for good."""
        with self._db.read() as session:
            secrets = outbox.signing_secrets(session, webhook.owner_id)
        timestamp = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "texelgrad-webhooks",
            "webhook-id": delivery.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(delivery.id, timestamp, delivery.body, secrets),
        }
        try:
            allowed = self._settings.webhook_hosts
            status = post(webhook.url, delivery.body.encode(), headers, allowed, _TRY_S)
        except Refused as refused:
            return str(refused), False, False
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}", False, False
        # 410: the receiver says that the address is gone for good
        return str(status), 200 <= status < 300, status == HTTPStatus.GONE
