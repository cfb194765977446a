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
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import plot
from bench.contenders import BROWSER, Bench, native_contenders
from bench.pages import GPUS, BrowserDied, PageRejected, open_page, recipe_for
from bench.server import BenchServer
from bench.summary import OURS, Measurement, comparison_table, markdown, significant, summarize
from bench.workloads import Workload, growth, workloads
from texelgrad.engine import find_engine
from worker.chromium import EnvironmentFault, find_chromium

ROOT = Path(__file__).resolve().parents[1]
_CALL_S = 600.0
_SOAK_PIECES = 20


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
    title = f"{about['device']['renderer']}, Chromium {bench.chromium.version}, {about['date'][:10]}"
    print(f"{title}\n{about['cpus']} CPUs, WebGPU: {about['device']['webgpu'] or 'none'}\n", flush=True)
    what = {"compare": _compare, "growth": _growth, "telemetry": _telemetry, "soak": _soak}[options.what]
    results, table, svgs = await what(bench, options, title)
    print(f"\n{table}\n")
    files = {f"{options.what}.json": json.dumps({"about": about, **results}, indent=1)}
    files |= {f"{name}.svg": svg for name, svg in svgs.items()}
    _write(options.out, files)
    return 0


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    print("written:", *(folder / name for name in files))


Outcome = tuple[dict[str, Any], str, dict[str, str]]  # for JSON, a table, plots by name


async def _compare(bench: Bench, options: argparse.Namespace, title: str) -> Outcome:
    peers: list[str] = options.peer if options.peer is not None else [*BROWSER, *native_contenders()]
    contenders = [OURS, *(name for name in peers if name != OURS)]
    chosen = _chosen(options.workload)
    counts: dict[str, dict[str, Any]] = {}
    hopeless: set[tuple[str, str]] = set()  # what failed in the first round won't work in the second
    measurements: list[Measurement] = []
    for round_ in range(1, options.rounds + 1):
        for workload in chosen:
            for contender in contenders:
                if (workload["name"], contender) in hopeless:
                    continue
                measured = await bench.measure(contender, workload, round_)
                measurements.append(measured)
                _progress(options, measured)
                if measured.error and measured.ms_per_step is None:
                    hopeless.add((workload["name"], contender))
                elif round_ == 1 and contender in BROWSER and not options.no_counts:
                    counts[f"{workload['name']} {contender}"] = await bench.count(contender, workload)
    rows = summarize(measurements)
    results = {"measurements": [m.as_dict() for m in measurements], "counts": counts}
    return results, comparison_table(rows, counts), {"compare": plot.bars(rows, title)}


async def _growth(bench: Bench, options: argparse.Namespace, title: str) -> Outcome:
    contenders = [OURS, *(options.peer or [])]
    measurements: list[Measurement] = []
    sizes: dict[str, tuple[str, int]] = {}
    for round_ in range(1, options.rounds + 1):
        for axis, sweep in growth().items():
            for value, workload in sweep:
                sizes[workload["name"]] = (axis, value)
                for contender in contenders:
                    measured = await bench.measure(contender, workload, round_)
                    measurements.append(measured)
                    _progress(options, measured)
    rows = summarize(measurements)
    lines = [["size", "contender", "value", "ms a step", "spread", "ms over value"]]
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        axis, value = sizes[row.workload]
        if row.ms_per_step is None:
            lines.append([axis, row.contender, str(value), "; ".join(row.errors)[:120], "", ""])
            continue
        spread = f"{row.spread:.0%}" if row.spread is not None else ""
        lines.append(
            [
                axis,
                row.contender,
                str(value),
                significant(row.ms_per_step),
                spread,
                significant(row.ms_per_step / value),
            ]
        )
        curves.setdefault(axis, {}).setdefault(row.contender, []).append((value, row.ms_per_step))
    svgs = {f"growth-{axis}": plot.lines(curve, title, axis) for axis, curve in curves.items()}
    return {"measurements": [m.as_dict() for m in measurements]}, markdown(lines), svgs


async def _telemetry(bench: Bench, options: argparse.Namespace, _title: str) -> Outcome:
    lines = [["workload", "", "losses read, ms a step", "not read", "costs"]]
    results: dict[str, Any] = {}
    for workload in _chosen(options.workload):
        async with open_page(bench.chromium, bench.recipe, bench.server, bench.task(OURS, workload)) as page:
            found = await page.call("telemetry", deadline_s=_CALL_S)
        results[workload["name"]] = found
        read, unread = (sorted(found[kind])[len(found[kind]) // 2] for kind in ("read", "unread"))
        lines.append(
            [workload["name"], "", significant(read), significant(unread), f"{read / unread - 1:+.1%}"]
        )
    return {"telemetry": results}, markdown(lines), {}


async def _soak(bench: Bench, options: argparse.Namespace, _title: str) -> Outcome:
    workload = _chosen(options.workload or ["seed-demo"])[0]
    task = {**bench.task(OURS, workload), "pieceSteps": max(1, options.steps // _SOAK_PIECES)}
    lines = [["steps", "", "ms a step", "textures", "texture MB", "JS heap MB", "page MB", "GPU process MB"]]
    pieces: list[dict[str, Any]] = []
    async with open_page(bench.chromium, bench.recipe, bench.server, task) as page:
        for piece in range(1, _SOAK_PIECES + 1):
            found = await page.call("soak", deadline_s=_CALL_S)
            found["resident"] = page.resident_bytes()
            pieces.append(found)
            megabytes = [found["facts"]["peakBytes"], found["heapBytes"], *found["resident"].values()]
            lines.append(
                [
                    str(piece * task["pieceSteps"]),
                    "",
                    significant(found["msPerStep"]),
                    str(found["facts"]["textures"]),
                    *(significant(value / 1e6 if value is not None else None) for value in megabytes),
                ]
            )
    return {"workload": workload["name"], "pieces": pieces}, markdown(lines), {}


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
        "commit": _commit(),
        "engine": find_engine((ROOT,)).hash(),
        "peers": json.loads((ROOT / "bench/package.json").read_text())["dependencies"],
        "options": {
            key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()
        },
    }


def _commit() -> str | None:
    packed = ROOT / "bench/COMMIT"  # bench/offline leaves it where there is no git
    if packed.is_file():
        return packed.read_text().strip()
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _chosen(names: Sequence[str] | None) -> list[Workload]:
    known = workloads()
    return [known[name] for name in (names or [name for name in known if not name.endswith("-x10")])]


def _progress(options: argparse.Namespace, m: Measurement) -> None:
    ours = f"{significant(m.ms_per_step)} ms" if m.ms_per_step is not None else ""
    print(
        f"round {m.round}/{options.rounds}  {m.workload:14} {m.contender:20} {ours:>12} {m.error}",
        file=sys.stderr,
        flush=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("what", nargs="?", default="compare", choices=["compare", "growth", "telemetry", "soak"])
    add("--workload", nargs="+", choices=sorted(workloads()), metavar="NAME", help=", ".join(workloads()))
    add(
        "--peer",
        nargs="*",
        metavar="NAME",
        help=f"beside ours; none: only ours; legal: {', '.join(BROWSER)}, pytorch-*",
    )
    add("--rounds", type=int, default=3)
    add("--budget-s", type=float, default=1.0, help="how long to measure each, after warming up")
    add("--gpu", choices=list(GPUS), default="software")
    add("--steps", type=int, default=100_000, help="of the soak")
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
