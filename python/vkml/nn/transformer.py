"""Encoder and decoder of a transformer (Vaswani et al., 2017), with PyTorch's names and weights."""

from __future__ import annotations

import copy
from collections.abc import Callable

import vkml
from vkml import Tensor
from vkml.nn import functional, init
from vkml.nn.attention import MultiheadAttention
from vkml.nn.containers import ModuleList
from vkml.nn.dropout import Dropout
from vkml.nn.linear import Linear
from vkml.nn.module import Module
from vkml.nn.normalization import LayerNorm

Activation = Callable[[Tensor], Tensor]


def _activation(activation: str | Activation, owner: str) -> Activation:
    named: dict[str, Activation] = {"relu": functional.relu, "gelu": functional.gelu}
    if not isinstance(activation, str):
        return activation
    if activation not in named:
        raise vkml.ArgumentError(
            f"[{owner}] activation is {activation!r}. Pass 'relu', 'gelu' or a function."
        )
    return named[activation]


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with a residual and a layer norm.

    Args:
        d_model: Width of the input.
        nhead: Heads of the attention.
        dim_feedforward: Width inside the feed-forward network.
        dropout: Probability with which elements are zeroed in training.
        activation: `relu`, `gelu`, or a function.
        layer_norm_eps: Added to the variance of the norms.
        batch_first: Whether the batch, rather than the sequence, is the first axis.
        norm_first: Whether norms stand before the parts rather than behind the residuals.
        bias: Whether maps and norms have offsets.
        device: Where the parameters live.
        dtype: Of the parameters.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation, type(self).__name__)

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        result, _ = self.self_attn(x, x, x, padding, False, mask)
        dropped: Tensor = self.dropout1(result)
        return dropped

    def _feed_forward(self, x: Tensor) -> Tensor:
        inside = self.dropout(self.activation(self.linear1(x)))
        dropped: Tensor = self.dropout2(self.linear2(inside))
        return dropped

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Maps (sequence, batch, d_model) to the same shape; masks as `MultiheadAttention`."""
        if self.norm_first:
            x = src + self._attend(self.norm1(src), src_mask, src_key_padding_mask)
            return x + self._feed_forward(self.norm2(x))
        x = self.norm1(src + self._attend(src, src_mask, src_key_padding_mask))
        result: Tensor = self.norm2(x + self._feed_forward(x))
        return result


class _Layers(Module):
    """Copies of a layer, one after the other, and a norm behind the last one."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm


class TransformerEncoder(_Layers):
    """Several encoder layers, one after the other.

    Args:
        encoder_layer: The layer that is copied.
        num_layers: How many copies there are.
        norm: A layer behind the last one, or None.
        enable_nested_tensor: Accepted as PyTorch's: padding is computed with the rest.
        mask_check: Likewise.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Maps (sequence, batch, d_model) to the same shape; masks as `MultiheadAttention`."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(Module):
    """Self-attention, attention to an encoder's results, and a feed-forward network.

    Each has a residual and a layer norm. Arguments as `TransformerEncoderLayer`.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()

        def attention() -> MultiheadAttention:
            return MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
            )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)

        self.self_attn = attention()
        self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        self.norm1, self.norm2, self.norm3 = norm(), norm(), norm()
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout) for _ in range(3))
        self.activation = _activation(activation, type(self).__name__)

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        result, _ = self.self_attn(x, x, x, padding, False, mask)
        dropped: Tensor = self.dropout1(result)
        return dropped

    def _recall(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None
    ) -> Tensor:
        result, _ = self.multihead_attn(x, memory, memory, padding, False, mask)
        dropped: Tensor = self.dropout2(result)
        return dropped

    def _feed_forward(self, x: Tensor) -> Tensor:
        inside = self.dropout(self.activation(self.linear1(x)))
        dropped: Tensor = self.dropout3(self.linear2(inside))
        return dropped

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Maps (sequence, batch, d_model) to the same shape.

        Args:
            tgt: The sequence.
            memory: What the encoder gave, (its sequence, batch, d_model).
            tgt_mask: Of the self-attention, as `MultiheadAttention`'s `attn_mask`.
            memory_mask: Of the attention to `memory`.
            tgt_key_padding_mask: True hides an element of `tgt`, (batch, sequence).
            memory_key_padding_mask: True hides an element of `memory`.
            tgt_is_causal: A hint in PyTorch; `tgt_mask` holds the mask.
            memory_is_causal: A hint in PyTorch; `memory_mask` holds the mask.
        """
        x = tgt
        if self.norm_first:
            x = x + self._attend(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self._recall(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self._feed_forward(self.norm3(x))
        x = self.norm1(x + self._attend(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self._recall(x, memory, memory_mask, memory_key_padding_mask))
        result: Tensor = self.norm3(x + self._feed_forward(x))
        return result


class TransformerDecoder(_Layers):
    """Several decoder layers, one after the other.

    Args:
        decoder_layer: The layer that is copied.
        num_layers: How many copies there are.
        norm: A layer behind the last one, or None.
    """

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Maps (sequence, batch, d_model) to the same shape; see `TransformerDecoderLayer`."""
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder, each with a norm behind its last layer.

    Args:
        d_model: Width of both inputs.
        nhead: Heads of every attention.
        num_encoder_layers: Layers of the encoder.
        num_decoder_layers: Layers of the decoder.
        dim_feedforward: Width inside the feed-forward networks.
        dropout: Probability with which elements are zeroed in training.
        activation: `relu`, `gelu`, or a function.
        custom_encoder: In place of the encoder.
        custom_decoder: In place of the decoder.
        layer_norm_eps: Added to the variance of the norms.
        batch_first: Whether the batch, rather than the sequence, is the first axis.
        norm_first: Whether norms stand before the parts rather than behind the residuals.
        bias: Whether maps and norms have offsets.
        device: Where the parameters live.
        dtype: Of the parameters.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = functional.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        options = (batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, *options), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, *options), num_decoder_layers, norm()
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Maps `src` and `tgt`, each (its sequence, batch, d_model), to the shape of `tgt`.

        Masks are those of `TransformerEncoderLayer` and `TransformerDecoderLayer`.
        """
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        result: Tensor = self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )
        return result

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: vkml.DeviceLike | None = None, dtype: vkml.dtype | None = None
    ) -> Tensor:
        """Minus infinity above the diagonal, 0 elsewhere: each place sees those up to itself."""
        hidden = vkml.ones((sz, sz), dtype=vkml.bool, device=device).triu(1)
        mask = vkml.where(hidden, -float("inf"), 0.0)
        return mask if dtype is None else mask.to(dtype)
