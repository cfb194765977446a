"""The dashboard in a real browser, over real runs: what a person would see."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyppeteer.errors import NetworkError

from .stack import ROOT, Stack, wait_until
from tests.kernels.harness import BrowserPage

OPEN_S = 30.0


class Reader(BrowserPage):
    """A person at the dashboard."""

    def open(self, url: str) -> None:
        """Go to an address and wait until the page has loaded."""
        self._console.clear()  # of what other pages said
        self._wait(self._page.goto(url), OPEN_S)

    def resize(self, width: int) -> None:
        """Make the window so wide, in CSS pixels."""
        self._wait(self._page.setViewport({"width": width, "height": 800}), OPEN_S)

    def text(self, selector: str) -> str:
        """What stands there, with single spaces; "" where there is nothing, it is hidden, or the page gives way to another."""
        script = "s => { const e = document.querySelector(s); return e && e.checkVisibility() ? e.innerText : ''; }"
        try:
            return re.sub(r"\s+", " ", self.evaluate(script, selector)).strip()
        except NetworkError as error:
            if "context" not in str(error):
                raise
            return ""

    def press(self, selector: str) -> None:
        """Click there."""
        self.evaluate("s => document.querySelector(s).click()", selector)

    def chart(self, name: str) -> str:
        """What the chart says to those who can't see it."""
        return self.evaluate(
            "n => document.querySelector(`#${n}-chart`)?.getAttribute('aria-label') ?? ''", name
        )

    @property
    def complaints(self) -> list[str]:
        """Errors on the console, such as what the policy stopped, or requests that could not succeed."""
        return [line for line in self._console if "error" in line]


@pytest.fixture(scope="module")
def _reader() -> Generator[Reader]:
    with Reader() as reader:
        yield reader


@pytest.fixture(name="reader")
def fixture_reader(_reader: Reader) -> Reader:
    """One browser for all tests here, each on a page of its own."""
    _reader.reload()
    return _reader


def test_a_run_moves_while_it_trains_and_can_be_cancelled(
    stack: Stack, reader: Reader, long_job: dict[str, Any]
):
    """Curves grow without a reload; the button cancels; the page says so by itself."""
    job = stack.client.create_job(long_job)
    reader.open(f"{stack.url}runs/{job['id']}")
    wait_until(
        lambda: reader.text("#state") == "running" and "at step" in reader.chart("loss"), "a first curve"
    )
    before = reader.chart("loss")
    wait_until(lambda: reader.chart("loss") != before, "a longer curve")
    assert reader.text("#connection").endswith("live")
    assert reader.text("#safetensors") == ""
    reader.press("#cancel")
    wait_until(lambda: reader.text("#state") == "cancelled", "the page's own notice of the cancellation")
    assert reader.text("#cancel") == ""
    assert reader.complaints == []


def test_a_finished_run_shows_what_it_was(stack: Stack, reader: Reader, seed_demo: dict[str, Any]):
    """Model, timings, the precision report and links to the weights that lead to them."""
    job = stack.client.train(seed_demo)
    reader.open(f"{stack.url}runs/{job['id']}")
    wait_until(lambda: "float32" in reader.text("#report"), "the precision report")
    assert reader.text("#state") == "succeeded"
    assert reader.text("#verdict") == "all proofs passed"
    assert (
        reader.text("#dataset")
        == f"Data set two_class_points, 100 rows, seed 0 Data set id {job['dataset_id']} Rows 100"
    )
    assert reader.evaluate("() => document.querySelector('#log-scale').checked")
    assert "validation" not in reader.text("#loss-chart .u-legend")
    assert re.search(r"GL calls a step \d+ ", reader.text("#timings"))
    assert "software" in reader.text("#tiles")
    assert re.search(r"dense dense_1\s.*32 relu", reader.text("#model"))
    assert re.search(r"Steps 2,000", reader.text("#timings"))
    for selector in ("#safetensors", "#npz"):
        status = reader.evaluate("async s => (await fetch(document.querySelector(s).href)).status", selector)
        assert status == 200
    assert reader.complaints == []


def test_validation_and_predictions(stack: Stack, reader: Reader, seed_demo: dict[str, Any]):
    """The metrics of the weights that a run ended with, the confusion matrix as a table; a job that predicts links to its file."""
    spec = seed_demo | {
        "metrics": ["f1", "auc", "confusion_matrix"],
        "data": {**seed_demo["data"], "validation": {"fraction": 0.3}},
        "train": {"steps": 40, "evaluate_every": 10, "early_stopping": {"patience": 100}},
    }
    job = stack.client.train(spec)
    reader.open(f"{stack.url}runs/{job['id']}")
    validation = job["record"]["validation"]
    wait_until(lambda: reader.text("#validation") != "", "the validation")
    shown = reader.text("#validation-metrics")
    assert shown.startswith(f"After step {validation['step']} Loss ")
    assert re.search(r" F1 \S+ AUC \S+$", shown)
    assert reader.text("#stopping").endswith(f"The weights are those of step {validation['step']}, the best.")
    wait_until(lambda: "AUC: from" in reader.chart("scores"), "the curves")
    assert re.match(r"Scores of the validation rows .* F1: from ", reader.chart("scores"))
    best = job["metrics"]
    assert {key: best[key] for key in ("val_loss", "val_f1", "val_auc")} == {
        key: validation[key] for key in ("val_loss", "val_f1", "val_auc")
    }
    epoch = job["record"]["early_stopping"]["best_epoch"]
    assert reader.text("#tiles").startswith(f"Best epoch {epoch} Validation loss ")
    (a, b), (c, d) = validation["val_confusion_matrix"]
    assert a + b + c + d == 30
    assert reader.text("#matrix tbody") == f"0 {a} {b} 1 {c} {d}"
    made = stack.client.predict(job["id"], job["dataset_id"])
    reader.open(f"{stack.url}runs/{made['id']}")
    wait_until(lambda: reader.text("#predictions") != "", "the link to the predictions")
    assert reader.text("#safetensors") == ""
    assert reader.text("#kind") == "prediction"
    assert reader.text("#progress-text") == "100 of 100 rows"
    assert [reader.text(f"#{name}") for name in ("charts", "report-card", "validation")] == ["", "", ""]
    assert "Optimizer" not in reader.text("#model")
    assert reader.evaluate("() => document.querySelector('#model a').pathname") == f"/runs/{job['id']}"
    script = (
        "async () => (await (await fetch(document.querySelector('#predictions').href)).text()).slice(0, 9)"
    )
    assert reader.evaluate(script) == "output_0\n"
    assert reader.complaints == []


def test_a_run_is_resumed_from_its_page(stack: Stack, reader: Reader, long_job: dict[str, Any]):
    """By its button; the new run's page says what it continues, and has a precision report of its own."""
    spec = {**long_job, "train": {"steps": 60_000, "seed": 3}, "diagnostics": "basic"}
    old = stack.wait_for_step(stack.client.create_job(spec), 1_500)["id"]
    stack.client.cancel(old)
    stack.client.wait(old)
    reader.open(f"{stack.url}runs/{old}")
    wait_until(lambda: reader.text("#resume") != "", "the button")
    step = stack.client.job(old)["resumable_from_step"]
    assert reader.text("#resume") == f"Resume from step {step:,}"
    reader.press("#resume")
    wait_until(lambda: reader.text("#origin") != "", "the new run's page")
    assert reader.text("#origin") == f"Continues run {old} from step {step:,}"
    assert reader.evaluate("() => document.querySelector('#origin a').pathname") == f"/runs/{old}"
    wait_until(lambda: reader.text("#verdict") == "all proofs passed", "the precision report")
    assert f"with the weights after step {step}: " in reader.text("#report")
    new = next(stack.client.jobs())["id"]
    stack.client.cancel(new)
    report = stack.client.diagnostics(new)
    assert (report["coverage"]["weightsAtStep"], report["firstLosses"]) == (step, [])
    assert reader.complaints == []


def test_a_resumed_run_says_from_which_step_its_figures_are(
    stack: Stack, reader: Reader, long_job: dict[str, Any]
):
    """Its duration and its timings are those of the steps behind the checkpoint, in the table of runs and on its page."""
    old = stack.client.cancel(stack.wait_for_step(stack.client.create_job(long_job), 1_500)["id"])["id"]
    stack.client.wait(old)
    new = stack.client.wait(stack.client.resume(old)["id"])
    step = new["resumed_from_step"]
    reader.open(stack.url)
    progress = "#runs tr:{} .progress"
    wait_until(lambda: reader.text(progress.format("first-child")) != "", "the table")
    assert reader.text(progress.format("first-child")) == f"step 20,000 of 20,000 from step {step:,}"
    assert "from" not in reader.text(progress.format("nth-child(2)"))
    reader.open(f"{stack.url}runs/{new['id']}")
    wait_until(lambda: "Steps" in reader.text("#timings"), "the timings")
    assert f"Steps {20_000 - step:,}, from step {step:,}" in reader.text("#timings")
    assert reader.complaints == []


def test_classes_have_their_names(stack: Stack, reader: Reader, tmp_path: Path):
    """In the confusion matrix, in the order that predictions have."""
    rows = [f"{n},{'<oak>' if n % 2 else 'elm'}" for n in range(40)]
    (tmp_path / "trees.csv").write_text("\n".join(["height,tree", *rows]) + "\n")
    dataset = stack.client.upload_dataset(tmp_path / "trees.csv", target="tree")
    assert dataset["arrays"]["y"]["stats"]["classes"] == ["<oak>", "elm"]
    job = stack.client.train(
        {
            "model": {"input": [1], "layers": [{"type": "dense", "units": 2}]},
            "loss": "softmax_cross_entropy",
            "metrics": ["confusion_matrix"],
            "optimizer": {"type": "sgd", "lr": 0.1},
            "data": {"dataset": dataset["id"], "validation": {"fraction": 0.25}, "normalize": "standard"},
            "train": {"steps": 20},
        }
    )
    reader.open(f"{stack.url}runs/{job['id']}")
    wait_until(lambda: reader.text("#matrix") != "", "the matrix")
    (a, b), (c, d) = job["record"]["validation"]["val_confusion_matrix"]
    assert reader.text("#matrix thead") == "<oak> elm"
    assert reader.text("#matrix tbody") == f"<oak> {a} {b} elm {c} {d}"
    assert reader.complaints == []


def test_a_loss_that_is_not_finite_breaks_nothing(stack: Stack, reader: Reader, seed_demo: dict[str, Any]):
    """The curve stops there, the step is marked and named, and the log scale still works."""
    diverging = {**seed_demo, "loss": "mse", "metrics": [], "optimizer": {"type": "sgd", "lr": 1e20}}
    job = stack.client.wait(stack.client.create_job(diverging)["id"])
    assert (job["state"], job["cause"]) == ("failed", "non_finite_loss")
    reader.open(f"{stack.url}runs/{job['id']}")
    wait_until(lambda: "at step" in reader.chart("loss"), "the curve")
    assert reader.text("#failure").startswith("non finite loss")
    assert re.search(r"The training loss is (NaN|∞|−∞) at step \d+", reader.text("#loss-note"))
    assert reader.text("#verdict") in ("", "training had diverged")
    reader.press("#log-scale")
    assert reader.evaluate("() => document.querySelectorAll('#loss-chart canvas').length") == 1
    assert reader.complaints == []


def test_a_run_that_stops_early_is_done(stack: Stack, reader: Reader, seed_demo: dict[str, Any]):
    """Its bar is full and the text says where it stopped."""
    spec = seed_demo | {
        "data": {**seed_demo["data"], "validation": {"fraction": 0.3}},
        "train": {"steps": 5000, "evaluate_every": 5, "early_stopping": {"patience": 1, "min_delta": 10}},
    }
    job = stack.client.train(spec)
    assert job["step"] < 5000
    reader.open(f"{stack.url}runs/{job['id']}")
    wait_until(lambda: reader.text("#progress-text") != "", "the run")
    assert reader.text("#progress-text") == f"stopped early, after step {job['step']} of at most 5,000"
    assert reader.evaluate("() => document.querySelector('#progress').position") == 1


def test_weights_that_are_not_finite_are_told(stack: Stack, reader: Reader, seed_demo: dict[str, Any]):
    """A run that goes on though its loss is NaN succeeds; its record, /why, its log and its page say what came of it."""
    spec = seed_demo | {
        "loss": "mse",
        "optimizer": {"type": "sgd", "lr": 1e20},
        "numerics": {"on_nonfinite": "continue"},
    }
    job = stack.client.train(spec | {"train": {"steps": 30}})
    weights = np.concatenate([array.ravel() for array in stack.client.weights(job["id"]).values()])
    broken = int(np.count_nonzero(~np.isfinite(weights)))
    assert broken > 0
    (warning,) = job["record"]["warnings"]
    assert warning["code"] == "weights_not_finite"
    assert warning["message"].startswith(f"{broken} of {weights.size} weights are NaN or infinite")
    assert warning["message"] in stack.client.why(job["id"])["summary"]
    assert warning["message"] in [line["message"] for line in stack.client.logs(job["id"], level="warning")]
    reader.open(f"{stack.url}runs/{job['id']}")
    wait_until(lambda: warning["message"] in reader.text("#warnings"), "the warning")
    predicted = stack.client.predict(job["id"], job["dataset_id"])
    outputs = stack.client.predictions(predicted["id"])
    broken = int(np.count_nonzero(~np.isfinite(outputs)))
    assert broken > 0
    message = f"{broken} of {outputs.size} predictions are NaN or infinite"
    assert predicted["record"]["warnings"] == [{"code": "predictions_not_finite", "message": message}]
    assert message in stack.client.why(predicted["id"])["summary"]
    sound = stack.client.train(seed_demo | {"train": {"steps": 5}})
    assert sound["record"]["warnings"] == []
    assert stack.client.predict(sound["id"], sound["dataset_id"])["record"]["warnings"] == []


def test_the_table_lists_the_newest_first_and_follows(
    stack: Stack, reader: Reader, seed_demo: dict[str, Any]
):
    """A new run appears by itself, above the older ones, and links to its page; no column is cut off."""
    reader.resize(1280)
    older = stack.client.train({**seed_demo, "name": "older"})
    reader.open(stack.url)
    wait_until(lambda: "older" in reader.text("#runs tr:first-child"), "the first run")
    newer = stack.client.train({**seed_demo, "name": "<b>newer</b>"})
    wait_until(lambda: "succeeded <b>newer</b>" in reader.text("#runs tr:first-child"), "the second run")
    links = reader.evaluate(
        "() => [...document.querySelectorAll('#runs a')].slice(0, 2).map((a) => a.pathname)"
    )
    assert links == [f"/runs/{newer['id']}", f"/runs/{older['id']}"]
    assert "software" in reader.text("#runs tr:first-child")
    wait_until(
        lambda: reader.text("#workers") == "Worker ready SwiftShader software", "the worker's next browser"
    )
    fits = "(name) => { const e = document.querySelector(name); return e.scrollWidth <= e.clientWidth; }"
    assert reader.evaluate(f"() => ({fits})('.scroll')")
    reader.resize(1200)
    longest = (
        "document.querySelector('#runs time').textContent = '59 min. ago';"
        "document.querySelector('#runs .progress small').textContent = 'step 100,000 of 400,000';"
    )
    one_line = "document.querySelector('#runs .progress small').clientHeight < 25"
    assert reader.evaluate(f"() => {{ {longest} return ({fits})('.scroll') && {one_line}; }}")
    reader.resize(390)  # a phone's: a row is a block
    assert reader.evaluate(f"() => ({fits})('.scroll') && ({fits})('html')")
    reader.open(f"{stack.url}runs/{newer['id']}")
    wait_until(lambda: reader.text("#model") != "", "the layers")
    assert reader.evaluate(f"() => ({fits})('#model .scroll') && ({fits})('html')")
    assert reader.complaints == []


def test_a_service_that_can_not_train_says_so(stack: Stack, reader: Reader, seed_demo: dict[str, Any]):
    """What is wrong with its worker, that nothing else takes the job; and before, what to try, which works as it stands."""
    with Stack({"chromium": "/bin/false"}, warm=False) as broken:
        reader.open(broken.url)
        wait_until(lambda: "broken" in reader.text("#workers"), "the worker's state")
        assert "/bin/false" in reader.text("#workers .fault-line")
        command = reader.text("#empty code")
        assert command == f"texelgrad --url {broken.url[:-1]} train examples/seed_demo.json"
        job = broken.client.create_job(seed_demo)
        wait_until(lambda: "no worker can take this job: all broken" in reader.text("#runs"), "why it waits")
        reader.open(f"{broken.url}runs/{job['id']}")
        wait_until(lambda: "broken" in reader.text("#progress-text"), "why it waits, on its page")
        assert reader.complaints == []
    words = shlex.split(command.replace(broken.url[:-1], stack.url))[1:]
    subprocess.run([sys.executable, "-m", "texelgrad.cli", *words], cwd=ROOT, check=True, timeout=60)


def test_an_unknown_run_is_said_to_be_unknown(stack: Stack, reader: Reader):
    """Instead of an empty page."""
    reader.open(f"{stack.url}runs/job_00000000000000000000000000")
    wait_until(lambda: reader.text("#problem") == "There is no such run.", "the message")
    assert reader.text("#run") == ""
