"""What becomes of a connection whose request's body nobody read, on the server that is in use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from texelgrad.config import Settings
from texelgrad.db import Database

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def http(settings: Settings, db: Database) -> Iterator[httpx.Client]:
    """A client of gunicorn with the API on the test's database."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        options = ["--worker-class", "gthread", "--keep-alive", "75", "--no-control-socket"]
        own = {
            "TEXELGRAD_DATA_DIR": str(settings.data_dir),
            "TEXELGRAD_DATABASE_URL": str(settings.database_url),
        }
        with subprocess.Popen(
            [
                sys.executable,
                "-m",
                "gunicorn",
                *options,
                "--bind",
                f"fd://{listener.fileno()}",
                "api.app:create_app()",
            ],
            env={**os.environ, **own},
            pass_fds=[listener.fileno()],
        ) as server:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
                yield client
            server.terminate()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_connection_closes_only_where_the_answer_says_so(http: httpx.Client):
    """A body left unread: close. One that was read, or none: it may be used again."""
    unread = [
        http.post("/v1/jobs", content=bytes(2 << 20), headers=JSON),
        http.post("/v1/jobs", content=bytes(2 << 20), headers={"Content-Type": "text/plain"}),
        http.post("/v1/datasets?form=npz", content=bytes(2 << 20), headers={"Content-Type": "text/csv"}),
    ]
    assert [answer.status_code for answer in unread] == [413, 415, 422]
    assert [answer.headers["Connection"] for answer in unread] == ["close"] * 3
    read = [
        http.post("/v1/jobs", content=b"{}", headers=JSON),
        http.post("/v1/datasets", content=b"a,b\n1,2\n" * 40_000, headers={"Content-Type": "text/csv"}),
        http.post("/v1/datasets", files={"file": ("data.csv", b"a,b\n" + b"1,2\n" * 40_000)}),
        http.get("/healthz"),
    ]
    assert [answer.status_code for answer in read] == [422, 422, 201, 200]
    assert [answer.headers["Connection"] for answer in read] == ["keep-alive"] * 4
    for _ in range(10):
        assert http.post("/v1/jobs", content=bytes(2 << 20), headers=JSON).status_code == 413
        time.sleep(0.01)  # the server closes
        assert http.get("/healthz").status_code == 200
