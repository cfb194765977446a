"""Checks that every shader is valid GLSL ES 3.00 in every variant that the engine makes of it.

Drivers accept more than the standard allows, each something else; glslangValidator is the standard's own judge.
`scripts/expand_shaders.js` writes the variants. A kernel that no variant uses fails too: nothing would test it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MAX_SHOWN = 20
MESSAGE = re.compile(r"^ERROR: \d+:(?P<line>\d+): (?P<text>.*)$")


def expand() -> list[dict[str, Any]]:
    """Every variant: the kernel's name, the text, and where its lines came from: (file, first line, how many)."""
    done = subprocess.run(
        ["node", ROOT / "scripts/expand_shaders.js"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"scripts/expand_shaders.js failed:\n{done.stderr}")
    return json.loads(done.stdout)


def origin(variant: dict[str, Any], line: int) -> tuple[str, int]:
    """File and line from which a line of a variant's text came."""
    before = 0
    for file, first, count in variant["origins"]:
        if line <= before + count:
            return file, first + line - before - 1
        before += count
    raise ValueError(f"{variant['name']} has no line {line}")


def validate(variants: list[dict[str, Any]]) -> list[str]:
    """Compile all variants in one go; return one line for each different error, by its place in shaders/."""
    with tempfile.TemporaryDirectory(prefix="texelgrad-shaders-") as folder:
        paths: dict[str, dict[str, Any]] = {}
        for number, variant in enumerate(variants):
            path = Path(folder) / f"{number}.frag"
            path.write_text(variant["text"])
            paths[str(path)] = variant
        done = subprocess.run(["glslangValidator", *paths], capture_output=True, text=True, check=False)
    errors: dict[str, None] = {}
    variant: dict[str, Any] | None = None
    for line in done.stdout.splitlines():  # the path of a file, then its messages
        variant = paths.get(line, variant)
        if variant and (match := MESSAGE.match(line)):
            file, number = origin(variant, int(match["line"]))
            errors[f"shaders/{file}:{number}: {match['text']} (in {variant['name']})"] = None
    if done.returncode and not errors:
        return [f"glslangValidator failed: {done.stdout[-2000:]}{done.stderr[-2000:]}"]
    return list(errors)


def main() -> None:
    """Exit with 1 and the errors unless every kernel has variants and all of them are valid."""
    variants = expand()
    kernels = {path.name for path in (ROOT / "shaders").glob("*.frag.glsl")}
    expanded = {variant["name"] for variant in variants}
    errors = [f"shaders/{name}: no plan uses this kernel" for name in sorted(kernels - expanded)]
    errors += validate(variants)
    if errors:
        sys.exit("\n".join([*errors[:MAX_SHOWN], f"{len(errors)} errors"]))
    print(f"{len(variants)} variants of {len(kernels)} kernels are valid GLSL ES 3.00")


if __name__ == "__main__":
    main()
