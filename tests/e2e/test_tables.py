"""Tables through the whole service: columns are known by their names, from the upload to the prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from texelgrad.client import ApiError

from .stack import Stack
from tests.tolerances import PREDICTION_RTOL

pytestmark = pytest.mark.timeout(300)  # a busy machine is no failure


def write(path: Path, columns: dict[str, list[float]], separator: str = ",") -> Path:
    """A CSV file of these columns, in their order."""
    rows = zip(*columns.values(), strict=True)
    lines = [separator.join(columns), *(separator.join(map(repr, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_in_another_order(stack: Stack, tmp_path: Path):
    """The same rows give the same bits in whatever order their columns stand; a table without one of them is refused."""
    client, random = stack.client, np.random.default_rng(4)
    x = {"width": random.normal(size=90).tolist(), "height": random.normal(100, 9, 90).tolist(), "age": random.uniform(size=90).tolist()}  # fmt: skip
    verdict = [float(value > 0) for value in x["width"]]
    trained = client.upload_dataset(write(tmp_path / "a.csv", x | {"verdict": verdict}), target="verdict")
    assert trained["arrays"]["x"]["stats"]["columns"] == ["width", "height", "age"]
    job = client.train(
        {
            "model": {"input": [3], "layers": [{"type": "dense", "units": 2}]},
            "loss": "softmax_cross_entropy",
            "optimizer": {"type": "sgd", "lr": 0.1},
            "data": {"dataset": trained["id"], "normalize": "standard"},
            "train": {"steps": 20, "batch_size": 32},
            "diagnostics": "none",
        }
    )
    moved = write(tmp_path / "b.csv", {name: x[name] for name in ("age", "width", "height")}, ";")
    made = [client.predict(job["id"], client.upload_dataset(moved)["id"]), client.predict(job["id"], trained["id"])]  # fmt: skip
    by_name, as_trained = (client.predictions(each["id"]) for each in made)
    assert by_name.tobytes() == as_trained.tobytes()
    weights = client.weights(job["id"])
    rows = np.array([*x.values()], np.float32).T
    ready = (rows - weights["input.offset"]) * weights["input.scale"]
    expected = ready @ weights["dense_1.kernel"].astype(np.float64) + weights["dense_1.bias"]
    np.testing.assert_allclose(by_name, expected, rtol=0, atol=PREDICTION_RTOL * np.abs(expected).max())

    other = client.upload_dataset(
        write(tmp_path / "c.csv", {"width": [1.0], "height": [2.0], "depth": [3.0]})
    )
    with pytest.raises(ApiError, match="lacks age and has depth") as caught:
        client.predict(job["id"], other["id"])
    assert [fault.field for fault in caught.value.faults] == ["dataset"]
