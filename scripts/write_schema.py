"""Write the job spec's JSON Schema where the page's code imports it: browser_runtime/nn/spec_schema.js."""

from __future__ import annotations

import json
from pathlib import Path

from texelgrad.spec import JobSpec
from texelgrad.spec_forms import WORDS

TARGET = Path(__file__).resolve().parent.parent / "browser_runtime" / "nn" / "spec_schema.js"
HEADER = "// The job spec as JSON Schema, and its patterns in words. Generated from texelgrad/spec.py by scripts/write_schema.py; don't edit.\n"


def render() -> str:
    """The file's text, the same for the same schema."""
    schema = json.dumps(JobSpec.model_json_schema(), indent=2, sort_keys=True, ensure_ascii=True)
    words = json.dumps(WORDS, indent=2, ensure_ascii=True)
    return f"{HEADER}export const specSchema = {schema};\n\nexport const patternWords = {words};\n"


if __name__ == "__main__":
    TARGET.write_text(render())
