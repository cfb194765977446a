"""Every query of the service. Functions take a Session and never commit; the caller's transaction does.

Writes need a session of Database.write(). Rows are locked in the order attempt, job; nobody locks them the other way.
"""

from texelgrad.repository.attempts import (
    Claim,
    DataArray,
    Resume,
    advance_attempt,
    cancel_requested,
    claim_next,
    finish_attempt,
    reap_expired,
    release_attempts,
    renew_lease,
)
from texelgrad.repository.checkpoints import drop_damaged_checkpoint, prune_checkpoints, ready_checkpoints
from texelgrad.repository.fleet import forget_workers, mark_stopped, request_drain, workers_on
from texelgrad.repository.jobs import (
    JobFilter,
    abort_overdue,
    attempts_of,
    create_job,
    current_attempt,
    events_after,
    find_idempotent,
    get_job,
    list_jobs,
    queued_counts,
    request_cancel,
)
from texelgrad.repository.logs import append_log
from texelgrad.repository.telemetry import (
    append_metrics,
    chunks_after,
    curves,
    doubt_bits,
    record_progress,
    save_diagnostics,
    save_record,
)
from texelgrad.repository.workers import list_workers, release_lease, take_lease, touch_worker

__all__ = [
    "Claim",
    "DataArray",
    "JobFilter",
    "Resume",
    "abort_overdue",
    "advance_attempt",
    "append_log",
    "append_metrics",
    "attempts_of",
    "cancel_requested",
    "chunks_after",
    "claim_next",
    "create_job",
    "current_attempt",
    "curves",
    "doubt_bits",
    "drop_damaged_checkpoint",
    "events_after",
    "find_idempotent",
    "finish_attempt",
    "forget_workers",
    "get_job",
    "list_jobs",
    "list_workers",
    "mark_stopped",
    "prune_checkpoints",
    "queued_counts",
    "ready_checkpoints",
    "reap_expired",
    "record_progress",
    "release_attempts",
    "release_lease",
    "renew_lease",
    "request_cancel",
    "request_drain",
    "save_diagnostics",
    "save_record",
    "take_lease",
    "touch_worker",
    "workers_on",
]
