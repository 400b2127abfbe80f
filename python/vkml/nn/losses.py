"""Losses as functions: what `vkml.nn.functional` and the loss modules call.

All reduce by `reduction`: `mean`, `sum` or `none`. Names and arguments are PyTorch's.
"""

from __future__ import annotations

import vkml
from vkml import Tensor


def _reduce(loss: Tensor, reduction: str, operator: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise vkml.ArgumentError(
        f"[{operator}] reduction is {reduction!r}. Pass 'mean', 'sum' or 'none'."
    )


def _check_same_shape(input: Tensor, target: Tensor, operator: str) -> None:
    # Broadcasting here would silently average over pairs that were never meant.
    if input.shape != target.shape:
        raise vkml.ShapeError(
            f"[{operator}] input has shape {tuple(input.shape)} and target "
            f"{tuple(target.shape)}. Reshape one of them to the other's shape."
        )


def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The squared difference."""
    _check_same_shape(input, target, "mse_loss")
    difference = input - target
    return _reduce(difference * difference, reduction, "mse_loss")


def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The absolute difference."""
    _check_same_shape(input, target, "l1_loss")
    return _reduce((input - target).abs(), reduction, "l1_loss")


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """Half the squared difference up to `delta`, linear with slope `delta` beyond."""
    _check_same_shape(input, target, "huber_loss")
    difference = (input - target).abs()
    loss = vkml.where(
        difference <= delta,
        0.5 * difference * difference,
        delta * (difference - 0.5 * delta),
    )
    return _reduce(loss, reduction, "huber_loss")


def smooth_l1_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """The Huber loss with `delta = beta`, divided by `beta`; the absolute difference at 0."""
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    return huber_loss(input, target, reduction, beta) / beta


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of probabilities in [0, 1]; each logarithm is at least -100."""
    _check_same_shape(input, target, "binary_cross_entropy")
    floor = vkml.full((), -100.0, dtype=input.dtype, device=input.device)
    log_one = vkml.maximum(input.log(), floor)
    log_zero = vkml.maximum((1 - input).log(), floor)
    loss = -(target * log_one + (1 - target) * log_zero)
    if weight is not None:
        loss = loss * weight
    return _reduce(loss, reduction, "binary_cross_entropy")


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of a sigmoid, from its logits, without overflow at any logit.

    Args:
        input: Logits.
        target: Probabilities of class 1, in the shape of `input`.
        weight: Factors on the loss of each element, broadcast.
        reduction: `mean`, `sum` or `none`.
        pos_weight: Factors on the share of class 1, broadcast.
    """
    operator = "binary_cross_entropy_with_logits"
    _check_same_shape(input, target, operator)
    # -log(sigmoid(x)) = softplus(-x), and -log(1 - sigmoid(x)) = softplus(-x) + x.
    loss_of_one = vkml.softplus(-input)
    if pos_weight is not None:
        loss_of_one = (1 + (pos_weight - 1) * target) * loss_of_one
    loss = (1 - target) * input + loss_of_one
    if weight is not None:
        loss = loss * weight
    return _reduce(loss, reduction, operator)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of a softmax over classes, from its logits.

    Args:
        input: Logits of shape (classes,), (batch, classes) or (batch, classes, positions...).
        target: Class numbers, shaped as `input` without its class axis; or class probabilities,
            shaped as `input`.
        weight: A factor for each class. The mean is weighted with it too.
        ignore_index: The class number of rows that count for nothing.
        reduction: `mean`, `sum` or `none`. The mean over no rows at all (every row ignored) is 0
            with zero gradients, where PyTorch gives NaN.
        label_smoothing: The share of each target that is spread evenly over all classes.

    Raises:
        IndexError: When the result is read, for a class number outside the classes.
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise vkml.ArgumentError(
            f"[cross_entropy] label_smoothing is {label_smoothing}. Pass a number in [0, 1]."
        )
    axis = 1 if input.ndim > 1 else 0
    log_probability = vkml.log_softmax(input, axis)
    if target.dtype.is_floating_point:
        return _cross_entropy_of_probabilities(
            log_probability, target, axis, weight, reduction, label_smoothing
        )
    return _negative_log_likelihood(
        log_probability,
        target,
        weight,
        ignore_index,
        reduction,
        label_smoothing,
        "cross_entropy",
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood, from log probabilities; arguments as `cross_entropy`."""
    return _negative_log_likelihood(input, target, weight, ignore_index, reduction, 0.0, "nll_loss")


def _along_axis(values: Tensor, axis: int, ndim: int) -> Tensor:
    """A vector, shaped to broadcast along one axis of a tensor of `ndim` axes."""
    return values.reshape(*(-1 if i == axis else 1 for i in range(ndim)))


def _cross_entropy_of_probabilities(
    log_probability: Tensor,
    target: Tensor,
    axis: int,
    weight: Tensor | None,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    _check_same_shape(log_probability, target, "cross_entropy")
    if label_smoothing > 0.0:
        classes = log_probability.shape[axis]
        target = target * (1.0 - label_smoothing) + label_smoothing / classes
    share = target * log_probability
    if weight is not None:
        share = share * _along_axis(weight, axis, share.ndim)
    return _reduce(-share.sum(axis), reduction, "cross_entropy")


def _negative_log_likelihood(
    log_probability: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    operator: str,
) -> Tensor:
    axis = 1 if log_probability.ndim > 1 else 0
    expected = log_probability.shape[:axis] + log_probability.shape[axis + 1 :]
    if tuple(target.shape) != tuple(expected):
        raise vkml.ShapeError(
            f"[{operator}] input has shape {tuple(log_probability.shape)}, so class numbers have "
            f"shape {tuple(expected)}, but target has {tuple(target.shape)}."
        )
    kept = target != ignore_index
    # Ignored rows may hold any number: they look up class 0, and are masked afterwards.
    row_class = vkml.where(kept, target, vkml.zeros_like(target)).unsqueeze(axis)
    loss = -vkml.gather(log_probability, axis, row_class).squeeze(axis)
    row_weight = kept.to(loss.dtype)
    if weight is not None:
        row_weight = row_weight * vkml.gather(weight, 0, row_class.flatten()).reshape(loss.shape)
    loss = vkml.where(kept, loss * row_weight, vkml.zeros_like(loss))
    if label_smoothing > 0.0:
        spread = log_probability
        if weight is not None:
            spread = spread * _along_axis(weight, axis, spread.ndim)
        even = vkml.where(kept, -spread.mean(axis), vkml.zeros_like(loss))
        loss = (1.0 - label_smoothing) * loss + label_smoothing * even
    if reduction == "mean":
        total = row_weight.sum()
        return loss.sum() / vkml.where(total > 0, total, vkml.ones_like(total))
    return _reduce(loss, reduction, operator)
