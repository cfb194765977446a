"""Synthetic data sets as the service stores them. What is known of one is kept, its arrays are made when needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from texelgrad.datasets import NamedArray, content_hash, normalise
from texelgrad.shapes import ArrayInfo
from texelgrad.spec_data import Synthetic

_KEPT = 256


@dataclass(frozen=True)
class MadeData:
    """A synthetic data set without its bytes."""

    kind: str
    rows: int
    seed: int
    x: ArrayInfo
    y: ArrayInfo
    sha256: str  # of its content (datasets.content_hash)

    @property
    def name(self) -> str:
        """What it is called in the list of data sets."""
        return f"{self.kind}, {self.rows} rows, seed {self.seed}"

    def arrays(self) -> list[NamedArray]:
        """The arrays themselves, made anew."""
        return _arrays(self.kind, self.rows, self.seed)


def describe(synthetic: Synthetic) -> MadeData:
    """What is known of the data that a spec asks for; made once for many jobs on the same."""
    return _describe(synthetic.kind, synthetic.rows, synthetic.seed)


@lru_cache(_KEPT)
def _describe(kind: str, rows: int, seed: int) -> MadeData:
    x, y = arrays = _arrays(kind, rows, seed)
    return MadeData(kind, rows, seed, x.info, y.info, content_hash(arrays))


def _arrays(kind: str, rows: int, seed: int) -> list[NamedArray]:
    from texelgrad.synthetic import GENERATORS

    return normalise(*GENERATORS[kind](rows, seed))
