"""The port between the page server and whoever keeps what the page sends: the runner's recorder, or a test's fake."""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from texelgrad.errors import Fault, Invalid

_MAX_KEYS = 64


@dataclass(frozen=True)
class Metrics:
    """Points of the loss curve: `steps` are `count` uint32, `values` count x len(keys) float64, little-endian."""

    keys: tuple[str, ...]
    count: int
    steps: bytes
    values: bytes
    step: int
    total_steps: int

    @classmethod
    def decode(cls, frame: bytes) -> Metrics:
        """Read a frame as docs/page-protocol.md lays it out.

        Raises:
            Invalid: the frame is not one.
        """
        try:
            (header_size,) = struct.unpack_from("<I", frame)
            header: dict[str, Any] = json.loads(frame[4 : 4 + header_size])
            keys = tuple(str(key) for key in header["keys"])
            count, step, total_steps = (int(header[name]) for name in ("count", "step", "total_steps"))
        except (struct.error, ValueError, KeyError, TypeError) as error:
            raise _invalid(f"has no header: {error!r}") from error
        body = frame[4 + header_size :]
        if not 1 <= len(keys) <= _MAX_KEYS or count < 0 or len(body) != count * (4 + 8 * len(keys)):
            raise _invalid(f"has {len(body)} bytes for {count} rows of {len(keys)} keys")
        return cls(keys, count, body[: 4 * count], body[4 * count :], step, total_steps)


class AttemptPort(ABC):
    """One attempt as the page sees it. Every method may raise Fenced: the attempt is no longer ours.

    Methods are called from several threads. The page waits for each answer before it posts again, but that it goes on with
    metrics while a checkpoint is under way.
    """

    @abstractmethod
    def job(self) -> dict[str, Any] | None:
        """The job document of docs/page-protocol.md; None while there is none."""

    @abstractmethod
    def data_size(self, name: str) -> int:
        """Bytes of one array. Raises KeyError."""

    @abstractmethod
    def open_data(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes [start, end) of one array, in pieces. Raises KeyError."""

    @abstractmethod
    def open_resume(self) -> Iterator[bytes]:
        """The checkpoint to continue from, in pieces. Raises KeyError where there is none, or it is damaged."""

    @abstractmethod
    def open_initial(self) -> Iterator[bytes]:
        """The weights to begin with, in pieces. Raises KeyError where there are none."""

    @abstractmethod
    def metrics(self, points: Metrics) -> None:
        """Keep points of the loss curve."""

    @abstractmethod
    def diagnostics(self, report: dict[str, Any]) -> None:
        """Keep the precision report."""

    @abstractmethod
    def checkpoint(self, step: int, body: IO[bytes]) -> None:
        """Keep a checkpoint."""

    @abstractmethod
    def weights(self, body: IO[bytes]) -> None:
        """Keep the final weights."""

    @abstractmethod
    def predictions(self, body: IO[bytes]) -> None:
        """Keep the outputs that a job which predicts made."""

    @abstractmethod
    def result(self, result: dict[str, Any]) -> None:
        """The run worked; nothing follows."""

    @abstractmethod
    def failure(self, failure: dict[str, Any]) -> None:
        """The run did not work; nothing follows."""


def _invalid(message: str) -> Invalid:
    return Invalid([Fault("metrics", f"the frame {message}")])
