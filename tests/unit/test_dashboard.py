"""The dashboard's pages and the pure parts of its modules; tests/e2e opens it in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from api import dashboard
from texelgrad.domain import POLICIES, Policy

from tests import node

PAGES = ("/", "/login", "/runs/job_00000000000000000000000000")
NAN, INFINITY = float("nan"), float("inf")
SWIFTSHADER = "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)"


@pytest.fixture(name="client")
def fixture_client() -> FlaskClient:
    """A client of an application that is the dashboard only."""
    app = Flask("dashboard-test", static_folder=None)
    dashboard.register(app)
    return app.test_client()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_under_its_own_strict_policy(client: FlaskClient, page: str):
    """No inline script, style or handler, and nothing from other hosts: the policy would stop it."""
    response = client.get(page)
    policy = response.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    html = response.text
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html) == []
    assert re.findall(r"""(?:src|href)=["'](?:https?:)?//""", html) == []


@pytest.mark.parametrize("page", PAGES)
def test_everything_that_a_page_loads_is_there(client: FlaskClient, page: str):
    """Scripts, styles, and what the scripts import; uPlot comes from the set-up."""
    found = set(re.findall(r"""(?:src|href)="(/assets/[^"]+)""", client.get(page).text))
    pending = list(found)
    while pending:
        address = pending.pop()
        with client.get(address) as response:
            assert response.status_code == 200, address
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            text = response.get_data(as_text=True)
        if address.endswith(".js"):
            for name in re.findall(r'^import .* from "\./([^"]+)"', text, re.MULTILINE):
                target = f"/assets/{name}"
                if target not in found:
                    found.add(target)
                    pending.append(target)
    assert "/assets/dashboard.css" in found
    assert ("/assets/vendor/uplot/uPlot.esm.js" in found) == page.startswith("/runs/")


def test_an_id_can_not_become_markup(client: FlaskClient):
    """The address is the reader's, or whoever sent the link's."""
    html = client.get('/runs/"><script>alert(1)</script>').text
    assert "<script>alert" not in html


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("formatNumber", [0.0123456], "0.01235"),
        ("formatNumber", ["NaN"], "NaN"),
        ("formatNumber", ["-Infinity"], "−∞"),
        ("formatNumber", [None], "–"),
        ("formatNumber", [0], "0"),
        ("formatNumber", [-2.5e-7], "−2.50e−7"),
        ("formatPercent", [0.97771], "97.77 %"),
        ("formatPercent", ["NaN"], "NaN"),
        ("formatDuration", [0.0123], "12 ms"),
        ("formatDuration", [59.9], "60 s"),
        ("formatDuration", [3725], "1 h 2 min"),
        ("formatDuration", [None], "–"),
        ("formatBytes", [1536], "1.5 KiB"),
        ("shortRenderer", [SWIFTSHADER], "SwiftShader"),
        ("shortRenderer", ["ANGLE (NVIDIA, Vulkan 1.4.3 (NVIDIA NVIDIA H200 (0x00002335)), NVIDIA)"], "NVIDIA H200"),
        ("shortRenderer", ["ANGLE (Mesa, llvmpipe (LLVM 15.0.6 256 bits), OpenGL ES 3.2)"], "llvmpipe"),
        ("shortRenderer", ["ANGLE (Apple, ANGLE Metal Renderer: Apple M2, Unspecified Version)"], "Apple M2"),
        ("shortRenderer", [None], "–"),
    ],
)  # fmt: skip
def test_values_are_written_for_people(function: str, arguments: list[Any], expected: str):
    """Also the ones that are not finite, and the ones that are missing."""
    assert node.call("/api/static/format.js", function, *arguments) == expected


def test_curves_share_one_axis_and_leave_gaps_where_nothing_can_be_drawn():
    """NaN and infinities become gaps; on a log scale zero and below do too."""
    loss = {"steps": [1, 2, 3], "values": [2.0, 0.0, 0.5]}
    validation = {"steps": [2, 4], "values": [1.5, 1.0]}
    align = ("/api/static/curves.js", "align")
    assert node.call(*align, [loss, validation], False) == [
        [1, 2, 3, 4],
        [2.0, 0.0, 0.5, None],
        [None, 1.5, None, 1.0],
    ]
    assert node.call(*align, [loss], True)[1] == [2.0, None, 0.5]
    assert node.call(*align, [], True) == [[]]


def test_the_first_value_that_is_not_finite_is_found():
    """It is marked in the chart and named below it."""
    module, name = "/api/static/curves.js", "firstNonFinite"
    broken = node.call(module, name, {"steps": [1, 5, 9], "values": [1.0, INFINITY, NAN]})
    assert broken == {"step": 5, "value": INFINITY}
    assert node.call(module, name, {"steps": [1], "values": [1.0]}) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 0.5, NAN, INFINITY], True), ([1.0, 0.0], False), ([-1.0], False), ([NAN], False), ([], False)],
)
def test_a_log_scale_is_chosen_where_all_values_are_positive(values: list[float], expected: bool):
    curve = {"steps": list(range(len(values))), "values": values}
    assert node.call("/api/static/curves.js", "suitsLog", [curve, curve]) is expected


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [(None, None, [0, 1]), (0.98, 1.0, [0.97, 1]), (0.0, 0.5, [0, 0.55]), (1.0, 1.0, [0.99, 1])],
)
def test_the_axis_of_an_accuracy_ends_at_0_and_1(
    least: float | None, most: float | None, expected: list[float]
):
    found = node.call("/api/static/curves.js", "shareRange", least, most)
    assert found == pytest.approx(expected)


WORKER: dict[str, Any] = {
    "id": "w1",
    "host": "h",
    "queue": "gpu",
    "state": "idle",
    "draining": False,
    "renderer": SWIFTSHADER,
    "software": True,
    "fault": None,
    "seen_at": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ([], "no worker is running"),
        ([{"queue": "cpu"}], "no worker is running"),
        ([{}, {"state": "broken"}], "waiting for a worker"),
        ([{"state": "starting"}], "waiting for a worker"),
        ([{"state": "broken"}], "no worker can take this job: all broken"),
        ([{"draining": True}, {"state": "draining"}], "no worker can take this job: all draining"),
        ([{"draining": True}, {"state": "broken"}], "no worker can take this job: broken or draining"),
    ],
)
def test_a_queued_run_says_what_it_waits_for(workers: list[dict[str, Any]], expected: str):
    told = [{**WORKER, **worker} for worker in workers]
    job = {"queue": "gpu", "needs_hardware": False}
    assert node.call("/api/static/workers.js", "waitingFor", job, told) == expected


def test_a_run_that_needs_a_gpu_says_so():
    """Where the workers that may take it have none; not where one has."""
    job = {"queue": "gpu", "needs_hardware": True}
    soft, hard = (
        {"queue": "gpu", "state": "idle", "draining": False, "software": software}
        for software in (True, False)
    )
    waiting = ("/api/static/workers.js", "waitingFor", job)
    assert node.call(*waiting, [soft]) == "no worker can take this job: it needs a GPU"
    assert node.call(*waiting, [soft, hard]) == "waiting for a worker"
    leaving = {**hard, "draining": True}
    assert node.call(*waiting, [soft, leaving]) == "no worker can take this job: it needs a GPU"


def test_equal_workers_are_shown_together():
    """In the order of how well they are."""
    workers = [{**WORKER, "state": state} for state in ("broken", "idle", "busy", "idle")]
    found = node.call("/api/static/workers.js", "groups", [*workers, {**WORKER, "draining": True}])
    assert [(group["state"], group["count"], group["device"]) for group in found] == [
        ("idle", 2, "SwiftShader"),
        ("busy", 1, "SwiftShader"),
        ("draining", 1, "SwiftShader"),
        ("broken", 1, "SwiftShader"),
    ]


def test_the_causes_that_count_are_those_of_the_service():
    """What the page calls a lost try is what uses one up."""
    source = (Path(dashboard.__file__).parent / "static/attempts.js").read_text()
    listed = re.search(r"COUNTED = new Set\(\[(.*?)\]\)", source)
    assert listed
    counted = {cause.value for cause, policy in POLICIES.items() if policy == Policy.RETRY}
    assert set(re.findall(r"\w+", listed[1])) == counted


@pytest.mark.parametrize(
    ("causes", "state", "expected"),
    [
        ([None], "running", "2 retries left."),
        (["context_lost", None], "running", "1 try was lost. 1 retry left."),
        (["stalled"], "queued", "1 try was lost. 2 retries left."),
        (
            ["worker_stopped", "stalled", "gl_error", None],
            "running",
            "2 tries were lost. 1 lost try does not count: not the job's fault. No retries left.",
        ),
        (["stalled", "stalled", "stalled"], "failed", "3 tries were lost."),
    ],
)
def test_tries_are_told_in_words(causes: list[str | None], state: str, expected: str):
    """What was lost, and how many are left."""
    attempts = [{"state": "lost" if cause else "training", "cause": cause} for cause in causes]
    assert node.call("/api/static/attempts.js", "summary", attempts, 3, state) == expected


def report(**changes: Any) -> dict[str, Any]:
    """A precision report in which everything is right, with some parts replaced."""
    operator = {"op": "matmul", "name": "dense_1", "maxNormalizedError": 1e-7}
    return {
        "float32": {"renderable": True},
        "readback": {"exact": True},
        "nonfinite": [{"ok": True, "used": True}, {"ok": False, "used": False}],
        "operators": [operator, {**operator, "name": "dense_2", "maxNormalizedError": 3e-7}],
        "firstLosses": [{"step": 1, "loss": 0.5, "reference": 0.5, "relativeError": 0}],
        "coverage": {"operatorsChecked": 2, "operatorsTotal": 2},
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "tone", "text"),
    [
        ({}, "good", "all proofs passed"),
        ({"firstLosses": []}, "good", "all proofs passed"),
        ({"firstLosses": [{"loss": "NaN"}]}, "warn", "training had diverged"),
        ({"readback": {"exact": False}}, "bad", "a proof failed"),
        ({"nonfinite": [{"ok": False, "used": True}]}, "bad", "a proof failed"),
        (
            {"operators": [], "coverage": {"operatorsChecked": 0, "operatorsTotal": 5}},
            "warn",
            "no operator was measured",
        ),
        (
            {
                "operators": [
                    {"name": "a", "maxNormalizedError": 0.5},
                    {"name": "b", "maxNormalizedError": 2e-4},
                ]
            },
            "warn",
            "look at a: error 0.50",
        ),
        (
            {
                "operators": [
                    {"name": "a", "maxNormalizedError": 0.5},
                    {"name": "b", "maxNormalizedError": "NaN"},
                ]
            },
            "warn",
            "look at b: error NaN",
        ),
        (
            {
                "operators": [
                    {"name": "a", "maxNormalizedError": None},
                    {"name": "b", "maxNormalizedError": 1e-7},
                ]
            },
            "good",
            "all proofs passed",
        ),
        (
            {"operators": [{"name": "a", "maxNormalizedError": None}], "firstLosses": []},
            "warn",
            "training had diverged: nothing to compare",
        ),
        (
            {"coverage": {"operatorsChecked": 2, "operatorsTotal": 5}},
            "good",
            "proofs passed, 2 of 5 operators measured",
        ),
    ],
)
def test_a_report_is_not_praised_for_what_it_does_not_cover(changes: dict[str, Any], tone: str, text: str):
    """Nor for a large error; the worst operator is named."""
    assert node.call("/api/static/report.js", "judge", report(**changes)) == {"tone": tone, "text": text}


@pytest.mark.parametrize("relative", ["NaN", "Infinity", None])
def test_a_loss_whose_reference_is_0_is_compared_absolutely(relative: str | None):
    """Nothing is relative to 0."""
    loss = {"step": 1, "loss": 1e-9, "reference": 0, "relativeError": relative}
    name = ("/api/static/report.js", "lossError")
    assert node.call(*name, loss) == {"error": 1e-9, "absolute": True}
    assert node.call(*name, {**loss, "loss": "Infinity"}) == {"error": None, "absolute": False}
    assert node.call(*name, {**loss, "reference": 2, "relativeError": 0.5}) == {
        "error": 0.5,
        "absolute": False,
    }


def test_styles_and_scripts_are_small():
    """Without a bundler each module is a request: few and small ones. uPlot is not ours."""
    own = [path for path in Path(dashboard.__file__).parent.joinpath("static").iterdir() if path.is_file()]
    # In bytes: all that one who opens every page loads besides uPlot, with its comments and types, for nothing packs or
    # strips it. The pages for runs, workers and the reports need 80.7 KiB; the rest is for mending, not for a new page.
    assert sum(path.stat().st_size for path in own) < 84 << 10


def test_inputs_are_shown_by_name():
    """One has only a shape."""
    module = ("/api/static/model.js", "inputOf")
    assert node.call(*module, [28, 28, 1]) == "[28, 28, 1]"
    assert node.call(*module, {"image": [8, 8, 1], "age": [1]}) == "image [8, 8, 1], age [1]"
