"""Attention in several heads (Vaswani et al., 2017)."""

from __future__ import annotations

import vkml
from vkml import Tensor
from vkml.nn import functional, init
from vkml.nn.attention_functions import attention_weights
from vkml.nn.linear import Linear
from vkml.nn.module import Module
from vkml.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention in several subspaces at once.

    Args:
        embed_dim: Width of the query and of the result.
        num_heads: How many heads share that width.
        dropout: Probability with which weights are zeroed in training.
        bias: Whether the projections have offsets.
        add_bias_kv: Whether a learned key and value are added to the sequence: `bias_k`, `bias_v`.
        add_zero_attn: Whether a key and a value of zeros are.
        kdim: Width of the key; `embed_dim` if None.
        vdim: Width of the value; `embed_dim` if None.
        batch_first: Whether the batch, rather than the sequence, is the first axis.
        device: Where the parameters live.
        dtype: Of the parameters.

    Attributes:
        in_proj_weight: Shape (3 * embed_dim, embed_dim): query, key, value; None where widths
            differ, and then q_proj_weight, k_proj_weight and v_proj_weight.
        in_proj_bias: Shape (3 * embed_dim,), or None.
        out_proj: The linear map of the heads' results.
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads != 0:
            raise vkml.ArgumentError(
                f"[MultiheadAttention] embed_dim={embed_dim} does not divide into {num_heads} "
                f"heads."
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        widths = (embed_dim, kdim or embed_dim, vdim or embed_dim)
        self._is_joint = widths == (embed_dim, embed_dim, embed_dim)

        def matrix(rows: int, columns: int) -> Parameter:
            return Parameter(vkml.empty((rows, columns), dtype=dtype, device=device))

        self.register_parameter(
            "in_proj_weight", matrix(3 * embed_dim, embed_dim) if self._is_joint else None
        )
        for name, width in zip("qkv", widths, strict=True):
            value = None if self._is_joint else matrix(embed_dim, width)
            self.register_parameter(f"{name}_proj_weight", value)
        zeros = Parameter(vkml.zeros((3 * embed_dim,), dtype=dtype, device=device))
        self.register_parameter("in_proj_bias", zeros if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            row = vkml.empty((1, 1, embed_dim), dtype=dtype, device=device)
            self.register_parameter(name, Parameter(row) if add_bias_kv else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new projections by Xavier's uniform distribution; offsets are 0."""
        for name, parameter in self.named_parameters():
            if name.endswith("proj_weight"):
                init.xavier_uniform_(parameter)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        biases: list[Tensor | None] = [None, None, None]
        if self.in_proj_bias is not None:
            biases = list(self.in_proj_bias.chunk(3))
        if self.in_proj_weight is not None:
            if query is key and key is value:
                joint = functional.linear(query, self.in_proj_weight, self.in_proj_bias)
                return list(joint.chunk(3, -1))
            weights = list(self.in_proj_weight.chunk(3))
        else:
            weights = [getattr(self, f"{name}_proj_weight") for name in "qkv"]
        inputs = (query, key, value)
        return [functional.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]

    def _extended(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Projected keys and values (batch, keys, embed_dim) with those that layers add."""
        batch = key.shape[0]
        keys, values = [key], [value]
        if self.bias_k is not None and self.bias_v is not None:
            keys.append(self.bias_k.expand(batch, 1, -1))
            values.append(self.bias_v.expand(batch, 1, -1))
        if self.add_zero_attn:
            zeros = vkml.zeros_like(key[:, :1])
            keys.append(zeros)
            values.append(zeros)
        if len(keys) == 1:
            return key, value
        return vkml.cat(keys, 1), vkml.cat(values, 1)

    def _mask(
        self,
        batch: int,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
    ) -> Tensor | None:
        """What a query attends to (bool), or what is added to scores (batch, heads, queries, keys).

        True in a mask that is given means hidden.
        """
        masks = []
        if attn_mask is not None:
            by_head = attn_mask.ndim == 3
            shape = (batch, self.num_heads, *attn_mask.shape[1:])
            masks.append(attn_mask.reshape(shape) if by_head else attn_mask)
        if key_padding_mask is not None:
            masks.append(key_padding_mask.unsqueeze(1).unsqueeze(1))
        if not masks:
            return None
        if all(mask.dtype == vkml.bool for mask in masks):
            return ~masks[0] if len(masks) == 1 else ~(masks[0] | masks[1])
        added = [
            vkml.where(mask, -float("inf"), 0.0) if mask.dtype == vkml.bool else mask
            for mask in masks
        ]
        return added[0] if len(added) == 1 else added[0] + added[1]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from each query to the keys.

        Args:
            query: Shape (queries, batch, embed_dim); with `batch_first` the batch comes first;
                without a batch (queries, embed_dim).
            key: Shape (keys, batch, kdim).
            value: Shape (keys, batch, vdim).
            key_padding_mask: Shape (batch, keys): True hides a key, or what is added to scores.
            need_weights: Whether the weights are returned too; without them they are never held
                (see `scaled_dot_product_attention`).
            attn_mask: Shape (queries, keys) or (batch * heads, queries, keys): True hides a key
                from a query, or what is added to scores.
            average_attn_weights: Whether weights are averaged over the heads.
            is_causal: A hint in PyTorch; `attn_mask` holds the mask.

        Returns:
            The result in the query's shape, and weights (batch, queries, keys) or None.
        """
        is_single = query.ndim == 2
        is_self = query is key and key is value
        if is_single:
            query, key, value = (x.unsqueeze(1) for x in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        if not self.batch_first or is_single:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        if is_self:
            key = value = query
        batch, queries = query.shape[0], query.shape[1]
        projected = self._projected(query, key, value)
        projected[1:] = self._extended(*projected[1:])
        heads = [
            x.reshape(batch, x.shape[1], self.num_heads, -1).transpose(1, 2) for x in projected
        ]
        mask = self._mask(batch, attn_mask, key_padding_mask)
        added = projected[1].shape[1] - key.shape[1]
        if mask is not None and added > 0:
            # Nothing hides what was added.
            mask = vkml.pad(mask, (0, added), value=1.0 if mask.dtype == vkml.bool else 0.0)
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            weights = attention_weights(heads[0], heads[1], mask)
            if dropout > 0.0:
                weights = functional.dropout(weights, dropout)
            mixed = weights @ heads[2]
        else:
            mixed = functional.scaled_dot_product_attention(
                heads[0], heads[1], heads[2], mask, dropout
            )
        joined = mixed.transpose(1, 2).reshape(batch, queries, self.embed_dim)
        result = self.out_proj(joined)
        if not self.batch_first or is_single:
            result = result.transpose(0, 1)
        if is_single:
            result = result.squeeze(1)
        if not need_weights:
            return result, None
        shown = weights.mean(1) if average_attn_weights else weights
        return result, shown.squeeze(0) if is_single else shown

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.embed_dim}, {self.num_heads}, batch_first={self.batch_first}"
