"""Dropout of whole channels, dropout that keeps mean and variance, and samples of categories."""

from __future__ import annotations

import vkml
from vkml import Tensor

# Klambauer et al., Self-Normalizing Neural Networks (2017): what SELU tends to far below 0.
_SATURATION = -1.0507009873554805 * 1.6732632423543772


def _check_probability(operator: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise vkml.ArgumentError(f"[{operator}] p is {p}. Pass a probability in [0, 1].")


def _placed(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """The result, or the input with the result in it."""
    return input.copy_(result) if inplace and result is not input else result


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability `p` and scales the others by 1 / (1 - p).

    Args:
        input: Any shape.
        p: The probability.
        training: Whether anything is done.
        inplace: Whether the input takes the result, for every name it has.
    """
    _check_probability("dropout", p)
    if not training or p == 0.0:
        return input
    return _placed(input, vkml.dropout(input, p), inplace)


def _channel_shape(operator: str, input: Tensor, positions: int) -> tuple[int, ...]:
    """One element for each channel of (batch, channels, positions...), or without a batch."""
    if input.ndim not in (positions + 1, positions + 2):
        raise vkml.ShapeError(
            f"[{operator}] needs {positions + 2} axes, or {positions + 1} without a batch, not "
            f"shape {tuple(input.shape)}."
        )
    return (*input.shape[: input.ndim - positions], *(1,) * positions)


def _channel_dropout(
    operator: str, input: Tensor, p: float, training: bool, axes: int, inplace: bool
) -> Tensor:
    _check_probability(operator, p)
    shape = _channel_shape(operator, input, axes)
    if not training or p == 0.0:
        return input
    kept = vkml.dropout(vkml.ones(shape, dtype=input.dtype, device=input.device), p)
    return _placed(input, input * kept, inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of (batch, channels, length) with probability `p`."""
    return _channel_dropout("dropout1d", input, p, training, 1, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of (batch, channels, height, width) with probability `p`."""
    return _channel_dropout("dropout2d", input, p, training, 2, inplace)


def _saturated(input: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    """Elements replaced by SELU's lower limit, then scaled back to mean 0 and variance 1."""
    kept = vkml.rand(*shape, device=input.device) >= p
    if p == 1.0:
        return input * 0.0
    scale: float = ((1 - p) * (1 + p * _SATURATION**2)) ** -0.5
    return vkml.where(kept, input, _SATURATION) * scale - scale * _SATURATION * p


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout for SELU networks: elements take SELU's lower limit, mean and variance stay."""
    _check_probability("alpha_dropout", p)
    if not training or p == 0.0:
        return input
    return _placed(input, _saturated(input, p, tuple(input.shape)), inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels of (batch, channels, ...)."""
    _check_probability("feature_alpha_dropout", p)
    if not training or p == 0.0:
        return input
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return _placed(input, _saturated(input, p, shape), inplace)


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of softmax's categories that has a gradient (Jang et al., 2017).

    Args:
        logits: Unnormalised logarithms of probabilities.
        tau: The temperature: near 0 samples are nearly one-hot.
        hard: Whether the value is one-hot, with the gradient of the soft sample.
        eps: Unused, as in PyTorch.
        dim: The axis of the categories.
    """
    exponential = -vkml.log1p(-vkml.rand(*logits.shape, device=logits.device))
    noise = -exponential.clamp(min=2.0**-126).log().to(logits.dtype)
    soft = vkml.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    axis = dim % logits.ndim
    winner = soft.argmax(axis, keepdim=True)
    one_hot = vkml.zeros_like(soft).scatter(axis, winner, 1.0)
    return one_hot - soft.detach() + soft
