"""Helpers on parameters and gradients: clipping, flattening, norms of weights."""

from __future__ import annotations

import math
from collections.abc import Iterable

import vkml
from vkml import Tensor, no_grad
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.nn.utils.reparametrization import remove_spectral_norm as remove_spectral_norm
from vkml.nn.utils.reparametrization import remove_weight_norm as remove_weight_norm
from vkml.nn.utils.reparametrization import spectral_norm as spectral_norm
from vkml.nn.utils.reparametrization import weight_norm as weight_norm


def _gradients_of(parameters: Tensor | Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [(tensor, tensor.grad) for tensor in tensors if tensor.grad is not None]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients together so that their norm is at most `max_norm`.

    Args:
        parameters: Tensors whose `.grad` is scaled; those without are left out.
        max_norm: The bound.
        norm_type: The p of the p-norm over all gradients as one vector; `inf` for the largest
            absolute value.
        error_if_nonfinite: Whether a norm that is not finite raises. This reads the norm, and so
            waits for it.
        foreach: Accepted as PyTorch's, and without effect, here and below: it is one plan anyway.

    Returns:
        The norm before scaling.
    """
    with no_grad():
        pairs = _gradients_of(parameters)
        if not pairs:
            return vkml.tensor(0.0)
        gradients = [gradient for _, gradient in pairs]
        norm = _total_norm(gradients, float(norm_type))
        if error_if_nonfinite and not math.isfinite(norm.item()):
            raise vkml.ArgumentError(
                f"[clip_grad_norm_] the norm of the gradients is {norm.item()}. "
                f"Find the layer that produces it, or pass error_if_nonfinite=False."
            )
        clip_grads_with_norm_([tensor for tensor, _ in pairs], max_norm, norm)
        return norm


def _total_norm(gradients: list[Tensor], norm_type: float) -> Tensor:
    if math.isinf(norm_type):
        parts = vkml.stack([gradient.abs().amax() for gradient in gradients])
        return parts.amax()
    if norm_type == 2.0:
        parts = vkml.stack([(gradient * gradient).sum() for gradient in gradients])
        return parts.sum().sqrt()
    parts = vkml.stack([(gradient.abs() ** norm_type).sum() for gradient in gradients])
    return parts.sum() ** (1.0 / norm_type)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The p-norm of several tensors as one vector; see `clip_grad_norm_`."""
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return vkml.tensor(0.0)
    norm = _total_norm(listed, float(norm_type))
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise vkml.ArgumentError(
            f"[get_total_norm] the norm is {norm.item()}. Find what produces it, or pass "
            f"error_if_nonfinite=False."
        )
    return norm


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales all gradients by `max_norm` over a norm that is known, where that is below 1."""
    with no_grad():
        scale = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for tensor, gradient in _gradients_of(parameters):
            tensor.grad = gradient * scale.to(gradient.dtype)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Cuts every element of every gradient to [-clip_value, clip_value]."""
    with no_grad():
        for tensor, gradient in _gradients_of(parameters):
            tensor.grad = gradient.clamp(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened and joined into one vector."""
    return vkml.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes consecutive pieces of a vector into parameters: undoes `parameters_to_vector`."""
    tensors = list(parameters)
    total = sum(math.prod(tensor.shape) for tensor in tensors)
    if tuple(vec.shape) != (total,):
        raise vkml.ShapeError(
            f"[vector_to_parameters] the parameters hold {total} elements, the vector has shape "
            f"{tuple(vec.shape)}."
        )
    start = 0
    with no_grad():
        for tensor in tensors:
            stop = start + math.prod(tensor.shape)
            tensor.assign_(vec[start:stop].reshape(*tensor.shape).contiguous())
            start = stop


_check_arguments(globals())
