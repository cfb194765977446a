"""Writes the data set of questions.json; to be called as python examples/questions.py questions.npz.

scikit-learn's handwritten digits, each with three questions to be answered by yes or no: is it even, is it above 4,
does its figure have a loop? An image and a question are the two inputs, 1 is yes.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

ANSWERS = np.array([[digit % 2 == 0, digit > 4, digit in (0, 6, 8, 9)] for digit in range(10)])
"""[digit, question]"""


def arrays() -> dict[str, NDArray[np.float32]]:
    """image [5391, 8, 8, 1] in 0..1, question [5391, 1], y [5391]; a digit's three questions follow one another."""
    pixels, digits = load_digits(return_X_y=True)
    questions = np.tile(np.arange(3), len(digits))
    y = ANSWERS[np.repeat(digits, 3), questions]
    image = np.repeat(np.asarray(pixels).reshape(-1, 8, 8, 1) / 16, 3, axis=0)
    made = {"image": image, "question": questions[:, None], "y": y}
    return {name: values.astype(np.float32) for name, values in made.items()}


if __name__ == "__main__":
    np.savez_compressed(sys.argv[1], **arrays())  # pyright: ignore[reportArgumentType]
