"""Scaled dot-product attention, as an expression of products and a softmax."""

from __future__ import annotations

import math

import vkml
from vkml import Tensor


def _added_mask(mask: Tensor, scores: Tensor) -> Tensor:
    if mask.dtype == vkml.bool:
        return vkml.where(mask, scores, -math.inf)
    return scores + mask


def attention_weights(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) over the keys.

    Rows that attend to nothing have weights of 0.

    Args:
        query: Shape (..., queries, width).
        key: Shape (..., keys, width).
        attn_mask: Whether a query attends to a key, or what is added to their score; broadcast to
            (..., queries, keys).
        is_causal: Whether query i attends to keys 0 to i alone.
        scale: Factor on the scores; 1 / sqrt(width) if None.
    """
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ key.transpose(-1, -2)
    if is_causal:
        queries, keys = query.shape[-2], key.shape[-2]
        allowed = vkml.ones(queries, keys, dtype=vkml.bool, device=query.device).tril()
        scores = _added_mask(allowed, scores)
    if attn_mask is None:
        return vkml.softmax(scores, -1)
    scores = _added_mask(attn_mask, scores)
    attends = scores.detach().amax(-1, keepdim=True) > -math.inf
    return vkml.where(attends, vkml.softmax(vkml.where(attends, scores, 0.0), -1), 0.0)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Sums of values, weighted by how well their keys match each query (Vaswani et al., 2017).

    Args:
        query: Shape (..., heads, queries, width), with any number of leading axes up to two.
        key: Shape (..., heads, keys, width).
        value: Shape (..., heads, keys, value width).
        attn_mask: Whether a query attends to a key (bool), or what is added to their score;
            broadcast to (..., queries, keys). A query that attends to nothing gives 0.
        dropout_p: Probability with which weights are zeroed.
        is_causal: Whether query i attends to keys 0 to i alone; not together with a mask.
        scale: Factor on the scores; 1 / sqrt(width) if None.
        enable_gqa: Whether several heads of the query may share one of key and value.
    """
    operator = "scaled_dot_product_attention"
    if is_causal and attn_mask is not None:
        raise vkml.ArgumentError(f"[{operator}] Pass is_causal or attn_mask, not both.")
    if enable_gqa and query.ndim > 2:
        heads, shared = query.shape[-3], key.shape[-3]
        if heads % shared != 0:
            raise vkml.ShapeError(
                f"[{operator}] {heads} heads of the query do not share {shared} heads of the key."
            )
        key = key.repeat_interleave(heads // shared, -3)
        value = value.repeat_interleave(heads // shared, -3)
    weights = attention_weights(query, key, attn_mask, is_causal, scale)
    if dropout_p > 0.0:
        weights = vkml.dropout(weights, dropout_p)
    return weights @ value
