"""Commands about jobs that are there: list, explain, follow up, and what they made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from texelgrad.client import Client, Job
from texelgrad.console import console as console_of

WEIGHT_FORMATS = ("safetensors", "npz", "onnx", "tfjs")  # those of the service; tfjs is a zip
PREDICTION_FORMATS = ("csv", "npz", "safetensors")
_LEVELS = ("debug", "info", "warning", "error")
console = console_of()
complaints = console_of(stderr=True)


class _JobId(click.ParamType[str]):
    """A job's id: what stands in the path of a request, so nothing that would change the path."""

    name = "job_id"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id as it is; refuses what can be none."""
        if not re.fullmatch(r"\w+", value, re.ASCII):
            self.fail(f"{value!r} is no job's id; `texelgrad jobs` lists them", param, ctx)
        return value


JOB_ID = _JobId()


def writable(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """The file to write, refused before anything is trained or fetched for it where it can't be."""
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}; make it first")
    if path is not None and path.is_dir():
        raise click.BadParameter(f"{str(path)!r} is a folder; name a file")
    return path


def table_columns(command: Callable[..., None]) -> Callable[..., None]:
    """The options that name the columns of a table that hold no inputs."""
    weight = click.option("--weight", help="Column with what each row counts for, of a CSV or Parquet file.")
    target = click.option("--target", help="Column with the targets, of a CSV or Parquet file.")
    return target(weight(command))


def print_warnings(job: Job) -> None:
    """What its record warns of, for people: weights or predictions that are not finite, targets that are not scaled."""
    for warning in (job.get("record") or {}).get("warnings") or ():
        complaints.print(f"[yellow]warning[/yellow] {warning['message']}", markup=True)


def figure(job: Job, key: str) -> str:
    """The last value of one of a job's curves, in short."""
    value = job["metrics"].get(key)
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value or "")


@click.command()
@click.option("--status", help="Only jobs in this state.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1))
@click.pass_obj
def jobs(url: str | None, status: str | None, limit: int) -> None:
    """List jobs, newest first."""
    table = Table(box=None)
    table.add_column("id", no_wrap=True)
    table.add_column("name", max_width=30 if console.is_terminal else None, no_wrap=True)
    for heading in ("state", "step", "loss"):
        table.add_column(heading)
    with Client(url) as client:
        for _, job in zip(range(limit), client.jobs(status=status), strict=False):
            steps = f"{job['step']}/{job['total_steps'] or '?'}"
            state = f"{job['state']} ({job['cause']})" if job["state"] == "failed" else job["state"]
            table.add_row(job["id"], job["name"], state, steps, figure(job, "loss"))
    console.print(table)


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.pass_obj
def why(url: str | None, job_id: str) -> None:
    """Say why a job is not running, or why it ended."""
    with Client(url) as client:
        for reason in client.why(job_id)["reasons"]:
            click.echo(reason["text"])


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.option("--level", type=click.Choice(_LEVELS), help="Only lines of this level.")
@click.pass_obj
def logs(url: str | None, job_id: str, level: str | None) -> None:
    """Show what a job's page wrote to its console and how each try ended."""
    with Client(url) as client:
        for line in client.logs(job_id, level=level):
            click.echo(f"{line['at']} try {line['attempt']} {line['level']}: {line['message']}")


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.pass_obj
def cancel(url: str | None, job_id: str) -> None:
    """Cancel a job."""
    with Client(url) as client:
        click.echo(client.cancel(job_id)["state"])


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.pass_obj
def retry(url: str | None, job_id: str) -> None:
    """Queue a job's spec again, from the start; shows the new job's id."""
    with Client(url) as client:
        click.echo(client.retry(job_id)["id"])


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.pass_obj
def resume(url: str | None, job_id: str) -> None:
    """Queue a job that goes on from this one's last checkpoint; shows the new job's id."""
    with Client(url) as client:
        click.echo(client.resume(job_id)["id"])


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.pass_obj
def delete(url: str | None, job_id: str) -> None:
    """Delete a job that has ended, with its curves, weights and checkpoints."""
    with Client(url) as client:
        client.delete(job_id)
    click.echo(f"{job_id} is deleted")


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path), callback=writable, help="File to write."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(WEIGHT_FORMATS),
    help="By the file's name by default; tfjs is a zip.",
)
@click.pass_obj
def weights(url: str | None, job_id: str, out: Path, format_: str | None) -> None:
    """Download a job's trained weights, as arrays or as a whole model (onnx, tfjs)."""
    with Client(url) as client:
        click.echo(client.download_weights(job_id, out, format=format_ or weight_format(out, or_option=True)))


def weight_format(out: Path, *, or_option: bool = False) -> str:
    """The format that a file's name says: its ending, or safetensors where it says none. Raises UsageError.

    `or_option`: whether the command has --format too.
    """
    kind = {"": "safetensors", "zip": "tfjs"}.get(ending := out.suffix.lower().removeprefix("."), ending)
    if kind not in WEIGHT_FORMATS:
        endings = ", ".join(f".{each}" for each in (*WEIGHT_FORMATS, "zip"))
        option = f", or say --format {', '.join(WEIGHT_FORMATS)}" if or_option else ""
        raise click.UsageError(f"{out.name} says no format: end it with one of {endings}{option}")
    return kind


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.argument("data")
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path), callback=writable, help="File to write."
)
@click.option(
    "--format", "format_", type=click.Choice(PREDICTION_FORMATS), help="By the file's name by default."
)
@table_columns
@click.pass_obj
def predict(
    url: str | None,
    job_id: str,
    data: str,
    out: Path,
    format_: str | None,
    target: str | None,
    weight: str | None,
) -> None:
    """Write what a trained job's model gives for DATA: a data set's id, or a file to upload."""
    kind = format_ or out.suffix.lower().removeprefix(".")
    if kind not in PREDICTION_FORMATS:
        raise click.UsageError(f"say --format: {', '.join(PREDICTION_FORMATS)}")
    stored = data.startswith("ds_")
    if stored and (target or weight):
        raise click.UsageError("--target and --weight are for a file: a data set knows its columns already")
    if not stored and not Path(data).is_file():
        raise click.UsageError(f"{data} is neither a data set's id (ds_...) nor a file")
    with Client(url) as client:
        dataset = data if stored else client.upload_dataset(data, target=target, weight=weight)["id"]
        made = client.predict(job_id, dataset)
        print_warnings(made)
        click.echo(client.download_predictions(made["id"], out, format=kind))


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.option("-o", "--out", type=click.Path(path_type=Path), callback=writable, help="Write one there.")
@click.option("--id", "checkpoint_id", help="Which one to write; the furthest by default.")
@click.pass_obj
def checkpoints(url: str | None, job_id: str, out: Path | None, checkpoint_id: str | None) -> None:
    """List a job's checkpoints, the furthest first, or download one."""
    if checkpoint_id and not out:
        raise click.UsageError("--id says which checkpoint to write: name the file with --out")
    with Client(url) as client:
        found = client.checkpoints(job_id)
        if out:
            if not found:
                raise click.ClickException(f"job {job_id} has no checkpoint")
            click.echo(client.download_checkpoint(job_id, checkpoint_id or found[0]["id"], out))
            return
    table = Table(box=None)
    for heading in ("id", "step", "bytes", "made"):
        table.add_column(heading, no_wrap=True)
    for item in found:
        table.add_row(item["id"], str(item["step"]), str(item["size"]), item["created_at"])
    console.print(table)


@click.command()
@click.argument("job_id", type=JOB_ID)
@click.pass_obj
def diagnostics(url: str | None, job_id: str) -> None:
    """Show the precision report of the device that trained a job, as JSON."""
    with Client(url) as client:
        print_json(client.diagnostics(job_id))


def print_json(value: Any) -> None:
    """For other programs to read."""
    click.echo(json.dumps(value, indent=2))


COMMANDS = (jobs, why, logs, cancel, retry, resume, delete, weights, predict, checkpoints, diagnostics)
