"""API keys and the browser sessions opened with them, as rows. Only hashes are ever compared or stored."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import IdPrefix, new_id
from texelgrad.errors import NotFound
from texelgrad.keys import NewKey, Role
from texelgrad.models_access import ApiKey, WebSession

_USED_US = 60 * 1_000_000  # how old `used_at` may be before it is written again


def create_key(
    session: Session,
    owner_id: str,
    role: Role,
    name: str,
    new: NewKey,
    *,
    max_jobs: int | None = None,
    max_bytes: int | None = None,
    rate_per_minute: int | None = None,
) -> ApiKey:
    """Note a new key; its text is not stored."""
    key = ApiKey(
        id=new_id(IdPrefix.KEY),
        owner_id=owner_id,
        name=name,
        role=role,
        prefix=new.prefix,
        sha256=new.sha256,
        max_jobs=max_jobs,
        max_bytes=max_bytes,
        rate_per_minute=rate_per_minute,
        created_at=now_us(session),
    )
    session.add(key)
    session.flush()
    return key


def list_keys(session: Session, owner_id: str | None = None) -> Sequence[ApiKey]:
    """Every key, revoked ones too, or those of one owner; the newest first."""
    query = select(ApiKey).order_by(ApiKey.id.desc())
    if owner_id is not None:
        query = query.where(ApiKey.owner_id == owner_id)
    return session.scalars(query).all()


def revoke_key(session: Session, key_id: str) -> ApiKey:
    """Make a key worthless from now on, with the sessions opened by it; doing it twice changes nothing."""
    key = session.get(ApiKey, key_id)
    if key is None:
        raise NotFound(f"there is no key {key_id}")
    key.revoked_at = key.revoked_at or now_us(session)
    session.execute(delete(WebSession).where(WebSession.key_id == key_id))
    session.flush()
    return key


def find_key(session: Session, sha256: str) -> ApiKey | None:
    """The valid key with this hash."""
    return session.scalars(
        select(ApiKey).where(ApiKey.sha256 == sha256, ApiKey.revoked_at.is_(None))
    ).one_or_none()


def needs_touch(key: ApiKey, now: int) -> bool:
    """Whether its last use is worth writing down again."""
    return key.used_at is None or key.used_at < now - _USED_US


def touch_key(session: Session, key_id: str) -> None:
    """Note that the key was used now."""
    session.execute(update(ApiKey).where(ApiKey.id == key_id).values(used_at=now_us(session)))


def open_session(session: Session, key_id: str, sha256: str, lasts_s: int) -> None:
    """Note a browser's session; those that have expired go."""
    now = now_us(session)
    session.execute(delete(WebSession).where(WebSession.expires_at <= now))
    session.add(
        WebSession(sha256=sha256, key_id=key_id, created_at=now, expires_at=now + lasts_s * 1_000_000)
    )


def find_session_key(session: Session, sha256: str) -> ApiKey | None:
    """The valid key behind a session that has not expired."""
    query = (
        select(ApiKey)
        .join(WebSession, WebSession.key_id == ApiKey.id)
        .where(WebSession.sha256 == sha256, WebSession.expires_at > now_us(session))
        .where(ApiKey.revoked_at.is_(None))
    )
    return session.scalars(query).one_or_none()


def close_session(session: Session, sha256: str) -> None:
    """Forget a session."""
    session.execute(delete(WebSession).where(WebSession.sha256 == sha256))
