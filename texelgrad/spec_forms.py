"""Forms that texts of a spec must have: each a regular expression for validation, and words for people."""

from __future__ import annotations

import re

_UNSHOWN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Control characters, and those that turn the direction of the text around them: a name must not disguise its neighbours."""

NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
LABEL = rf"^[^{_UNSHOWN}]*$"
DATASET_ID = r"^ds_[0-9a-z]{26}$"
JOB_ID = r"^job_[0-9a-z]{26}$"
WEIGHTS_ID = r"^art_[0-9a-z]{26}$"
MEASURED = r"^val_[a-z0-9_]{1,40}$"
TIME = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
    r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"
)

WORDS = {
    NAME: "a letter, then up to 63 letters, digits, _ or -",
    LABEL: "text without control characters",
    DATASET_ID: "the id of a data set, ds_...",
    JOB_ID: "the id of a job, job_...",
    WEIGHTS_ID: "the id of uploaded weights, art_...",
    MEASURED: "val_loss, or val_ and the name of a metric",
    TIME: "a time with an offset, such as 2027-01-31T18:00:00Z",
}

_UNSHOWABLE = re.compile(rf"[{_UNSHOWN}\ud800-\udfff]")
"""Surrogates too: JSON can name half a character, which no UTF-8 holds, and so no database. A spec's texts have none
anyway, and its forms are also JavaScript's, where every larger character is two of them."""


LABEL_WORDS = "1 to 200 characters, no control characters"
"""What `is_label` asks for, in words."""


def is_label(text: str) -> bool:
    """Whether a name has only characters that can be shown, of 1 to 200."""
    return 1 <= len(text) <= 200 and not _UNSHOWABLE.search(text)
