"""The bench: our engine beside its peers, in the same Chromium, interleaved over several rounds.

  ./scripts/bench                              all contenders on the six workloads of bench/workloads.json
  ./scripts/bench growth                       our cost against batch, width and depth
  ./scripts/bench telemetry                    what reading the losses costs us
  ./scripts/bench soak --steps 100000          memory, textures and step time of a small net over a long run

Every measurement has a Chromium of its own with an empty profile. A time counts only if the first losses are those of float64
(bench/reference.json). Tables go to the terminal, everything as JSON and plots to --out. Needs the standard library and pyppeteer;
PyTorch is measured too where this Python has it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import platform
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import tables
from bench.commit import measured_commit
from bench.contenders import BROWSER, NATIVE, Bench, native_contenders
from bench.pages import GPUS, BrowserDied, PageRejected, open_page, recipe_for
from bench.server import BenchServer
from bench.summary import OURS, Measurement
from bench.text import significant
from bench.workloads import Workload, growth, listed, workloads
from texelgrad.engine import find_engine
from worker.chromium import EnvironmentFault, find_chromium

ROOT = Path(__file__).resolve().parents[1]
_CALL_S = 600.0
_SOAK_PIECES = 20
_SOFTWARE = re.compile("none|swiftshader|llvmpipe", re.IGNORECASE)
_AGES = 5  # budgets for a step


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        chromium = find_chromium("", options.user)
    except EnvironmentFault as error:
        print(error, file=sys.stderr)
        return 1
    reference = json.loads(Path(__file__).with_name("reference.json").read_text())
    with BenchServer() as server:
        bench = Bench(
            chromium,
            recipe_for(options.gpu),
            server,
            options.budget_s * 1000,
            reference,
            {"device": json.loads(options.device)},
        )
        return asyncio.run(_run(bench, options))


async def _run(bench: Bench, options: argparse.Namespace) -> int:
    try:
        about = await _about(bench, options)
    except (PageRejected, BrowserDied) as error:
        print(f"Chromium with --gpu {options.gpu} does not work here: {error}", file=sys.stderr)
        return 1
    if options.gpu != "software" and _SOFTWARE.search(about["device"]["renderer"] or "none"):
        who = f"Chromium runs as {bench.chromium.identity.user}; --user chooses another account"
        print(
            f"--gpu {options.gpu}: WebGL's renderer is {about['device']['renderer']}, no GPU. {who}",
            file=sys.stderr,
        )
        return 1
    results = {"about": about}
    print(tables.heading(results), end="\n\n", flush=True)
    file: Path = options.out / f"{options.what}.json"
    what = {"compare": _compare, "growth": _growth, "telemetry": _telemetry, "soak": _soak}[options.what]
    async for found in what(bench, options):
        # after each measurement: a run that is ended from outside loses nothing
        results |= found
        _write(file, json.dumps(results, indent=1))
    for name, svg in tables.plots(results).items():
        _write(options.out / f"{name}.svg", svg)
    print(f"\n{tables.table(results)}\n\nwritten to {options.out}")
    return 0


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


Found = AsyncIterator[dict[str, Any]]  # all that was found so far, again and again


async def _compare(bench: Bench, options: argparse.Namespace) -> Found:
    contenders = [OURS, *(name for name in _peers(options) if name != OURS)]
    counts: dict[str, dict[str, Any]] = {}
    measurements: list[dict[str, Any]] = []
    for m in _measurements(bench, options, contenders, _chosen(options, listed())):
        measured = await m
        measurements.append(measured.as_dict())
        ran = measured.ms_per_step is not None and measured.contender in BROWSER
        if ran and measured.round == 1 and not options.no_counts:
            name = f"{measured.workload} {measured.contender}"
            counts[name] = await bench.count(measured.contender, workloads()[measured.workload])
        yield {"measurements": measurements, "counts": counts}


async def _growth(bench: Bench, options: argparse.Namespace) -> Found:
    nets = _chosen(options, [workload for sweep in growth().values() for _, workload in sweep])
    measurements: list[dict[str, Any]] = []
    for m in _measurements(bench, options, [OURS, *(options.peer or [])], nets):
        measurements.append((await m).as_dict())
        yield {"measurements": measurements}


def _peers(options: argparse.Namespace) -> list[str]:
    if options.peer is not None:
        return options.peer
    # WebGPU on the CPU is something that Chromium offers nobody without a flag, and minutes a step
    pages = [name for name in BROWSER if options.gpu != "software" or not name.endswith("webgpu")]
    return [*pages, *native_contenders()]


def _measurements(
    bench: Bench, options: argparse.Namespace, contenders: Sequence[str], nets: Sequence[Workload]
) -> Iterator[Coroutine[None, None, Measurement]]:
    """Rounds over all of them; a peer that could not train a net, or takes ages for it, is asked once; none is begun past --limit-s."""
    once: set[tuple[str, str]] = set()
    ends = math.inf if options.limit_s is None else time.monotonic() + options.limit_s

    async def measure(contender: str, net: Workload, round_: int) -> Measurement:
        measured = await bench.measure(contender, net, round_)
        ms = measured.ms_per_step
        if ms is None or (contender != OURS and ms > _AGES * bench.budget_ms):
            once.add((net["name"], contender))
        time_ = f"{significant(ms)} ms" if ms is not None else ""
        progress = (
            f"round {round_}/{options.rounds}  {net['name']:15} {contender:20} {time_:>12} {measured.error}"
        )
        print(progress, file=sys.stderr, flush=True)
        return measured

    for round_, net, contender in itertools.product(range(1, options.rounds + 1), nets, contenders):
        if time.monotonic() > ends:
            print(f"--limit-s {options.limit_s:g} is over: what is missing was not measured", file=sys.stderr)
            return
        if (net["name"], contender) not in once:
            yield measure(contender, net, round_)


async def _telemetry(bench: Bench, options: argparse.Namespace) -> Found:
    found: dict[str, Any] = {}
    for workload in _chosen(options, listed()):
        async with open_page(bench.chromium, bench.recipe, bench.server, bench.task(OURS, workload)) as page:
            found[workload["name"]] = await page.call("telemetry", deadline_s=_CALL_S)
        yield {"telemetry": found}


async def _soak(bench: Bench, options: argparse.Namespace) -> Found:
    workload = _chosen(options, listed())[0]
    piece_steps = max(1, options.steps // _SOAK_PIECES)
    task = {**bench.task(OURS, workload), "pieceSteps": piece_steps}
    pieces: list[dict[str, Any]] = []
    async with open_page(bench.chromium, bench.recipe, bench.server, task) as page:
        for _ in range(_SOAK_PIECES):
            piece = await page.call("soak", deadline_s=_CALL_S)
            pieces.append({**piece, "resident": page.resident_bytes()})
            yield {"workload": workload["name"], "pieceSteps": piece_steps, "pieces": pieces}


async def _about(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """What a figure is worth nothing without."""
    async with open_page(bench.chromium, bench.recipe, bench.server, {}) as page:
        device = await page.call("device", deadline_s=60.0)
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": device,
        "chromium": bench.chromium.version,
        "flags": bench.recipe.flags,
        "cpus": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "commit": measured_commit("browser_runtime", "shaders"),
        "engine": find_engine((ROOT,)).hash(),
        "peers": json.loads((ROOT / "bench/package.json").read_text())["dependencies"],
        "options": {
            key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()
        },
    }


def _chosen(options: argparse.Namespace, default: list[Workload]) -> list[Workload]:
    return [workloads()[name] for name in options.workload] if options.workload else default


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        if not (value := kind(text)) > 0:
            raise argparse.ArgumentTypeError(f"{text} is not positive")
        return value

    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("what", nargs="?", default="compare", choices=["compare", "growth", "telemetry", "soak"])
    add("--workload", nargs="+", choices=sorted(workloads()), metavar="NAME", help=", ".join(workloads()))
    legal = [*BROWSER, *NATIVE]
    add(
        "--peer",
        nargs="*",
        choices=legal,
        metavar="NAME",
        help=f"beside ours; none: only ours; {', '.join(legal)}",
    )
    add("--rounds", type=_positive(int), default=3)
    add("--budget-s", type=_positive(float), default=1.0, help="how long to measure each, after warming up")
    add("--gpu", choices=list(GPUS), default="software")
    add("--limit-s", type=_positive(float), help="begin no measurement later than this")
    add("--steps", type=_positive(int), default=100_000, help="of the soak")
    add("--no-counts", action="store_true", help="leave out draws, calls and bytes")
    add(
        "--device",
        default="{}",
        metavar="JSON",
        help="our engine's `device` options, such as '{\"rows\": 8}'",
    )
    add("--user", default="", help="account that Chromium runs as where we are root")
    add("--out", type=Path, default=ROOT / "var/bench")
    return parser


if __name__ == "__main__":
    sys.exit(main())
