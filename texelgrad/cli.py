"""The `texelgrad` command: serves on this machine, and talks to a service. `texelgrad --help` lists it all."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from texelgrad import __version__
from texelgrad.cli_database import command_database
from texelgrad.cli_jobs import (
    COMMANDS,
    figure,
    print_json,
    print_warnings,
    table_columns,
    weight_format,
    writable,
)
from texelgrad.cli_keys import keys
from texelgrad.client import Client, Job, JobEnded
from texelgrad.console import Readable
from texelgrad.console import console as console_of
from texelgrad.plain_json import plain_json
from texelgrad.worker_commands import workers

_INTERRUPTED = 130
_ANY_DATASET = "ds_" + "0" * 26  # stands for the data set that is not uploaded yet
console = console_of()
complaints = console_of(stderr=True)


@click.group(cls=Readable, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option(
    "--url",
    envvar="TEXELGRAD_URL",
    metavar="URL",
    show_envvar=True,
    help="Address of the service; http://127.0.0.1:8321 by default.",
)
@click.pass_context
def main(context: click.Context, url: str | None) -> None:
    """Train neural networks in headless Chromium, as a service."""
    context.obj = url


for command in (*COMMANDS, keys, workers):
    main.add_command(command)


@main.command()
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of the database and the logs.")
def serve(host: str | None, port: int | None, data_dir: Path | None) -> None:
    """Run the service on this machine: redis, API, worker and keeper, until Ctrl-C."""
    from texelgrad.config import Settings
    from texelgrad.keys import keys_required
    from texelgrad.supervisor import Supervisor

    given: dict[str, Any] = {"host": host, "port": port, "data_dir": data_dir}
    settings = Settings.load(**{name: value for name, value in given.items() if value is not None})
    keys_required(settings)  # before anything starts
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    Supervisor(settings, say=_say).run()


@main.command()
def migrate() -> None:
    """Bring the database's schema up to date. `serve` does that by itself."""
    with command_database(make=True):
        pass
    console.print("the schema is up to date")


@main.command()
@click.argument("spec", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="An .npz, .csv, ... file."
)
@table_columns
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=writable,
    help="Write the weights there, in the format that the name says.",
)
@click.pass_obj
def train(
    url: str | None, spec: Path, data: Path | None, target: str | None, weight: str | None, out: Path | None
) -> None:
    """Train the job that SPEC, a JSON file, describes, and watch it. Ctrl-C cancels it."""
    kind = weight_format(out) if out else ""
    with Client(url) as client:
        job = client.create_job(_with_data(client, _read_spec(spec), data, target, weight))
        console.print(f"job {job['id']}")
        try:
            job = _watch(client, job)
        except KeyboardInterrupt:
            client.cancel(job["id"])
            complaints.print("cancellation asked for")
            sys.exit(_INTERRUPTED)
        if job["state"] != "succeeded":
            raise JobEnded(job)
        record = job.get("record") or {}
        if (stopping := record.get("early_stopping") or {}).get("restored"):
            console.print(f"weights of step {stopping['best_step']}, the best {stopping['metric']}")
        print_warnings(job)
        console.print(f"succeeded on {job['renderer']}{' (software)' if job['software'] else ''}")
        if out:
            console.print(f"weights: {client.download_weights(job['id'], out, format=kind)}")


@main.command()
@click.argument("spec", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="An .npz, .csv, ... file."
)
@table_columns
@click.pass_obj
def estimate(url: str | None, spec: Path, data: Path | None, target: str | None, weight: str | None) -> None:
    """Say what the job would take, without queueing it."""
    with Client(url) as client:
        print_json(client.estimate(_with_data(client, _read_spec(spec), data, target, weight)))


def _watch(client: Client, job: Job) -> Job:
    """Show a bar with loss and accuracy until the job has ended."""
    columns = (
        TextColumn("{task.fields[state]:9}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} steps"),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar: TaskID = progress.add_task("", total=job["total_steps"] or 1, state=job["state"], figures="")

        def show(job: Job) -> None:
            named = (("loss", "loss"), ("val_loss", "val loss"), ("val_accuracy", "val accuracy"))
            figures = "  ".join(
                f"{label} {figure(job, key)}" for key, label in named if key in job["metrics"]
            )
            # Early stopping ends before the last step, and is done then.
            total = job["step"] if job["state"] == "succeeded" else job["total_steps"]
            progress.update(bar, completed=job["step"], total=total or 1, state=job["state"], figures=figures)

        return client.wait(job["id"], show)


def _read_spec(path: Path) -> dict[str, Any]:
    try:
        spec = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise click.ClickException(f"{path} is not JSON: {error}") from error
    except RecursionError as error:
        raise click.ClickException(f"{path} is nested too deeply") from error
    if not isinstance(spec, dict):
        raise click.ClickException(f"{path} holds no JSON object")
    return spec


def _with_data(
    client: Client, spec: dict[str, Any], data: Path | None, target: str | None, weight: str | None
) -> dict[str, Any]:
    """The spec with the uploaded file as its data set; the spec is checked before anything is sent."""
    if data is None:
        given = spec.get("data", {})
        if isinstance(given, dict) and not {"dataset", "synthetic"} & {*given}:
            raise click.UsageError("the spec names no data: give a file with --data")
        return spec
    if target is None and data.suffix.lower() in (".csv", ".parquet"):
        raise click.UsageError(f"{data.name} needs --target: which column has the targets?")
    from texelgrad.spec import parse_spec

    spec = plain_json(spec)
    parse_spec(_on_dataset(spec, _ANY_DATASET))
    dataset = client.upload_dataset(data, target=target, weight=weight)
    return _on_dataset(spec, dataset["id"])


def _on_dataset(spec: dict[str, Any], dataset_id: str) -> dict[str, Any]:
    """The spec with this data set; data that is no object is left for the check to refuse."""
    data = spec.get("data", {})
    return {**spec, "data": {**data, "dataset": dataset_id}} if isinstance(data, dict) else spec


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
