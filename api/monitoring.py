"""/metrics in Prometheus' format. The figures come from the database, so every API process shows the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from flask import Flask, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from api.auth import require_admin
from api.context import services
from texelgrad.db import Database
from texelgrad.repository.gauges import Gauges, read_gauges

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def register(app: Flask) -> None:
    """Add /metrics; with keys it needs the role admin, since it counts everybody's jobs."""

    @app.route("/metrics")
    def metrics() -> Response:  # pyright: ignore[reportUnusedFunction]
        """The service's gauges."""
        require_admin()
        db = services().db
        with db.read() as session:
            gauges = read_gauges(session)
        registry = CollectorRegistry()
        registry.register(_Once(gauges, _free_bytes(db)))
        return Response(generate_latest(registry), content_type=_TYPE)


class _Once(Collector):
    """The gauges of one request."""

    def __init__(self, gauges: Gauges, free_bytes: int | None) -> None:
        self._gauges, self._free_bytes = gauges, free_bytes

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        gauges = self._gauges
        yield _family("jobs", "Queued and running jobs", ("queue", "state"), gauges.jobs)
        yield _family("jobs_ended_last_hour", "Jobs that ended", ("state", "cause"), gauges.ended)
        oldest = {(queue,): age for queue, age in gauges.oldest_queued_s.items()}
        yield _family("oldest_queued_seconds", "Age of the job that waits longest", ("queue",), oldest)
        attempts = {(state,): count for state, count in gauges.attempts.items()}
        yield _family("attempts", "Attempts under way", ("state",), attempts)
        yield _family("expired_leases", "Attempts of silent workers", (), {(): gauges.expired_leases})
        yield _family("workers", "Workers seen in the last minute", ("queue", "state"), gauges.workers)
        sizes = {(kind,): size for kind, size in gauges.artifact_bytes.items()}
        yield _family("artifact_bytes", "Stored bytes", ("kind",), sizes)
        yield _family("webhook_deliveries_pending", "Messages that wait", (), {(): gauges.deliveries})
        if self._free_bytes is not None:
            yield _family("disk_free_bytes", "Room for the SQLite database", (), {(): self._free_bytes})


def _family(
    name: str, help_text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"texelgrad_{name}", help_text, labels=labels)
    for label_values, value in sorted(values.items()):
        family.add_metric(label_values, value)
    return family


def _free_bytes(db: Database) -> int | None:
    if not db.is_sqlite or not db.url.database:
        return None
    return shutil.disk_usage(Path(db.url.database).parent).free
