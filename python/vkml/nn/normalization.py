"""LayerNorm and BatchNorm."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import vkml
from vkml import Tensor
from vkml.nn import functional, init
from vkml.nn.module import Module
from vkml.nn.parameter import Parameter


class LayerNorm(Module):
    """Normalises each row over its last axes (Ba et al., 2016).

    Args:
        normalized_shape: The extents over which a row is normalised, or one extent.
        eps: Added to the variance.
        elementwise_affine: Whether there are learned factors.
        bias: Whether there are learned offsets beside them.
        device: Where the parameters live.
        dtype: Of the parameters.

    Attributes:
        weight: Shape `normalized_shape`, or None.
        bias: Shape `normalized_shape`, or None.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if elementwise_affine:
            self.weight = Parameter(vkml.ones(shape, dtype=dtype, device=device))
            if bias:
                self.bias = Parameter(vkml.zeros(shape, dtype=dtype, device=device))

    def reset_parameters(self) -> None:
        """Sets factors to 1 and offsets to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (..., *normalized_shape) to the same shape."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class _BatchNorm(Module):
    """What BatchNorm1d and BatchNorm2d share: all but the ranks they accept.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: The weight of each batch in the running statistics; None averages all batches
            evenly.
        affine: Whether there are a learned factor and offset for each channel.
        track_running_stats: Whether running statistics are kept for evaluation.
        device: Where parameters and statistics live.
        dtype: Of parameters and statistics.
        bias: Whether there are learned offsets beside the factors.
    """

    _ranks: tuple[int, ...] = ()
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    # Of states that PyTorch saved before 0.4.1, which had no such count.
    _optional_state = frozenset({"num_batches_tracked"})
    # Not every device has 64-bit integers; PyTorch's state has them.
    _state_dtypes = MappingProxyType({"num_batches_tracked": vkml.int64})

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
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
        shape = (num_features,)
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(vkml.ones(shape, dtype=dtype, device=device))
            if bias:
                self.bias = Parameter(vkml.zeros(shape, dtype=dtype, device=device))
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, None)
        if track_running_stats:
            self.running_mean = vkml.zeros(shape, dtype=dtype, device=device)
            self.running_var = vkml.ones(shape, dtype=dtype, device=device)
            self.num_batches_tracked = vkml.zeros((), dtype=vkml.int32, device=device)

    def reset_running_stats(self) -> None:
        """Sets the running statistics to mean 0 and variance 1, as after construction."""
        if self.running_mean is not None and self.running_var is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
        if self.num_batches_tracked is not None:
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Resets the running statistics, factors (1) and offsets (0)."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _count_batch(self) -> float:
        """Counts this batch, and returns its weight in the running statistics."""
        if self.num_batches_tracked is None:
            return 0.0 if self.momentum is None else self.momentum
        with vkml.no_grad():
            self.num_batches_tracked.assign_(self.num_batches_tracked + 1)
        if self.momentum is None:
            return 1.0 / float(self.num_batches_tracked.item())
        return self.momentum

    def forward(self, input: Tensor) -> Tensor:
        """Maps (batch, num_features, ...) to the same shape."""
        if input.ndim not in self._ranks or input.shape[1] != self.num_features:
            expected = " or ".join(f"{rank}-D" for rank in self._ranks)
            raise vkml.ShapeError(
                f"[{type(self).__name__}] needs {expected} input with {self.num_features} "
                f"channels on axis 1, got shape {tuple(input.shape)}."
            )
        by_batch = self.training or self.running_mean is None
        momentum = self._count_batch() if self.training else 0.0
        return functional.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            by_batch,
            momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalises channels of (batch, channels) or (batch, channels, length).

    Ioffe and Szegedy, 2015. Arguments and state as `BatchNorm2d`.
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises channels of (batch, channels, height, width), Ioffe and Szegedy, 2015.

    In training each channel is normalised by its mean and biased variance over the batch, and the
    running statistics move towards the mean and the unbiased variance. In evaluation the running
    statistics are used.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: The weight of each batch in the running statistics; None averages all batches
            evenly.
        affine: Whether there are a learned factor and offset for each channel.
        track_running_stats: Whether running statistics are kept for evaluation.
        device: Where parameters and statistics live.
        dtype: Of parameters and statistics.
        bias: Whether there are learned offsets beside the factors.
    """

    _ranks = (4,)
