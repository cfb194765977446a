"""What must hold for every file of the repository: no addresses of registries, no machine's paths, locks with hashes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

# Put together here, so that this file does not contain what it looks for.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("deb", "debian", "org"),
        ("pytorch", "org/whl"),
        ("proxy", "golang", "org"),
    )
]
MACHINE_PATHS = re.compile(
    r"(?<![\w.:/$}-])/(?:" + "|".join(("wor" + "k", "ro" + "ot", "ho" + "me", "Use" + "rs")) + r")/[\w.]"
)


def tracked_files() -> dict[str, str]:
    """Every text file under version control, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files: dict[str, str] = {}
    for name in filter(None, listed.split("\0")):
        data = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if b"\0" not in data:
            files[name] = data.decode("utf-8")
    return files


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """The repository, read once."""
    found = tracked_files()
    assert "pyproject.toml" in found
    return found


def test_no_file_names_a_package_registry(files: dict[str, str]):
    """Installs go through whatever index or mirror the user's clients are set up for."""
    assert [(name, host) for name, text in files.items() for host in REGISTRIES if host in text] == []


def test_no_file_names_a_path_of_somebodys_machine(files: dict[str, str]):
    """A home or scratch folder in the repository works on one machine only."""
    found = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert found == []


def test_no_link_is_tracked():
    """One that leads out of the repository is somebody's machine; `.gitignore` names no folder where a link may stand for it."""
    listed = subprocess.run(
        ["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert [line for line in listed.splitlines() if line.startswith("120000")] == []
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {".venv", "node_modules"} <= set(ignored)


def test_what_documented_commands_write_is_ignored():
    """A clone in which somebody followed the README has nothing to commit."""
    pages = (ROOT / name for name in ("README.md", "examples/README.md", "docs/operations.md"))
    blocks = [
        block
        for page in pages
        for block in re.findall(r"^ *```sh\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE)
    ]
    writes = r"(?:--out|tee|>|\.backup|\.py \w+) (\w+\.\w+)"
    written = {name for block in blocks for name in re.findall(writes, block)}
    assert written >= {
        "seed.safetensors",
        "predictions.csv",
        "job.json",
        "boxes.csv",
        "diabetes.npz",
        "copy.db",
    }
    named_by_the_service = {"job_00000000000000000000000000.npz"}
    asked = ["git", "check-ignore", "--no-index", *sorted(written | named_by_the_service)]
    ignored = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    assert set(ignored) == written | named_by_the_service


def test_what_git_ignores_stays_out_of_images():
    """Docker counts a pattern from the top of the repository, git one without a slash before its end from anywhere."""
    lines = [(ROOT / name).read_text().splitlines() for name in (".gitignore", ".dockerignore")]
    by_git, by_docker = ([line for line in each if line and not line.startswith("#")] for each in lines)
    anywhere = [pattern if "/" in pattern.rstrip("/") else f"**/{pattern}" for pattern in by_git]
    assert by_docker == [".git", *(pattern.strip("/") for pattern in anywhere)]


def test_the_path_check_sees_what_it_should():
    """Paths of people are found; addresses, relative paths and system folders are not."""
    for bad in ("cd /ho" + "me/ada/texelgrad", '"/ro' + 'ot/.cache"', "=/wor" + "k/main"):
        assert MACHINE_PATHS.search(bad), bad
    for good in ("http://127.0.0.1/ho" + "me/x", "$HOME/x", "../wor" + "k/x", "/usr/bin/x", "a/ro" + "ot/b"):
        assert not MACHINE_PATHS.search(good), good


def test_text_files_are_clean(files: dict[str, str]):
    """Unix line ends, a newline at the end, no trailing blanks in code."""
    generated = ("LICENSE", "package-lock.json")
    for name, text in files.items():
        if not text or name.endswith((".svg", ".md")) or name in generated or "/goldens/" in name:
            continue
        assert "\r" not in text, name
        assert text.endswith("\n"), name
        assert not re.search(r"[ \t]+$", text, re.MULTILINE), name


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_locks_pin_and_hash_without_addresses(lock: Path):
    """Each requirement has one version and at least one SHA-256; nothing says where to fetch it."""
    text = lock.read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-(i|f)\b|--(extra-)?index-url|--find-links", text, re.MULTILINE)
    requirements = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    assert len(requirements) > 5
    for requirement in requirements:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement


def test_locks_agree_on_versions():
    """The demo, the tests and the service run the same code."""
    versions: dict[str, set[str]] = {}
    for lock in LOCKS:
        names: dict[str, set[str]] = {}
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock.read_text(), re.MULTILINE):
            names.setdefault(name, set()).add(version)  # two versions of one name differ by their markers
        for name, found in names.items():
            assert versions.setdefault(name, found) == found, (lock.name, name)


def test_the_npm_lock_has_hashes_and_no_addresses():
    """`npm ci` checks each package against the lock, wherever it comes from."""
    lock = json.loads((ROOT / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert "node_modules/uplot" in packages
    for name, package in packages.items():
        assert package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package, name


def test_scripts_can_be_run():
    """A script with a #! line is executable, and bash is found through env."""
    scripts = [path for path in (ROOT / "scripts").iterdir() if path.is_file()] + [ROOT / ".ci/run"]
    for script in scripts:
        first = script.read_text().partition("\n")[0]
        if first.startswith("#!"):
            assert os.access(script, os.X_OK), script
            assert first.startswith("#!/usr/bin/env "), script
