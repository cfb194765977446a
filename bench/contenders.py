"""Who competes, and how one measurement of each is taken."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.pages import BrowserDied, Page, PageRejected, open_page
from bench.server import BenchServer
from bench.summary import OURS, PEER_TOLERANCE, TOLERANCE, Measurement, relative_error
from bench.workloads import Workload
from worker.chromium import Chromium, Recipe

_ROOT = Path(__file__).resolve().parents[1]
_CHECK_STEPS = 20
_PREPARE_S = 540.0  # a slow backend takes seconds a step, and minutes for a few

BROWSER = {
    OURS: ("texelgrad", "webgl2"),
    "tfjs-webgl": ("tfjs", "webgl"),
    "tfjs-webgpu": ("tfjs", "webgpu"),
    "tfjs-wasm": ("tfjs", "wasm"),
    "tfjs-cpu": ("tfjs", "cpu"),
    "jax-js-webgl": ("jax-js", "webgl"),
    "jax-js-webgpu": ("jax-js", "webgpu"),
    "jax-js-wasm": ("jax-js", "wasm"),
}
"""Library and backend of each contender that runs in a page."""
NATIVE = ("pytorch-cpu", "pytorch-cuda", "pytorch-cuda-graphs")
"""Contenders that run in a process of their own."""


@dataclass(frozen=True)
class Bench:
    """What all measurements of one run share."""

    chromium: Chromium
    recipe: Recipe
    server: BenchServer
    budget_ms: float
    reference: dict[str, list[float]]  # first losses in float64, by workload
    options: dict[str, Any]  # of our engine

    async def measure(self, contender: str, workload: Workload, round_: int) -> Measurement:
        """One contender on one workload, in a fresh browser or process. Never raises for what the contender does."""
        start = Measurement(round_, workload["name"], contender)
        try:
            if contender in BROWSER:
                found = await self._in_page(contender, workload)
            else:
                found = _in_process({"contender": contender, **self._task(workload)})
        except (PageRejected, BrowserDied, subprocess.SubprocessError) as error:
            return replace(start, error=_first_line(error))
        off = relative_error(found["losses"], self.reference[workload["name"]])
        tolerance = TOLERANCE if contender == OURS else PEER_TOLERANCE
        error = "" if off <= tolerance else f"losses are off by {off:.1e}"
        return replace(start, **_numbers(found), loss_error=off, error=error)

    async def count(self, contender: str, workload: Workload) -> dict[str, Any]:
        """Calls, draws and bytes of a step, as gl_counter.js sees them; {"error": ...} where it can't train."""
        try:
            async with open_page(
                self.chromium, self.recipe, self.server, self.task(contender, workload)
            ) as page:
                return await page.call("count", deadline_s=_PREPARE_S)
        except (PageRejected, BrowserDied) as error:
            return {"error": _first_line(error)}

    def task(self, contender: str, workload: Workload) -> dict[str, Any]:
        """What page.js fetches."""
        library, backend = BROWSER[contender]
        return {
            "library": library,
            "backend": backend,
            "options": self.options,
            **self._task(workload),
        }

    def _task(self, workload: Workload) -> dict[str, Any]:
        return {
            "workload": workload,
            "budgetMs": self.budget_ms,
            "checkSteps": _CHECK_STEPS,
            "checkMs": 5 * self.budget_ms,
        }

    async def _in_page(self, contender: str, workload: Workload) -> dict[str, Any]:
        async with open_page(self.chromium, self.recipe, self.server, self.task(contender, workload)) as page:
            prepared = await page.call("prepare", deadline_s=_PREPARE_S)
            timed = await _with_cpu(page)
            again = await page.call("again", deadline_s=_PREPARE_S)
        return {**prepared, **timed, "warmFirstStepMs": again["firstStepMs"]}


async def _with_cpu(page: Page) -> dict[str, Any]:
    before = page.cpu_ms()
    timed = await page.call("measure", deadline_s=_PREPARE_S)
    after = page.cpu_ms()
    cpu = {kind: (after[kind] - before[kind]) / timed["steps"] for kind in after}
    return {**timed, "pageCpuMs": cpu["page"], "gpuCpuMs": cpu["gpu"]}


def native_contenders() -> list[str]:
    """PyTorch on what this machine has; empty where torch is not installed."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.native", "--list"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else []


def _in_process(task: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.native"],
        cwd=_ROOT,
        input=json.dumps(task),
        capture_output=True,
        text=True,
        timeout=_PREPARE_S,
        check=False,
    )
    if done.returncode != 0:
        raise subprocess.SubprocessError((done.stderr.strip().splitlines() or ["it failed"])[-1])
    return json.loads(done.stdout)


def _numbers(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "ms_per_step": found["ms"] / found["steps"],
        "steps": found["steps"],
        "load_ms": found.get("loadMs"),
        "first_step_ms": found["firstStepMs"],
        "warm_first_step_ms": found.get("warmFirstStepMs"),
        "page_cpu_ms": found.get("pageCpuMs"),
        "gpu_cpu_ms": found.get("gpuCpuMs"),
        "losses": found["losses"],
        "last_loss": found["loss"],
        "facts": found["facts"],
    }


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
