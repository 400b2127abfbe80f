"""Gradients against central differences, as PyTorch's `gradcheck` compares them.

A function f of tensors is contracted with a fixed cotangent c: s = sum(c * f(x)). Its gradient by
backward is compared with (s(x + h e_i) - s(x - h e_i)) / 2h for every element i of every input. Use
float64, whose rounding leaves about 1e-9 of a difference with h = 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import vkml
from vkml._vkml import Tensor
from vkml.grad_mode import enable_grad, no_grad

Results = list[Tensor]


class GradcheckError(AssertionError):
    """A gradient that differs from its finite difference."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compares gradients of `func` with central differences.

    Args:
        func: Takes the inputs, returns a tensor or a sequence of tensors.
        inputs: Tensors (those that require a gradient are checked) and other arguments.
        eps: The step of the differences.
        atol: The largest absolute error.
        rtol: The largest error relative to the difference.
        raise_exception: Whether a mismatch raises, or gives False.
        nondet_tol: Accepted as PyTorch's: results do not change from run to run.
        check_undefined_grad: Accepted as PyTorch's: gradients that do not arrive are zeros.
        fast_mode: Accepted as PyTorch's: every element is checked whatever it says.

    Raises:
        GradcheckError: A gradient differs; the message names the input and the element.
        AutogradError: No input requires a gradient.
    """
    arguments = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    checked = _checked_positions(arguments)
    with enable_grad():
        outputs = _differentiable(func(*arguments))
        cotangents = [_cotangent(output) for output in outputs]
        found = _analytic(outputs, cotangents, [arguments[i] for i in checked])
    try:
        for position, gradient in zip(checked, found, strict=True):
            _compare(func, arguments, position, cotangents, gradient, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compares second derivatives with central differences of the gradients.

    Arguments and errors are those of `gradcheck`. The cotangent is varied as well.

    Args:
        func: Takes the inputs, returns a tensor or a sequence of tensors.
        inputs: Tensors (those that require a gradient are checked) and other arguments.
        grad_outputs: The cotangent of each result; fixed numbers if None.
        eps: The step of the differences.
        atol: The largest absolute error.
        rtol: The largest error relative to the difference.
        gen_non_contig_grad_outputs: Accepted as PyTorch's: layouts do not change values.
        raise_exception: Whether a mismatch raises, or gives False.
        nondet_tol: As in `gradcheck`, as are the next two.
        check_undefined_grad: Accepted as PyTorch's.
        fast_mode: Accepted as PyTorch's.
    """
    arguments = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    checked = _checked_positions(arguments)
    with enable_grad():
        outputs = _differentiable(func(*arguments))
    if grad_outputs is None:
        cotangents = [_cotangent(output).requires_grad_() for output in outputs]
    else:
        given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
        cotangents = [each.detach().clone().requires_grad_() for each in given]

    def gradients(*values: Any) -> Results:
        own, weights = values[: len(arguments)], values[len(arguments) :]
        wanted = [own[i] for i in checked]
        with enable_grad():
            results = _differentiable(func(*own))
            return _analytic(results, weights, wanted, create_graph=True)

    return gradcheck(
        gradients,
        [*arguments, *cotangents],
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
    )


def _checked_positions(arguments: Sequence[Any]) -> list[int]:
    positions = [i for i, a in enumerate(arguments) if isinstance(a, Tensor) and a.requires_grad]
    if not positions:
        raise vkml.AutogradError("[gradcheck] no input requires a gradient. Set requires_grad=True")
    return positions


def _differentiable(result: Any) -> Results:
    results = [result] if isinstance(result, Tensor) else list(result)
    return [each for each in results if each.requires_grad]


def _cotangent(output: Tensor) -> Tensor:
    """Fixed numbers between 0.5 and 1.5 that no symmetry of the function can hide behind."""
    index = vkml.arange(output.numel(), dtype=vkml.float64, device=output.device)
    return (0.5 + (index * 0.6180339887498949) % 1.0).to(output.dtype).reshape(output.shape)


def _analytic(
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    wanted: list[Tensor],
    *,
    create_graph: bool = False,
) -> Results:
    """Gradients of the contraction, zeros where it does not depend on an input."""
    totals: list[Tensor | None] = [None] * len(wanted)
    for output, cotangent in zip(outputs, cotangents, strict=True):
        found = vkml.grad(
            output,
            wanted,
            grad_outputs=cotangent,
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
        for i, gradient in enumerate(found):
            total = totals[i]
            if gradient is not None:
                totals[i] = gradient if total is None else total + gradient
    return [
        vkml.zeros_like(tensor) if total is None else total
        for tensor, total in zip(wanted, totals, strict=True)
    ]


def _compare(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    position: int,
    cotangents: Sequence[Tensor],
    gradient: Tensor,
    eps: float,
    atol: float,
    rtol: float,
) -> None:
    tensor = arguments[position]
    flat = tensor.detach().reshape(-1)
    element = vkml.arange(tensor.numel(), device=tensor.device)

    def contraction(index: int, step: float) -> float:
        moved = flat + vkml.where(element == index, step, 0.0).to(tensor.dtype)
        varied = list(arguments)
        varied[position] = moved.reshape(tensor.shape).requires_grad_()
        # The function may take gradients itself: its own mode is left on.
        results = _differentiable(function(*varied))
        with no_grad():
            return sum(
                float((result * cotangent).sum())
                for result, cotangent in zip(results, cotangents, strict=True)
            )

    values = gradient.detach().reshape(-1).tolist()
    for index, actual in enumerate(values):
        numeric = (contraction(index, eps) - contraction(index, -eps)) / (2 * eps)
        if not abs(actual - numeric) <= atol + rtol * abs(numeric):
            raise GradcheckError(
                f"[gradcheck] input {position}, element {index}: the gradient is {actual:.9g}, the "
                f"difference {numeric:.9g}"
            )
