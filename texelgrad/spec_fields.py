"""What the schema's parts are made of: strict models, bounded numbers, and fields that are named but not available yet."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from texelgrad.spec_forms import LABEL, NAME
from texelgrad.spec_legal import NOT_AVAILABLE

MAX_STEPS = 2**31 - 1
FLOAT32_TINY = 1.1754943508222875e-38
"""Smaller numbers are flushed to zero by GPUs."""
FLOAT32_MAX = 3.4028234663852886e38


def _refuse(value: Any) -> None:
    if value is not None:
        raise PydanticCustomError(NOT_AVAILABLE, "not available yet", {"expected": "null, or leave it out"})


class NullMeans:
    """Lets null stand for a default that is not null, as jobs have it that were stored before the field worked."""

    def __init__(self, default: Any) -> None:
        self._default = default

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Null becomes the default; everything else is checked as before."""
        return core_schema.no_info_before_validator_function(
            lambda value: self._default if value is None else value, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The page fills the default in (browser_runtime/nn/spec.js)."""
        return {"anyOf": [handler(schema), {"type": "null"}]}


def available(*legal: Any) -> BeforeValidator:
    """Accept only what works so far of values that the schema names already."""

    def check(value: Any) -> Any:
        if isinstance(value, (str, bool)) and value not in legal:
            expected = ", ".join(str(item).lower() if isinstance(item, bool) else str(item) for item in legal)
            raise PydanticCustomError(NOT_AVAILABLE, "not available yet", {"expected": expected})
        return value

    return BeforeValidator(check)


Later = Annotated[None, BeforeValidator(_refuse), WithJsonSchema({"type": "null"})]
"""A field that has its name already, and is refused until it works."""


def _no_bool(value: Any) -> Any:
    """In Python True is 1, and a Literal[1] takes it."""
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "not a number")
    return value


Whole = BeforeValidator(_no_bool)
"""Beside a Literal of numbers: true and false are none."""

Float32 = Annotated[float, Field(allow_inf_nan=False, le=FLOAT32_MAX)]
Name = Annotated[str, Field(pattern=NAME)]
Label = Annotated[str, Field(max_length=200, pattern=LABEL)]


class Strict(BaseModel):
    """No unknown fields, and no guessing: "32" is not 32."""

    model_config = ConfigDict(extra="forbid", strict=True)
