"""Profile folders: whose they are, and what becomes of them when their owner is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from worker.profiles import ProfileFolder, profiles_root, sweep

ROOT = Path(__file__).parents[2]


def test_a_folder_is_removed_with_what_is_in_it(tmp_path: Path):
    folder = ProfileFolder(tmp_path)
    folder.profile.mkdir()
    (folder.profile / "Cookies").write_text("x")
    assert folder.remove() == []
    assert list(tmp_path.iterdir()) == []


def test_a_user_of_the_profile_is_killed(tmp_path: Path):
    """A browser that was not ended some other way ends with its profile."""
    folder = ProfileFolder(tmp_path)
    code = "import time; print('up', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code, f"--user-data-dir={folder.profile}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as browser:
        assert browser.stdout is not None
        assert browser.stdout.readline() == "up\n"
        assert folder.remove() == []
        assert browser.wait() < 0


def test_a_sweep_spares_the_living_and_removes_the_dead(tmp_path: Path):
    """The lock of a killed owner is gone with it; a file that is no folder is left alone."""
    mine = ProfileFolder(tmp_path)
    code = (
        "import os, pathlib, sys\n"
        "from worker.profiles import ProfileFolder\n"
        "folder = ProfileFolder(pathlib.Path(sys.argv[1]))\n"
        "folder.profile.mkdir()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False)
    (tmp_path / "note").write_text("not ours")
    assert len(list(tmp_path.iterdir())) == 3
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {mine.profile.parent.name, "note"}
    mine.remove()


def test_the_root_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A link that somebody put in its place is refused."""
    tmp_path.chmod(0o755)
    monkeypatch.setattr("worker.profiles._open_to_all", Path.is_dir)  # pytest's own folder is private
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    root = profiles_root()
    assert root.parent == tmp_path
    assert root.stat().st_mode & 0o777 == 0o711
    root.rmdir()
    (tmp_path / "elsewhere").mkdir()
    root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="not a folder of ours"):
        profiles_root()
