"""Finding Chromium, choosing launch recipes, and what of our environment it sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from texelgrad.domain import Cause
from worker.chromium import (
    RECIPES,
    Chromium,
    EnvironmentFault,
    Identity,
    browser_environment,
    find_chromium,
    gpu_devices,
    recipes_for,
)


def _script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_real_one_is_found():
    """On this machine, the program itself and not its wrapper."""
    chromium = find_chromium("", "")
    assert chromium.program.read_bytes()[:4] == b"\x7fELF"
    assert int(chromium.version.split(".")[0]) > 100


def test_the_setting_wins_over_the_environment(tmp_path: Path):
    chosen = _script(tmp_path / "chosen", "echo Chromium 1.2.3.4")
    other = _script(tmp_path / "other", "echo Chromium 9.9.9.9")
    assert find_chromium(str(chosen), "", {"CHROMIUM": str(other)}).version == "1.2.3.4"
    assert find_chromium("", "", {"CHROMIUM": str(other)}).version == "9.9.9.9"


@pytest.mark.parametrize(
    ("text", "problem"), [("exit 1", "`--version` failed"), ("echo no version", "`--version` failed")]
)
def test_a_program_that_does_not_run_is_named(tmp_path: Path, text: str, problem: str):
    broken = _script(tmp_path / "broken", text)
    with pytest.raises(EnvironmentFault, match=f"{broken}: {problem}") as caught:
        find_chromium(str(broken), "", {})
    assert caught.value.cause == Cause.NO_BROWSER
    assert "apt-get install chromium-headless-shell" in str(caught.value)


def test_a_file_that_is_not_executable_is_named(tmp_path: Path):
    (tmp_path / "data").write_text("x")
    with pytest.raises(EnvironmentFault, match="not executable"):
        find_chromium(str(tmp_path / "data"), "", {})


def test_nothing_on_path_is_named():
    with pytest.raises(EnvironmentFault, match="none of chromium-headless-shell, .* is on PATH"):
        find_chromium("", "", {"PATH": "/nowhere"})


def test_without_a_gpu_only_software_is_tried():
    """No recipe for hardware costs time where there is none."""
    assert [r.name for r in recipes_for(pinned="", allow_software=True, gpu=False)] == ["swiftshader"]


def test_with_a_gpu_software_comes_last_or_never():
    names = [r.name for r in recipes_for(pinned="", allow_software=True, gpu=True)]
    assert names == ["vulkan", "gl-egl", "default", "swiftshader"]
    names = [r.name for r in recipes_for(pinned="", allow_software=False, gpu=True)]
    assert names == ["vulkan", "gl-egl", "default"]


def test_no_gpu_and_no_software_says_what_to_do():
    with pytest.raises(EnvironmentFault, match="TEXELGRAD_ALLOW_SOFTWARE=true") as caught:
        recipes_for(pinned="", allow_software=False, gpu=False)
    assert caught.value.cause == Cause.NO_RENDERER


def test_a_pinned_recipe_is_the_only_one():
    assert [r.name for r in recipes_for(pinned="gl-egl", allow_software=True, gpu=False)] == ["gl-egl"]
    with pytest.raises(EnvironmentFault, match="legal: vulkan, gl-egl, default, swiftshader"):
        recipes_for(pinned="metal", allow_software=True, gpu=True)


def test_gpu_devices(tmp_path: Path):
    """Render nodes and numbered NVIDIA devices count, control devices do not."""
    (tmp_path / "dri").mkdir()
    for name in ("dri/card0", "dri/renderD128", "nvidia0", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert [path.name for path in gpu_devices(tmp_path)] == ["renderD128", "nvidia0"]


def _command(*, program: str = "/x/chromium-headless-shell", sandbox: bool = True) -> list[str]:
    identity = Identity("nobody", ("setpriv", "--reuid=1", "--"), 1, 1, sandbox)
    return Chromium(Path(program), "1", identity, nice=7).command(RECIPES[0], Path("/p"))


def test_the_command_line():
    """The session's priority is set as ourselves; death with the parent after the change of user, which would clear it."""
    command = _command()
    assert (
        command.index("7")
        < command.index("--reuid=1")
        < command.index("--pdeathsig")
        < command.index("/x/chromium-headless-shell")
    )
    for flag in (
        "--user-data-dir=/p",
        "--use-angle=vulkan",
        "--disable-domain-blocking-for-3d-apis",
        "--disable-gpu-process-crash-limit",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--remote-debugging-port=0",
    ):
        assert flag in command
    assert "--no-sandbox" not in command
    assert "--headless=new" not in command


def test_a_full_chromium_is_made_headless_and_root_gets_no_sandbox():
    assert "--headless=new" in _command(program="/x/chromium")
    assert "--no-sandbox" in _command(sandbox=False)


def test_chromium_sees_no_secret():
    """Drivers' variables pass, the service's do not, and temporary files land in the profile."""
    given = {
        "PATH": "/bin",
        "VK_ICD_FILENAMES": "icd.json",
        "LD_LIBRARY_PATH": "/lib",
        "TEXELGRAD_DATABASE_URL": "postgresql://user:password@host/db",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    seen = browser_environment(Path("/p"), given)
    assert seen == {
        "PATH": "/bin",
        "VK_ICD_FILENAMES": "icd.json",
        "LD_LIBRARY_PATH": "/lib",
        "HOME": "/p",
        "TMPDIR": "/p",
        "XDG_RUNTIME_DIR": "/p",
    }
