"""Layers over sequences [length, channels]: the same shapes and refusals in the service and in the page."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelgrad.errors import Invalid
from texelgrad.spec import parse_spec

from ..kernels.cnns import FLATTEN, Layer, cnn, conv1d, dense
from .test_network import infer, plain

KINDS = ("max_pool1d", "avg_pool1d", "global_max_pool1d", "global_avg_pool1d")


def pool1d(kind: str, size: int, **fields: Any) -> Layer:
    """A pooling with a window, or a global one, which has none."""
    return {"type": kind} | ({} if kind.startswith("global") else {"size": size, **fields})


PADDING = st.one_of(
    st.sampled_from(["valid", "same"]), st.tuples(st.integers(0, 3), st.integers(0, 3)).map(list)
)
LAYER = st.one_of(
    st.builds(conv1d, st.integers(1, 6), st.integers(1, 4), stride=st.integers(1, 3), padding=PADDING, dilation=st.integers(1, 3)),
    st.builds(pool1d, st.sampled_from(KINDS), st.integers(1, 4), stride=st.none() | st.integers(1, 3), padding=PADDING),
)  # fmt: skip


@settings(max_examples=150, deadline=None, derandomize=True)
@given(shape=st.tuples(st.integers(1, 20), st.integers(1, 6)), layers=st.lists(LAYER, min_size=1, max_size=4))
def test_the_page_infers_the_same(shape: tuple[int, int], layers: list[Layer]):
    """Whatever the layers: the same shapes, or a refusal of the same field."""
    raw = plain(cnn(shape, [*layers, FLATTEN, dense(3)]))
    page = infer(raw)
    if "error" in page:
        with pytest.raises(Invalid) as refused:
            parse_spec(raw)
        assert page["error"]["field"] == refused.value.faults[0].field, page
        return
    spec = parse_spec(raw)
    assert [list(layer.output) for layer in spec.model.network.layers] == page["outputs"]


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_refused(kind: str):
    """A sequence has two axes."""
    raw = plain(cnn((6, 5, 2), [pool1d(kind, 2), FLATTEN, dense(1)]))
    assert "needs an input [length, channels]" in infer(raw)["error"]["message"]
    with pytest.raises(Invalid, match="needs an input"):
        parse_spec(raw)


def test_a_window_in_the_padding_alone():
    """The field, what it is and what is legal."""
    raw = plain(cnn((6, 2), [pool1d("max_pool1d", 2, padding=[0, 2]), FLATTEN, dense(1)]))
    assert infer(raw)["error"]["field"] == "model.layers.0.padding"
    with pytest.raises(Invalid) as caught:
        parse_spec(raw)
    fault = caught.value.faults[0]
    assert (fault.field, fault.value, fault.legal) == ("model.layers.0.padding", [0, 2], "below the size 2")
