"""compose.yaml and Dockerfile against what they name: settings, files, commands, each other."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from texelgrad.config import Settings

ROOT = Path(__file__).parents[2]
OURS = {"api", "worker", "worker-gpu", "keeper", "migrate"}
SERVICE_KEYS = {
    "build", "command", "cpu_shares", "depends_on", "deploy", "environment", "healthcheck", "image", "init", "ports", "profiles",
    "restart", "shm_size", "stop_grace_period", "volumes",
}  # fmt: skip
CONDITIONS = {"service_healthy", "service_completed_successfully", "service_started"}


@pytest.fixture(scope="module", name="compose")
def fixture_compose() -> dict[str, Any]:
    """The file, with its anchors resolved."""
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


@pytest.fixture(scope="module", name="services")
def fixture_services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Its services."""
    return compose["services"]


def test_the_parts_are_all_there(compose: dict[str, Any], services: dict[str, dict[str, Any]]):
    """Ours and the two that we need, with keys that Compose knows, and PID 1 that reaps."""
    assert set(services) == OURS | {"db", "broker"}
    assert {key for key in compose if not key.startswith("x-")} == {"services", "volumes"}
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert service["init"] is True, name
    assert services["worker-gpu"]["profiles"] == ["gpu"]


def test_dependencies_can_be_met(services: dict[str, dict[str, Any]]):
    """Who is waited for until healthy has a health check; everything but migrate waits for the migration."""
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            assert how["condition"] in CONDITIONS, name
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], (name, needed)
    for name in OURS - {"migrate"}:
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        assert "healthcheck" in services[name], name


def test_settings_exist_and_can_be_read(services: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch):
    """Each variable is in the settings table, and the settings accept its value."""
    known = {f"TEXELGRAD_{name.upper()}" for name in Settings.model_fields}
    for name in OURS:
        with monkeypatch.context() as patch:
            for variable, value in services[name]["environment"].items():
                assert variable in known, (name, variable)
                assert isinstance(value, str), (name, variable)
                patch.setenv(variable, value)
            assert Settings().database.startswith("postgresql+psycopg://"), name


def test_commands_and_files_exist(services: dict[str, dict[str, Any]]):
    """What a container runs is installed beside this Python, or is a file or module of the checkout."""
    for name in OURS:
        for command in (
            services[name]["command"],
            services[name].get("healthcheck", {}).get("test", [None, "python"])[1:],
        ):
            program, *arguments = command
            assert shutil.which(program, path=str(Path(sys.executable).parent)), (name, program)
            if program == "python" and arguments and arguments[0] == "-m":
                assert (ROOT / f"{arguments[1].replace('.', '/')}.py").is_file(), name
            elif program == "python" and arguments and arguments[0] != "-c":
                assert (ROOT / arguments[0]).is_file(), name
    module, function = services["api"]["command"][-1].removesuffix("()").split(":")
    assert f"def {function}(" in (ROOT / f"{module.replace('.', '/')}.py").read_text()
    assert (ROOT / "worker/app.py").is_file()


def test_volumes_are_declared(compose: dict[str, Any], services: dict[str, dict[str, Any]]):
    """A misspelt name would silently be another volume."""
    used = {
        volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", [])
    }
    assert used == set(compose["volumes"])


def test_the_api_is_published_on_loopback_only(services: dict[str, dict[str, Any]]):
    """There are no keys yet."""
    assert services["api"]["ports"] == [f"127.0.0.1:{Settings().port}:{Settings().port}"]
    assert [name for name in OURS - {"api"} if "ports" in services[name]] == []


def test_the_image_is_unprivileged_and_names_what_exists():
    """The last user is not root, an init comes first, and files and functions that the build uses are there."""
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^USER (\w+)", text, re.MULTILINE)[-1] == "texelgrad"
    assert re.search(r'^ENTRYPOINT \["tini", "-s", "--"\]', text, re.MULTILINE)
    setup = (ROOT / "scripts/lib/setup.sh").read_text()
    used = re.findall(r"&& (setup_\w+)", text)
    assert used == ["setup_python", "setup_browser_libraries"]
    for function in used:
        assert f"{function}() {{" in setup
    known = {f"TEXELGRAD_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"TEXELGRAD_\w+", text)) <= known
