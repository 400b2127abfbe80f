"""Derivatives of functions at given inputs, by PyTorch's `torch.autograd.functional`.

Each is a few lines of `vkml.func`, which has the same as functions of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import vkml
from vkml._vkml import Tensor
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Tensor | Sequence[Tensor]


def _tuple(inputs: Tensors) -> tuple[Tensor, ...]:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _like(given: Any, result: Sequence[Any]) -> Any:
    """One result for one tensor, a tuple for several."""
    return result[0] if isinstance(given, Tensor) else tuple(result)


def _kept(result: Any, create_graph: bool) -> Any:
    if create_graph:
        return result
    if isinstance(result, Tensor):
        return result.detach()
    return tuple(_kept(each, create_graph) for each in result)


def _refuse_strict(operator: str, strict: bool) -> None:
    if strict:
        raise vkml.ArgumentError(
            f"[{operator}] strict=True is not available: results that do not depend on an input "
            "have zeros. Use vkml.grad, which raises."
        )


def _of_one_element(operator: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*inputs: Any) -> Any:
        result = function(*inputs)
        if not isinstance(result, Tensor) or result.numel() != 1:
            raise vkml.ShapeError(f"[{operator}] func has to return a tensor of one element.")
        return result.reshape(())

    return checked


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of each element of a function's results with respect to each of its inputs.

    Args:
        func: Takes tensors, returns one or a tuple.
        inputs: One tensor or several.
        create_graph: Whether the derivatives can be differentiated.
        strict: False.
        vectorize: Accepted as PyTorch's: all elements are one plan anyway.
        strategy: `reverse-mode` or `forward-mode`.

    Returns:
        A tensor of shape (*result, *input); tuples of them where `inputs` or the result is one,
        nested as (results, inputs).
    """
    _refuse_strict("jacobian", strict)
    if strategy not in ("reverse-mode", "forward-mode"):
        raise vkml.ArgumentError(
            f"[jacobian] strategy is {strategy!r}. Pass 'reverse-mode' or 'forward-mode'."
        )
    given = _tuple(inputs)
    places = tuple(range(len(given)))
    make = vkml.func.jacrev if strategy == "reverse-mode" else vkml.func.jacfwd
    found = make(func, argnums=places)(*given)
    if isinstance(inputs, Tensor):
        # The blocks of the one input, of one result or of each.
        is_one = isinstance(found[0], Tensor)
        found = found[0] if is_one else tuple(each[0] for each in found)
    return _kept(found, create_graph)


def hessian(
    func: Callable[..., Tensor],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function of one element; arguments as `jacobian`.

    Returns:
        A tensor of shape (*input, *input); of several inputs a tuple of tuples.
    """
    _refuse_strict("hessian", strict)
    given = _tuple(inputs)
    places = tuple(range(len(given)))
    scalar = _of_one_element("hessian", func)
    forward = outer_jacobian_strategy == "forward-mode"
    outer = vkml.func.jacfwd if forward else vkml.func.jacrev
    found = outer(vkml.func.jacrev(scalar, argnums=places), argnums=places)(*given)
    return _kept(found[0][0] if isinstance(inputs, Tensor) else found, create_graph)


def vjp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """A function's results, and the vector v times its Jacobian; v is 1 for one element if None."""
    _refuse_strict("vjp", strict)
    result, pull_back = vkml.func.vjp(func, *_tuple(inputs))
    if v is None:
        if not isinstance(result, Tensor) or result.numel() != 1:
            raise vkml.ArgumentError("[vjp] v can be left out for a result of one element alone.")
        v = vkml.ones_like(result)
    cotangent = v if isinstance(result, Tensor) else tuple(v)
    return _kept(result, create_graph), _kept(
        _like(inputs, _tuple(pull_back(cotangent))), create_graph
    )


def _direction(operator: str, given: tuple[Tensor, ...], v: Tensors | None) -> tuple[Tensor, ...]:
    if v is not None:
        return _tuple(v)
    if len(given) != 1 or given[0].numel() != 1:
        raise vkml.ArgumentError(
            f"[{operator}] v can be left out for an input of one element alone."
        )
    return (vkml.ones_like(given[0]),)


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """A function's results, and its Jacobian times the vector v; v is 1 for one element if None."""
    _refuse_strict("jvp", strict)
    given = _tuple(inputs)
    result, tangent = vkml.func.jvp(func, given, _direction("jvp", given, v))
    return _kept(result, create_graph), _kept(tangent, create_graph)


def hvp(
    func: Callable[..., Tensor],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Any]:
    """A function's one element, and its Hessian times the vector v."""
    _refuse_strict("hvp", strict)
    given = _tuple(inputs)
    places = tuple(range(len(given)))
    scalar = _of_one_element("hvp", func)
    gradient = vkml.func.grad(scalar, argnums=places)
    _, found = vkml.func.jvp(gradient, given, _direction("hvp", given, v))
    return _kept(func(*given), create_graph), _kept(_like(inputs, found), create_graph)


def vhp(
    func: Callable[..., Tensor],
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Any]:
    """The vector v times the Hessian, which is symmetric: `hvp` by its other name."""
    return hvp(func, inputs, v, create_graph, strict)


_check_arguments(globals(), __all__)
