"""Normalisation over rows, channels, groups and neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import vkml
from vkml import Tensor
from vkml.mixed_precision import in_float32, through_float32


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Subtracts the mean and divides by the deviation over the last axes (Ba et al., 2016).

    Args:
        input: Shape (..., *normalized_shape).
        normalized_shape: The extents over which each row is normalised.
        weight: Factors of that shape, or None.
        bias: Offsets of that shape, or None.
        eps: Added to the variance.
    """
    _check_last_axes(input, normalized_shape, "layer_norm")
    return vkml.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divides by the root of the mean square over the last axes (Zhang and Sennrich, 2019).

    Args:
        input: Shape (..., *normalized_shape).
        normalized_shape: The extents over which each row is normalised.
        weight: Factors of that shape, or None.
        eps: Added to the mean square; the dtype's smallest step from 1 if None.
    """
    _check_last_axes(input, normalized_shape, "rms_norm")
    axes = tuple(range(-len(tuple(normalized_shape)), 0))
    dtype = input.dtype
    wide = input.to(vkml.float32) if dtype in (vkml.float16, vkml.bfloat16) else input
    step = _steps_from_one()[dtype] if eps is None else eps
    result = (wide * ((wide * wide).mean(axes, keepdim=True) + step).rsqrt()).to(dtype)
    return result if weight is None else result * weight


def _steps_from_one() -> dict[vkml.dtype, float]:
    return {
        vkml.float16: 2.0**-10,
        vkml.bfloat16: 2.0**-7,
        vkml.float32: 2.0**-23,
        vkml.float64: 2.0**-52,
    }


def _check_last_axes(input: Tensor, normalized_shape: Sequence[int], operator: str) -> None:
    shape = tuple(normalized_shape)
    if len(shape) == 0 or tuple(input.shape[-len(shape) :]) != shape:
        raise vkml.ShapeError(
            f"[{operator}] normalized_shape {shape} is not the end of the input's shape "
            f"{tuple(input.shape)}."
        )


def _per_channel(values: Tensor, rank: int) -> Tensor:
    return values.reshape(*(-1 if axis == 1 else 1 for axis in range(rank)))


def _affine(result: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        result = result * _per_channel(weight, result.ndim)
    return result if bias is None else result + _per_channel(bias, result.ndim)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel over the batch and positions (Ioffe and Szegedy, 2015).

    Args:
        input: Shape (batch, channels, positions...).
        running_mean: Means of the channels; updated in training, used otherwise.
        running_var: Variances of the channels, likewise. Training updates it with the unbiased
            variance of the batch, though it normalises by the biased one.
        weight: A factor for each channel, or None.
        bias: An offset for each channel, or None.
        training: Whether the statistics of this batch are used.
        momentum: The weight of this batch in the running statistics.
        eps: Added to the variance.
    """
    if input.ndim < 2:
        raise vkml.ShapeError(
            f"[batch_norm] needs a batch axis and a channel axis, got shape {tuple(input.shape)}."
        )
    if training or running_mean is None or running_var is None:
        axes = tuple(axis for axis in range(input.ndim) if axis != 1)
        if training:
            _update_statistics(input.detach(), axes, running_mean, running_var, momentum)
        result = vkml.normalize(input, axes, eps)
    else:
        deviation = _per_channel((running_var + eps).sqrt(), input.ndim)
        result = (input - _per_channel(running_mean, input.ndim)) / deviation
    return _affine(result, weight, bias)


def _update_statistics(
    input: Tensor,
    axes: tuple[int, ...],
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
) -> None:
    if math.prod(input.shape) <= input.shape[1]:
        raise vkml.ShapeError(
            f"[batch_norm] needs more than one value per channel in training, got shape "
            f"{tuple(input.shape)}. Use a larger batch, or module.eval()."
        )
    with vkml.no_grad():
        if running_mean is not None:
            running_mean.assign_(running_mean * (1 - momentum) + input.mean(axes) * momentum)
        if running_var is not None:
            variance = input.var(axes, correction=1)
            running_var.assign_(running_var * (1 - momentum) + variance * momentum)


@in_float32
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each group of channels of each example (Wu and He, 2018).

    Args:
        input: Shape (batch, channels, positions...).
        num_groups: How many groups the channels divide into.
        weight: A factor for each channel, or None.
        bias: An offset for each channel, or None.
        eps: Added to the variance.
    """
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups != 0:
        raise vkml.ShapeError(
            f"[group_norm] the channels of {tuple(input.shape)} do not divide into {num_groups} "
            f"groups."
        )
    positions = math.prod(input.shape[2:]) * (input.shape[1] // num_groups)
    rows = input.reshape(input.shape[0], num_groups, positions)
    return _affine(vkml.normalize(rows, (2,), eps).reshape(*input.shape), weight, bias)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each example over its positions (Ulyanov et al., 2016).

    Args:
        input: Shape (batch, channels, positions...).
        running_mean: Means of the channels; updated with `use_input_stats`, used otherwise.
        running_var: Variances of the channels, likewise.
        weight: A factor for each channel, or None.
        bias: An offset for each channel, or None.
        use_input_stats: Whether the statistics of each example are used.
        momentum: The weight of this batch in the running statistics.
        eps: Added to the variance.
    """
    if input.ndim < 3:
        raise vkml.ShapeError(
            f"[instance_norm] needs (batch, channels, positions...), got {tuple(input.shape)}."
        )
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise vkml.ArgumentError("[instance_norm] use_input_stats=False needs statistics.")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, input.ndim))
    with vkml.no_grad():
        if running_mean is not None:
            mean = input.mean(axes).mean(0)
            running_mean.assign_(running_mean * (1 - momentum) + mean * momentum)
        if running_var is not None:
            variance = input.var(axes, correction=1).mean(0)
            running_var.assign_(running_var * (1 - momentum) + variance * momentum)
    return _affine(vkml.normalize(input, axes, eps), weight, bias)


@through_float32
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divides by what neighbouring channels hold (Krizhevsky et al., 2012).

    Args:
        input: Shape (batch, channels, positions...).
        size: How many channels count as neighbours.
        alpha: The weight of their mean square.
        beta: The exponent of the divisor.
        k: What the divisor starts from.
    """
    if input.ndim < 3:
        raise vkml.ShapeError(
            f"[local_response_norm] needs (batch, channels, positions...), got "
            f"{tuple(input.shape)}."
        )
    extents = (input.shape[0], 1, input.shape[1], math.prod(input.shape[2:]))
    rows = (input * input).reshape(extents)
    padded = vkml.pad(rows, (0, 0, size // 2, (size - 1) // 2))
    mean = vkml.avg_pool2d(padded, (size, 1), (1, 1)).reshape(*input.shape)
    return input / (mean * alpha + k) ** beta


@in_float32
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divides by the p-norm along `dim`, or by `eps` where that is larger."""
    return input / vkml.norm(input, p, dim, keepdim=True).clamp(min=eps)
