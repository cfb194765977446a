"""What each operation answers, as OpenAPI shows it. A test holds real answers against it, field by field."""

from __future__ import annotations

from typing import Any

from texelgrad.domain import AttemptState, JobState

Schema = dict[str, Any]
_REF = "#/components/schemas/"


def _of(types: str) -> Schema:
    """A field: a type, with `?` where it may be null; `time`; `any`; or the name of one of SCHEMAS."""
    name = types.removesuffix("?")
    simple = name in ("string", "integer", "number", "boolean", "object", "array")
    schema: Schema = {"type": name} if simple else {} if name == "any" else {"$ref": f"{_REF}{name}"}
    if name == "time":
        schema = {"type": "string", "format": "date-time"}
    return {"anyOf": [schema, {"type": "null"}]} if types.endswith("?") else schema


def _object(_optional: str = "", /, **fields: str | Schema) -> Schema:
    """A closed object; the `_optional` ones of its fields may be left out."""
    properties = {name: _of(field) if isinstance(field, str) else field for name, field in fields.items()}
    required = [name for name in fields if name not in _optional.split()]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _list(of: str) -> Schema:
    return {"type": "array", "items": _of(of)}


def _page(of: str) -> Schema:
    return _object(items=_list(of), next_cursor="string?")


def _map(of: str) -> Schema:
    return {"type": "object", "additionalProperties": _of(of)}


def _enum(states: type[JobState | AttemptState]) -> Schema:
    return {"enum": [state.value for state in states]}


_RENDERER: dict[str, str | Schema] = {"backend": "string?", "renderer": "string?", "software": "boolean?"}
_SUMMARY: dict[str, str | Schema] = {
    "id": "string", "kind": {"enum": ["train", "predict"]}, "name": "string", "tags": _map("string"), "state": _enum(JobState), "cause": "string?",
    "message": "string?", "step": "integer", "total_steps": "integer?", "metrics": "object", "dataset_id": "string?",
    "parent_id": "string?", "resumed_from_step": "integer?", "queue": "string", "needs_hardware": "boolean", "created_at": "time", "started_at": "time?", "ended_at": "time?",
    "cancel_requested_at": "time?", **_RENDERER,
}  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "JobSummary": _object(**_SUMMARY),
    "Job": _object(
        **_SUMMARY, failure="object?", normalization="object?", waiting_for="Reason?", eligible_at="time?",
        deadline_at="time?", max_attempts="integer", resumable_from_step="integer?", record="object?", attempts=_list("Attempt"), spec="JobSpec",
        links=_map("string"),
    ),
    "Attempt": _object(
        id="string", number="integer", state=_enum(AttemptState), cause="string?", message="string?",
        worker_id="string", resumed_from_step="integer?", not_bit_exact="string?", measured="boolean", **_RENDERER, created_at="time",
        training_at="time?", ended_at="time?",
    ),
    "Reason": _object(code="string", text="string"),
    "Why": _object(
        job_id="string", state=_enum(JobState), summary="string", reasons=_list("Reason"), queue_position="integer?"
    ),
    "StoredCheckpoint": _object(
        id="string", attempt_id="string", step="integer", size="integer", sha256="string", created_at="time",
        file="string",
    ),
    "LogLine": _object(
        attempt_id="string", attempt="integer", seq="integer", at="time", level="string", message="string"
    ),
    "Curve": _object(steps=_list("integer"), values="array", total="integer"),
    "Curves": _object(job_id="string", state=_enum(JobState), series=_map("Curve")),
    "Estimate": _object(
        parameters="integer", output_shape=_list("integer"), train_rows="integer?", validation_rows="integer?",
        steps_per_epoch="integer?", total_steps="integer?", flops_per_step="integer?", texture_bytes="integer?",
    ),
    "Array": _object(role="string", dtype="string", shape=_list("integer"), stats="object"),
    "Dataset": _object(
        "deduplicated uploaded_as", id="string", name="string", rows="integer", sha256="string", created_at="time",
        warnings=_list("string"), arrays=_map("Array"), deduplicated="boolean", uploaded_as="string",
    ),
    "Upload": _object(
        id="string", name="string", state="string", size="integer", received="integer", created_at="time",
        content="string",
    ),
    "UploadedWeights": _object(
        id="string", size="integer", sha256="string", tensors=_map("array"), created_at="time"
    ),
    "Rows": _object(offset="integer", total="integer", rows=_list("object")),
    "Worker": _object(
        id="string", host="string", pid="integer", queue="string", state="string", draining="boolean",
        engine_hash="string?", renderer="string?", gpu="any", software="boolean?", attempt_id="string?",
        proof="object?", proved_at="time?", fault="string?", started_at="time", seen_at="time",
    ),
    "Webhook": _object("secret", id="string", url="string", created_at="time", secret="string"),  # noqa: S106
    "Secret": _object(secret="string", created_at="time"),  # noqa: S106
    "Delivery": _object(
        id="string", type="string", job_id="string?", state="string", tries="integer", answer="any",
        created_at="time", next_at="time?", delivered_at="time?",
    ),
    "Session": _object(owner_id="string", role="string", key_id="string?"),
    "Health": _object("revision trains", status="string", revision="string", trains="boolean"),
}  # fmt: skip

_JOB = "/v1/jobs/{job_id}"
_HOOK = "/v1/webhooks/{webhook_id}"
ANSWERS: dict[tuple[str, str], dict[int, Schema]] = {
    ("post", "/v1/jobs"): {202: _of("Job")},
    ("get", "/v1/jobs"): {200: _page("JobSummary")},
    ("get", _JOB): {200: _of("Job")},
    ("post", f"{_JOB}/cancel"): {202: _of("Job")},
    ("post", f"{_JOB}/retry"): {202: _of("Job")},
    ("post", f"{_JOB}/resume"): {202: _of("Job")},
    ("post", f"{_JOB}/predictions"): {202: _of("Job")},
    ("post", "/v1/weights"): {201: _of("UploadedWeights")},
    ("get", f"{_JOB}/metrics"): {200: _of("Curves")},
    ("get", f"{_JOB}/diagnostics"): {200: {"type": "object"}},
    ("get", f"{_JOB}/checkpoints"): {200: _page("StoredCheckpoint")},
    ("get", f"{_JOB}/logs"): {200: _page("LogLine")},
    ("get", f"{_JOB}/why"): {200: _of("Why")},
    ("post", "/v1/estimates"): {200: _of("Estimate")},
    ("post", "/v1/datasets"): {200: _of("Dataset"), 201: _of("Dataset")},
    ("get", "/v1/datasets"): {200: _page("Dataset")},
    ("post", "/v1/datasets/announce"): {201: _of("Upload")},
    ("get", "/v1/datasets/{dataset_id}"): {200: _of("Dataset")},
    ("get", "/v1/datasets/{dataset_id}/content"): {200: _of("Upload")},
    ("put", "/v1/datasets/{dataset_id}/content"): {
        200: {"anyOf": [_of("Upload"), _of("Dataset")]},
        201: _of("Dataset"),
    },
    ("get", "/v1/datasets/{dataset_id}/preview"): {200: _of("Rows")},
    ("get", "/v1/workers"): {200: _page("Worker")},
    ("get", "/v1/webhooks"): {200: _page("Webhook")},
    ("post", "/v1/webhooks"): {201: _of("Webhook")},
    ("post", "/v1/webhooks/secret"): {201: _of("Secret")},
    ("get", _HOOK): {200: _of("Webhook")},
    ("post", f"{_HOOK}/test"): {202: _of("Delivery")},
    ("get", f"{_HOOK}/deliveries"): {200: _page("Delivery")},
    ("get", "/v1/session"): {200: _of("Session")},
}
"""By method and path: the schema for each status; what is not here is no JSON."""
TAGGED = frozenset(
    {_JOB, f"{_JOB}/metrics", f"{_JOB}/diagnostics", f"{_JOB}/checkpoints", "/v1/datasets/{dataset_id}"}
)
"""Paths whose GET has an ETag, and answers 304."""
HEALTH = {"/healthz": "This process answers.", "/readyz": "Jobs can be taken."}
