"""Which addresses are called, and that the connection goes to the one that was checked."""

from __future__ import annotations

import ipaddress
import socket
import threading
from typing import Any

import pytest

from texelgrad import outbound
from texelgrad.outbound import Refused, check_url, is_public, post, resolve


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101"])
def test_public_addresses(address: str):
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",  # where clouds keep their credentials
        "100.64.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "2002:7f00:1::",  # 6to4 of 127.0.0.1
        "64:ff9b::a00:1",  # NAT64 of 10.0.0.1
        "2001:db8::1",
    ],
)
def test_addresses_that_are_not_public(address: str):
    assert not is_public(ipaddress.ip_address(address))


def answer(*addresses: str) -> Any:
    """A resolver that knows one answer."""
    found = [(0, 0, 0, "", (address, 443)) for address in addresses]

    def resolver(*_args: Any, **_options: Any) -> Any:
        return found

    return resolver


def test_one_private_address_among_others_is_enough(monkeypatch: pytest.MonkeyPatch):
    """A name with both must not be called at all: which one is taken would be chance."""
    monkeypatch.setattr(socket, "getaddrinfo", answer("1.1.1.1", "127.0.0.1"))
    with pytest.raises(Refused, match=r"127\.0\.0\.1"):
        resolve("two.example", 443, [])
    assert resolve("two.example", 443, ["two.example"]) == "1.1.1.1"


@pytest.mark.parametrize("url", ["https://2130706433/", "https://0x7f.1/", "https://localhost/"])
def test_other_spellings_of_loopback(url: str):
    """They pass as names, and are found out when they are resolved."""
    parts = check_url(url, [])
    with pytest.raises(Refused):
        resolve(parts.hostname or "", 443, [])


def test_the_name_is_resolved_once(monkeypatch: pytest.MonkeyPatch):
    """What was checked is what is connected to: a second answer (DNS rebinding) is never asked for."""
    asked: list[str] = []
    connected: list[Any] = []

    def getaddrinfo(host: str, *_args: Any, **_options: Any) -> Any:
        asked.append(host)
        return answer("1.1.1.1" if len(asked) == 1 else "127.0.0.1")()

    def create_connection(address: Any, _timeout: Any) -> Any:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(outbound.socket, "create_connection", create_connection)
    with pytest.raises(ConnectionRefusedError):
        post("https://rebinding.example/x", b"{}", {}, [], 1.0)
    assert asked == ["rebinding.example"]
    assert connected == [("1.1.1.1", 443)]


def test_a_peer_that_trickles_is_cut():
    """A byte now and then must not hold a thread for ever: this peer sends them until we are gone."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def trickle() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 200 OK\r\n")
                while not done.wait(0.05):
                    try:
                        peer.sendall(b"x: y\r\n")
                    except OSError:
                        return

        thread = threading.Thread(target=trickle)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(TimeoutError):
            post(url, b"{}", {}, ["127.0.0.1"], 0.3)
        done.set()
        thread.join()
