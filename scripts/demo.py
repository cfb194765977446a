"""The demo: starts the service, trains a classifier of handwritten digits with it, and checks the weights in NumPy.

The held-out rows are recomputed here from the seed alone. That this accuracy is the one which the browser measured
shows that split, weights and evaluation mean the same on both sides.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits

from texelgrad import Client
from texelgrad.console import console as console_of
from texelgrad.errors import TexelgradError
from texelgrad.spec_data import Validation
from texelgrad.splits import split
from texelgrad.supervisor import running_service

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "examples/digits.json"
KEPT = ROOT / "var/demo"
REQUIRED_ACCURACY = 0.97
START_S, STOP_S = 90.0, 60.0
# The demo runs on embedded defaults; only what says how to start Chromium is taken from the environment.
KEPT_SETTINGS = {
    "TEXELGRAD_CHROMIUM",
    "TEXELGRAD_CHROMIUM_USER",
    "TEXELGRAD_GPU_RECIPE",
    "TEXELGRAD_LOG_LEVEL",
}

T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]
console = console_of()


class DemoError(Exception):
    """The demo can't go on; the message says why."""


class Service:
    """`texelgrad serve` in a data folder of its own; the one that runs there already, where one does."""

    def __init__(self, folder: Path, port: int) -> None:
        """Start the service unless it runs; port 0 takes a free one."""
        self.folder = folder
        self._log = folder / "serve.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._running = running_service(folder)
        if self._running is None:
            self._start(choose_port(port))

    def _start(self, port: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TEXELGRAD_") or name in KEPT_SETTINGS
        }
        environment |= {
            "TEXELGRAD_DATA_DIR": str(self.folder),
            "TEXELGRAD_PORT": str(port),
            "PYTHONUNBUFFERED": "1",
        }
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "texelgrad.cli", "serve"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # with --keep it outlives us, and Ctrl-C is ours to translate
            )

    @property
    def pid(self) -> int:
        """Of the process that SIGTERM stops."""
        return self._running[0] if self._running else cast(subprocess.Popen[bytes], self.process).pid

    def wait_until_ready(self) -> str:
        """Wait until the API answers, and return its address."""
        return self._running[1] if self._running else self._wait(self._ready_url, "the service")

    def _ready_url(self) -> str | None:
        for line in self._log.read_text().splitlines():
            if "ready: " in line:
                return line.rpartition("ready: ")[2].strip()
        return None

    def wait_for_worker(self, client: Client) -> dict[str, Any]:
        """Wait until a worker has proved its browser, and return its description."""

        def proved() -> dict[str, Any] | None:
            workers = [worker for worker in client.workers() if worker["state"] != "stopped"]
            for worker in workers:
                # busy: in a folder that was kept, jobs may wait from before
                if worker["state"] in ("idle", "busy") and worker["proved_at"]:
                    return worker
            if workers and all(worker["state"] == "broken" for worker in workers):
                raise DemoError(f"the worker has no browser to train with: {workers[0]['fault']}")
            return None

        return self._wait(proved, "a worker")

    def _wait(self, look: Callable[[], T | None], what: str) -> T:
        """Look again and again until there is something; DemoError where the service ends or time runs out."""
        deadline = time.monotonic() + START_S
        while (found := look()) is None:
            if (self.process and self.process.poll() is not None) or time.monotonic() > deadline:
                tail = "\n".join(self._log.read_text().splitlines()[-20:]) if self._log.exists() else ""
                raise DemoError(f"{what} did not start. Logs are in {self.folder}; the last lines:\n{tail}")
            time.sleep(0.1)
        return found

    def stop(self) -> None:
        """Stop everything that we started, and wait for it."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def load_data() -> dict[str, NDArray[Any]]:
    """scikit-learn's handwritten digits: x [1797, 64] in 0..1, y [1797] in 0..9."""
    x, y = load_digits(return_X_y=True)
    return {"x": (x / 16).astype(np.float32), "y": y.astype(np.int32)}


def held_out_rows(rows: int, spec: Mapping[str, Any]) -> NDArray[np.int64]:
    """The rows that validate, which the engine took from the same seed."""
    return split(Validation(**spec["data"]["validation"]), spec["train"]["seed"], rows)[1]


def predict(weights: Arrays, spec: Mapping[str, Any], x: NDArray[Any]) -> NDArray[np.int64]:
    """The class of each row, by the downloaded weights in float64."""
    values = x.astype(np.float64)
    for number, layer in enumerate(spec["model"]["layers"], 1):
        values = values @ weights[f"dense_{number}.kernel"] + weights[f"dense_{number}.bias"]
        if layer.get("activation") == "relu":
            values = np.maximum(values, 0)
    return values.argmax(axis=1)


def train(client: Client, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Queue the job and show its progress until it has succeeded."""
    columns = (
        TextColumn("  training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}  validation accuracy {task.fields[accuracy]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=None, loss="-", accuracy="-")

        def show(job: dict[str, Any]) -> None:
            loss, accuracy = (job["metrics"].get(key) for key in ("loss", "val_accuracy"))
            progress.update(
                task,
                completed=job["step"],
                total=job["total_steps"],
                loss=f"{loss:.4f}" if isinstance(loss, float) else loss or "-",
                accuracy=f"{accuracy:.2%}" if isinstance(accuracy, float) else accuracy or "-",
            )

        return client.train(spec, show)


def run(service: Service, *, keep: bool) -> float:
    """Wait for the service, then upload, train, download, evaluate. Returns the accuracy on the held-out rows."""
    url = service.wait_until_ready()
    with Client(url) as client:
        job, accuracy = train_digits(client, service.wait_for_worker(client))
    later = "" if keep else "  (stops now; ./scripts/demo --keep leaves it up)"
    console.print(f"  dashboard  {url}runs/{job['id']}{later}")
    return accuracy


def train_digits(client: Client, worker: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """Upload, train, download, evaluate. Returns the job and its accuracy on the held-out rows."""
    software = " [yellow](software)[/]" if worker["software"] else ""
    console.print("[green]✓[/] a worker is ready")

    data = load_data()
    dataset = client.upload_dataset(data, name="digits")
    console.print(f"[green]✓[/] {len(data['y']):,} images uploaded as {dataset['id']}")

    spec = json.loads(SPEC.read_text())
    spec["data"]["dataset"] = dataset["id"]
    started = time.monotonic()
    job = train(client, spec)
    elapsed = time.monotonic() - started
    timings = job["record"]["timings"]
    console.print(
        f"[green]✓[/] {job['step']:,} steps in {timings['trainMs'] / 1000:.2f} s, {elapsed:.2f} s from POST to succeeded"
    )

    rows = held_out_rows(len(data["y"]), spec)
    right = predict(client.weights(job["id"]), spec, data["x"][rows]) == data["y"][rows]
    accuracy = float(right.mean())
    # A tie within rounding may fall to either side, so one row may differ; another split would differ in many.
    if abs(accuracy - job["metrics"]["val_accuracy"]) * len(rows) > 1.5:
        raise DemoError(
            f"NumPy finds an accuracy of {accuracy:.4f} on the held-out rows, the browser found "
            f"{job['metrics']['val_accuracy']:.4f}: they disagree about rows or weights"
        )
    console.print(
        f"[green]✓[/] weights downloaded, evaluated in NumPy on the {len(rows)} held-out images: "
        f"[bold]{accuracy:.2%}[/] accurate"
    )
    console.print(f"  renderer   {escape(job['renderer'])}{software}")
    return job, accuracy


def choose_port(wanted: int) -> int:
    """The port asked for, or a free one where another service has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted


def main() -> int:
    """Run the demo; 0 where the accuracy is what it should be."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="Train handwritten digits with texelgrad."
    )
    parser.add_argument("--keep", action="store_true", help="leave the service running afterwards")
    parser.add_argument(
        "--port", type=int, default=8321, help="of the dashboard (default 8321, else a free one)"
    )
    parser.add_argument(
        "--data-dir", type=Path, default=KEPT, help="where --keep keeps its data (default var/demo)"
    )
    options = parser.parse_args()

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    console.print("[bold]texelgrad[/] trains neural networks in headless Chromium")
    temporary = None if options.keep else Path(tempfile.mkdtemp(prefix="texelgrad-demo-"))
    service = Service(temporary or options.data_dir.absolute(), options.port)
    keep = False
    try:
        accuracy = run(service, keep=options.keep)
        keep = options.keep
    except (DemoError, TexelgradError) as error:
        temporary = None  # the logs say why: they stay
        console.print("[red]✗[/]", escape(str(error)))
        return 1
    except KeyboardInterrupt:
        console.print("stopped")
        return 130
    finally:
        if not keep:
            service.stop()
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
    console.print(f"  total      {time.monotonic() - started:.1f} s")
    if keep:
        console.print(f"  still up   stop it with: kill {service.pid}")
        console.print(
            f"  data       {service.folder}; `texelgrad serve --data-dir {shown(service.folder)}` goes on there"
        )
    if accuracy < REQUIRED_ACCURACY:
        console.print(
            f"[red]✗[/] {accuracy:.2%} is below the {REQUIRED_ACCURACY:.0%} that this network reaches"
        )
        return 1
    return 0


def shown(folder: Path) -> str:
    """A path as it is typed in the checkout."""
    return str(folder.relative_to(ROOT)) if folder.is_relative_to(ROOT) else str(folder)


if __name__ == "__main__":
    sys.exit(main())
