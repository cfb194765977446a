"""Checkpoints that leave while training goes on: the worker's page in its real browser, with a port that is played."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np
import pytest
from typing_extensions import override

from texelgrad.engine import find_engine
from texelgrad.spec import parse_spec
from worker.browser import open_proved
from worker.chromium import RECIPES, find_chromium
from worker.page_server import PageServer
from worker.port import AttemptPort, Metrics
from worker.profiles import ProfileFolder, profiles_root

# pyppeteer gives websockets a loop, which websockets calls deprecated
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

LONG_S = 120.0  # after which a test has failed; nothing takes so long
EVERY, STEPS = 40, 200
X = np.random.default_rng(1).normal(size=(96, 4)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5], [3.0]], np.float32)).astype(np.float32)
ARRAYS = {"x": X, "y": Y}
SPEC = {
    "model": {"input": [4], "layers": [{"type": "dense", "units": 16, "activation": "tanh"}, {"type": "dense", "units": 1}]},
    "loss": "mse",
    "optimizer": {"type": "adam", "lr": 0.01},
    "data": {"dataset": "ds_00000000000000000000000000"},
    "train": {"steps": STEPS, "batch_size": 16, "seed": 5},
    "checkpoint": {"every_steps": EVERY},
    "diagnostics": "none",
}  # fmt: skip


class Port(AttemptPort):
    """An attempt whose checkpoints take as long as a test wants; remembers what came, in order."""

    spec: Mapping[str, Any] = SPEC

    def __init__(self, resume: tuple[int, bytes] | None = None) -> None:
        self.resume = resume
        self.came: list[str] = []
        self.checkpoints: dict[int, bytes] = {}
        self.file = b""
        self.reported: dict[str, Any] = {}
        self.step = 0
        self.stepped = threading.Condition()
        self.ended = threading.Event()

    def taken(self, step: int) -> None:
        """Called while the page waits for the answer to a checkpoint; may raise."""

    def wait_for_step(self, step: int) -> None:
        """Until metrics of a later step than this are here."""
        with self.stepped:
            assert self.stepped.wait_for(lambda: self.step > step, LONG_S), f"no metrics after step {step}"

    @override
    def job(self) -> dict[str, Any] | None:
        def described(name: str) -> dict[str, Any]:
            return {"shape": list(ARRAYS[name].shape), "dtype": "float32", "url": f"data/{name}"}

        return {
            "job_id": "job_1",
            "attempt_id": "att_1",
            "spec": parse_spec(self.spec).model_dump(mode="json"),
            "data": {"inputs": {"x": described("x")}, "targets": {"y": described("y")}, "weights": {}},
            "resume": self.resume and {"url": "resume", "step": self.resume[0]},
            "initial": None,
            "allow_software": True,
        }

    @override
    def data_size(self, name: str) -> int:
        return ARRAYS[name].nbytes

    @override
    def open_data(self, name: str, start: int, end: int) -> Iterator[bytes]:
        yield ARRAYS[name].tobytes()[start:end]

    @override
    def open_resume(self) -> Iterator[bytes]:
        assert self.resume is not None
        yield self.resume[1]

    @override
    def open_initial(self) -> Iterator[bytes]:
        raise KeyError("initial")

    @override
    def metrics(self, points: Metrics) -> None:
        with self.stepped:
            self.step = points.step
            self.stepped.notify_all()

    @override
    def diagnostics(self, report: dict[str, Any]) -> None:
        self.came.append("diagnostics")

    @override
    def checkpoint(self, step: int, body: IO[bytes]) -> None:
        self.came.append(f"{step} comes")
        file = body.read()
        self.taken(step)
        self.checkpoints[step] = file
        self.came.append(f"{step} is kept")

    @override
    def weights(self, body: IO[bytes]) -> None:
        self.file = body.read()
        self.came.append("weights")

    @override
    def predictions(self, body: IO[bytes]) -> None:
        raise AssertionError("nothing is predicted")

    @override
    def result(self, result: dict[str, Any]) -> None:
        self.came.append("result")
        self.reported = result
        self.ended.set()

    @override
    def failure(self, failure: dict[str, Any]) -> None:
        self.came.append("failure")
        self.reported = failure
        self.ended.set()


def train(port: Port, until: Callable[[], object] | None = None) -> None:
    """Let a browser serve the port until something has happened, by default the end; then kill it, whatever it does."""
    wait = until or (lambda: port.ended.wait(LONG_S))

    async def run() -> None:
        folder = ProfileFolder(profiles_root())
        with PageServer(find_engine(), port) as server:
            browser, _ = await open_proved(
                find_chromium("", ""), RECIPES[-1:], server.url, folder.profile, deadline_s=LONG_S
            )
            try:
                await browser.call("start", deadline_s=LONG_S)
                assert await asyncio.to_thread(wait)
            finally:
                await browser.stop()
                folder.remove()

    asyncio.run(run())


@pytest.fixture(scope="module")
def whole() -> Port:
    """A run whose checkpoints are taken at once."""
    port = Port()
    train(port)
    return port


class Slow(Port):
    """Takes a checkpoint only once training has gone on behind it."""

    @override
    def taken(self, step: int) -> None:
        self.wait_for_step(step)


def test_training_goes_on_while_a_checkpoint_is_taken(whole: Port):
    """They come one at a time, in order, before the weights; and all files are those of a run that never waited."""
    port = Slow()
    train(port)
    steps = range(EVERY, STEPS, EVERY)
    expected = [f"{step} {what}" for step in steps for what in ("comes", "is kept")]
    assert port.came == whole.came == [*expected, "weights", "result"]
    assert port.checkpoints == whole.checkpoints
    assert port.file == whole.file != b""


class Killed(Slow):
    """Never answers for the third checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.half = threading.Event()
        self.gone = threading.Event()

    @override
    def taken(self, step: int) -> None:
        super().taken(step)
        if step == 3 * EVERY:
            self.half.set()
            self.gone.wait(LONG_S)
            raise ConnectionError("the page is gone")


def test_a_kill_while_a_checkpoint_is_under_way_costs_no_bits(whole: Port):
    """Training had gone on behind it; the next attempt begins at the one before, and ends with the same files."""
    killed = Killed()
    train(killed, lambda: killed.half.wait(LONG_S))
    killed.gone.set()
    assert killed.step > 3 * EVERY
    last = max(killed.checkpoints)
    assert last == 2 * EVERY
    again = Port(resume=(last, killed.checkpoints[last]))
    train(again)
    assert again.reported["record"]["resumed"] == {"step": last, "bitExact": True}
    assert again.checkpoints == {step: file for step, file in whole.checkpoints.items() if step > last}
    assert again.file == whole.file


class Full(Slow):
    """Has no room for the second checkpoint."""

    @override
    def taken(self, step: int) -> None:
        super().taken(step)
        if step == 2 * EVERY:
            raise OSError("the disk is full")


def test_a_checkpoint_that_is_not_taken_ends_the_run():
    """With its own error and not that of the training which it stopped; nothing follows it."""
    port = Full()
    train(port)
    assert port.came == [f"{EVERY} comes", f"{EVERY} is kept", f"{2 * EVERY} comes", "failure"]
    assert port.reported["code"] == "internal"
    assert f"checkpoint?step={2 * EVERY}: the runner answered 500" in port.reported["message"]


class Refused(Slow):
    """Takes no metrics of the steps behind the first checkpoint, and that one only after a while."""

    @override
    def metrics(self, points: Metrics) -> None:
        super().metrics(points)
        if points.step > EVERY:
            raise OSError("the database is away")

    @override
    def taken(self, step: int) -> None:
        super().taken(step)
        assert not self.ended.wait(1), "the failure overtook the checkpoint"


def test_a_failure_waits_for_the_checkpoint_under_way():
    """The attempt ends with it: what came later would be lost."""
    port = Refused()
    train(port)
    assert port.came == [f"{EVERY} comes", f"{EVERY} is kept", "failure"]
    assert "metrics: the runner answered 500" in port.reported["message"]


class Diverging(Port):
    """Trains at a rate at which errors double each step, and has no room for the checkpoint before they are infinite."""

    spec: Mapping[str, Any] = {
        **SPEC,
        "model": {"input": [4], "layers": [{"type": "dense", "units": 1}]},
        "optimizer": {"type": "sgd", "lr": 1.3},
        "train": {"steps": STEPS, "batch_size": len(X), "seed": 5},
    }

    def __init__(self) -> None:
        super().__init__()
        self.diverged = threading.Event()

    @override
    def metrics(self, points: Metrics) -> None:
        if not np.isfinite(np.frombuffer(points.values, "<f8")).all():
            self.diverged.set()

    @override
    def taken(self, step: int) -> None:
        assert self.diverged.wait(LONG_S)
        raise OSError("the disk is full")


def test_a_checkpoint_that_is_not_taken_does_not_hide_that_the_run_diverged():
    """The cause is what the user must mend; it comes with its curve, and once nothing is under way."""
    port = Diverging()
    train(port)
    assert port.came == [f"{EVERY} comes", "failure"]
    assert port.reported["code"] == "non_finite_loss"
    assert EVERY < port.reported["step"] < 2 * EVERY
