"""How long a running job takes to stop once somebody cancels it, at any moment of its run."""

from __future__ import annotations

import json
import random
import time
from datetime import datetime

from bench.service.figures import Row, quantiles
from bench.service.running import ROOT, running

GOAL_S = 5.0
_LATEST_S = 2.5  # after its start: from its hand-over over compiling to the middle of its training


def measure(count: int) -> list[Row]:
    """Cancel so many jobs, one after the other, by the service's own clock."""
    spec = json.loads((ROOT / "examples" / "seed_demo.json").read_text())
    spec["train"] = {**spec["train"], "epochs": None, "steps": 10_000_000}
    moments = random.Random(1)
    took: list[float] = []
    with running() as service:
        for _ in range(count):
            job = service.client.create_job(spec)
            while service.client.job(job["id"])["state"] == "queued":
                time.sleep(0.02)
            time.sleep(moments.uniform(0.0, _LATEST_S))
            service.client.cancel(job["id"])
            job = service.client.wait(job["id"])
            assert job["state"] == "cancelled", (job["state"], job["cause"], job["message"])
            asked, ended = (datetime.fromisoformat(job[name]) for name in ("cancel_requested_at", "ended_at"))
            took.append((ended - asked).total_seconds())
    p50, p99, worst = quantiles(took)
    return [Row("cancel to stopped, p99", p99, "s", GOAL_S, {"p50": p50, "worst": worst, "jobs": count})]
