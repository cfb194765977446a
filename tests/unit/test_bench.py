"""The bench's arithmetic: medians, ratios to ours, what counts; and that both languages make the same workloads."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench import plot
from bench.report import report
from bench.summary import Measurement, relative_error, summarize
from bench.tables import table
from bench.text import markdown, significant
from bench.workloads import data_of, weights_of, workloads

from .. import node

ROOT = Path(__file__).parents[2]
PYPPETEER_NEEDS = [
    "appdirs",
    "certifi",
    "importlib_metadata",
    "pyee",
    "tqdm",
    "typing_extensions",
    "urllib3",
    "websockets",
    "zipp",
]


def measured(round_: int, contender: str, ms: float | None, error: str = "") -> Measurement:
    return Measurement(round_, "net", contender, error=error, ms_per_step=ms, first_step_ms=ms and 10 * ms)


def results(*measurements: Measurement) -> dict[str, Any]:
    """As run.py writes them."""
    about = {
        "device": {"renderer": "Some GPU", "webgpu": None},
        "chromium": "156",
        "flags": ["--a", "--b"],
        "cpus": 2,
        "load": [0.1, 0.2, 0.3],
        "date": "2026-01-02T03:04:05Z",
        "commit": "abc and changes to it",
        "options": {"what": "compare"},
    }
    return {
        "about": about,
        "measurements": [m.as_dict() for m in measurements],
        "counts": {"net peer": {"peakBytes": 2e6}},
    }


def test_a_report_has_figures_beside_renderer_flags_and_commit(tmp_path: Path):
    """From the files that runs wrote, through JSON."""
    file = tmp_path / "compare.json"
    file.write_text(json.dumps(results(measured(1, "texelgrad", 0.05), measured(1, "peer", 1.0))))
    text = report([file, file])
    assert text.count("Some GPU, WebGPU: none") == 2
    assert "`--a --b`" in text
    assert "2 CPUs, load 0.1, 2026-01-02, commit abc and changes to it" in text
    (peer,) = {line for line in text.splitlines() if "peer" in line}
    assert [cell.strip() for cell in peer.split("|")][1:7] == ["net", "peer", "1", "0%", "20", "10"]
    assert [cell.strip() for cell in peer.split("|")][-3:-1] == ["2", ""]


def test_medians_spread_and_ratios_of_the_same_round():
    """The machine was three times slower in round 2: no ratio sees that."""
    rows = summarize(
        [
            *(measured(r, "texelgrad", ms) for r, ms in ((1, 1.0), (2, 3.0), (3, 1.2))),
            *(measured(r, "peer", ms) for r, ms in ((1, 4.0), (2, 12.0), (3, 6.0))),
        ]
    )
    ours, peer = rows
    assert (ours.ms_per_step, ours.times_ours, ours.rounds) == (1.2, 1.0, 3)
    assert ours.spread == pytest.approx((3.0 - 1.0) / 1.2)
    assert (peer.ms_per_step, peer.times_ours) == (6.0, 4.0)
    assert peer.first_step_ms == 60.0


def test_a_time_with_wrong_losses_counts_nowhere():
    """Neither in the median nor, if it is ours, in anybody's ratio."""
    rows = summarize(
        [
            measured(1, "texelgrad", 0.1, "losses are off by 1.0e+00"),
            measured(2, "texelgrad", 2.0),
            measured(1, "peer", 5.0),
            measured(2, "peer", 6.0),
        ]
    )
    assert (rows[0].ms_per_step, rows[0].rounds) == (2.0, 1)
    assert rows[0].errors == ("losses are off by 1.0e+00",)
    assert rows[1].times_ours == 3.0


def test_a_contender_that_can_not_train_has_a_row_that_says_why():
    rows = summarize([measured(1, "texelgrad", 1.0), measured(1, "peer", None, "no WebGPU adapter")])
    assert rows[1].ms_per_step is None
    assert "peer" in table(results(measured(1, "peer", None, "no WebGPU adapter")))
    assert "no WebGPU adapter" in table(results(measured(1, "peer", None, "no WebGPU adapter")))
    assert "peer" not in plot.bars(rows, "title")


@pytest.mark.parametrize(
    ("losses", "reference", "error"),
    [
        ([1.0, 0.5], [1.0, 0.5, 0.25], 0.0),
        ([1.0, 0.501], [1.0, 0.5], 0.002),
        ([1.0, math.nan], [1.0, 0.5], math.inf),
        ([math.nan, 0.5], [1.0, 0.5], math.inf),
        ([math.inf, 0.5], [1.0, 0.5], math.inf),
    ],
)
def test_losses_are_compared_relatively(losses: list[float], reference: list[float], error: float):
    """The worst of those that both have; what is not finite never passes."""
    assert relative_error(losses, reference) == pytest.approx(error)


def test_no_losses_are_no_agreement():
    with pytest.raises(ValueError, match="no losses"):
        relative_error([], [1.0])


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0, "0"), (0.0512, "0.0512"), (12.345, "12.3"), (1234.5, "1,230"), (0.00001234, "0.000012")],
)
def test_numbers_have_three_digits_and_no_exponents(value: float | None, text: str):
    assert significant(value) == text


def test_a_table_is_aligned_and_bars_in_cells_do_not_break_it():
    table = markdown([["a", "b", "c"], ["x|y", "z", "1"]]).splitlines()
    assert len({len(line) for line in table}) == 1
    assert [line.count("|") for line in table] == [4, 4, 4]


def test_plots_hold_every_row_and_every_curve():
    """And are well-formed."""
    rows = summarize([measured(1, "texelgrad", 0.05), measured(1, "a<b", 40.0)])
    bars = ET.fromstring(plot.bars(rows, "title"))
    names = [element.text for element in bars.iter() if element.tag.endswith("text")]
    assert {"net", "texelgrad", "a<b", "0.05", "40"} <= set(names)
    lines = ET.fromstring(plot.lines({"ours": [(1, 0.1), (16, 2.0)]}, "title", "depth"))
    (line,) = (element for element in lines.iter() if element.tag.endswith("polyline"))
    points = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert points[0][0] < points[1][0]
    assert points[0][1] > points[1][1]  # y grows downwards


@pytest.mark.parametrize("name", ["seed-demo", "cnn-mnist", "mlp-mnist"])
def test_both_languages_make_the_same_bits(name: str):
    """PyTorch trains what the page trains, from the same weights."""
    workload = workloads()[name]
    data = node.call("/bench/workloads.js", "dataOf", workload)
    weights = node.call("/bench/workloads.js", "weightsOf", workload)
    theirs = [data["x"], data["y"], *(weight["kernel"] for weight in weights)]
    ours = [*data_of(workload), *weights_of(workload)]
    assert [array.tobytes() for array in ours] == [array.tobytes() for array in theirs]
    assert [array.shape for array in ours] == [
        data["x"].shape,
        data["y"].shape,
        *(tuple(w["shape"]) for w in weights),
    ]


def test_every_workload_has_its_float64_losses():
    """Without them a time could not count."""
    reference = json.loads((ROOT / "bench/reference.json").read_text())
    assert set(reference) == set(workloads())
    assert all(len(losses) == 20 and all(map(math.isfinite, losses)) for losses in reference.values())


def test_the_bench_runs_on_the_standard_library_and_pyppeteer():
    """On a borrowed GPU machine there is nothing else."""
    allowed = {"bench", "texelgrad", "worker", "pyppeteer", *PYPPETEER_NEEDS, *sys.stdlib_module_names}
    code = (
        "import json, sys, bench.run; print(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(json.loads(done.stdout)) - allowed - {"__main__"} == set()


def test_the_peers_are_pinned():
    """Exact versions, hashes, and no address of a registry."""
    pinned = json.loads((ROOT / "bench/package.json").read_text())["dependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in pinned.values())
    lock = json.loads((ROOT / "bench/package-lock.json").read_text())["packages"]
    assert all("integrity" in package and "resolved" not in package for path, package in lock.items() if path)
