"""Where the time of a short job goes on a warm worker, and what a job costs each part of the service."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import psutil
from redis import Redis
from sqlalchemy import func, select, text

from bench.service.figures import Row
from bench.service.running import ROOT, Service, running
from texelgrad.client import Job
from texelgrad.db import Database
from texelgrad.models import Base

GOAL_S = 1.0
_IDLE_S, _LOOK_S = 5.0, 1.0
_ENGINE = ("compile", "upload", "train", "report")
_OWN = ("handover", "checkpoint", "save")


def measure(database: str, url: str, count: int) -> list[Row]:
    """Medians over so many jobs, one at a time; then the cost of so many, posted together."""
    spec = json.loads((ROOT / "examples" / "seed_demo.json").read_text())
    with running(url) as service:
        service.run(spec)
        found: list[dict[str, float]] = []
        for _ in range(count):
            service.settle()
            found.append(_stages(service.run(spec), service))
        rows = [
            Row(
                f"stage {name}, {database}, median", statistics.median(stages[name] for stages in found), "ms"
            )
            for name in found[0]
            if name != "added"
        ]
        added = [stages["added"] / 1e3 for stages in found]
        rows.append(
            Row(
                f"service adds, {database}, median",
                statistics.median(added),
                "s",
                GOAL_S,
                {"worst": max(added)},
            )
        )
        return [*rows, *_costs(database, service, spec, count)]


def _stages(job: Job, service: Service) -> dict[str, float]:
    """Where the job's time went, in ms; `launch` is what the worker's next browser took after it."""
    ended_s = time.monotonic()
    assert job["state"] == "succeeded", (job["cause"], job["message"])
    (attempt,) = job["attempts"]
    timings = job["record"]["timings"]
    stages = {"claim": _ms(job["created_at"], attempt["created_at"])}
    stages |= {name: timings[f"{name}Ms"] for name in ("handover", *_ENGINE, *_OWN[1:])}
    whole = _ms(job["created_at"], job["ended_at"])
    stages["end"] = whole - sum(stages.values())
    stages["added"] = whole - sum(stages[name] for name in _ENGINE)
    service.settle()
    stages["launch"] = 1e3 * (time.monotonic() - ended_s)
    return stages


def _ms(start: str, end: str) -> float:
    return 1e3 * (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _costs(database: str, service: Service, spec: Mapping[str, Any], count: int) -> list[Row]:
    """What a job costs in CPU of each part, rows and bytes of the database, and commands of Redis.

    What the parts take when nothing happens is measured before, and stands besides.
    """
    db = service.database()
    idle_s, idle = _grown(service, db, lambda: time.sleep(_IDLE_S))

    done: list[Job] = []
    looks = 0

    def work() -> None:
        nonlocal looks
        for job_id in [service.client.create_job(spec)["id"] for _ in range(count)]:
            while (job := service.client.job(job_id))["state"] in ("queued", "running"):
                looks += 1
                time.sleep(_LOOK_S)  # as a patient client does
            done.append(job)
        while service.worker()["state"] != "idle":  # the last one's browser counts too
            looks += 1
            time.sleep(_LOOK_S)

    _, grown = _grown(service, db, work)
    db.close()
    each_s = _ms(done[0]["ended_at"], done[-1]["ended_at"]) / 1e3 / (count - 1)
    rows: list[Row] = []
    for name, value in grown.items():
        label, unit = f"{name} a job, {database}", _unit(name)
        if unit in ("rows", "bytes"):
            rows += [Row(label, value / count, unit)] if value else []
        else:
            rows.append(Row(label, value / count, unit, None, {"idle_a_second": idle[name] / idle_s}))
    rows.append(Row(f"requests a job, {database}", 2 + looks / count, "requests"))
    return [*rows, Row(f"jobs an hour of one worker, {database}", 3600 / each_s, "jobs")]


def _grown(service: Service, db: Database, act: Callable[[], None]) -> tuple[float, dict[str, float]]:
    """The seconds that something takes, and what it adds to each figure."""
    before, began_s = _sample(service, db), time.monotonic()
    act()
    after = _sample(service, db)
    return time.monotonic() - began_s, {name: value - before[name] for name, value in after.items()}


def _unit(name: str) -> str:
    if name.startswith("cpu "):
        return "ms"
    return {"redis": "commands", "database": "bytes"}.get(name, "rows")


def _sample(service: Service, db: Database) -> dict[str, float]:
    found = {f"cpu {name}": 1e3 * _cpu_s(service.part(name)) for name in ("api", "worker", "keeper", "redis")}
    with Redis(unix_socket_path=str(service.folder / "redis.sock")) as redis:
        info: Any = redis.info("stats")
        found["redis"] = float(info["total_commands_processed"])
    with db.read() as session:
        for table in Base.metadata.sorted_tables:
            found[f"rows of {table.name}"] = float(
                session.scalar(select(func.count()).select_from(table)) or 0
            )
        size = (
            "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            if db.is_sqlite
            else "SELECT pg_database_size(current_database())"
        )
        found["database"] = float(session.scalar(text(size)) or 0)
    return found


def _cpu_s(process: psutil.Process) -> float:
    """Of the process, those it started, and those among them that have ended."""
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system + each.children_user + each.children_system for each in times)
