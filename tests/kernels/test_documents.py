"""What the documents show of the engine in one's own page runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

from .harness import BrowserPage, PageError
from .specs import data_for, mlp

ROOT = Path(__file__).parents[2]
EMBEDDING = ROOT / "docs/embedding.md"
LOADING = "/tests/kernels/loading_page.js"
SPEC = mlp((4, 5, 3))
X, Y = data_for(20, 4, 3, "mse")
DATA = {"x": X, "y": Y}
MODULE = "./texelgrad/browser_runtime/"
IMPORT = """async (code) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  await import(url).finally(() => URL.revokeObjectURL(url));
}"""
# What the README leaves to its reader.
README_DATA = """
const spec = {
  model: { input: [2], layers: [{ type: "dense", units: 16 }, { type: "dense", units: 1 }] },
  loss: "bce",
  optimizer: { type: "sgd", lr: 0.1 },
  train: { steps: 3 },
};
const [x, y] = [new Float32Array(8), new Float32Array(4)];
"""
# What the page on embedding says of what its blocks make.
EMBEDDING_CHECKS = """
if (ended.done || ended.step !== 100) throw new Error(`the run was not aborted: ${JSON.stringify(ended)}`);
if (same.data.join() !== logits.data.join()) throw new Error(`predicted ${same.data} instead of ${logits.data}`);
"""


def blocks(document: Path, language: str) -> list[str]:
    """The texts of its blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def run(page: BrowserPage, document: Path, before: str = "", after: str = "") -> None:
    """All its JavaScript as one module, with the engine of this checkout."""
    code = "\n".join([before, *blocks(document, "js"), after])
    assert MODULE in code
    page.evaluate(IMPORT, code.replace(MODULE, f"{page.origin}/browser_runtime/"))


def test_the_readme(browser_page: BrowserPage):
    """For some spec and data of the reader's."""
    run(browser_page, ROOT / "README.md", README_DATA)


def test_the_page_on_embedding(browser_page: BrowserPage):
    """Its blocks build on each other: an aborted run rejects, and a model predicts without the data that it was trained on."""
    run(browser_page, EMBEDDING, after=EMBEDDING_CHECKS)


def test_the_least_policy_is_enough():
    """And no part of it can be left out."""
    (header,) = blocks(EMBEDDING, "http")
    name, _, policy = header.strip().partition(": ")
    assert name == "Content-Security-Policy"
    parts = policy.split("; ")
    assert parts[0] == "default-src 'none'"
    assert trains_under(policy)
    assert trains_under(f"{policy}; worker-src 'self'")
    for part in parts[1:]:
        assert not trains_under("; ".join(other for other in parts if other != part)), part


def trains_under(policy: str) -> bool:
    """Whether the engine trains in a page of this policy, as which its files are served too."""
    with BrowserPage() as page:
        page.server.policy = policy
        page.call(LOADING, "addPolicy", policy)
        try:
            return page.call(LOADING, "compileFrom", page.origin, SPEC, DATA, {})[0] is None
        except PageError:  # the engine's first module is refused
            return False
