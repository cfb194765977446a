"""The client's side of HTTP: requests that are sent again where that does no harm, lists in pages, downloads that go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from texelgrad.errors import Fault, Invalid, TexelgradError, fault_line

_TRIES = 3
_RETRY_S = 0.5


class ApiError(TexelgradError):
    """The API refused; `faults` name each field at fault, its value and what would be legal."""

    def __init__(self, status: int, code: str, detail: str, faults: list[Fault]) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.faults = faults
        head = f"{status} {code}:" if faults else f"{status} {code}: {detail}"
        super().__init__("\n".join([head, *map(fault_line, faults)]))


class Unreachable(TexelgradError):
    """No answer came from the API."""

    code = "unreachable"


class Transport:
    """Connections to one service."""

    def __init__(
        self, base_url: str, api_key: str | None, timeout_s: float, transport: httpx.BaseTransport | None
    ) -> None:
        """`base_url` has no slash at its end; `transport` stands in for the network in tests. Raises Invalid."""
        _check(base_url, api_key)
        self.base_url = base_url
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(
            base_url=f"{base_url}/v1/", headers=headers, timeout=timeout_s, transport=transport
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def json(self, method: str, address: str, *, again: bool = False, **request: Any) -> Any:
        """The answer's JSON."""
        answer = self.send(method, address, again=again, **request)
        try:
            return answer.json()
        except ValueError:
            message = f"{self.base_url} answered something else than JSON: is it texelgrad?"
            raise ApiError(answer.status_code, "http_error", message, []) from None

    def send(self, method: str, address: str, *, again: bool, **request: Any) -> httpx.Response:
        """Send a request; `again` says that sending it twice does no harm. Raises ApiError and Unreachable."""
        for attempt in range(_TRIES):
            try:
                answer = self._http.request(method, address, **request)
            except httpx.TransportError as error:
                if attempt + 1 == _TRIES or not again:
                    raise self._unreachable(error) from error
            else:
                if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE or not again or attempt + 1 == _TRIES:
                    _raise_for(answer)
                    return answer
            time.sleep(_RETRY_S)
        raise AssertionError("the last try returns or raises")

    def pages(self, address: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Every item of a list; parameters that are None are left out."""
        parameters = {key: value for key, value in query.items() if value is not None}
        while True:
            page = self.json("GET", address, again=True, params=parameters)
            yield from page["items"]
            if not page.get("next_cursor"):
                return
            parameters["cursor"] = page["next_cursor"]

    def download(self, address: str, query: dict[str, Any]) -> Iterator[bytes]:
        """A file's bytes; goes on where a broken connection stopped."""
        received, tag = 0, ""
        for attempt in range(_TRIES):
            headers = {"Range": f"bytes={received}-", "If-Range": tag} if received else {}
            try:
                with self._http.stream("GET", address, params=query, headers=headers) as answer:
                    if answer.is_error:
                        answer.read()
                    _raise_for(answer)
                    if received and answer.status_code != HTTPStatus.PARTIAL_CONTENT:
                        raise Unreachable(f"{address} changed while it was read")
                    tag = answer.headers.get("ETag", "")
                    for piece in answer.iter_bytes():
                        received += len(piece)
                        yield piece
                return
            except httpx.TransportError as error:
                if attempt + 1 == _TRIES or not tag:
                    raise self._unreachable(error) from error
                time.sleep(_RETRY_S)

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(
            f"No answer from {self.base_url} ({error}). Is it running? `texelgrad serve` starts it."
        )


def _check(base_url: str, api_key: str | None) -> None:
    """Whether requests can be made of these; raises Invalid."""
    legal = "an address such as http://127.0.0.1:8321"
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise Invalid([Fault("url", f"is no address: {error}", base_url, legal)]) from None
    if url.scheme not in ("http", "https") or not url.host:
        raise Invalid([Fault("url", f"{base_url} is no address of a service", base_url, legal)])
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        raise Invalid([Fault("api_key", "has characters that no key has", None, "a key, tg_...")])


def write_file(pieces: Iterator[bytes], path: str | Path) -> Path:
    """Write a file, which is there only once it is complete."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.part")
    try:
        with partial.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        return partial.replace(target)
    except BaseException:  # Ctrl-C too: what is not complete is of no use
        partial.unlink(missing_ok=True)
        raise


def _raise_for(answer: httpx.Response) -> None:
    if not answer.is_error:
        return
    try:
        problem: dict[str, Any] = answer.json()
        faults = [Fault(**fault) for fault in problem.get("errors", [])]
        raise ApiError(answer.status_code, problem["code"], problem.get("detail", ""), faults)
    except (ValueError, KeyError, TypeError):  # not one of ours: a proxy's, say
        raise ApiError(answer.status_code, "http_error", answer.text[:500], []) from None
