"""Settings: where they come from, and what follows from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from texelgrad.config import Settings


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
