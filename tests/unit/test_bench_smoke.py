"""The bench itself, one tiny round: its page, a peer, PyTorch and the counters work. Needs the peers: `npm ci` in bench/."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..node import node_program

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed_peers() -> None:
    """Install them as scripts/bench does, which pytest does not go through."""
    if (ROOT / "bench/node_modules/@tensorflow/tfjs").is_dir():
        return
    # npm lies beside node
    environment = {**os.environ, "PATH": f"{Path(node_program()).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(
        ["npm", "ci", "--silent", "--ignore-scripts"], cwd=ROOT / "bench", env=environment, check=True
    )


def run_bench(out: Path, *arguments: str) -> dict[str, Any]:
    """Run it in a process of its own, and read what it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.run", *arguments, "--out", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    what = arguments[0] if arguments[0] in ("growth", "soak", "telemetry") else "compare"
    return json.loads((out / f"{what}.json").read_text())


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("installed_peers")
def test_one_tiny_round_beside_tfjs(tmp_path: Path):
    """Both train from the same weights to the losses of float64, and are counted from outside."""
    found = run_bench(
        tmp_path,
        *(
            "--workload",
            "seed-demo",
            "--peer",
            "tfjs-webgl",
            "tfjs-cpu",
            "--rounds",
            "1",
            "--budget-s",
            "0.2",
        ),
    )
    measured = {m["contender"]: m for m in found["measurements"]}
    assert list(measured) == ["texelgrad", "tfjs-webgl", "tfjs-cpu"]
    for m in measured.values():
        assert m["error"] == ""
        assert m["loss_error"] < 1e-3
        assert 0 < m["ms_per_step"] < 1000
        assert m["page_cpu_ms"] > 0
    ours, tfjs, cpu = (found["counts"][f"seed-demo {name}"] for name in measured)
    # a draw or two belong to a burst of steps, not to one
    assert ours["drawsPerStep"] == pytest.approx(measured["texelgrad"]["facts"]["drawsPerStep"], abs=0.5)
    assert tfjs["drawsPerStep"] > 20
    assert tfjs["peakBytes"] > 0
    assert cpu["drawsPerStep"] == 0
    assert "<svg" in (tmp_path / "compare.svg").read_text()


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_soak_samples_a_long_run(tmp_path: Path):
    """Twenty samples; no texture is made after the first."""
    found = run_bench(tmp_path, "soak", "--steps", "2000")
    assert len(found["pieces"]) == 20
    assert len({piece["facts"]["textures"] for piece in found["pieces"]}) == 1
    assert all(piece["resident"]["page"] > 0 for piece in found["pieces"])
