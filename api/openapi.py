"""What routes that read their own bodies add to the OpenAPI description."""

from __future__ import annotations

from typing import Any

from flask_openapi3.openapi import OpenAPI

from texelgrad.formats import FORMATS
from texelgrad.spec import JobSpec

_REF = "#/components/schemas/"
_BYTES = "application/octet-stream"
_MEDIA = {
    "/v1/jobs/{job_id}/weights": _BYTES,
    "/v1/jobs/{job_id}/checkpoints/{artifact_id}": _BYTES,
    "/v1/jobs/{job_id}/events": "text/event-stream",
}
"""What paths answer other than JSON."""


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
        },
    )
    content = spec["paths"]["/v1/datasets/{dataset_id}/content"]["put"]
    content["requestBody"] = {"required": True, "content": {_BYTES: {"schema": {"type": "string"}}}}
    for path, operations in spec["paths"].items():
        for operation in operations.values():
            operation["responses"] = _responses(_MEDIA.get(path, "application/json"))
    file: dict[str, Any] = {"type": "string", "contentMediaType": "application/octet-stream"}
    fields = {name: {"type": "string"} for name in ("name", "format", "target")}
    form = {"type": "object", "required": ["file"], "properties": {"file": file, **fields}}
    spec["paths"]["/v1/datasets"]["post"]["requestBody"] = {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": form},
            "application/octet-stream": {"schema": file},
            "text/csv": {"schema": {"type": "string"}},
        },
    }


def _responses(media: str) -> dict[str, Any]:
    """What any operation answers: its own media type, or a problem document."""
    problem = {"application/problem+json": {"schema": {"$ref": f"{_REF}Problem"}}}
    return {
        "2XX": {"description": "As docs/http-api.md says.", "content": {media: {}}},
        "204": {"description": "Done; there is nothing more."},
        "304": {"description": "Unchanged."},
        "default": {"description": "A problem document (RFC 9457).", "content": problem},
    }


def _json_body(*, optional: dict[str, Any] | None = None, **required: dict[str, Any]) -> dict[str, Any]:
    """A closed object as the request's body."""
    schema = {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
    return {"required": True, "content": {"application/json": {"schema": schema}}}
