"""From pydantic's errors to faults: plain dotted paths, plain words, and what would be legal, read from the JSON Schema."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from texelgrad.errors import Fault
from texelgrad.jsonable import jsonable
from texelgrad.spec_legal import NOT_AVAILABLE, Schema, describe, flat, nouns, options, range_of

_MAX_VALUE = 200  # characters of an offending value that are repeated

_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is not a field here",
    "union_tag_invalid": "is unknown",
    "union_tag_not_found": "is missing",
    "literal_error": "is none of the legal values",
    "string_pattern_mismatch": "has a wrong form",
    "string_too_long": "is too long",
    "string_too_short": "is too short",
    "too_short": "has too few elements",
    "too_long": "has too many elements",
    "finite_number": "is not finite",
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than": "is too large",
    "less_than_equal": "is too large",
    NOT_AVAILABLE: "not available yet",
}
_CONTAINERS = {"list": "array", "dict": "object"}
"""What the name of a form of a value begins with, and its type in the schema."""
_RANGES = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


@dataclass(frozen=True)
class _Place:
    """Where an error stands: its path, what the schema says of it and of what holds it."""

    path: tuple[str, ...]
    schemas: Sequence[Schema]
    holder: Sequence[Schema]
    branch: tuple[str, ...] | None  # the path of the choice between several forms that it lies in


def faults_of(error: ValidationError, root: type[BaseModel], prefix: str = "") -> list[Fault]:
    """Every error of a validation of `root`, with `prefix` before its path."""
    schema = _schema_of(root)
    found = [(_place(item["loc"], schema), dict(item)) for item in error.errors(include_url=False)]
    kept: dict[tuple[str, ...], Fault] = {}
    for place, item in found:
        # Of a value that may have several forms, what is wrong with the form that it nearly has says most.
        inside = [_depth(*other) for other in found if place.branch and other[0].branch == place.branch]
        if place.branch and place.path == place.branch and max(inside) > _depth(place, item):
            continue
        fault = _fault(place, item, schema, prefix)
        kept.setdefault((*place.path, fault.field), fault)
    return list(kept.values())


def _depth(place: _Place, item: dict[str, Any]) -> int:
    """How far inside the spec an error lies; a wrong tag is a field of what it tags, and a type is wrong before all else."""
    kind = cast(str, item["type"])
    tag = kind.startswith("union_tag") and isinstance(item.get("input"), dict)
    return len(place.path) + int(tag or not _is_type(kind))


def _is_type(kind: str) -> bool:
    """Whether an error says that a value is of another type altogether."""
    return kind.endswith("_type") or kind.startswith("union_tag") or kind == "literal_error"


def _not_of(schemas: Sequence[Schema]) -> str:
    """What to say of a value of a wrong type."""
    if any("enum" in schema or "const" in schema for schema in schemas):
        return _MESSAGES["literal_error"]
    return f"is not {nouns(schemas)}"


@functools.cache
def _schema_of(root: type[BaseModel]) -> Schema:
    return root.model_json_schema()


def _fault(place: _Place, item: dict[str, Any], root: Schema, prefix: str) -> Fault:
    kind = cast(str, item["type"])
    context = cast(dict[str, Any], item.get("ctx") or {})
    value = item.get("input")
    path = [*([prefix] if prefix else []), *place.path]
    message = str(context["error"]) if kind == "value_error" else _MESSAGES.get(kind)
    name = place.path[-1] if place.path and not place.path[-1].isdigit() else "value"
    legal = describe(place.schemas, name, root)
    if kind == "extra_forbidden":
        legal = f"one of {', '.join(options(place.holder))}" if options(place.holder) else "no field at all"
    elif kind == NOT_AVAILABLE:
        legal = cast(str, context["expected"])
    elif kind in _RANGES:
        legal = next(filter(None, (range_of(schema, name) for schema in place.schemas)), legal)
    elif kind.startswith("union_tag"):
        tags = next(schema["discriminator"] for schema in place.schemas if "discriminator" in schema)
        if isinstance(value, dict):
            given = cast(dict[str, Any], value)
            path.append(tags["propertyName"])
            legal, value = ", ".join(tags["mapping"]), given.get(tags["propertyName"])
        else:
            message = None
    if place.branch is not None and place.path == place.branch and _is_type(kind):
        message = None
    return Fault(
        ".".join(path) or "(the whole)",
        message or _not_of(place.schemas),
        None if kind == "missing" else shown(value),
        legal,
    )


def shown(value: Any) -> Any:
    """The value as JSON can hold it where it is small, else the beginning of its JSON text."""
    value = jsonable(value)
    if isinstance(value, str):
        return value if len(value) <= _MAX_VALUE else value[:_MAX_VALUE] + "..."
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # not from JSON: a caller in Python
        return f"({type(value).__name__})"
    return value if len(text) <= _MAX_VALUE else text[:_MAX_VALUE] + "..."


def _place(loc: Sequence[int | str], root: Schema) -> _Place:
    """Follow an error's path through the schema; pydantic puts the tags of unions and the names of forms into it."""
    path: list[str] = []
    schemas: Sequence[Schema] = flat(root, root)
    holder: Sequence[Schema] = []
    forms: Sequence[Schema] = []
    branch: tuple[str, ...] | None = None
    for element in loc:
        mappings: list[dict[Any, str]] = [
            s["discriminator"]["mapping"] for s in schemas if "discriminator" in s
        ]
        tagged = [mapping[element] for mapping in mappings if element in mapping]
        if tagged:
            schemas = [form for reference in tagged for form in flat({"$ref": reference}, root)]
            continue
        if element == "[key]":  # it follows the field that has the wrong name
            patterns = [pattern for schema in holder for pattern in schema.get("patternProperties", {})]
            schemas = [{"type": "string", "pattern": pattern} for pattern in patterns]
            continue
        inner = list(_children(schemas, element, root))
        if inner:
            holder, schemas = schemas, inner
        elif not _is_form(schemas, element):
            holder, schemas = schemas, []
        else:
            branch, forms = branch or tuple(path), schemas
            kind = _CONTAINERS.get(str(element).partition("[")[0])
            schemas = [s for s in schemas if s.get("title") == element or s.get("type") == kind] or schemas
            continue
        path.append(str(element))
    return _Place(tuple(path), forms if tuple(path) == branch else schemas, holder, branch)


def _is_form(schemas: Sequence[Schema], element: int | str) -> bool:
    """Whether an element of a path is only the name of one of a value's forms, such as `list[constrained-int]`."""
    forms = [schema for schema in schemas if schema.get("type") != "null"]
    plain = any(schema.get("type") != "object" for schema in forms)
    return isinstance(element, str) and len(forms) > 1 and (plain or not options(schemas))


def _children(schemas: Sequence[Schema], element: int | str, root: Schema) -> Iterator[Schema]:
    """What the schemas say of a field or an element of a list."""
    for schema in schemas:
        if isinstance(element, int) and "items" in schema:
            yield from flat(schema["items"], root)
        elif isinstance(element, str) and element in schema.get("properties", {}):
            yield from flat(schema["properties"][element], root)
        elif isinstance(element, str):
            for pattern, values in schema.get("patternProperties", {}).items():
                if re.search(pattern, element):
                    yield from flat(values, root)
            if isinstance(values := schema.get("additionalProperties"), dict):
                yield from flat(cast(Schema, values), root)
