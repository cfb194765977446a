"""The dashboard's pages and the pure parts of its modules; tests/e2e opens it in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from api import dashboard

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


def test_styles_and_scripts_are_small():
    """Without a bundler each module is a request: few and small ones. uPlot is not ours."""
    own = [path for path in Path(dashboard.__file__).parent.joinpath("static").iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in own) < 64 << 10
