"""Rows as JSON: what callers see of jobs, attempts, data sets and workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from texelgrad.models import Artifact, Attempt, Dataset, DatasetArray, Job, LogLine, Worker
from texelgrad.models_access import Upload, Webhook, WebhookDelivery
from texelgrad.times import time_text

_MAX_COLUMNS = 1000  # of which the names are shown
_LINKS = (
    *("metrics", "events", "weights", "predictions", "diagnostics", "checkpoints", "logs", "why"),
    *("cancel", "retry", "resume"),
)


def job_summary(job: Job, attempt: Attempt | None, resumed_from_step: int | None) -> dict[str, Any]:
    """A job as lists show it; `attempt` is its newest, `resumed_from_step` where it begins if it continues the run of another job."""
    return {
        "id": job.id,
        "kind": "predict" if job.spec.get("predict") else "train",
        "name": job.name,
        "tags": job.spec.get("tags", {}),
        "state": job.state,
        "cause": job.cause,
        "message": job.message,
        "step": job.step,
        "total_steps": job.total_steps,
        "metrics": job.last_metrics,
        "dataset_id": job.dataset_id,
        "parent_id": job.parent_id,
        "resumed_from_step": resumed_from_step,
        "queue": job.queue,
        "needs_hardware": job.needs_hardware,
        "created_at": time_text(job.created_at),
        "started_at": time_text(job.started_at),
        "ended_at": time_text(job.ended_at),
        "cancel_requested_at": time_text(job.cancel_requested_at),
        "backend": attempt and attempt.backend,
        "renderer": attempt and attempt.renderer,
        "software": attempt and attempt.software,
    }


def job_view(
    job: Job,
    attempts: Sequence[Attempt],
    waiting_for: dict[str, str] | None,
    *,
    resumed_from_step: int | None,
    resumable_from_step: int | None,
) -> dict[str, Any]:
    """A job with all that is known of it; `waiting_for` is what no worker that is there can give it.

    `resumed_from_step` is as in `job_summary`, `resumable_from_step` where a resume of this job would go on; None where there can be none.
    """
    newest = attempts[-1] if attempts else None
    return {
        **job_summary(job, newest, resumed_from_step),
        "failure": _failure(job),
        "waiting_for": waiting_for,
        "normalization": job.normalization,
        "eligible_at": time_text(job.eligible_at),
        "deadline_at": time_text(job.deadline_at),
        "max_attempts": job.max_attempts,
        "resumable_from_step": resumable_from_step,
        "record": newest and newest.record,
        "attempts": [attempt_view(attempt) for attempt in attempts],
        "spec": job.spec,
        "links": {name: f"/v1/jobs/{job.id}/{name}" for name in _LINKS}
        | {"self": f"/v1/jobs/{job.id}", "page": f"/runs/{job.id}"},
    }


def _failure(job: Job) -> dict[str, Any] | None:
    """What the page reported; where it named no step, the one that the job had reached."""
    if job.failure is None or job.failure.get("step") is not None:
        return job.failure
    return {**job.failure, "step": job.step}


def attempt_view(attempt: Attempt) -> dict[str, Any]:
    """One try at a job."""
    return {
        "id": attempt.id,
        "number": attempt.number,
        "state": attempt.state,
        "cause": attempt.cause,
        "message": attempt.message,
        "worker_id": attempt.worker_id,
        "resumed_from_step": attempt.resumed_from_step,
        "not_bit_exact": attempt.not_bit_exact,
        "backend": attempt.backend,
        "renderer": attempt.renderer,
        "software": attempt.software,
        "created_at": time_text(attempt.created_at),
        "measured": attempt.diagnostics is not None,
        "training_at": time_text(attempt.training_at),
        "ended_at": time_text(attempt.ended_at),
    }


def checkpoint_view(job_id: str, artifact: Artifact) -> dict[str, Any]:
    """A checkpoint and where its file is."""
    return {
        "id": artifact.id,
        "attempt_id": artifact.attempt_id,
        "step": artifact.step,
        "size": artifact.size,
        "sha256": artifact.sha256,
        "created_at": time_text(artifact.created_at),
        "file": f"/v1/jobs/{job_id}/checkpoints/{artifact.id}",
    }


def log_view(row: tuple[int, LogLine]) -> dict[str, Any]:
    """A line of a job's log; `row` has its attempt's number first."""
    number, line = row
    return {
        "attempt_id": line.attempt_id,
        "attempt": number,
        "seq": line.seq,
        "at": time_text(line.at),
        "level": line.level,
        "message": line.message,
    }


def webhook_view(webhook: Webhook) -> dict[str, Any]:
    """A webhook; its secret is not shown again."""
    return {"id": webhook.id, "url": webhook.url, "created_at": time_text(webhook.created_at)}


def delivery_view(delivery: WebhookDelivery) -> dict[str, Any]:
    """A message to a webhook, and how its last try went."""
    return {
        "id": delivery.id,
        "type": delivery.type,
        "job_id": delivery.job_id or None,
        "state": delivery.state,
        "tries": delivery.tries,
        "answer": delivery.answer,
        "created_at": time_text(delivery.created_at),
        "next_at": time_text(delivery.next_at) if delivery.state == "pending" else None,
        "delivered_at": time_text(delivery.delivered_at),
    }


def dataset_view(dataset: Dataset, arrays: Sequence[DatasetArray], *, brief: bool = False) -> dict[str, Any]:
    """A data set and its arrays; without what there is of each feature, which is much, where it is `brief`."""
    left_out = {"features", "columns"} if brief else set[str]()

    def shown(stats: dict[str, Any]) -> dict[str, Any]:
        few = len(stats.get("columns") or ()) <= _MAX_COLUMNS
        return {
            name: value
            for name, value in stats.items()
            if name not in left_out and (few or name != "columns")
        }

    return {
        "id": dataset.id,
        "name": dataset.name,
        "rows": dataset.rows,
        "sha256": dataset.sha256,
        "created_at": time_text(dataset.created_at),
        "warnings": [
            f"{array.name}: {text}" for array in arrays for text in array.stats.get("warnings") or ()
        ],
        "arrays": {
            array.name: {
                "role": array.role,
                "dtype": array.dtype,
                "shape": array.shape,
                "stats": shown(array.stats),
            }
            for array in arrays
        },
    }


def upload_view(upload: Upload) -> dict[str, Any]:
    """A data set on its way."""
    return {
        "id": upload.id,
        "name": upload.name,
        "state": "uploading",
        "size": upload.size,
        "received": upload.received,
        "created_at": time_text(upload.created_at),
        "content": f"/v1/datasets/{upload.id}/content",
    }


def worker_view(worker: Worker, *, whole: bool) -> dict[str, Any]:
    """A worker as it last described itself; what it works on is shown only where the `whole` may be seen."""
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "queue": worker.queue,
        "state": worker.state,
        "draining": worker.draining,
        "engine_hash": worker.engine_hash,
        "renderer": worker.renderer,
        "gpu": worker.gpu,
        "software": worker.software,
        "attempt_id": worker.attempt_id if whole else None,
        "proof": worker.proof,
        "proved_at": time_text(worker.proved_at),
        "fault": worker.fault,
        "started_at": time_text(worker.started_at),
        "seen_at": time_text(worker.seen_at),
    }
