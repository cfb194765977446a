"""Why a job is not running, or why it ended, in words for whoever asked for it. Pure: facts in, sentences out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from texelgrad.domain import FINAL_JOB_STATES, POLICIES, Cause, JobState, Policy

CAUSES: Mapping[Cause, tuple[str, str | None]] = {
    Cause.COMPLETED: ("it did all its steps and its weights are stored", None),
    Cause.CANCELLED: ("somebody cancelled it", None),
    Cause.DEADLINE: ("it was still queued at its deadline", "Give it a later deadline, or add workers."),
    Cause.NO_WEBGL2: ("the browser has no WebGL2", "Check that worker's GPU and driver."),
    Cause.NO_FLOAT_TARGETS: ("the GPU can't render to float textures", "Use a worker with another GPU."),
    Cause.SOFTWARE_REFUSED: (
        "only a software renderer was there, and the job or the worker refuses it",
        "Set allow_software, or use a worker with a GPU.",
    ),
    Cause.CONTEXT_LOST: ("the GPU or its driver gave up", "A smaller batch or model asks less of it."),
    Cause.GL_ERROR: ("the GPU's driver reported an error", "The log of the job says which."),
    Cause.SHADER_ERROR: (
        "a shader did not compile",
        "That is a fault of texelgrad or the driver: report it.",
    ),
    Cause.INTERNAL: ("texelgrad itself failed", "The job's log says more; please report it."),
    Cause.SPEC_INVALID: ("the engine refused the spec", "Mend the field that the message names."),
    Cause.DATA_INVALID: ("the engine refused the data", "Mend the data as the message says."),
    Cause.TOO_LARGE: ("it does not fit the GPU", "Use a smaller batch, model or data set."),
    Cause.NON_FINITE_LOSS: (
        "the loss became NaN or infinite",
        None,
    ),  # the page says at which step, and what may help
    Cause.ABORTED: ("the page was told to stop", None),
    Cause.PAGE_CRASHED: ("the browser's page crashed", "It may need more memory than the worker has."),
    Cause.RUNNER_DIED: ("the process that ran it died", "The worker's log says more."),
    Cause.STALLED: ("it made no progress for too long", "One step may take longer than the stall time-out."),
    Cause.LEASE_EXPIRED: ("its worker went silent", "That machine may be down or cut off."),
    Cause.NO_STORAGE: (
        "what it made could not be stored",
        "The database was away, or its disk full: its log says more.",
    ),
    Cause.CHECKPOINT_DAMAGED: (
        "the stored checkpoint that it was to go on from is damaged",
        "Check the database's disk: the next try goes on from an earlier checkpoint, or starts anew.",
    ),
    Cause.WEIGHTS_DAMAGED: (
        "the stored weights that it was to begin with are damaged",
        "Check the database's disk, and begin with other weights, or with these uploaded anew.",
    ),
    Cause.DATA_DAMAGED: (
        "the stored data set is damaged",
        "Check the database's disk, and upload the data set anew: that repairs it.",
    ),
    Cause.WORKER_DIED: ("its worker's process died", "That worker's log, or the kernel's, says more."),
    Cause.NO_BROWSER: ("no browser could be started", "Install Chromium on that worker."),
    Cause.NO_RENDERER: ("the browser found no usable renderer", "Check that worker's GPU and driver."),
    Cause.WORKER_STOPPED: ("its worker was stopped", None),
    Cause.WALL_LIMIT: ("its time limit was used up", "Raise limits.wall_s, or ask for fewer steps."),
}
"""What each cause means, as the rest of a sentence, and what to do about it."""


WARNINGS: Mapping[str, str] = {
    "weights_not_finite": "Lower the learning rate. With numerics.on_nonfinite: stop a run ends at the first loss that is NaN or infinite.",
    "targets_not_scaled": "Scale the targets before the upload, and predictions back: data.normalize is for inputs alone.",
    "predictions_not_finite": "The weights are not finite themselves, as the job that made them says, or its inputs are too large.",
}
"""What to do about what a record warns of, by its code."""


@dataclass(frozen=True)
class WorkerFacts:
    """What matters of a worker that was seen of late."""

    id: str
    state: str  # starting | idle | busy | draining | broken | stopped
    draining: bool
    software: bool | None
    fault: str | None


def takes_jobs(worker: WorkerFacts) -> bool:
    """Whether it will claim again, now or when it has done what it does."""
    return worker.state not in ("stopped", "broken", "draining") and not worker.draining


@dataclass(frozen=True)
class AttemptFacts:
    """What matters of one try."""

    number: int
    state: str
    cause: str | None
    message: str | None
    worker_id: str
    resumed_from_step: int | None


@dataclass(frozen=True)
class JobFacts:
    """What matters of the job."""

    state: str
    cause: str | None
    message: str | None
    queue: str
    needs_hardware: bool
    step: int
    total_steps: int | None
    wait_s: float  # until it may be claimed; 0: now
    deadline_s: float | None  # until then it must have been claimed
    cancel_requested: bool
    ahead: int  # jobs of its queue that are older and that a worker which is there may take first
    attempts: Sequence[AttemptFacts]
    warnings: Sequence[Mapping[str, str]] = ()  # code and message of each, of a job that has ended
    resumable_from_step: int | None = None  # of the checkpoint that a resume would go on from


@dataclass(frozen=True)
class Reason:
    """One thing that holds a job back or ended it."""

    code: str
    text: str


_STUCK = frozenset({"no_workers", "workers_broken", "workers_draining", "needs_hardware"})


def explain(job: JobFacts, workers: Sequence[WorkerFacts]) -> dict[str, Any]:
    """The reasons, the most telling first, and a summary of them; `workers` are those of the job's queue."""
    if job.state == JobState.QUEUED:
        reasons = [*_queued(job, workers), *_tries(job)]
    elif job.state == JobState.RUNNING:
        reasons = [*_running(job), *_tries(job)]
    else:
        reasons = [*_ended(job), *_tries(job)]
    return {
        "state": job.state,
        "summary": reasons[0].text,
        "reasons": [asdict(reason) for reason in reasons],
        "queue_position": job.ahead + 1 if job.state == JobState.QUEUED else None,
    }


def waiting_for(queue: str, needs_hardware: bool, workers: Sequence[WorkerFacts]) -> dict[str, str] | None:
    """What a queued job lacks where no worker that is there may ever take it; None where one may."""
    reason = _of_workers(queue, needs_hardware, workers)
    return asdict(reason) if reason.code in _STUCK else None


def _queued(job: JobFacts, workers: Sequence[WorkerFacts]) -> Iterator[Reason]:
    if job.wait_s > 0:
        last = job.attempts[-1] if job.attempts else None
        why = f", because {_meaning(last.cause)} at try {last.number}" if last else ""
        yield Reason("backing_off", f"It may be claimed again in {job.wait_s:.0f} s{why}.")
    yield _of_workers(job.queue, job.needs_hardware, workers)
    if job.ahead:
        older = _count(
            job.ahead, f"older job of queue {job.queue} comes", f"older jobs of queue {job.queue} come"
        )
        yield Reason("behind_others", f"{older} first.")
    if job.deadline_s is not None:
        yield Reason("deadline", f"It is aborted unless it starts within {job.deadline_s:.0f} s.")


def _of_workers(queue: str, needs_hardware: bool, workers: Sequence[WorkerFacts]) -> Reason:
    """What the workers of the queue do instead of taking the job."""
    live = [worker for worker in workers if worker.state != "stopped"]
    if not live:
        return Reason("no_workers", f"No worker of queue {queue} was seen of late: start one.")
    sound = [worker for worker in live if worker.state != "broken"]
    if not sound:
        faults = "; ".join(f"{worker.id}: {worker.fault or 'unknown fault'}" for worker in live[:3])
        return Reason("workers_broken", f"Every worker of queue {queue} is broken. {faults}.")
    takers = [worker for worker in sound if takes_jobs(worker)]
    if not takers:
        return Reason("workers_draining", f"Every worker of queue {queue} takes no more jobs (draining).")
    usable = [worker for worker in takers if not (needs_hardware and worker.software)]
    if not usable:
        text = f"The job needs a GPU, and every worker of queue {queue} that takes jobs renders in software."
        return Reason("needs_hardware", text)
    if any(worker.state == "idle" for worker in usable):
        return Reason("soon", "A worker is idle and takes the next job within seconds.")
    if any(worker.state == "starting" for worker in usable):
        return Reason("workers_starting", "A worker is starting its browser.")
    busy = _count(len(usable), f"worker of queue {queue} is", f"workers of queue {queue} are")
    return Reason("workers_busy", f"{busy} busy.")


def _running(job: JobFacts) -> Iterator[Reason]:
    if job.cancel_requested:
        yield Reason("cancelling", "Its cancellation was asked for; the worker stops it within seconds.")
    now = job.attempts[-1] if job.attempts else None
    if now is not None:
        total = f" of {job.total_steps}" if job.total_steps else ""
        text = f"Worker {now.worker_id} has it: try {now.number} is {now.state}, step {job.step}{total}."
        yield Reason("running", text)


def _ended(job: JobFacts) -> Iterator[Reason]:
    for warning in job.warnings:
        advice = WARNINGS.get(warning["code"])
        text = f"It succeeded, but {warning['message']}."
        yield Reason(warning["code"], f"{text} {advice}" if advice else text)
    meaning = _meaning(job.cause)
    advice = CAUSES[Cause(job.cause)][1] if job.cause in list(Cause) else None
    said = f" ({job.message})" if job.message and job.message not in meaning else ""
    verb = "It succeeded" if job.state == JobState.SUCCEEDED else f"It was {job.state}"
    verb = "It failed" if job.state == JobState.FAILED else verb
    yield Reason(job.cause or job.state, f"{verb}: {meaning}{said}." + (f" {advice}" if advice else ""))
    if job.state == JobState.FAILED and job.cause in POLICIES:
        policy = POLICIES[Cause(job.cause)]
        if policy == Policy.RETRY:
            text = f"{_count(len(job.attempts), 'try was', 'tries were')} made, and no more are allowed."
            yield Reason("attempts_used_up", text)
        elif policy == Policy.ENVIRONMENT:
            yield Reason("environment", "No worker that tried it was able to; none of that counts as a try.")
    if job.resumable_from_step is not None:
        text = f"Its checkpoint of step {job.resumable_from_step} is kept: a resume goes on from there."
        yield Reason("resumable", text)


def _tries(job: JobFacts) -> Iterator[Reason]:
    """How the tries ended that were not the last word."""
    told = job.attempts[-1] if job.attempts and job.attempts[-1].cause == job.cause else None
    for attempt in job.attempts:
        if attempt.cause and attempt is not (told if job.state in FINAL_JOB_STATES else None):
            said = f" ({attempt.message})" if attempt.message else ""
            text = f"Try {attempt.number} on {attempt.worker_id} was {attempt.state}: {_meaning(attempt.cause)}{said}."
            yield Reason(f"attempt_{attempt.state}", text)


def _meaning(cause: str | None) -> str:
    return CAUSES[Cause(cause)][0] if cause in list(Cause) else "the cause is not known"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
