"""Cases of attention: masks, shared heads, widths that are no multiples of a vector."""

from typing import Any

import numpy as np

import vkml
from case import Array, Case
from checking import inputs
from vkml.nn import functional

NAME = "scaled_dot_product_attention"


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """softmax(query @ key^T * scale + mask) @ value; a query that a mask leaves nothing gives 0."""
    if query.ndim > 2:
        sharing = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat(sharing, -3) for x in (key, value))
    scores = query @ key.swapaxes(-1, -2) * (scale or query.shape[-1] ** -0.5)
    visible = np.ones(scores.shape, bool)
    if causal:
        visible &= np.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        visible &= mask if mask.dtype == bool else mask != -np.inf
        scores = scores if mask.dtype == bool else scores + mask
    scores = np.where(visible, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
    return np.where(visible.any(-1, keepdims=True), weights, 0) @ value


def operands(
    batch: tuple[int, ...], queries: int, keys: int, width: int, value_width: int
) -> list[Array]:
    shapes = [(*batch, queries, width), (*batch, keys, width), (*batch, keys, value_width)]
    return [inputs(shape, -1.5, 1.5, seed=i) for i, shape in enumerate(shapes)]


def _case(arrays: list[Array], label: str, **options: Any) -> Case:
    words = {"is_causal": options.get("causal", False), "scale": options.get("scale")}
    return Case(
        NAME,
        lambda q, k, v, *mask: functional.scaled_dot_product_attention(
            q, k, v, *mask, enable_gqa=True, **words
        ),
        lambda q, k, v, *mask: attention(q, k, v, *mask, **options),
        arrays,
        32,
        label=label,
    )


def _with_constant_mask() -> Case:
    mask = inputs((3, 1, 6), -1, 1)
    mask[1, 0, 2:4] = -np.inf
    return Case(
        NAME,
        lambda q, k, v: functional.scaled_dot_product_attention(
            q, k, v, vkml.tensor(mask, device=q.device)
        ),
        lambda q, k, v: attention(q, k, v, mask),
        operands((3,), 5, 6, 4, 4),
        32,
        label="added",
    )


def _cases() -> list[Case]:
    query, key, value = operands((2, 4), 5, 6, 3, 5)
    visible = inputs((5, 6), -1, 1) > -0.5
    visible[2] = False
    return [
        _case(operands((), 5, 7, 4, 4), "one head"),
        _case(operands((2,), 6, 6, 5, 3), "causal", causal=True),
        _case(operands((2,), 4, 7, 8, 8), "more keys, causal", causal=True),
        _case(operands((2,), 7, 4, 8, 8), "more queries, causal", causal=True),
        _case([query, key[:, :2], value[:, :2]], "shared heads", scale=0.7),
        _case([query, key[:, :1], value[:, :1], visible], "mask over shared heads"),
        _case([*operands((2,), 5, 6, 4, 4), visible], "mask"),
        _case([*operands((2,), 5, 6, 4, 4), visible], "mask, causal", causal=True),
        _with_constant_mask(),
    ]


ATTENTION_CASES: list[Case] = _cases()
