"""Finds the engine's files, JavaScript and GLSL, in a checkout or in the installed wheel. Runs none of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from texelgrad.errors import Unavailable

_PACKAGE = Path(__file__).resolve().parent
_ROOTS = (_PACKAGE.parent, _PACKAGE / "engine")  # a checkout; the wheel


@dataclass(frozen=True)
class Engine:
    """The two folders that make the engine."""

    browser_runtime: Path
    shaders: Path

    def modules(self) -> list[str]:
        """Every ES module, as sorted POSIX paths relative to `browser_runtime`."""
        return _files(self.browser_runtime, "*.js")

    def shader_bundle(self) -> bytes:
        """Every shader in one JSON object: POSIX path relative to `shaders` -> source text."""
        sources = {name: (self.shaders / name).read_text("utf-8") for name in _files(self.shaders, "*.glsl")}
        return json.dumps(sources, sort_keys=True, separators=(",", ":")).encode()

    def hash(self) -> str:
        """SHA-256 in hex over the names and bytes of every module and shader: which engine trained a job."""
        digest = hashlib.sha256()
        for folder, pattern in ((self.browser_runtime, "*.js"), (self.shaders, "*.glsl")):
            for name in _files(folder, pattern):
                content = (folder / name).read_bytes()
                digest.update(f"{folder.name}/{name}\0{len(content)}\0".encode())
                digest.update(content)
        return digest.hexdigest()


def find_engine(roots: tuple[Path, ...] = _ROOTS) -> Engine:
    """The engine beside this package (checkout) or inside it (wheel).

    Raises:
        Unavailable: neither place holds it.
    """
    for root in roots:
        engine = Engine(root / "browser_runtime", root / "shaders")
        if (engine.browser_runtime / "main.js").is_file() and engine.shaders.is_dir():
            return engine
    tried = ", ".join(str(root) for root in roots)
    raise Unavailable(
        f"The engine's files (browser_runtime/main.js and shaders/) are in none of: {tried}. "
        "Run from a checkout, or install the texelgrad wheel again."
    )


def _files(folder: Path, pattern: str) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(pattern) if path.is_file())
