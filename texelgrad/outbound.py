"""POSTs to addresses that users name: resolved and checked first, then connected to exactly what was checked.

A name that resolves to this network would make the service attack it from within (SSRF); one that resolves twice
differently (DNS rebinding) would pass a check and connect elsewhere. No redirects, no proxies of the environment.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from urllib.parse import SplitResult, urlsplit

from typing_extensions import override

_CONNECT_S = 5.0
_MAX_URL = 2048
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Refused(Exception):
    """The address may not be called; the message says why."""


def check_url(url: str, allowed: Collection[str]) -> SplitResult:
    """The parts of a URL that may be called, as far as that can be told without resolving it; raises Refused."""
    if len(url) > _MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise Refused(f"a URL has up to {_MAX_URL} printable ASCII characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Refused(f"that is no URL: {error}") from error
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise Refused("an https:// URL is needed")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise Refused("a URL with a user, a password or a fragment is not called")
    if host not in allowed:
        if parts.scheme != "https":
            raise Refused("only https:// is called, unless TEXELGRAD_WEBHOOK_HOSTS names the host")
        try:
            literal = ipaddress.ip_address(host)
        except ValueError:
            return parts
        if not is_public(literal):
            raise Refused(f"{host} is no public address")
    return parts


def is_public(address: Address) -> bool:
    """Whether an address belongs to the internet at large, looking into those that carry another one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(address.packed[-4:])
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved


def resolve(host: str, port: int, allowed: Collection[str]) -> str:
    """The address to connect to; raises Refused where any that the name has is not public."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Refused(f"{host} can't be resolved") from error
    addresses = [str(entry[4][0]) for entry in found]
    if host not in allowed:
        for text in addresses:
            if not is_public(ipaddress.ip_address(text.partition("%")[0])):
                raise Refused(f"{host} resolves to {text}, which is no public address")
    return addresses[0]


def post(url: str, body: bytes, headers: Mapping[str, str], allowed: Collection[str], limit_s: float) -> int:
    """POST and answer the status, within `limit_s` seconds altogether. Raises Refused, OSError or HTTPException."""
    parts = check_url(url, allowed)
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    connection = _Pinned(host, port, resolve(host, port, allowed), tls=is_tls)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # The time-out of a socket starts anew with each byte: a peer that sends one a second would hold us for ever.
    timer = threading.Timer(limit_s, connection.cut)
    timer.daemon = True
    timer.start()
    try:
        with closing(connection):
            connection.request("POST", target, body=body, headers={**headers, "Connection": "close"})
            status = connection.getresponse().status
            if connection.was_cut:  # http.client takes the end of the stream for the end of the headers
                raise TimeoutError(f"no complete answer within {limit_s:g} s")
            return status
    finally:
        timer.cancel()


class _Pinned(http.client.HTTPConnection):
    """A connection to one address, whatever its host's name resolves to meanwhile."""

    def __init__(self, host: str, port: int, address: str, *, tls: bool) -> None:
        super().__init__(host, port, timeout=_CONNECT_S)
        self._address, self._tls = address, tls
        self.was_cut = False
        self.default_port = 443 if tls else 80  # pyright: ignore[reportAttributeAccessIssue]  # left out of Host

    @override
    def connect(self) -> None:
        plain = socket.create_connection((self._address, self.port), self.timeout)
        self.sock = plain
        if self._tls:
            self.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=self.host)

    def cut(self) -> None:
        """End it from another thread; whoever waits on it gets an error."""
        self.was_cut = True
        sock: socket.socket | None = self.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
