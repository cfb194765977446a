"""POSTs at a steady rate from clients that keep their connections: a process of its own, python -m bench.service.load URL SECONDS RATE.

Arrivals are open: each request has its time, and what is late because all clients are busy counts from that time. The clients
share the machine with what they measure, so they speak HTTP by hand: httpx takes 21 ms of CPU to make a client, a second for
fifty, and about a millisecond a request.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.service.running import ROOT

RATE = 100  # requests a second
CLIENTS = 50
RETRY_S = 60.0  # a service that takes no connection for so long is gone
RETRY_PAUSE_S = 0.02  # or a refused connection would be tried as fast as one core can
_ANSWER_S = 60.0
_ACCEPTED = 202


@dataclass(frozen=True)
class Load:
    """What the clients measured."""

    took_ms: list[float]
    client_cpu_ms: float  # of the clients themselves, for each request


def load(url: str, seconds: float, rate: int = RATE) -> Load:
    """POST jobs of examples/seed_demo.json to the service at `url`, `rate` of them a second."""
    command = [sys.executable, "-m", "bench.service.load", url, str(seconds), str(rate)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return Load(**json.loads(done.stdout))


class Client:
    """One caller, whose connection is made when it is needed, and again once it broke."""

    def __init__(self, url: str, body: bytes) -> None:
        """`url` as the service says it, ending in a slash; `body` is a job spec."""
        address = urlsplit(url)
        self._address = (address.hostname, address.port)
        self._head = (
            f"POST {address.path}v1/jobs HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nIdempotency-Key: "
        ).encode()
        self._body = body
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, retry_s: float = RETRY_S) -> None:
        """As a good client does it: a broken connection is tried again under the same key; TimeoutError after `retry_s` of that."""
        request = self._head + str(uuid.uuid4()).encode() + b"\r\n\r\n" + self._body
        deadline = time.monotonic() + retry_s
        while True:
            try:
                status, answer = await asyncio.wait_for(self._exchange(request), _ANSWER_S)
            except (OSError, EOFError) as error:
                self.close()
                if time.monotonic() > deadline:
                    raise TimeoutError(f"a POST: not within {retry_s:g} s") from error
                print(f"once more after {error!r}", file=sys.stderr)
                await asyncio.sleep(RETRY_PAUSE_S)
            else:
                assert status == _ACCEPTED, (status, answer)
                return

    def close(self) -> None:
        """Give the connection back."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        fields = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
        body = await reader.readexactly(int(fields["content-length"]))
        if fields.get("connection") == "close":
            self.close()
        return int(head.split(" ", 2)[1]), body


async def _generate(url: str, body: bytes, seconds: float, rate: int) -> list[float]:
    took: list[float] = []
    due: asyncio.Queue[float | None] = asyncio.Queue()

    async def work() -> None:
        client = Client(url, body)
        while (at := await due.get()) is not None:
            await client.post()
            took.append(1e3 * (time.monotonic() - at))
        client.close()

    clients = [asyncio.create_task(work()) for _ in range(CLIENTS)]
    started = time.monotonic()
    for number in range(int(seconds * rate)):
        at = started + number / rate
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        due.put_nowait(at)
    for _ in clients:
        due.put_nowait(None)
    await asyncio.gather(*clients)
    return took


def main() -> None:
    """Print what was measured as JSON."""
    spec = (ROOT / "examples" / "seed_demo.json").read_bytes()
    began_s = time.process_time()
    took = asyncio.run(_generate(sys.argv[1], spec, float(sys.argv[2]), int(sys.argv[3])))
    json.dump(
        {"took_ms": took, "client_cpu_ms": 1e3 * (time.process_time() - began_s) / len(took)}, sys.stdout
    )


if __name__ == "__main__":
    main()
