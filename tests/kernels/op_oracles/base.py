"""How an op's oracle is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..oracle import Approx, Floats


@dataclass(frozen=True)
class OpRun:
    """One primitive op as the engine ran it: its inputs by the op's own names, and what is known of them."""

    inputs: dict[str, Approx]
    attrs: dict[str, Any]
    layouts: dict[str, dict[str, Any]]
    """Of the inputs and outputs that are stored tensors."""
    stored: dict[str, Floats]
    """Outputs as the kernel stored them."""
    step: dict[str, Any]
    """The whole step: optimizer, lr, t, rows ..."""

    @property
    def channels(self) -> int:
        """Of a pixel of the first tensor that was read."""
        return next(iter(self.layouts.values()))["channels"]

    @property
    def read(self) -> dict[str, Floats]:
        """What a kernel's loops read is exact."""
        return {key: value.value for key, value in self.inputs.items()}

    def weights(self, key: str = "w") -> Floats:
        """A parameter with its bias as the last row; zeros where it has none."""
        value = self.read[key]
        return value if self.layouts[key]["biasRow"] >= 0 else np.vstack([value, np.zeros(value.shape[1])])


Oracle = Callable[[OpRun], dict[str, Approx]]
