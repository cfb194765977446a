"""Which requests of a page are intercepted: all but those to its own folder."""

from __future__ import annotations

_URL_CHARACTERS = [chr(code) for code in range(0x21, 0x7F)]  # all others are percent-encoded


def patterns_outside(folder: str) -> list[str]:
    """Patterns of CDP's Fetch.enable that match every address but those below `folder`, which ends in a slash.

    What is intercepted is sent over CDP as JSON, body and all: a checkpoint of 8 MB took seconds, so our own requests must
    not match. The patterns know no "not", but an address is outside if and only if it ends within the folder's, or differs
    from it at some first character: a pattern for each, six thousand short ones.
    """
    outside: list[str] = []
    for place, own in enumerate(folder):
        same = _quoted(folder[:place])
        outside += [same] if same else []
        outside += [f"{same}{_quoted(other)}*" for other in _URL_CHARACTERS if other != own]
    return outside


def _quoted(text: str) -> str:
    return "".join(f"\\{character}" if character in "*?\\" else character for character in text)
