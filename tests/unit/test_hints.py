"""The API's thread that publishes hints: each is sent once, as long as there is room for it."""

from __future__ import annotations

import threading

from typing_extensions import override

from api.hints import Hints
from texelgrad.hints import Publisher


class FakePublisher(Publisher):
    """A broker that keeps hints in a list; `gate` lets it answer."""

    def __init__(self) -> None:
        super().__init__("redis://127.0.0.1:1")
        self.sent: list[str] = []
        self.fails = False
        self.gate, self.asked = threading.Event(), threading.Event()
        self.gate.set()
        self.changed = threading.Condition()

    @override
    def send(self, queue: str) -> None:
        with self.changed:
            self.sent.append(queue)
            self.changed.notify()

    @override
    def waiting(self, queue: str) -> int:
        self.asked.set()
        self.gate.wait()
        if self.fails:
            self.fails = False
            raise ConnectionError("away")
        return self.sent.count(queue)

    def wait_for(self, count: int) -> None:
        """Wait until so many hints are there."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.sent) >= count, 60)


def sent(publisher: FakePublisher, most: int, *queues: str, count: int) -> list[str]:
    """What a broker got that did not answer until it was told of all these queues."""
    hints = Hints(publisher, most=most)
    publisher.gate.clear()
    hints.send(queues[0])
    assert publisher.asked.wait(60)
    for queue in queues[1:]:
        hints.send(queue)
    publisher.gate.set()
    publisher.wait_for(count)
    hints.close()
    return sorted(publisher.sent)


def test_hints_that_come_together_are_each_sent():
    """What came while the broker did not answer goes out as soon as it does."""
    queues = ["gpu", "gpu", "cpu", "gpu"]
    assert sent(FakePublisher(), 100, *queues, count=4) == sorted(queues)


def test_no_more_hints_than_may_wait():
    """A queue without a free worker fills up to the limit; another one is not held back by it."""
    queues = ["gpu"] * 10 + ["cpu"]
    assert sent(FakePublisher(), 3, *queues, count=4) == ["cpu", "gpu", "gpu", "gpu"]


def test_a_broker_that_was_away_gets_the_next_hint():
    """One hint is lost, which the keeper makes good; the thread goes on."""
    publisher = FakePublisher()
    publisher.fails = True
    assert sent(publisher, 3, "gpu", "cpu", count=1) == ["cpu"]
