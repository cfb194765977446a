"""`texelgrad keys` on a database of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from texelgrad import cli
from texelgrad.keys import secret_hash


@pytest.fixture(autouse=True)
def _own_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEXELGRAD_DATABASE_URL", f"sqlite:///{tmp_path / 'keys.db'}")


def run(*words: str) -> Result:
    """The command's result."""
    return CliRunner().invoke(cli.main, ["keys", *words])


def test_create_list_revoke():
    """The key is all of the output, so that a script can keep it; the list shows only how it begins."""
    made = run("create", "--owner", "ada", "--role", "admin", "--name", "ci")
    assert made.exit_code == 0
    key = made.stdout.strip()
    assert key.startswith("tg_")
    key_id = made.stderr.split()[0]
    run("create", "--owner", "mallory")
    listed = run("list", "--owner", "ada").output
    assert [word in listed for word in (key_id, key[:9], "admin", "ci", "valid")] == [True] * 5
    assert key not in listed
    assert "mallory" not in listed
    assert "mallory" in run("list").output
    assert run("revoke", key_id).exit_code == 0
    assert "revoked" in run("list", "--owner", "ada").output


def test_a_key_that_is_not_there():
    run("create")
    result = run("revoke", "key_none")
    assert result.exit_code == 1
    assert "there is no key key_none" in result.output


@pytest.mark.parametrize(
    "words", [("workers", "list"), ("workers", "drain", "w"), ("keys", "list"), ("keys", "revoke", "k")]
)
def test_without_a_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]):
    """One line says where it was looked for and what names another; nothing is made. `migrate` makes it."""
    monkeypatch.setenv("TEXELGRAD_DATABASE_URL", "")
    monkeypatch.setenv("TEXELGRAD_DATA_DIR", str(tmp_path / "none"))
    result = CliRunner().invoke(cli.main, words)
    assert (result.exit_code, result.exception.__class__) == (1, SystemExit)
    assert str(tmp_path / "none" / "texelgrad.db") in result.stderr
    assert "TEXELGRAD_DATA_DIR" in result.stderr
    assert not (tmp_path / "none").exists()
    assert CliRunner().invoke(cli.main, ["migrate"]).exit_code == 0
    assert "Unavailable" not in CliRunner().invoke(cli.main, words).stderr


def test_a_database_that_can_not_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Not migrated, not a database, not reachable: one line each, without the password."""
    (tmp_path / "old.db").touch()
    (tmp_path / "odd.db").write_text("something else " * 100)
    for address, complaint in (
        (f"sqlite:///{tmp_path / 'old.db'}", "texelgrad migrate"),
        (f"sqlite:///{tmp_path / 'odd.db'}", "file is not a database"),
        ("postgresql://somebody:secret@127.0.0.1:1/none", "connection"),
    ):
        monkeypatch.setenv("TEXELGRAD_DATABASE_URL", address)
        result = CliRunner().invoke(cli.main, ["workers", "list"])
        assert (result.exit_code, result.exception.__class__) == (1, SystemExit)
        assert complaint in result.stderr
        assert "secret" not in result.stderr


def test_hashes_are_of_the_whole_key():
    assert len({secret_hash(text) for text in ("tg_a", "tg_b", "tg_", "")}) == 4
