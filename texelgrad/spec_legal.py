"""What a JSON Schema allows, in words: "an integer, 1 <= units <= 65536", "linear, relu, sigmoid or tanh"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from texelgrad.spec_forms import WORDS

Schema = dict[str, Any]
NOT_AVAILABLE = "notavailable"
"""Type of the error for what the schema names already and the service does not do yet."""

_NOUNS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_LOWER = {"minimum": "<=", "exclusiveMinimum": "<"}
_UPPER = {"maximum": "<=", "exclusiveMaximum": "<"}


def describe(schemas: Sequence[Schema], name: str, root: Schema) -> str:
    """What one of the schemas would accept; `name` stands for the value within ranges."""
    words = dict.fromkeys(_describe_one(schema, name, root) for schema in schemas)
    return ", or ".join(word for word in words if word) or "something else"


def nouns(schemas: Sequence[Schema]) -> str:
    """The types of the schemas: "a list or an integer"."""
    kinds = dict.fromkeys("object" if "discriminator" in schema else schema.get("type") for schema in schemas)
    return " or ".join(_NOUNS[kind] for kind in kinds if kind in _NOUNS) or "right"


def _describe_one(schema: Schema, name: str, root: Schema) -> str:
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        *first, last = [str(value) for value in schema["enum"]]
        return f"{', '.join(first)} or {last}" if first else last
    if "discriminator" in schema:
        tags = schema["discriminator"]
        return f"an object with a {tags['propertyName']}: {', '.join(tags['mapping'])}"
    kind = schema.get("type", "")
    noun = _NOUNS.get(kind, "")
    if kind in ("integer", "number"):
        limits = range_of(schema, name)
        return f"{noun}, {limits}" if limits else noun
    if kind == "string":
        form = WORDS.get(schema.get("pattern", ""))
        return (form or noun) + _length(schema, "Length", " characters", ", " if form else " of ")
    if kind == "array":
        return noun + _length(schema, "Items", _elements(schema, root), " of ")
    if kind == "object":
        required = schema.get("required") or list(schema.get("properties", {}))
        fields = f" with {', '.join(required)}" if required else ""
        return noun + fields + _length(schema, "Properties", " fields", " of ")
    return noun


def _elements(schema: Schema, root: Schema) -> str:
    kinds = {inner.get("type") for inner in flat(schema.get("items", {}), root)}
    return {"integer": " integers", "number": " numbers", "string": " strings"}.get(
        str(kinds.pop()) if len(kinds) == 1 else "", " elements"
    )


def _length(schema: Schema, of: str, unit: str, before: str) -> str:
    low, high = schema.get(f"min{of}"), schema.get(f"max{of}")
    if low is None and high is None:
        return ""
    if high is None:
        return f"{before}at least {low}{unit}"
    if not low:
        return f"{before}at most {high}{unit}"
    return f"{before}{low if low == high else f'{low} to {high}'}{unit}"


def range_of(schema: Schema, name: str) -> str:
    """Both ends of what a number may be: "0 <= seed < 9007199254740992"; empty where it has none."""
    lower = next((f"{number(schema[key])} {sign} " for key, sign in _LOWER.items() if key in schema), "")
    upper = next((f" {sign} {number(schema[key])}" for key, sign in _UPPER.items() if key in schema), "")
    return f"{lower}{name}{upper}" if lower or upper else ""


def number(value: float) -> str:
    """A number as people write it: whole ones in full, others with 6 digits."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e16 else f"{value:g}"


def options(schemas: Sequence[Schema]) -> list[str]:
    """Names of the fields of all the schemas that have some."""
    return list(dict.fromkeys(name for schema in schemas for name in schema.get("properties", {})))


def flat(schema: Schema, root: Schema) -> list[Schema]:
    """The schemas that a schema stands for: references followed, the forms of a union one by one, tagged ones whole."""
    return list(_flat(schema, root))


def _flat(schema: Schema, root: Schema) -> Iterator[Schema]:
    if "$ref" in schema:
        yield from _flat(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    elif "anyOf" in schema:
        for form in schema["anyOf"]:
            yield from _flat(form, root)
    else:
        yield schema
