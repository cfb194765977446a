"""The tables around the runs: keys and sessions, webhooks and their deliveries, unfinished uploads. No queries here."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from texelgrad.models import ID, Base


class ApiKey(Base):
    """A key to the API, known by its hash alone; whoever shows it acts for its owner."""

    __tablename__ = "api_key"

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner_id: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]
    role: Mapped[str]  # admin | user | read
    prefix: Mapped[str]  # of the key, to recognise it in lists
    sha256: Mapped[str] = mapped_column(unique=True)  # of the whole key, in hex
    max_jobs: Mapped[int | None]  # queued and running at once; None: as the settings say
    max_bytes: Mapped[int | None]  # of data sets
    rate_per_minute: Mapped[int | None]  # requests
    created_at: Mapped[int]
    revoked_at: Mapped[int | None]
    used_at: Mapped[int | None]  # about, to the minute


class WebSession(Base):
    """A browser that has shown a key; the cookie's value is known by its hash alone."""

    __tablename__ = "web_session"

    sha256: Mapped[str] = mapped_column(primary_key=True)  # of the cookie's value, in hex
    key_id: Mapped[str] = mapped_column(ForeignKey("api_key.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[int]
    expires_at: Mapped[int]


class Webhook(Base):
    """An address that wants to hear when jobs of its owner end."""

    __tablename__ = "webhook"

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner_id: Mapped[str] = mapped_column(index=True)
    url: Mapped[str]
    created_at: Mapped[int]


class WebhookSecret(Base):
    """What an owner's deliveries are signed with; while one is replaced, both sign."""

    __tablename__ = "webhook_secret"

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner_id: Mapped[str] = mapped_column(index=True)
    secret: Mapped[str]  # whsec_ and 32 bytes in base64; signing needs it as it is
    created_at: Mapped[int]
    expires_at: Mapped[int | None]  # None: the present one


class WebhookDelivery(Base):
    """A message to a webhook: written with what it tells of, sent by the keeper until it is taken or given up."""

    __tablename__ = "webhook_delivery"
    __table_args__ = (Index("ix_webhook_delivery_due", "state", "next_at"),)

    id: Mapped[str] = mapped_column(ID, primary_key=True)  # the message's id, the same at each try
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhook.id", ondelete="CASCADE"), index=True)
    type: Mapped[str]  # job.succeeded, job.failed, ...
    job_id: Mapped[str]  # no foreign key: a message outlives its job
    body: Mapped[str]  # JSON, as it is signed and sent
    state: Mapped[str]  # pending | delivered | failed
    tries: Mapped[int]
    next_at: Mapped[int]
    created_at: Mapped[int]
    delivered_at: Mapped[int | None]
    answer: Mapped[str | None]  # of the last try: a status or what went wrong


class Upload(Base):
    """A file on its way, piece by piece; once complete it becomes the data set of the same id."""

    __tablename__ = "upload"

    id: Mapped[str] = mapped_column(ID, primary_key=True)
    owner_id: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]
    format: Mapped[str | None]
    target: Mapped[str | None]
    weight: Mapped[str | None]
    size: Mapped[int]  # bytes announced
    received: Mapped[int]  # bytes stored so far
    artifact_id: Mapped[str] = mapped_column(ForeignKey("artifact.id"))
    created_at: Mapped[int]
