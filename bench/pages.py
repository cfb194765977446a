"""One contender's page in a Chromium of its own, and what that Chromium's processes use of CPU and memory."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.server import BenchServer
from texelgrad.processes import session_members
from worker.browser import Browser, BrowserDied, PageRejected
from worker.chromium import RECIPES, Chromium, Recipe

__all__ = ["GPUS", "BrowserDied", "Page", "PageRejected", "open_page", "recipe_for"]

_START_S = 60.0
_FEATURES = "--enable-features="

GPUS = {"software": "swiftshader", "vulkan": "vulkan", "egl": "gl-egl"}
"""What --gpu takes, and the worker's launch recipe behind it."""


def recipe_for(gpu: str) -> Recipe:
    """The worker's recipe with WebGPU switched on, for all contenders alike."""
    recipe = next(recipe for recipe in RECIPES if recipe.name == GPUS[gpu])
    features = [flag.removeprefix(_FEATURES) for flag in recipe.flags if flag.startswith(_FEATURES)]
    others = [flag for flag in recipe.flags if not flag.startswith(_FEATURES)]
    webgpu = (_FEATURES + ",".join([*features, "WebGPU"]), "--enable-unsafe-webgpu")
    flags = (*others, *webgpu, "--enable-precise-memory-info")
    return Recipe(f"{recipe.name}+webgpu", flags, software=recipe.software)


class Page:
    """A page that has the task; made by `open_page`."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    async def call(self, method: str, *, deadline_s: float) -> Any:
        """Await `texelgradPage.<method>()`.

        Raises:
            PageRejected: it threw; the message says what.
            BrowserDied: also when the time is up.
        """
        return await self._browser.call(method, deadline_s=deadline_s)

    def cpu_ms(self) -> dict[str, float]:
        """CPU time so far of the page's processes (`page`) and of the GPU process (`gpu`), all threads."""
        return {kind: sum(map(_cpu_ms, pids)) for kind, pids in self._processes().items()}

    def resident_bytes(self) -> dict[str, int]:
        """Resident memory of the same processes."""
        return {kind: sum(map(_resident_bytes, pids)) for kind, pids in self._processes().items()}

    def _processes(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {"page": [], "gpu": []}
        for pid in session_members(self._browser.session_id):
            with contextlib.suppress(OSError):  # gone meanwhile
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"--type=renderer" in words:
                    found["page"].append(pid)
                elif b"--type=gpu-process" in words:
                    found["gpu"].append(pid)
        return found


@asynccontextmanager
async def open_page(
    chromium: Chromium, recipe: Recipe, server: BenchServer, task: dict[str, Any]
) -> AsyncGenerator[Page]:
    """A fresh Chromium with an empty profile, so no shader cache; gone afterwards, whatever happened.

    Raises:
        BrowserDied: it did not start.
    """
    server.task = task
    # not below a folder of ours: another user may run the browser
    profile = Path(tempfile.gettempdir()) / f"texelgrad-bench-{secrets.token_hex(8)}"
    browser = await Browser.start(chromium, recipe, profile)
    try:
        await browser.open(server.url, deadline_s=_START_S)
        yield Page(browser)
    finally:
        await browser.stop()


def _cpu_ms(pid: int) -> float:
    total_ns = 0
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total_ns += int((thread / "schedstat").read_text().split()[0])
    return total_ns / 1e6


def _resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0
