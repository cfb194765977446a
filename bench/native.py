"""Native PyTorch as a contender, in a process of its own: reads a task as JSON from stdin, prints what came out as JSON.

python -m bench.native --list says which contenders this machine has.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

from bench.torch_net import Training, runner

_MIN_CHECKED = 3


def contenders() -> list[str]:
    """Names by device and way of running."""
    return ["pytorch-cpu", *(["pytorch-cuda", "pytorch-cuda-graphs"] if torch.cuda.is_available() else [])]


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """The same steps as the page's `prepare` and `measure`."""
    device = "cuda" if "cuda" in task["contender"] else "cpu"
    torch.backends.cudnn.allow_tf32 = False  # float32 is float32 for everybody
    training = Training(task["workload"], device)
    started = time.perf_counter()
    step = runner(training, graph=task["contender"].endswith("graphs"))
    losses = [float(step())]
    first_step_ms = (time.perf_counter() - started) * 1000

    started = time.perf_counter()
    while len(losses) < task["checkSteps"] and (
        len(losses) < _MIN_CHECKED or (time.perf_counter() - started) * 1000 < task["checkMs"]
    ):
        losses.append(float(step()))

    def run(steps: int) -> tuple[float, float]:
        began = time.perf_counter()
        loss = torch.zeros(())
        for _ in range(steps):
            loss = step()
        last = float(loss)  # waits for the device
        return (time.perf_counter() - began) * 1000, last

    steps, budget = 1, task["budgetMs"]
    while (took := max(run(steps)[0], 0.05)) <= budget / 3:
        steps = int(steps * min(8, max(1.5, budget / 2 / took)) + 1)
    steps = max(1, round(steps * budget / took))
    ms, loss = run(steps)
    return {
        "firstStepMs": first_step_ms,
        "losses": losses,
        "ms": ms,
        "steps": steps,
        "loss": loss,
        "facts": {
            "version": torch.__version__,
            "threads": torch.get_num_threads(),
            "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        },
    }


if __name__ == "__main__":
    print(json.dumps(contenders() if "--list" in sys.argv else measure(json.load(sys.stdin))))
