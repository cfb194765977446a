"""Schemathesis: requests made from /openapi.json, right and wrong ones, are answered as it says."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from texelgrad.config import Settings

from .http import http_client, post_job

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

# Operations that take part: all of them, and those with something in a query or a body to get wrong.
LEAST = {GenerationMode.POSITIVE: 30, GenerationMode.NEGATIVE: 12}


def ask(settings: Settings, mode: GenerationMode, examples: int) -> int:
    """Ask every operation `examples` times; answers how many operations could be asked so."""
    with http_client(settings) as client:
        post_job(client)
        schema: Any = schemathesis.openapi.from_wsgi("/openapi.json", client.application)
        operations = [result.ok() for result in schema.get_all_operations()]
        if mode == GenerationMode.NEGATIVE:  # any text is a right id: only a query or a body can be wrong
            operations = [item for item in operations if list(item.query) or list(item.body)]
        asked = 0
        for operation in operations:

            @hypothesis.settings(
                max_examples=examples,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=[
                    HealthCheck.too_slow,
                    HealthCheck.filter_too_much,
                    HealthCheck.data_too_large,
                ],
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def check(case: Any) -> None:
                case.call_and_validate(checks=CHECKS)

            try:
                check()
            except Unsatisfiable:  # without parameters and body there is nothing to get wrong
                assert mode == GenerationMode.NEGATIVE, operation.label
                continue
            asked += 1
        return asked


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_every_operation_answers_as_described(settings: Settings, mode: GenerationMode):
    """Never a 500, only described statuses and types, and problem documents that are whole."""
    assert ask(settings, mode, examples=3) > LEAST[mode]


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_every_operation_for_long(settings: Settings, mode: GenerationMode):
    """The same with many more requests."""
    assert ask(settings, mode, examples=200) > LEAST[mode]
