"""What routes that read their own bodies add to the OpenAPI description."""

from __future__ import annotations

from typing import Any

from flask_openapi3.openapi import OpenAPI

from api.answers import ANSWERS, HEALTH, SCHEMAS, TAGGED
from texelgrad.formats import FORMATS
from texelgrad.spec import JobSpec

_REF = "#/components/schemas/"
_BYTES = "application/octet-stream"
_MEDIA = {
    "/v1/jobs/{job_id}/weights": _BYTES,
    "/v1/jobs/{job_id}/predictions": _BYTES,
    "/v1/jobs/{job_id}/checkpoints/{artifact_id}": _BYTES,
    "/v1/jobs/{job_id}/events": "text/event-stream",
}
"""What paths answer other than JSON."""
_IDEMPOTENT = frozenset(
    {"/v1/jobs", *(f"/v1/jobs/{{job_id}}/{what}" for what in ("retry", "resume", "predictions"))}
)
_PROBLEM = {
    "description": "A problem document (RFC 9457).",
    "content": {"application/problem+json": {"schema": {"$ref": f"{_REF}Problem"}}},
}


def describe(app: OpenAPI) -> None:
    """Add the job spec and the uploads as request bodies."""
    schema = JobSpec.model_json_schema(ref_template=_REF + "{model}")
    definitions: dict[str, Any] = schema.pop("$defs")
    spec = app.api_doc  # built once; what follows changes it in place
    everything = spec.setdefault("components", {})
    components = everything.setdefault("schemas", {})
    everything["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    spec["security"] = [{"key": []}, {}]  # none on loopback
    components.update(definitions)
    components.update(SCHEMAS)
    components["JobSpec"] = schema
    body = {"required": True, "content": {"application/json": {"schema": {"$ref": f"{_REF}JobSpec"}}}}
    for path in ("/v1/jobs", "/v1/estimates"):
        spec["paths"][path]["post"]["requestBody"] = body
    spec["paths"]["/v1/session"]["post"]["requestBody"] = _json_body(key={"type": "string"})
    spec["paths"]["/v1/webhooks"]["post"]["requestBody"] = _json_body(
        url={"type": "string", "maxLength": 2048}
    )
    announced = spec["paths"]["/v1/datasets/announce"]["post"]
    announced["requestBody"] = _json_body(
        size={"type": "integer", "minimum": 1},
        optional={
            "name": {"type": "string"},
            "format": {"enum": list(FORMATS)},
            "target": {"type": "string"},
            "weight": {"type": "string"},
        },
    )
    content = spec["paths"]["/v1/datasets/{dataset_id}/content"]["put"]
    content["requestBody"] = {"required": True, "content": {_BYTES: {"schema": {"type": "string"}}}}
    spec["paths"]["/v1/weights"]["post"]["requestBody"] = content["requestBody"]
    spec["paths"]["/v1/jobs/{job_id}/predictions"]["post"]["requestBody"] = _json_body(
        dataset={"type": "string"},
        optional={
            "name": {"type": "string", "maxLength": 200},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    )
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            operation["responses"] = _responses(method, path)
            _add_headers(operation, path)
    for path, summary in HEALTH.items():
        answers = {"200": {"description": "Yes.", "content": _json(_schema("Health"))}, "default": _PROBLEM}
        spec["paths"][path] = {"get": {"summary": summary, "responses": answers, "security": []}}
    file: dict[str, Any] = {"type": "string", "contentMediaType": "application/octet-stream"}
    fields = {name: {"type": "string"} for name in ("name", "format", "target", "weight")}
    form = {"type": "object", "required": ["file"], "properties": {"file": file, **fields}}
    spec["paths"]["/v1/datasets"]["post"]["requestBody"] = {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": form},
            "application/octet-stream": {"schema": file},
            "text/csv": {"schema": {"type": "string"}},
        },
    }


def _responses(method: str, path: str) -> dict[str, Any]:
    """What an operation answers: JSON of a schema, another media type, nothing, or a problem document."""
    described = ANSWERS.get((method, path), {})
    answers: dict[str, Any] = {
        str(status): {"description": "Done.", "content": _json(schema)}
        for status, schema in described.items()
    }
    if not answers:
        content = {_MEDIA[path]: {}} if path in _MEDIA and method == "get" else {"application/json": {}}
        answers["2XX"] = {"description": "As docs/http-api.md says.", "content": content}
        answers["204"] = {"description": "Done; there is nothing more."}
    if method == "get" and (path in TAGGED or _MEDIA.get(path) == _BYTES):
        answers["304"] = {"description": "Unchanged."}
    return {**answers, "default": _PROBLEM}


def _add_headers(operation: dict[str, Any], path: str) -> None:
    """The headers that an operation heeds."""
    names = ["Idempotency-Key"] if path in _IDEMPOTENT and "202" in operation["responses"] else []
    names += ["If-None-Match"] if "304" in operation["responses"] else []
    names += ["Range", "If-Range"] if _MEDIA.get(path) == _BYTES and "304" in operation["responses"] else []
    operation.setdefault("parameters", []).extend(
        {"in": "header", "name": name, "required": False, "schema": {"type": "string", "maxLength": 255}}
        for name in names
    )


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _schema(name: str) -> dict[str, Any]:
    return {"$ref": f"{_REF}{name}"}


def _json_body(*, optional: dict[str, Any] | None = None, **required: dict[str, Any]) -> dict[str, Any]:
    """A closed object as the request's body."""
    schema = {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
    return {"required": True, "content": {"application/json": {"schema": schema}}}
