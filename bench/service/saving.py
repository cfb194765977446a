"""What storing results costs: the share of a run's time, and how long others' small writes take meanwhile."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

from bench.service.figures import Row, quantiles
from bench.service.load import load
from bench.service.running import ROOT, running
from texelgrad import artifacts
from texelgrad.db import Database

GOAL_PERCENT, GOAL_MS = 5.0, 300.0
_RATE = 20  # small writes a second
_PIECE = bytes(1 << 20)
_PIECES = 64


def measure(database: str, url: str, steps: int, seconds: float) -> list[Row]:
    """Both, on one database."""
    with running(url) as service:
        dataset = service.client.upload_dataset(_images())
        job = service.run(_spec(dataset["id"], steps))
        assert job["state"] == "succeeded", (job["cause"], job["message"])
        timings = job["record"]["timings"]
        saving_ms = timings["checkpointMs"] + timings["saveMs"]
        service.drain()
        command = [sys.executable, "-m", "bench.service.saving"]
        writer = subprocess.Popen(
            [*command, service.database().url.render_as_string(False)], cwd=ROOT, stdout=subprocess.PIPE
        )
        try:
            load(service.url, 1.0, _RATE)
            p50, p99, worst = quantiles(load(service.url, seconds, _RATE).took_ms)
        finally:
            writer.kill()
        assert writer.stdout is not None
        saved = writer.stdout.read().count(b"\n") * _PIECES
    share = 100 * saving_ms / timings["trainMs"]
    of = {"saved_ms": saving_ms, "trained_ms": timings["trainMs"], "steps": steps}
    besides = {"p50": p50, "worst": worst, "MiB_saved_meanwhile": saved}
    return [
        Row(f"saving, of training time, {database}", share, "%", GOAL_PERCENT, of),
        Row(f"POST p99 while files are saved, {database}", p99, "ms", GOAL_MS, besides),
    ]


def _images() -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {
        "x": random.normal(size=(1024, 784)).astype(np.float32),
        "y": random.integers(0, 10, 1024).astype(np.int32),
    }


def _spec(dataset_id: str, steps: int) -> dict[str, Any]:
    """784-512-512-10 with Adam: one checkpoint, of 8 MB, in the middle of the run, and the weights of 2.7 MB."""
    layers = [{"type": "dense", "units": 512, "activation": "relu"} for _ in range(2)]
    return {
        "model": {"input": [784], "layers": [*layers, {"type": "dense", "units": 10}]},
        "loss": "softmax_cross_entropy",
        "optimizer": {"type": "adam", "lr": 1e-3},
        "data": {"dataset": dataset_id},
        "train": {"steps": steps, "batch_size": 128},
        "checkpoint": {"every_steps": steps // 2},
        "diagnostics": "none",
    }


def _write_for_ever(url: str) -> None:
    """Store one file of 64 MiB after the other, as uploads and checkpoints are."""
    db = Database(url)
    while True:
        artifacts.write_pieces(db, "bench", "upload", (_PIECE for _ in range(_PIECES)))
        print(flush=True)


if __name__ == "__main__":
    _write_for_ever(sys.argv[1])
