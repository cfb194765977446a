"""What routes that read their own bodies add to the OpenAPI description."""

from __future__ import annotations

from typing import Any

from flask_openapi3.openapi import OpenAPI

from texelgrad.spec import JobSpec

_REF = "#/components/schemas/"


def describe(app: OpenAPI) -> None:
    """Add the job spec and the uploads as request bodies."""
    schema = JobSpec.model_json_schema(ref_template=_REF + "{model}")
    definitions: dict[str, Any] = schema.pop("$defs")
    spec = app.api_doc  # built once; what follows changes it in place
    components = spec.setdefault("components", {}).setdefault("schemas", {})
    components.update(definitions)
    components["JobSpec"] = schema
    body = {"required": True, "content": {"application/json": {"schema": {"$ref": f"{_REF}JobSpec"}}}}
    for path in ("/v1/jobs", "/v1/estimates"):
        spec["paths"][path]["post"]["requestBody"] = body
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
