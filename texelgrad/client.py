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

import httpx
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from texelgrad.errors import Fault, TexelgradError, fault_line
from texelgrad.jsonable import to_float
from texelgrad.plain_json import plain_json

DEFAULT_URL = "http://127.0.0.1:8321"
FINAL_STATES = frozenset({"succeeded", "failed", "cancelled", "aborted"})
_TYPES = {".npz": "application/zip", ".csv": "text/csv"}
_POLL_S = 0.2
_TRIES = 3
_RETRY_S = 0.5

Job = dict[str, Any]
"""A job as the API describes it: `id`, `state`, `step`, `total_steps`, `metrics`, ..."""


class ApiError(TexelgradError):
    """The API refused; `faults` name each field at fault, its value and what would be legal."""

    def __init__(self, status: int, code: str, detail: str, faults: list[Fault]) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.faults = faults
        head = f"{status} {code}:" if faults else f"{status} {code}: {detail}"
        super().__init__("\n".join([head, *map(fault_line, faults)]))


class Unreachable(TexelgradError):
    """No answer came from the API."""

    code = "unreachable"


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
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(
            base_url=f"{self.base_url}/v1/", headers=headers, timeout=timeout_s, transport=transport
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # ---- data sets

    def upload_dataset(
        self,
        data: str | Path | Mapping[str, NDArray[Any]],
        *,
        name: str | None = None,
        target: str | None = None,
    ) -> dict[str, Any]:
        """Upload a data set and return its description, with its `id`.

        Args:
            data: path of an .npz (arrays `x` and `y`) or .csv file, or the arrays themselves.
            name: what to call it; the file's name by default.
            target: column with the targets; for CSV.

        Raises:
            ApiError: it is not what it says, or not usable for training; names every fault.
        """
        query = {key: value for key, value in {"name": name, "target": target}.items() if value is not None}
        if isinstance(data, Mapping):
            packed = io.BytesIO()
            np.savez(packed, **data)  # pyright: ignore[reportArgumentType]
            return self._upload(query, "application/zip", packed.getvalue())
        path = Path(data)
        query.setdefault("name", path.name)
        with path.open("rb") as file:
            # of another type, the file's first bytes decide
            return self._upload(query, _TYPES.get(path.suffix.lower(), "application/octet-stream"), file)

    def _upload(self, query: dict[str, str], kind: str, content: bytes | BinaryIO) -> dict[str, Any]:
        return self._json("POST", "datasets", params=query, content=content, headers={"Content-Type": kind})

    def datasets(self) -> Iterator[dict[str, Any]]:
        """Every data set, newest first."""
        return self._pages("datasets", {})

    # ---- jobs

    def create_job(self, spec: Mapping[str, Any], *, idempotency_key: str | None = None) -> Job:
        """Queue a job. Sent again after a broken connection, but never queued twice.

        NumPy scalars in the spec count as the numbers that they are.

        Raises:
            Invalid: the spec holds what JSON can't, such as NaN or an array; names every field.
            ApiError: the spec is wrong; names every fault.
        """
        key = idempotency_key or str(uuid.uuid4())
        return self._json("POST", "jobs", again=True, json=plain_json(spec), headers={"Idempotency-Key": key})

    def job(self, job_id: str) -> Job:
        """What is known of a job now."""
        return self._json("GET", f"jobs/{job_id}", again=True)

    def jobs(
        self, *, status: str | None = None, name: str | None = None, tag: str | None = None
    ) -> Iterator[Job]:
        """Jobs, newest first; `tag` is `name:value`."""
        query = {"status": status, "name": name, "tag": tag}
        return self._pages("jobs", {key: value for key, value in query.items() if value is not None})

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
            answer = self._send("GET", f"jobs/{job_id}", again=True, headers=headers)
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
        return self._json("POST", f"jobs/{job_id}/cancel")

    def metrics(self, job_id: str, *, keys: str | None = None, max_points: int = 2000) -> dict[str, Curve]:
        """The job's curves by key; thinned to `max_points` each without losing a spike, NaN and infinities exact."""
        query: dict[str, Any] = {"max_points": max_points} | ({"keys": keys} if keys else {})
        series = self._json("GET", f"jobs/{job_id}/metrics", again=True, params=query)["series"]
        return {
            key: Curve(
                np.array(curve["steps"], np.int64), np.array([to_float(value) for value in curve["values"]])
            )
            for key, curve in series.items()
        }

    def weights(self, job_id: str) -> dict[str, NDArray[Any]]:
        """The trained weights by name: dense kernels [in, out], biases [out]."""
        return load(b"".join(self._download(job_id, "safetensors")))

    def download_weights(self, job_id: str, path: str | Path, *, format: str = "safetensors") -> Path:
        """Write the weights to a file, which is there only once it is complete."""
        target = Path(path)
        partial = target.with_name(f"{target.name}.part")
        try:
            with partial.open("wb") as file:
                for piece in self._download(job_id, format):
                    file.write(piece)
            return partial.replace(target)
        except BaseException:  # Ctrl-C too: what is not complete is of no use
            partial.unlink(missing_ok=True)
            raise

    def diagnostics(self, job_id: str) -> dict[str, Any]:
        """The precision report of the device that trained the job."""
        return self._json("GET", f"jobs/{job_id}/diagnostics", again=True)

    def estimate(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What a job would take: parameters, operations a step, bytes."""
        return self._json("POST", "estimates", again=True, json=plain_json(spec))

    def train(self, spec: Mapping[str, Any], progress: Callable[[Job], None] | None = None) -> Job:
        """Queue a job and wait for it. Raises JobEnded where it does not succeed."""
        job = self.wait(self.create_job(spec)["id"], progress)
        if job["state"] != "succeeded":
            raise JobEnded(job)
        return job

    def workers(self) -> list[dict[str, Any]]:
        """The workers that were seen of late."""
        return self._json("GET", "workers", again=True)["items"]

    # ---- transport

    def _download(self, job_id: str, format: str) -> Iterator[bytes]:
        """The weights' bytes; goes on where a broken connection stopped."""
        address, received, tag = f"jobs/{job_id}/weights", 0, ""
        for attempt in range(_TRIES):
            headers = {"Range": f"bytes={received}-", "If-Range": tag} if received else {}
            try:
                with self._http.stream("GET", address, params={"format": format}, headers=headers) as answer:
                    if answer.is_error:
                        answer.read()
                    _raise_for(answer)
                    if received and answer.status_code != HTTPStatus.PARTIAL_CONTENT:
                        raise Unreachable(f"the weights of {job_id} changed while they were read")
                    tag = answer.headers.get("ETag", "")
                    for piece in answer.iter_bytes():
                        received += len(piece)
                        yield piece
                return
            except httpx.TransportError as error:
                if attempt + 1 == _TRIES or not tag:
                    raise self._unreachable(error) from error
                time.sleep(_RETRY_S)

    def _pages(self, address: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        cursor: dict[str, str] = {}
        while True:
            page = self._json("GET", address, again=True, params=query | cursor)
            yield from page["items"]
            if not page.get("next_cursor"):
                return
            cursor = {"cursor": page["next_cursor"]}

    def _json(self, method: str, address: str, *, again: bool = False, **request: Any) -> Any:
        return self._send(method, address, again=again, **request).json()

    def _send(self, method: str, address: str, *, again: bool, **request: Any) -> httpx.Response:
        """Send a request; `again` says that sending it twice does no harm."""
        for attempt in range(_TRIES):
            try:
                answer = self._http.request(method, address, **request)
            except httpx.TransportError as error:
                if attempt + 1 == _TRIES or not again:
                    raise self._unreachable(error) from error
            else:
                if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE or not again or attempt + 1 == _TRIES:
                    _raise_for(answer)
                    return answer
            time.sleep(_RETRY_S)
        raise AssertionError("the last try returns or raises")

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(
            f"No answer from {self.base_url} ({error}). Is it running? `texelgrad serve` starts it."
        )


def _raise_for(answer: httpx.Response) -> None:
    if not answer.is_error:
        return
    try:
        problem: dict[str, Any] = answer.json()
        faults = [Fault(**fault) for fault in problem.get("errors", [])]
        raise ApiError(answer.status_code, problem["code"], problem.get("detail", ""), faults)
    except (ValueError, KeyError, TypeError):  # not one of ours: a proxy's, say
        raise ApiError(answer.status_code, "http_error", answer.text[:500], []) from None
