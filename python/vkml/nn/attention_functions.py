"""Scaled dot-product attention."""

from __future__ import annotations

import vkml
from vkml import Tensor, _vkml


def attention_weights(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) over the keys.

    Rows to which a mask leaves nothing have weights of 0.

    Args:
        query: Shape (..., queries, width).
        key: Shape (..., keys, width).
        attn_mask: Whether a query attends to a key, or what is added to their score; broadcast to
            (..., queries, keys).
        is_causal: Whether query i attends to keys 0 to i alone.
        scale: Factor on the scores; 1 / sqrt(width) if None.
        enable_gqa: Whether several heads of the query may share one of the key.
    """
    return _vkml._attention_weights(query, key, attn_mask, is_causal, scale, enable_gqa)


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

    One kernel computes it in tiles, and two its gradients, so that no matrix of scores
    (queries, keys) is ever held (Dao, arXiv:2307.08691). Such a matrix is held after all for
    float64, with dropout, where the width of keys or values is above 128, where `attn_mask`
    requires a gradient, and for second derivatives.

    What a mask hides has a weight of 0, which times an infinite or NaN value is NaN; keys that
    `is_causal` hides from all of a tile of queries are not read at all.

    Args:
        query: Shape (..., heads, queries, width), with any number of leading axes up to two.
        key: Shape (..., heads, keys, width).
        value: Shape (..., heads, keys, value width).
        attn_mask: Whether a query attends to a key (bool), or what is added to their score;
            broadcast to (..., queries, keys). A query that attends to nothing gives 0.
        dropout_p: Probability with which weights are zeroed.
        is_causal: Whether query i attends to keys 0 to i alone, and of these to what the mask lets
            it.
        scale: Factor on the scores; 1 / sqrt(width) if None.
        enable_gqa: Whether several heads of the query may share one of key and value.
    """
    if dropout_p == 0.0:
        return _vkml._scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal, scale, enable_gqa
        )
    weights = attention_weights(query, key, attn_mask, is_causal, scale, enable_gqa)
    if enable_gqa and query.ndim > 2:
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    return vkml.dropout(weights, dropout_p) @ value
