"""The wheel: client and engine, without the service's packages, whose names would collide in site-packages."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", name="installed")
def fixture_installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, unpacked as pip would."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True, capture_output=True, timeout=100)
    (wheel,) = folder.glob("texelgrad-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_the_client_and_every_file_of_the_engine(installed: Path):
    """And nothing of api/, worker/ or tests/."""
    top = {path.name for path in installed.iterdir()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"texelgrad"}
    for folder, pattern in (("browser_runtime", "*.js"), ("shaders", "*.glsl")):
        ours = {path.relative_to(ROOT) for path in (ROOT / folder).rglob(pattern)}
        shipped = {path.relative_to(installed / "texelgrad/engine") for path in (installed / "texelgrad/engine" / folder).rglob(pattern)}  # fmt: skip
        assert shipped == ours
        assert ours


def test_the_installed_engine_is_the_checkouts(installed: Path):
    """Found without a checkout beside it, with the same hash, so that its runs can be told to be the same."""
    code = "from texelgrad.engine import find_engine; print(find_engine().hash())"
    hashes = [
        subprocess.run([sys.executable, "-P", "-c", code], env={"PYTHONPATH": str(place)}, cwd=installed.parent,
                       capture_output=True, text=True, check=True).stdout
        for place in (installed, ROOT)
    ]  # fmt: skip
    assert hashes[0] == hashes[1] != ""
