"""Each example has data of which its README tells, and they fit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from examples.data import SETS
from texelgrad.datasets import normalise
from texelgrad.shapes import data_faults
from texelgrad.spec import check_spec
from texelgrad.target_scale import scale_warnings

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text()


@pytest.mark.parametrize("name", SETS)
def test_the_data_fit_the_spec(name: str):
    """Shapes, targets and batches, without a warning; and they are as the README has them."""
    _, right, _ = check_spec(json.loads((EXAMPLES / f"{name}.json").read_text()))
    arrays = SETS[name]()
    infos = {array.name: array.info for array in normalise(arrays["x"], arrays["y"])}
    assert list(data_faults(right, infos)) == []
    assert list(scale_warnings(right["loss"], infos)) == []
    (row,) = re.findall(rf"^\| `{name}\.json` .*$", README, re.MULTILINE)
    assert f"data.py {name}`" in row
    assert all(str(list(array.shape)) in row for array in arrays.values())


def test_the_readme_has_every_example():
    """Also those that make up their data, or have a script of their own."""
    told = re.findall(r"^\| `(\w+\.json)`", README, re.MULTILINE)
    assert sorted(told) == sorted(path.name for path in EXAMPLES.glob("*.json"))


def test_fine_tuning_begins_with_layers_of_another_example():
    """Of the same names and the same fields, in the example that the README names."""
    tuned, base = (
        {
            layer.name: layer
            for layer in check_spec(json.loads((EXAMPLES / name).read_text()))[1]["model"].layers
        }
        for name in ("fine_tune.json", "fine_tune_base.json")
    )
    names = json.loads((EXAMPLES / "fine_tune.json").read_text())["fine_tune"]["layers"]
    trained = {"trainable", "lr_multiplier"}
    assert names
    for name in names:
        assert tuned[name].model_dump(exclude=trained) == base[name].model_dump(exclude=trained)
