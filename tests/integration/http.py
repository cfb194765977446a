"""A client of the API in this process, and uploads for it."""

from __future__ import annotations

import io
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api import create_app
from api.context import Services
from texelgrad.config import Settings


@contextmanager
def http_client(settings: Settings) -> Generator[FlaskClient]:
    """A client of a fresh application; its connections are closed afterwards."""
    app = create_app(settings)
    services: Services = app.extensions["texelgrad"]
    try:
        yield app.test_client()
    finally:
        services.close()


def npz(**arrays: Any) -> bytes:
    """The bytes of an npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def upload(
    client: FlaskClient, data: bytes, query: str = "", content_type: str | None = None
) -> TestResponse:
    """POST a raw data set."""
    return client.post(
        f"/v1/datasets{query}", data=data, content_type=content_type or "application/octet-stream"
    )


def upload_points(client: FlaskClient, rows: int = 20) -> str:
    """The id of a data set of points in the plane with labels 0 and 1."""
    x = np.linspace(-1, 1, 2 * rows).reshape(rows, 2)
    response = upload(client, npz(x=x, y=np.arange(rows) % 2))
    assert response.status_code in (200, 201), response.text
    return response.json["id"] if response.json else ""


def spec_for(dataset_id: str, **changes: Any) -> dict[str, Any]:
    """A spec that fits upload_points, with other values for some of its fields."""
    return {
        "name": "points",
        "model": {"input": [2], "layers": [{"type": "dense", "units": 1}]},
        "loss": "bce",
        "optimizer": {"type": "sgd", "lr": 0.1},
        "data": {"dataset": dataset_id},
        "train": {"epochs": 2, "batch_size": 5},
        **changes,
    }


def fields(response: TestResponse) -> list[str]:
    """The fields that a problem document names."""
    assert response.content_type == "application/problem+json", response.text
    assert response.json is not None
    assert response.json["status"] == response.status_code
    return [fault["field"] for fault in response.json["errors"]]


def post_job(client: FlaskClient, **changes: Any) -> dict[str, Any]:
    """Queue a job; answers it."""
    response = client.post("/v1/jobs", json=spec_for(upload_points(client), **changes))
    assert response.status_code == 202, response.text
    return response.get_json()


def get(client: FlaskClient, path: str) -> Any:
    """GET JSON that must be there."""
    response = client.get(path)
    assert response.status_code == 200, response.text
    return response.get_json()


def parse_events(text: str) -> list[tuple[str, str, Any]]:
    """(id, type, data) of each message."""
    messages: list[tuple[str, str, Any]] = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in lines:
            messages.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return messages
