"""Webhooks as rows: addresses, secrets, and the outbox of messages, written together with what they tell of."""

from __future__ import annotations

import base64
import json
import secrets as randomness
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import IdPrefix, new_id
from texelgrad.errors import Conflict, NotFound
from texelgrad.models import Job
from texelgrad.models_access import Webhook, WebhookDelivery, WebhookSecret
from texelgrad.times import time_text

MAX_WEBHOOKS = 10  # of one owner
_S = 1_000_000
_OVERLAP_US = 24 * 3600 * _S  # how long a replaced secret still signs
_KEPT_US = 30 * 24 * 3600 * _S  # how long deliveries can be looked up


def create_webhook(session: Session, owner_id: str, url: str) -> Webhook:
    """Note an address; raises Conflict where the owner has many already."""
    have = session.scalars(select(Webhook.url).where(Webhook.owner_id == owner_id)).all()
    if len(have) >= MAX_WEBHOOKS:
        raise Conflict(f"there are {len(have)} webhooks, {MAX_WEBHOOKS} are allowed")
    webhook = Webhook(id=new_id(IdPrefix.WEBHOOK), owner_id=owner_id, url=url, created_at=now_us(session))
    session.add(webhook)
    session.flush()
    return webhook


def get_webhook(session: Session, owner_id: str, webhook_id: str) -> Webhook:
    """One webhook; raises NotFound, also where another owner has it."""
    webhook = session.get(Webhook, webhook_id)
    if webhook is None or webhook.owner_id != owner_id:
        raise NotFound(f"there is no webhook {webhook_id}")
    return webhook


def list_webhooks(session: Session, owner_id: str) -> Sequence[Webhook]:
    """The owner's webhooks, the newest first."""
    query = select(Webhook).where(Webhook.owner_id == owner_id)
    return session.scalars(query.order_by(Webhook.id.desc())).all()


def rotate_secret(session: Session, owner_id: str) -> WebhookSecret:
    """A new secret for the owner's webhooks; the one before signs for another day."""
    now = now_us(session)
    own = WebhookSecret.owner_id == owner_id
    session.execute(delete(WebhookSecret).where(own, WebhookSecret.expires_at <= now))
    present = own & WebhookSecret.expires_at.is_(None)
    session.execute(update(WebhookSecret).where(present).values(expires_at=now + _OVERLAP_US))
    text = "whsec_" + base64.b64encode(randomness.token_bytes(32)).decode()
    secret = WebhookSecret(id=new_id(IdPrefix.SIGNATURE), owner_id=owner_id, secret=text, created_at=now)
    session.add(secret)
    session.flush()
    return secret


def has_secret(session: Session, owner_id: str) -> bool:
    """Whether the owner has been given a secret."""
    return (
        session.scalar(select(WebhookSecret.id).where(WebhookSecret.owner_id == owner_id).limit(1))
        is not None
    )


def signing_secrets(session: Session, owner_id: str) -> Sequence[str]:
    """Every secret that signs now, the newest first."""
    valid = or_(WebhookSecret.expires_at.is_(None), WebhookSecret.expires_at > now_us(session))
    query = select(WebhookSecret.secret).where(WebhookSecret.owner_id == owner_id, valid)
    return session.scalars(query.order_by(WebhookSecret.id.desc())).all()


def announce(session: Session, job: Job) -> None:
    """Put the job's end into the outbox, for each of its owner's webhooks."""
    data = {
        "id": job.id,
        "name": job.name,
        "tags": job.spec.get("tags", {}),
        "state": job.state,
        "cause": job.cause,
        "message": job.message,
        "created_at": time_text(job.created_at),
    }
    for webhook in list_webhooks(session, job.owner_id):
        add_delivery(session, webhook.id, f"job.{job.state}", job.id, data)


def add_delivery(
    session: Session, webhook_id: str, kind: str, job_id: str, data: dict[str, Any]
) -> WebhookDelivery:
    """Put a message into the outbox."""
    now = now_us(session)
    body = {"type": kind, "timestamp": time_text(now), "data": data}
    delivery = WebhookDelivery(
        id=new_id(IdPrefix.DELIVERY),
        webhook_id=webhook_id,
        type=kind,
        job_id=job_id,
        body=json.dumps(body, separators=(",", ":"), allow_nan=False),
        state="pending",
        tries=0,
        next_at=now,
        created_at=now,
    )
    session.add(delivery)
    session.flush()
    return delivery


def list_deliveries(
    session: Session, webhook_id: str, limit: int, before: str | None = None
) -> Sequence[WebhookDelivery]:
    """Messages to a webhook, the newest first, older than the one `before`."""
    query = select(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook_id)
    if before is not None:
        query = query.where(WebhookDelivery.id < before)
    return session.scalars(query.order_by(WebhookDelivery.id.desc()).limit(limit)).all()


def take_due(session: Session, limit: int, lease_s: float) -> Sequence[tuple[WebhookDelivery, Webhook]]:
    """Messages that are due, which nobody else gets for `lease_s` seconds; counts the try."""
    now = now_us(session)
    query = (
        select(WebhookDelivery, Webhook)
        .join(Webhook, Webhook.id == WebhookDelivery.webhook_id)
        .where(WebhookDelivery.state == "pending", WebhookDelivery.next_at <= now)
        .order_by(WebhookDelivery.next_at)
    )
    rows = session.execute(query.limit(limit).with_for_update(skip_locked=True, of=WebhookDelivery)).all()
    for delivery, _ in rows:
        delivery.tries += 1
        delivery.next_at = now + int(lease_s * _S)
    session.flush()
    return [(row[0], row[1]) for row in rows]


def record_answer(
    session: Session, delivery_id: str, answer: str, *, taken: bool, again_s: float | None
) -> None:
    """Note how a try went: taken, to be tried again in `again_s` seconds, or given up."""
    now = now_us(session)
    values: dict[str, Any] = {"answer": answer[:200]}
    if taken:
        values |= {"state": "delivered", "delivered_at": now}
    elif again_s is None:
        values |= {"state": "failed"}
    else:
        values |= {"next_at": now + int(again_s * _S)}
    pending = (WebhookDelivery.id == delivery_id) & (WebhookDelivery.state == "pending")
    session.execute(update(WebhookDelivery).where(pending).values(**values))


def forget_old(session: Session, limit: int = 1000) -> None:
    """Delete what was settled and is a month old."""
    old = select(WebhookDelivery.id).where(
        WebhookDelivery.state != "pending", WebhookDelivery.created_at < now_us(session) - _KEPT_US
    )
    session.execute(delete(WebhookDelivery).where(WebhookDelivery.id.in_(old.limit(limit))))
