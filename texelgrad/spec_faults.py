"""From pydantic's errors to faults: plain dotted paths, and the legal values spelled out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from texelgrad.errors import Fault

_MAX_VALUE = 200  # characters of an offending value that are repeated

_KINDS = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a string",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
}
_BOUNDS = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}
_WORDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
_MESSAGES = {"missing": "is missing", "extra_forbidden": "is not a field here"}


def faults_of(error: ValidationError, root: type[BaseModel], prefix: str = "") -> list[Fault]:
    """Every error of a validation of `root`, with `prefix` before its path."""
    return [_fault(dict(item), root, prefix) for item in error.errors(include_url=False)]


def _fault(item: dict[str, Any], root: type[BaseModel], prefix: str) -> Fault:
    path, parent = _resolve(item["loc"], root)
    kind = cast(str, item["type"])
    field = ".".join([*([prefix] if prefix else []), *path]) or "(the whole)"
    value = None if kind == "missing" else _shown(item.get("input"))
    context = cast(dict[str, Any], item.get("ctx") or {})
    message = _MESSAGES.get(kind) or cast(str, item["msg"])
    return Fault(field, message[:1].lower() + message[1:], value, _legal(kind, context, parent))


def _legal(kind: str, context: dict[str, Any], parent: type[BaseModel] | None) -> str | None:
    """What would be right in the place of an error, in words."""
    if kind in ("extra_forbidden", "missing") and parent is not None:
        names = ", ".join(parent.model_fields)
        return f"one of {names}" if kind == "extra_forbidden" else None
    if kind in _BOUNDS:
        bound = _BOUNDS[kind]
        return (
            f"{_WORDS[bound]} {context[bound]:g}"
            if isinstance(context[bound], float)
            else f"{_WORDS[bound]} {context[bound]}"
        )
    if kind == "union_tag_not_found":
        return f"an object with a {context['discriminator']}"
    if "expected_tags" in context:
        return cast(str, context["expected_tags"]).replace("'", "")
    if "expected" in context:
        return cast(str, context["expected"]).replace("'", "")
    if "pattern" in context:
        return f"a string that matches {context['pattern']}"
    for word, name in (("at least", "min_length"), ("at most", "max_length")):
        if name in context:
            return f"{word} {context[name]} long"
    return _KINDS.get(kind)


def _shown(value: Any) -> Any:
    """The value where it is a small scalar, else a short text of it."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _MAX_VALUE else text[:_MAX_VALUE] + "..."


def _resolve(loc: tuple[int | str, ...], root: type[BaseModel]) -> tuple[list[str], type[BaseModel] | None]:
    """The path without the tags of unions that pydantic puts into it, and the model that holds its last element."""
    path: list[str] = []
    models: list[type[BaseModel]] = [root]
    parent: type[BaseModel] | None = root
    for element in loc:
        owner = next((model for model in models if element in model.model_fields), None)
        tagged = [model for model in models if element in _tags(model)]
        if owner is not None:
            path.append(str(element))
            parent = owner if len(models) == 1 else parent
            models = list(_models_in(owner.model_fields[str(element)].annotation))
        elif tagged:
            models = tagged
            parent = tagged[0]
        else:
            path.append(str(element))
            parent = models[0] if len(models) == 1 else None
    return path, parent


def _tags(model: type[BaseModel]) -> tuple[Any, ...]:
    """The values that the model's `type` field may have."""
    field = model.model_fields.get("type")
    return get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every model that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
