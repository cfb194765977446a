"""Settings: where they come from, and what follows from them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from texelgrad.config import Settings
from texelgrad.errors import Invalid
from worker.chromium import RECIPES

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch):
    """Settings of the machine that runs the tests don't count."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"TEXELGRAD_{name.upper()}", raising=False)


def test_embedded_defaults(tmp_path: Path):
    """A file and a socket below data_dir, on loopback."""
    settings = Settings(data_dir=tmp_path / "v")
    assert settings.database == f"sqlite:///{tmp_path}/v/texelgrad.db"
    assert settings.broker == f"redis+socket://{settings.redis_socket}"
    assert settings.host == "127.0.0.1"
    assert Settings().data_dir.is_absolute()


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch):
    """TEXELGRAD_<NAME>, lists as JSON."""
    monkeypatch.setenv("TEXELGRAD_PORT", "9000")
    monkeypatch.setenv("TEXELGRAD_ALLOWED_HOSTS", '["train.example"]')
    settings = Settings()
    assert (settings.port, settings.allowed_hosts) == (9000, ["train.example"])


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch):
    """The process does not start with a guess."""
    monkeypatch.setenv("TEXELGRAD_LEASE_S", "0")
    with pytest.raises(ValidationError, match="lease_s"):
        Settings()


@pytest.mark.parametrize(
    ("name", "value", "legal"),
    [
        ("lease_s", "0", "0 <"),
        ("chromium_nice", "-1", "0 <= "),
        ("chromium_nice", "20", "<= 19"),
        ("log_level", "loud", "DEBUG, INFO, WARNING or ERROR"),
        ("gpu_recipe", "metal", "empty, vulkan"),
        ("database_url", "mysql://h/d", "sqlite://"),
        ("database_url", "var/texelgrad.db", "sqlite://"),
        ("broker_url", "localhost:6379", "redis://"),
        ("allowed_hosts", "a,b", "JSON list"),
        ("allowed_hosts", '["http://train.example"]', "leave out scheme"),
        ("allowed_hosts", '["train.example:80"]', "leave out scheme, port"),
    ],
)
def test_a_wrong_variable_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, legal: str
):
    """With its value and what would be legal, beside all others that are wrong."""
    monkeypatch.setenv(f"TEXELGRAD_{name.upper()}", value)
    monkeypatch.setenv("TEXELGRAD_PORT", "99999")
    with pytest.raises(Invalid) as caught:
        Settings.load()
    faults = {fault.field: fault for fault in caught.value.faults}
    fault = faults.pop(f"TEXELGRAD_{name.upper()}")
    assert list(faults) == ["TEXELGRAD_PORT"]
    assert repr(value) in fault.message
    assert legal in f"{fault.message} {fault.legal}"


@pytest.mark.parametrize(
    "part",
    [("-m", "texelgrad.keeper"), ("-c", "import worker.app"), ("-c", "import api.app; api.app.create_app()")],
)
def test_each_part_says_what_is_wrong_where_it_is_started_alone(
    monkeypatch: pytest.MonkeyPatch, part: tuple[str, str]
):
    """The last line names the variable and its value; the process ends."""
    monkeypatch.setenv("TEXELGRAD_LOG_LEVEL", "loud")
    done = subprocess.run([sys.executable, *part], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "TEXELGRAD_LOG_LEVEL: 'loud'" in done.stderr.splitlines()[-1]


def test_right_variables_are_not_refused(monkeypatch: pytest.MonkeyPatch):
    """Also by other spellings: levels in small letters, hosts of every kind."""
    hosts = ["*", "[::1]", "127.0.0.1", "train.example", "my_host"]
    for name, value in {"LOG_LEVEL": "debug", "ALLOWED_HOSTS": json.dumps(hosts), "GPU_RECIPE": ""}.items():
        monkeypatch.setenv(f"TEXELGRAD_{name}", value)
    settings = Settings.load(port=0, broker_url="rediss://h/0")
    assert (settings.log_level, settings.allowed_hosts, settings.port) == ("DEBUG", hosts, 0)


def test_the_recipes_are_those_of_the_worker():
    """texelgrad may not import the worker, so it lists them itself."""
    legal = get_args(Settings.model_fields["gpu_recipe"].annotation)
    assert list(legal) == ["", *(recipe.name for recipe in RECIPES)]


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_the_driver_of_postgresql_is_filled_in(scheme: str):
    """Users write the URL that psql takes."""
    url = Settings(database_url=f"{scheme}://u@h/d").database
    assert url == "postgresql+psycopg://u@h/d"


def test_a_deep_folder_has_its_socket_elsewhere(tmp_path: Path):
    """A Unix socket's path has 107 bytes at most; the same folder gives the same socket."""
    deep = tmp_path / ("d" * 120)
    socket = Settings(data_dir=deep).redis_socket
    assert len(str(socket)) < 108
    assert socket == Settings(data_dir=deep).redis_socket
    assert socket != Settings(data_dir=tmp_path / ("e" * 120)).redis_socket


def test_every_setting_has_a_help():
    """The table documents itself."""
    assert all(field.description for field in Settings.model_fields.values())
