"""Specs as an earlier version stored them, defaults and nulls of fields to come included: they must run for ever."""

from __future__ import annotations

import json
from pathlib import Path

from texelgrad.spec import parse_spec

from ..node import call

STORED = json.loads((Path(__file__).parent.parent / "goldens" / "spec_of_before.json").read_text())
"""What the version wrote in which clip, early_stopping, accumulate_steps and fine_tune had a name only."""


def test_both_sides_read_a_spec_of_before():
    """Null stands for the default, in Python and in the page."""
    assert STORED["train"]["accumulate_steps"] is None
    spec = parse_spec(STORED)
    assert spec.train.accumulate_steps == 1
    (answer,) = call("/tests/unit/spec_probe.js", "validateAll", [STORED])
    assert answer.get("error") is None
    assert answer["spec"] == spec.model_dump(mode="json")
