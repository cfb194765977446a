"""A data set of 2 GB from its upload to trained weights: no Python process holds it, and the browser holds it once."""

from __future__ import annotations

import json
import struct
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import numpy as np
import psutil
import pytest

from texelgrad.normalize import normalized

from .stack import Stack

COLUMNS, CLASSES = 1024, 4
ROWS = 2**31 // (4 * COLUMNS)  # of float32: 2 GiB
PYTHON_MIB = 300  # that all Python processes together may grow by
BROWSER_MIB = 2048 + 1024  # the rows once, and what reading, textures and programs take
_BLOCK = 4096  # rows made at once


def make_rows(first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes that differ in the mean of their columns, far from 0."""
    y = np.arange(first, first + count, dtype=np.int32) % CLASSES
    noise = np.random.default_rng(first).normal(size=(count, COLUMNS)).astype(np.float32)
    means = np.random.default_rng(99).normal(scale=0.3, size=(CLASSES, COLUMNS)).astype(np.float32)
    return (500 + 20 * (means[y] + noise)).astype(np.float32), y


def write_file(path: Path) -> None:
    """A safetensors file of x and y, block by block."""
    size = 4 * ROWS * COLUMNS
    header = {
        "x": {"dtype": "F32", "shape": [ROWS, COLUMNS], "data_offsets": [0, size]},
        "y": {"dtype": "I32", "shape": [ROWS], "data_offsets": [size, size + 4 * ROWS]},
    }
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for first in range(0, ROWS, _BLOCK):
            file.write(make_rows(first, min(_BLOCK, ROWS - first))[0].tobytes())
        file.write((np.arange(ROWS, dtype=np.int32) % CLASSES).tobytes())


class Memory:
    """Peaks of the resident memory, in MiB: of all Python processes of a stack together, and of Chromium's. A context manager."""

    def __init__(self, stack: Stack) -> None:
        self._root = psutil.Process(stack.process.pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.python_mib, self.browser_mib = self.now()

    def now(self) -> tuple[float, float]:
        """Of Python, and of Chromium."""
        python = browser = 0.0
        for process in [self._root, *self._root.children(recursive=True)]:
            try:
                # Pages that processes share are counted once among them.
                size = process.memory_full_info().pss / 2**20
                name = process.name()
            except psutil.Error:  # it has just ended
                continue
            if name.startswith(("python", "gunicorn", "celery")):
                python += size
            elif "chrom" in name or "headless" in name:
                browser += size
        return python, browser

    def _watch(self) -> None:
        while not self._done.wait(0.25):
            python, browser = self.now()
            self.python_mib, self.browser_mib = max(self.python_mib, python), max(self.browser_mib, browser)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_two_gigabytes(tmp_path: Path):
    """Uploaded, described, normalised, streamed and trained on; the weights tell the classes of rows that they never saw."""
    write_file(tmp_path / "large.safetensors")
    limits = {"max_upload_bytes": str(3 << 30), "max_data_bytes": str(3 << 30), "stall_s": "300"}
    with Stack(limits) as stack, Memory(stack) as memory:
        python_before, browser_before = memory.now()
        with (tmp_path / "large.safetensors").open("rb") as file:
            answer = httpx.post(
                f"{stack.url}v1/datasets",
                params={"name": "large"},
                headers={"Content-Type": "application/octet-stream"},
                content=file,
                timeout=None,
                trust_env=False,
            )
        assert answer.status_code == 201, answer.text
        (tmp_path / "large.safetensors").unlink()
        uploaded_mib = memory.python_mib - python_before
        dataset = answer.json()
        features = dataset["arrays"]["x"]["stats"]
        assert features["features"] is None, "there are more than 1,000 columns"
        assert features["mean"] == pytest.approx(500, abs=1)

        spec = {
            "model": {"input": [COLUMNS], "layers": [{"type": "dense", "units": CLASSES}]},
            "loss": "softmax_cross_entropy",
            "metrics": ["accuracy"],
            "optimizer": {"type": "adam", "lr": 0.003},
            "data": {
                "dataset": dataset["id"],
                "normalize": "standard",
                "validation": {"fraction": 0.01, "stratify": True},
            },
            "train": {"steps": 120, "batch_size": 512, "seed": 4},
        }
        estimate = stack.client.estimate(spec)
        assert estimate["texture_bytes"] < 256 << 20, "streamed"
        started = time.monotonic()
        job = stack.client.train(spec)
        print(  # noqa: T201 - the figures of the closing note
            f"trained in {time.monotonic() - started:.0f} s, {job['record']['timings']}; Python grew by {uploaded_mib:.0f} MiB "
            f"at the upload, {memory.python_mib - python_before:.0f} in all, Chromium by {memory.browser_mib - browser_before:.0f}"
        )
        weights = stack.client.weights(job["id"])
        assert job["metrics"]["val_accuracy"] > 0.9
        x, y = make_rows(ROWS, 400)
        logits = normalized(x, weights) @ weights["dense_1.kernel"] + weights["dense_1.bias"]
        assert (logits.argmax(axis=1) == y).mean() > 0.9
        assert memory.python_mib - python_before < PYTHON_MIB
        assert memory.browser_mib - browser_before < BROWSER_MIB
