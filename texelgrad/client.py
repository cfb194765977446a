"""The Python client of the HTTP API. Needs only httpx, NumPy and safetensors, nothing of the service."""

from __future__ import annotations

import io
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self
from urllib.parse import quote

import httpx
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from texelgrad.errors import Fault, Invalid, TexelgradError
from texelgrad.jsonable import to_float
from texelgrad.plain_json import plain_json
from texelgrad.transport import ApiError, Transport, Unreachable, write_file

__all__ = ["FINAL_STATES", "ApiError", "Client", "Curve", "Job", "JobEnded", "Unreachable"]

DEFAULT_URL = "http://127.0.0.1:8321"
FINAL_STATES = frozenset({"succeeded", "failed", "cancelled", "aborted"})
_TYPES = {".npz": "application/zip", ".csv": "text/csv"}
_POLL_S = 0.2

Job = dict[str, Any]
"""A job as the API describes it: `id`, `state`, `step`, `total_steps`, `metrics`, ..."""


class JobEnded(TexelgradError):
    """A job that was to succeed ended otherwise."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.code = job.get("cause") or job["state"]
        super().__init__(f"job {job['id']} {job['state']}: {job.get('message') or self.code}")


@dataclass(frozen=True)
class Curve:
    """One curve of a job: the steps (from 1) and the values at them."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]


def _path(*names: str) -> str:
    """The names as one path. Quoted, dots too: an id `../datasets`, or `..`, would lead to something else."""
    return "/".join(quote(name, safe="").replace(".", "%2E") for name in names)


class Client:
    """Talks to one service. A context manager; may be used from one thread at a time."""

    def __init__(
        self,
        base_url: str | None = None,
        timeout_s: float = 30.0,
        *,
        api_key: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`base_url` defaults to $TEXELGRAD_URL, then http://127.0.0.1:8321; `api_key` to $TEXELGRAD_API_KEY, then none."""
        self.base_url = (base_url or os.environ.get("TEXELGRAD_URL") or DEFAULT_URL).rstrip("/")
        key = api_key or os.environ.get("TEXELGRAD_API_KEY")
        self._api = Transport(self.base_url, key, timeout_s, transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    # ---- data sets

    def upload_dataset(
        self,
        data: str | Path | Mapping[str, NDArray[Any]],
        *,
        name: str | None = None,
        target: str | None = None,
        weight: str | None = None,
    ) -> dict[str, Any]:
        """Upload a data set and return its description, with its `id`.

        Args:
            data: path of a file in any of the service's formats (.npz, .csv, ...), or the arrays themselves:
                `x` [rows, ...], or inputs by the model's names; `y` [rows], [rows, k] or images to train on; perhaps `w` [rows], what each row counts for.
            name: what to call it; the file's name by default.
            target: column of a table with the targets.
            weight: column of a table with what each row counts for.

        Raises:
            Invalid: `data` is neither a path nor a mapping.
            ApiError: it is not what it says, or not usable for training; names every fault.
        """
        given = {"name": name, "target": target, "weight": weight}
        query = {key: value for key, value in given.items() if value is not None}
        if isinstance(data, Mapping):
            packed = io.BytesIO()
            np.savez(packed, **data)  # pyright: ignore[reportArgumentType]
            return self._upload(query, "application/zip", packed.getvalue())
        try:
            path = Path(data)
        except TypeError:
            legal = 'a file\'s path, or arrays by name: {"x": x, "y": y}'
            raise Invalid([Fault("data", "is no data set", type(data).__name__, legal)]) from None
        query.setdefault("name", path.name)
        with path.open("rb") as file:
            # of another type, the file's first bytes decide
            return self._upload(query, _TYPES.get(path.suffix.lower(), "application/octet-stream"), file)

    def _upload(self, query: dict[str, str], kind: str, content: bytes | BinaryIO) -> dict[str, Any]:
        return self._api.json(
            "POST", "datasets", params=query, content=content, headers={"Content-Type": kind}
        )

    def datasets(self) -> Iterator[dict[str, Any]]:
        """Every data set, newest first."""
        return self._api.pages("datasets", {})

    # ---- jobs

    def create_job(self, spec: Mapping[str, Any], *, idempotency_key: str | None = None) -> Job:
        """Queue a job. Sent again after a broken connection, but never queued twice.

        NumPy scalars in the spec count as the numbers that they are.

        Raises:
            Invalid: the spec holds what JSON can't, such as NaN or an array; names every field.
            ApiError: the spec is wrong; names every fault.
        """
        key = idempotency_key or str(uuid.uuid4())
        return self._api.json(
            "POST", "jobs", again=True, json=plain_json(spec), headers={"Idempotency-Key": key}
        )

    def job(self, job_id: str) -> Job:
        """What is known of a job now."""
        return self._api.json("GET", _path("jobs", job_id), again=True)

    def jobs(
        self, *, status: str | None = None, name: str | None = None, tag: str | None = None
    ) -> Iterator[Job]:
        """Jobs, newest first; `tag` is `name:value`."""
        return self._api.pages("jobs", {"status": status, "name": name, "tag": tag})

    def wait(
        self, job_id: str, progress: Callable[[Job], None] | None = None, *, timeout_s: float | None = None
    ) -> Job:
        """Wait until the job has ended and return it, however it ended.

        Args:
            job_id: the job.
            progress: called with the job whenever something about it changed.
            timeout_s: after which TimeoutError is raised.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        tag: str | None = None
        while True:
            headers = {"If-None-Match": tag} if tag else {}
            answer = self._api.send("GET", _path("jobs", job_id), again=True, headers=headers)
            if answer.status_code != HTTPStatus.NOT_MODIFIED:
                tag = answer.headers.get("ETag")
                job: Job = answer.json()
                if progress is not None:
                    progress(job)
                if job["state"] in FINAL_STATES:
                    return job
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"job {job_id} has not ended within {timeout_s:g} s")
            time.sleep(_POLL_S)

    def cancel(self, job_id: str) -> Job:
        """Ask for a cancellation. Raises ApiError (409) where the job has ended otherwise."""
        return self._api.json("POST", _path("jobs", job_id, "cancel"))

    def retry(self, job_id: str, *, idempotency_key: str | None = None) -> Job:
        """Queue a new job of the same spec, whose `parent_id` this one is. ApiError (409) before this one has ended."""
        return self._again("retry", job_id, idempotency_key)

    def resume(self, job_id: str, *, idempotency_key: str | None = None) -> Job:
        """Queue a new job that goes on from this one's last checkpoint. ApiError (409) where there is nothing to go on from."""
        return self._again("resume", job_id, idempotency_key)

    def _again(self, how: str, job_id: str, key: str | None) -> Job:
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        return self._api.json("POST", _path("jobs", job_id, how), again=True, headers=headers)

    def delete(self, job_id: str) -> None:
        """Delete a job with its curves and files. ApiError (409) before it has ended, or while another continues it."""
        self._api.send("DELETE", _path("jobs", job_id), again=False)

    def why(self, job_id: str) -> dict[str, Any]:
        """Why a job is not running, or why it ended: a `summary` in one sentence, and all `reasons`."""
        return self._api.json("GET", _path("jobs", job_id, "why"), again=True)

    def logs(self, job_id: str, *, level: str | None = None) -> Iterator[dict[str, Any]]:
        """What the page's console showed and how each attempt ended, oldest first; of one level (debug, ..., error) or all."""
        return self._api.pages(_path("jobs", job_id, "logs"), {"level": level})

    def metrics(self, job_id: str, *, keys: str | None = None, max_points: int = 2000) -> dict[str, Curve]:
        """The job's curves by key; thinned to `max_points` each without losing a spike, NaN and infinities exact."""
        query: dict[str, Any] = {"max_points": max_points} | ({"keys": keys} if keys else {})
        series = self._api.json("GET", _path("jobs", job_id, "metrics"), again=True, params=query)["series"]
        return {
            key: Curve(
                np.array(curve["steps"], np.int64), np.array([to_float(value) for value in curve["values"]])
            )
            for key, curve in series.items()
        }

    def weights(self, job_id: str) -> dict[str, NDArray[Any]]:
        """The trained weights by name: dense kernels [in, out], biases [out]."""
        return load(b"".join(self._api.download(_path("jobs", job_id, "weights"), {"format": "safetensors"})))

    def download_weights(self, job_id: str, path: str | Path, *, format: str = "safetensors") -> Path:
        """Write the weights to a file, which is there only once it is complete."""
        return write_file(self._api.download(_path("jobs", job_id, "weights"), {"format": format}), path)

    def upload_weights(self, weights: str | Path | Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """Upload weights for `fine_tune.weights`: a safetensors file or arrays by name. Returns their `id` and `tensors`.

        Kept for a day, and for as long as a job that began with them.
        """
        data = save({**weights}) if isinstance(weights, Mapping) else Path(weights).read_bytes()
        headers = {"Content-Type": "application/octet-stream"}
        return self._api.json("POST", "weights", content=data, headers=headers)

    def create_predictions(
        self,
        job_id: str,
        dataset_id: str,
        *,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Queue a job that computes the outputs of a trained model for the rows of a data set, which needs no `y`.

        Raises:
            ApiError: the job has not succeeded, or its model takes other inputs.
        """
        body = {"dataset": dataset_id} | ({"name": name} if name is not None else {})
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return self._api.json(
            "POST", _path("jobs", job_id, "predictions"), again=True, json=plain_json(body), headers=headers
        )

    def predict(
        self,
        job_id: str,
        data: str | Path | Mapping[str, NDArray[Any]],
        progress: Callable[[Job], None] | None = None,
        *,
        name: str | None = None,
    ) -> Job:
        """The same, and wait for it; `predictions` of its id are the outputs.

        `data` is a data set's id (`ds_...`), or what `upload_dataset` takes: arrays such as `{"x": x}`, or a file's path.
        Raises JobEnded where the job does not succeed, and what `upload_dataset` raises.
        """
        if not (isinstance(data, str) and data.startswith("ds_")):
            data = str(self.upload_dataset(data)["id"])
        return self._succeeded(self.create_predictions(job_id, data, name=name), progress)

    def predictions(self, job_id: str) -> NDArray[np.float32]:
        """The outputs that a job of `predict` made: [rows, outputs], as the last layer gives them."""
        return load(
            b"".join(self._api.download(_path("jobs", job_id, "predictions"), {"format": "safetensors"}))
        )["outputs"]

    def download_predictions(self, job_id: str, path: str | Path, *, format: str = "csv") -> Path:
        """Write them to a file (csv, npz or safetensors), which is there only once it is complete."""
        return write_file(self._api.download(_path("jobs", job_id, "predictions"), {"format": format}), path)

    def checkpoints(self, job_id: str) -> list[dict[str, Any]]:
        """What the job saved on the way, the furthest first: `id`, `step`, `size`, ..."""
        return list(self._api.pages(_path("jobs", job_id, "checkpoints"), {}))

    def download_checkpoint(self, job_id: str, checkpoint_id: str, path: str | Path) -> Path:
        """Write a checkpoint (safetensors: weights and optimizer states) to a file, there only once it is complete."""
        return write_file(self._api.download(_path("jobs", job_id, "checkpoints", checkpoint_id), {}), path)

    def diagnostics(self, job_id: str) -> dict[str, Any]:
        """The precision report of the device that trained the job."""
        return self._api.json("GET", _path("jobs", job_id, "diagnostics"), again=True)

    def estimate(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What a job would take: parameters, operations a step, bytes."""
        return self._api.json("POST", "estimates", again=True, json=plain_json(spec))

    def train(self, spec: Mapping[str, Any], progress: Callable[[Job], None] | None = None) -> Job:
        """Queue a job and wait for it. Raises JobEnded where it does not succeed."""
        return self._succeeded(self.create_job(spec), progress)

    def _succeeded(self, queued: Job, progress: Callable[[Job], None] | None) -> Job:
        """The job at its end; raises JobEnded where that is another one."""
        job = self.wait(queued["id"], progress)
        if job["state"] != "succeeded":
            raise JobEnded(job)
        return job

    def workers(self) -> list[dict[str, Any]]:
        """The workers that were seen of late."""
        return self._api.json("GET", "workers", again=True)["items"]
