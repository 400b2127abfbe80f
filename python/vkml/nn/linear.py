"""Layers that are a matrix: Linear, Bilinear, Embedding and its bags, and Identity for none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import vkml
from vkml import Tensor
from vkml.nn import functional, init
from vkml.nn.module import Module
from vkml.nn.parameter import Parameter

if TYPE_CHECKING:
    from typing_extensions import Self


class Identity(Module):
    """Returns its input. Any arguments are accepted, so that it can replace any layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Returns `input`."""
        return input


class Linear(Module):
    """`x @ weight.T + bias`, over the last axis.

    Args:
        in_features: Extent of the input's last axis.
        out_features: Extent of the result's last axis.
        bias: Whether there is an offset.
        device: Where the parameters live.
        dtype: Of the parameters.

    Attributes:
        weight: Shape (out_features, in_features).
        bias: Shape (out_features,), or None.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(vkml.empty((out_features, in_features), dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(vkml.empty((out_features,), dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new parameters: uniform on +-1 / sqrt(in_features)."""
        init.default_affine_(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (..., in_features) to (..., out_features)."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """x1.T @ weight[o] @ x2 + bias[o] for each output o, over the last axes.

    Args:
        in1_features: Extent of the first input's last axis.
        in2_features: Extent of the second input's last axis.
        out_features: Extent of the result's last axis.
        bias: Whether there is an offset.
        device: Where the parameters live.
        dtype: Of the parameters.

    Attributes:
        weight: Shape (out_features, in1_features, in2_features).
        bias: Shape (out_features,), or None.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(vkml.empty(shape, dtype=dtype, device=device))
        offset = Parameter(vkml.empty((out_features,), dtype=dtype, device=device))
        self.register_parameter("bias", offset if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new parameters: uniform on +-1 / sqrt(in1_features)."""
        bound = 1.0 / math.sqrt(self.in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Maps (..., in1_features) and (..., in2_features) to (..., out_features)."""
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


def _table_extents(layer: str, embeddings: Tensor) -> tuple[int, int]:
    if embeddings.ndim != 2:
        raise vkml.ShapeError(
            f"[{layer}] a table has rows and a width, not shape {tuple(embeddings.shape)}."
        )
    return embeddings.shape[0], embeddings.shape[1]


class Embedding(Module):
    """A table of rows, looked up by number.

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Width of a row.
        padding_idx: A row that starts as zeros and receives no gradient.
        max_norm: The most a row's norm may be, as in `functional.embedding`.
        norm_type: The p of that norm.
        scale_grad_by_freq: Whether a row's gradient is divided by how often it is looked up.
        sparse: Accepted as PyTorch's: gradients are dense.
        device: Where the table lives.
        dtype: Of the table.

    Attributes:
        weight: Shape (num_embeddings, embedding_dim), drawn from the normal distribution.
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        *,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise vkml.ArgumentError(
                f"[Embedding] padding_idx {padding_idx} is outside {num_embeddings} rows."
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        table = vkml.empty((num_embeddings, embedding_dim), dtype=dtype, device=device)
        self.weight = Parameter(table)
        self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """A layer with a given table.

        Args:
            embeddings: The table (rows, width), which the layer shares.
            freeze: Whether it is kept from training.
            padding_idx: As in the constructor, as are the others.
            max_norm: The most a row's norm may be.
            norm_type: The p of that norm.
            scale_grad_by_freq: Whether a row's gradient is divided by how often it is looked up.
            sparse: Accepted as PyTorch's.
        """
        layer = cls(
            *_table_extents(cls.__name__, embeddings),
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            device=embeddings.device,
            dtype=embeddings.dtype,
        )
        layer.weight = Parameter(embeddings, requires_grad=not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Draws a new table, and zeroes the padding row."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            device = self.weight.device
            rows = vkml.arange(self.num_embeddings, device=device).unsqueeze(1)
            with vkml.no_grad():
                kept = (rows != self.padding_idx).to(self.weight.dtype)
                self.weight.assign_(self.weight * kept)

    def forward(self, input: Tensor) -> Tensor:
        """Maps row numbers of any shape to rows: (...) to (..., embedding_dim)."""
        return functional.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of rows of a table; arguments as `functional.embedding_bag`.

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Width of a row.
        max_norm: The most a row's norm may be, as in `functional.embedding`.
        norm_type: The p of that norm.
        scale_grad_by_freq: Whether a row's gradient is divided by how often it is looked up.
        mode: `sum`, `mean` or `max`.
        sparse: Accepted as PyTorch's: gradients are dense.
        include_last_offset: Whether the last offset is the end of the last bag.
        padding_idx: A row that counts for nothing.
        device: Where the table lives.
        dtype: Of the table.

    Attributes:
        weight: Shape (num_embeddings, embedding_dim), drawn from the normal distribution.
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        *,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = padding_idx
        table = vkml.empty((num_embeddings, embedding_dim), dtype=dtype, device=device)
        self.weight = Parameter(table)
        self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """A layer with a given table; arguments as those of the constructor.

        Args:
            embeddings: The table (rows, width), which the layer shares.
            freeze: Whether it is kept from training.
            max_norm: The most a row's norm may be.
            norm_type: The p of that norm.
            scale_grad_by_freq: Whether a row's gradient is divided by how often it is looked up.
            mode: `sum`, `mean` or `max`.
            sparse: Accepted as PyTorch's.
            include_last_offset: Whether the last offset is the end of the last bag.
            padding_idx: A row that counts for nothing.
        """
        layer = cls(
            *_table_extents(cls.__name__, embeddings),
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
            device=embeddings.device,
            dtype=embeddings.dtype,
        )
        layer.weight = Parameter(embeddings, requires_grad=not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Draws a new table."""
        init.normal_(self.weight)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Maps row numbers (bags, rows of a bag), or a vector with offsets, to (bags, width)."""
        return functional.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            mode=self.mode,
            sparse=self.sparse,
            per_sample_weights=per_sample_weights,
            padding_idx=self.padding_idx,
            include_last_offset=self.include_last_offset,
        )

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
