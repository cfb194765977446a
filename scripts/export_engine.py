"""Writes the engine for static hosting: browser_runtime/ and the shader bundle that it fetches, into one folder.

    python scripts/export_engine.py site/texelgrad

Any Python from 3.11 on runs it: nothing has to be installed. A page then imports
./texelgrad/browser_runtime/texelgrad.js; examples/in_page.html shows how.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from texelgrad.engine import find_engine


def export(folder: Path) -> None:
    """Make `folder` hold the engine as it is now, and nothing else of an older one."""
    engine = find_engine()
    shutil.rmtree(folder / "browser_runtime", ignore_errors=True)
    for module in engine.modules():
        target = folder / "browser_runtime" / module
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(engine.browser_runtime / module, target)
    (folder / "shaders").mkdir(exist_ok=True)
    (folder / "shaders/bundle.json").write_bytes(engine.shader_bundle())


def main() -> None:
    """Export to the folder named on the command line."""
    parser = argparse.ArgumentParser(description="Write the engine for static hosting.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        export(folder)
    except OSError as error:  # a file of that name, a folder that we may not write
        parser.error(f"can't write the engine into {folder}: {error.strerror}: {error.filename}")
    print(f"the engine is in {folder}")


if __name__ == "__main__":
    main()
