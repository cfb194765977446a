"""The exception tree; each class has a stable code that the API, the client and the logs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_MAX_FAULTS = 100
_MAX_TOLD = 10  # in the message; the rest is in the list


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input: where, what it was, what is wrong with it, and what would be legal."""

    field: str  # dotted path, such as "model.layers.0.units"
    message: str
    value: Any = None
    legal: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The fault as it stands in a problem document."""
        return {"field": self.field, "value": self.value, "message": self.message, "legal": self.legal}


def fault_line(fault: Fault) -> str:
    """A fault for people: its field, what is wrong, what would be legal."""
    return f"  {fault.field}: {fault.message}" + (f" (legal: {fault.legal})" if fault.legal else "")


class TexelgradError(Exception):
    """Root of everything that texelgrad raises on purpose."""

    code = "internal"


class Invalid(TexelgradError):
    """The caller's input is wrong; carries every fault that was found, not only the first."""

    code = "invalid"

    def __init__(self, faults: Sequence[Fault], more: int = 0) -> None:
        """Up to 100 faults are kept; `more` were found besides them, and are only counted."""
        self.faults = tuple(faults[:_MAX_FAULTS])
        self.more = more + len(faults) - len(self.faults)
        told = [f"{fault.field}: {fault.message}" for fault in self.faults[:_MAX_TOLD]]
        untold = self.more + len(self.faults) - len(told)
        super().__init__("; ".join(told) + (f"; and {untold} more" if untold else ""))


class TooLarge(Invalid):
    """An upload or a request exceeds a limit of the settings; the fault names both."""

    code = "too_large"


class NotFound(TexelgradError):
    """There is no such thing, or it belongs to somebody else; the two can't be told apart."""

    code = "not_found"


class Conflict(TexelgradError):
    """The thing exists, but its state forbids this."""

    code = "conflict"


class IllegalTransition(Conflict):
    """A job or an attempt can't go from its present state to the one asked for."""

    code = "illegal_transition"


class Fenced(TexelgradError):
    """The attempt is no longer the caller's: its token is stale, or it has ended. Nothing was written."""

    code = "fenced"


class Damaged(TexelgradError):
    """What is stored is no longer what was stored, as after a fault of the database's disk."""

    code = "damaged"


class Unauthorized(TexelgradError):
    """Nobody knows who is calling: a key is missing, wrong or revoked."""

    code = "unauthorized"


class Forbidden(TexelgradError):
    """The caller is known, and may not do this."""

    code = "forbidden"


class TooMany(TexelgradError):
    """The caller has, or asks for, more than it may; after `retry_after_s` seconds it may be otherwise."""

    code = "too_many"

    def __init__(self, message: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class Unavailable(TexelgradError):
    """Something that the service needs is not there now; says what was tried and how to fix it."""

    code = "unavailable"


class Overloaded(Unavailable):
    """The service as a whole has no room for more now; the message has the figure."""

    code = "overloaded"

    def __init__(self, message: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)
