"""API keys: how they look, what they allow, and when one is needed. No database here."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from dataclasses import dataclass
from enum import StrEnum

from texelgrad.config import Settings
from texelgrad.errors import Unavailable

_START = "tg_"
_BYTES = 32  # 256 random bits: nobody guesses one, so a plain hash of it is enough
_PREFIX = 9  # characters that a list shows


class Role(StrEnum):
    """What a key allows, each more than the one before."""

    READ = "read"  # GET only
    USER = "user"  # everything that is its owner's
    ADMIN = "admin"  # the service's own affairs too


@dataclass(frozen=True)
class NewKey:
    """A key as it is shown once, and what is kept of it."""

    text: str
    prefix: str
    sha256: str


def new_key() -> NewKey:
    """A fresh key."""
    text = _START + secrets.token_urlsafe(_BYTES)
    return NewKey(text, text[:_PREFIX], secret_hash(text))


def secret_hash(text: str) -> str:
    """What is stored of a key or a session, in hex; of any text, also half characters, which JSON can name."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def keys_required(settings: Settings) -> bool:
    """Whether callers need a key: as the settings say, else on any address but loopback.

    Raises Unavailable where the settings would open the service to a network without keys.
    """
    loopback = is_loopback(settings.host)
    if settings.require_keys is None:
        return not loopback
    if not settings.require_keys and not loopback:
        raise Unavailable(
            f"Not without API keys on {settings.host}: anybody on that network could use the service. "
            "Leave TEXELGRAD_REQUIRE_KEYS unset and make a key with `texelgrad keys create`, "
            "or listen on 127.0.0.1."
        )
    return settings.require_keys


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; a name other than localhost could be anything."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host.lower() == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
