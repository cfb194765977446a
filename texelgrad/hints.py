"""Hints: Celery messages without content that make an idle worker look for work. Losing one only costs time."""

from __future__ import annotations

from typing import Any

from celery import Celery
from redis import Redis

TASK = "texelgrad.hint"
_SOCKET_S = 2.0


class Publisher:
    """Sends hints to the broker, and counts those that wait there. Calls may block for seconds, or raise."""

    def __init__(self, broker_url: str) -> None:
        self._celery = Celery("texelgrad", broker=broker_url)
        timeouts = {"socket_timeout": _SOCKET_S, "socket_connect_timeout": _SOCKET_S}
        self._celery.conf.update(
            task_ignore_result=True,
            # One more try at once, for a connection that the broker has closed; kombu would go on for seconds.
            broker_transport_options={
                **timeouts,
                "max_retries": 1,
                "interval_start": 0,
                "interval_step": 0,
                "interval_max": 0,
            },
            broker_connection_timeout=_SOCKET_S,
        )
        url = broker_url.replace("redis+socket://", "unix://", 1)
        self._redis: Any = Redis.from_url(url, **timeouts)

    def send(self, queue: str) -> None:
        """Publish one hint, without trying again."""
        self._celery.send_task(TASK, queue=queue, ignore_result=True, retry=False)

    def waiting(self, queue: str) -> int:
        """Hints in the queue; kombu keeps each queue in a Redis list of its name."""
        return int(self._redis.llen(queue))

    def close(self) -> None:
        """Close the connections."""
        self._celery.close()
        self._redis.close()
