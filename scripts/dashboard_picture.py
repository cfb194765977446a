"""Trains examples on a running service and writes a picture of its dashboard: `dashboard_picture.py OUT.png`, after `./scripts/demo --keep`.

docs/images/dashboard.png is made so. The service is that of TEXELGRAD_URL, by default http://127.0.0.1:8321.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits

from texelgrad.client import Client, Job
from worker.chromium import find_chromium

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SHOWN = "digits_cnn"
Arrays = dict[str, NDArray[Any]]


def data_sets() -> dict[str, Arrays | None]:
    """The examples to train, with their data; None: the spec makes its own. The one that is shown comes last."""
    pixels, digits = load_digits(return_X_y=True)
    x, y = np.asarray(pixels, np.float32) / 16, np.asarray(digits, np.int32)
    patients, progression = load_diabetes(return_X_y=True, scaled=False)
    return {
        "seed_demo": None,
        "diabetes": {"x": np.asarray(patients), "y": (np.asarray(progression) - 150) / 80},
        "autoencoder": {"x": x, "y": x},
        "digits": {"x": x, "y": y},
        SHOWN: {"x": x.reshape(-1, 8, 8, 1), "y": y},
    }


def train(client: Client, name: str, arrays: Arrays | None) -> Job:
    """Train an example to its end; answers the job."""
    spec = json.loads((EXAMPLES / f"{name}.json").read_text())
    if arrays is not None:
        spec["data"] = {**spec["data"], "dataset": client.upload_dataset(arrays, name=name)["id"]}
    return client.train(spec)


def take(url: str, out: Path, width: int, height: int) -> None:
    """Write what a page looks like once it has filled itself."""
    program = find_chromium("", "").program
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                *(program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *(f"--user-data-dir={profile}", f"--window-size={width},{height}"),
                "--virtual-time-budget=15000",  # in ms of the page's clock, which waits for its requests
                *(f"--screenshot={out.absolute()}", url),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main() -> None:
    """Train, then take the picture."""
    parser = argparse.ArgumentParser(description="Write a picture of the dashboard.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=1130)
    arguments = parser.parse_args()
    with Client() as client:
        jobs = [train(client, name, arrays) for name, arrays in data_sets().items()]
        take(f"{client.base_url}/runs/{jobs[-1]['id']}", arguments.out, arguments.width, arguments.height)
    print(f"{arguments.out} shows {jobs[-1]['id']}")


if __name__ == "__main__":
    main()
