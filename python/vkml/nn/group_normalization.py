"""Normalisation that does not depend on the batch: GroupNorm, InstanceNorm, RMSNorm, LRN."""

from __future__ import annotations

from collections.abc import Sequence

import vkml
from vkml import Tensor
from vkml.nn import functional, init
from vkml.nn.module import Module
from vkml.nn.parameter import Parameter


class GroupNorm(Module):
    """Normalises each group of channels of each example (Wu and He, 2018).

    Args:
        num_groups: How many groups the channels divide into.
        num_channels: Channels of the input.
        eps: Added to the variance.
        affine: Whether there are learned factors and offsets.
        device: Where the parameters live.
        dtype: Of the parameters.
        bias: Whether there are offsets beside the factors.

    Attributes:
        weight: Shape (num_channels,), or None.
        bias: Shape (num_channels,), or None.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups != 0:
            raise vkml.ArgumentError(
                f"[GroupNorm] {num_channels} channels do not divide into {num_groups} groups."
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        shape = (num_channels,)
        ones = Parameter(vkml.ones(shape, dtype=dtype, device=device)) if affine else None
        zeros = Parameter(vkml.zeros(shape, dtype=dtype, device=device)) if affine else None
        self.register_parameter("weight", ones)
        self.register_parameter("bias", zeros if bias else None)

    def reset_parameters(self) -> None:
        """Sets factors to 1 and offsets to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, num_channels, positions...) to the same shape."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class RMSNorm(Module):
    """Divides each row by the root of its mean square (Zhang and Sennrich, 2019).

    Args:
        normalized_shape: The extents over which a row is normalised, or one extent.
        eps: Added to the mean square; the dtype's smallest step from 1 if None.
        elementwise_affine: Whether there are learned factors.
        device: Where the parameters live.
        dtype: Of the parameters.

    Attributes:
        weight: Shape `normalized_shape`, or None.
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        ones = vkml.ones(self.normalized_shape, dtype=dtype, device=device)
        self.register_parameter("weight", Parameter(ones) if elementwise_affine else None)

    def reset_parameters(self) -> None:
        """Sets factors to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (..., *normalized_shape) to the same shape."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class _InstanceNorm(Module):
    """What InstanceNorm1d and InstanceNorm2d share: all but the ranks they accept.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: The weight of a batch in the running statistics.
        affine: Whether there are learned factors and offsets.
        track_running_stats: Whether statistics are kept in training and used in evaluation.
        device: Where the parameters live.
        dtype: Of the parameters.
        bias: Whether there are learned offsets beside the factors.
    """

    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    _optional_state = frozenset({"num_batches_tracked"})
    _ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats

        def filled(value: float) -> Tensor:
            return vkml.full((num_features,), value, dtype=dtype or vkml.float32, device=device)

        self.register_parameter("weight", Parameter(filled(1.0)) if affine else None)
        self.register_parameter("bias", Parameter(filled(0.0)) if affine and bias else None)
        self.register_buffer("running_mean", filled(0.0) if track_running_stats else None)
        self.register_buffer("running_var", filled(1.0) if track_running_stats else None)
        count = vkml.tensor(0, dtype=vkml.int64, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, num_features, positions...), or no batch, to the same shape."""
        if input.ndim not in self._ranks:
            raise vkml.ShapeError(
                f"[{type(self).__name__}] needs rank {self._ranks}, got {tuple(input.shape)}."
            )
        batched = input if input.ndim == self._ranks[-1] else input.unsqueeze(0)
        result = functional.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum,
            self.eps,
        )
        return result if input.ndim == self._ranks[-1] else result.squeeze(0)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.num_features}, eps={self.eps}, affine={self.affine}"


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each example over its length (Ulyanov et al., 2016)."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each image over its pixels (Ulyanov et al., 2016)."""

    _ranks = (3, 4)


class LocalResponseNorm(Module):
    """Divides by what neighbouring channels hold; arguments as `functional.local_response_norm`."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, channels, positions...) to the same shape."""
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
