"""Health check of a container that serves no HTTP: exits with 0 where its part of the service is well.

python scripts/health.py worker    # this host's worker was seen of late, and has a browser that trains
python scripts/health.py keeper    # some keeper holds the lease
"""

from __future__ import annotations

import socket
import sys

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database, now_us
from texelgrad.models import Lease

SEEN_WITHIN_US = 60_000_000
UNWELL = {"broken", "stopped"}


def fault_of(part: str, db: Database) -> str | None:
    """What is wrong with the part, None where nothing is."""
    with db.read() as session:
        now = now_us(session)
        if part == "keeper":
            lease = session.get(Lease, "keeper")
            return None if lease is not None and lease.until > now else "no keeper holds the lease"
        workers = repository.list_workers(session, now - SEEN_WITHIN_US)
        here = [worker for worker in workers if worker.host == socket.gethostname()]
        if any(worker.state not in UNWELL for worker in here):
            return None
        return here[0].fault if here else "no worker of this host was seen within a minute"


def main() -> None:
    """Check the part named on the command line."""
    if len(sys.argv) != 2 or sys.argv[1] not in ("worker", "keeper"):
        sys.exit("usage: health.py worker|keeper")
    sys.exit(fault_of(sys.argv[1], Database(Settings.load().database)))


if __name__ == "__main__":
    main()
