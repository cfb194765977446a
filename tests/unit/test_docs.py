"""What the documents promise exists: settings with their defaults, commands, files that are linked to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from texelgrad.config import Settings

from ..node import call

ROOT = Path(__file__).parents[2]
OF_THE_CLIENT = {"TEXELGRAD_URL", "TEXELGRAD_API_KEY"}  # read by Client, no settings of the service
OTHER_PROGRAMS = {
    *("cp", "curl", "docker", "export", "printf", "python", "python3", "source"),
    *(".venv/bin/celery", "pg_dump", "sqlite3"),
}
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def setting_rows() -> list[str]:
    """One line of the table in docs/operations.md for each setting."""
    rows: list[str] = []
    for name, field in Settings.model_fields.items():
        default = field.default
        shown = json.dumps(default) if isinstance(default, (list, bool)) else str(default)
        value = f"`{shown}`" if shown else ""
        rows.append(f"| `TEXELGRAD_{name.upper()}` | {value} | {field.description} |")
    return rows


def shell_commands(document: Path) -> list[str]:
    """The commands in a document's ```sh blocks, one a line, without comments, quoted text and variables set."""
    blocks = re.findall(r"^```sh\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)
    plain = (re.sub(r"'[^']*'", "QUOTED", block).replace("\\\n", " ") for block in blocks)
    lines = (re.sub(r"^\w+=\$\(|\s#\s.*", "", line).strip() for block in plain for line in block.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def test_every_setting_stands_in_the_operations_guide():
    """With its default and its help, word for word: the table cannot go stale."""
    text = (ROOT / "docs/operations.md").read_text()
    assert [row for row in setting_rows() if row not in text] == []
    named = set(re.findall(r"^\| `(TEXELGRAD_\w+)`", text, re.MULTILINE))
    assert named == {f"TEXELGRAD_{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_names_an_unknown_setting(document: Path):
    """A setting that was renamed leaves no trace."""
    known = {f"TEXELGRAD_{name.upper()}" for name in Settings.model_fields} | OF_THE_CLIENT
    assert set(re.findall(r"\bTEXELGRAD_[A-Z_]+\b", document.read_text())) <= known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(document: Path):
    """Relative links and pictures exist."""
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_the_threat_model_names_tests_that_exist():
    """A defence whose test was renamed would look tested and be not."""
    named = re.findall(r"`((?:tests/\w+/)?test_\w+\.py)`", (ROOT / "docs/security.md").read_text())
    assert len(named) > 20
    assert [name for name in set(named) if not any((ROOT / "tests").rglob(Path(name).name))] == []


def test_addresses_in_the_readme_are_routes_of_the_api():
    """Each /v1 address that a reader is told to call exists."""
    from api.app import create_app

    rules = [re.sub(r"<[^>]+>", "*", rule.rule) for rule in create_app(Settings()).url_map.iter_rules()]
    called = re.findall(r"http://127\.0\.0\.1:8321(/v1/[\w/$]+)", (ROOT / "README.md").read_text())
    assert len(called) > 5
    assert [path for path in called if re.sub(r"\$JOB", "*", path) not in rules] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_exist(document: Path):
    """Scripts, make targets and subcommands that a document tells the reader to run."""
    from texelgrad.cli import main

    makefile = (ROOT / "Makefile").read_text()
    for command in shell_commands(document):
        program, *arguments = command.split()
        if program.startswith("./"):
            assert (ROOT / program).is_file(), command
        elif program == "make":
            assert re.search(rf"^{re.escape(arguments[0])}:", makefile, re.MULTILINE), command
        elif program.endswith("texelgrad"):
            assert arguments[0] in main.commands, command
        elif program == "python" and arguments[0] != "-m":
            assert (ROOT / arguments[0]).is_file(), command
        else:
            assert program in OTHER_PROGRAMS, command


def rows_of(title: str) -> set[str]:
    """Names of the first column of the tables in a section of the page on embedding, without arguments."""
    text = (ROOT / "docs/embedding.md").read_text()
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)[`(]", cell)}


def test_the_page_on_embedding_names_all_that_a_page_has():
    """Each function, option, method and error, and no other."""
    names = call("/tests/unit/embedding_probe.js", "names")
    assert rows_of("Functions") == {*names["functions"], *names["options"]}
    assert rows_of("Sessions") == {*names["session"], "normalization"}
    union = (ROOT / "browser_runtime/errors.js").read_text().partition("@typedef {")[2].partition("}")[0]
    assert rows_of("Errors") == set(re.findall(r'"(\w+)"', union))
