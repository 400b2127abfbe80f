"""Gradients, vector-Jacobian and Jacobian-vector products of functions.

A level of differentiation begins with its arguments as nodes of their own (variables): a leaf, or,
where an outer level watches the argument already, a view that shows all of it and passes gradients
on. The results are recorded for an outer level if, and only if, there is one: if the function
depends on something else that requires a gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import vkml
from vkml import Tensor, _vkml, enable_grad
from vkml.trees import flatten, unflatten

Function = Callable[..., Any]
ArgNums = int | Sequence[int]


def variable(tensor: Tensor, operator: str) -> Tensor:
    """The same value as a node of its own that gradients are recorded for."""
    if not tensor.dtype.is_floating_point:
        raise vkml.DTypeError(
            f"[{operator}] an argument is {tensor.dtype}; only floats have derivatives. Convert it "
            "with .float(), or leave it out of argnums."
        )
    if tensor.requires_grad:
        with enable_grad():
            return tensor.permute(*range(tensor.ndim))  # moves no axis: another node for the value
    return tensor.detach().requires_grad_()


def chosen(
    func: Function, args: Sequence[Any], kwargs: dict[str, Any], argnums: ArgNums, operator: str
) -> tuple[Function, tuple[Any, ...]]:
    """The function of the arguments that argnums names, and these arguments."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise vkml.ArgumentError(
                f"[{operator}] argnums names argument {number} of {len(args)}. Positional "
                "arguments count from 0."
            )

    def of_chosen(*given: Any) -> Any:
        arguments = list(args)
        for number, argument in zip(numbers, given, strict=True):
            arguments[number] = argument
        return func(*arguments, **kwargs)

    return of_chosen, tuple(args[number] for number in numbers)


class Level:
    """One level of differentiation: variables in place of arguments, and what depends on them."""

    def __init__(self, trees: Sequence[Any], operator: str) -> None:
        self.trees = tuple(trees)
        self.variables = [variable(tensor, operator) for tensor in flatten(self.trees)]
        self.arguments: tuple[Any, ...] = unflatten(self.trees, self.variables)

    def is_watched(self, outputs: Sequence[Tensor]) -> bool:
        """Whether an outer level differentiates these results."""
        return vkml.is_grad_enabled() and _vkml._has_other_leaves(outputs, self.variables)

    def leave(self, outputs: Any, is_watched: bool) -> Any:
        """Results without this level's record, unless an outer one needs it."""
        if is_watched:
            return outputs
        return unflatten(outputs, [tensor.detach() for tensor in flatten(outputs)])


def _split_aux(result: Any, has_aux: bool, operator: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise vkml.ArgumentError(
            f"[{operator}] with has_aux the function returns (output, aux), not "
            f"{type(result).__name__}."
        )
    return result


def pull_back(
    outputs: Sequence[Tensor], cotangents: Sequence[Tensor], inputs: list[Tensor], record: bool
) -> list[Tensor]:
    """The gradient of each input, zeros where the outputs do not depend on it."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    found = _vkml._cotangents([o for o, _ in pairs], [c for _, c in pairs], inputs, record)
    return [
        vkml.zeros_like(tensor) if gradient is None else gradient
        for tensor, gradient in zip(inputs, found, strict=True)
    ]


def grad(func: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """The gradient of a function of one element.

    Args:
        func: Returns a tensor of one element; with `has_aux`, that and anything else.
        argnums: The number of the argument that is differentiated, or several. An argument may hold
            many tensors.
        has_aux: Whether `func` returns (output, aux).

    Returns:
        A function of the same arguments that gives the gradient, shaped as the argument: a tuple if
        argnums is one; with `has_aux`, (gradient, aux).
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient_of(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return gradient_of


def grad_and_value(func: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """As `grad`; the function gives (gradient, value), with `has_aux` (gradient, (value, aux))."""

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = chosen(func, args, kwargs, argnums, "grad")
        level = Level(primals, "grad")
        with enable_grad():
            output, aux = _split_aux(of_chosen(*level.arguments), has_aux, "grad")
        if not isinstance(output, Tensor) or output.numel() != 1:
            shown = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise vkml.ShapeError(
                f"[grad] the function returns {shown}, not one element. Sum it, or use "
                "vkml.func.jacrev or vjp."
            )
        watched = level.is_watched([output])
        found = pull_back([output], [vkml.ones_like(output)], level.variables, watched)
        gradients = unflatten(level.trees, level.leave(found, watched))
        gradient = gradients[0] if isinstance(argnums, int) else gradients
        value = level.leave(output, watched)
        return gradient, (value, level.leave(aux, watched)) if has_aux else value

    return both


def value_and_grad(func: Function, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """As `grad_and_value`, in the other order: (value, gradient), as JAX and MLX have it."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def value_first(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return value, gradient

    return value_first


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and the function from cotangents to gradients (reverse mode).

    Args:
        func: Any function of the primals.
        *primals: Where it is differentiated.
        has_aux: Whether `func` returns (output, aux).

    Returns:
        (output, vjp_fn), with `has_aux` (output, vjp_fn, aux). `vjp_fn` takes cotangents shaped as
        the output and gives a tuple of gradients, one for each primal. It may be called any number
        of times.
    """
    level = Level(primals, "vjp")
    with enable_grad():
        output, aux = _split_aux(func(*level.arguments), has_aux, "vjp")
    outputs = flatten(output)
    watched = level.is_watched(outputs)

    def vjp_fn(*cotangents: Any) -> Any:
        given = flatten(cotangents)
        if len(given) != len(outputs):
            raise vkml.ArgumentError(
                f"[vjp] got {len(given)} cotangents for {len(outputs)} results of the function."
            )
        record = vkml.is_grad_enabled() and (watched or any(c.requires_grad for c in given))
        found = pull_back(outputs, given, level.variables, record)
        return unflatten(level.trees, level.leave(found, record))

    left = level.leave(output, watched)
    return (left, vjp_fn, level.leave(aux, watched)) if has_aux else (left, vjp_fn)


def jvp(func: Function, primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """The value of a function and its derivative in one direction (forward mode).

    Tangents are pushed through the recorded graph, each operator by its gradient rule: as a
    multiplication where it is elementwise, by the rule's transpose elsewhere.

    Args:
        func: Any function of the primals.
        primals: A tuple: where it is differentiated.
        tangents: A tuple: the direction, shaped as the primals.
        has_aux: Whether `func` returns (output, aux).

    Returns:
        (output, tangent), with `has_aux` (output, tangent, aux).
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise vkml.DTypeError(
            "[jvp] primals and tangents should be tuples, one entry for each argument, not "
            f"{type(primals).__name__} and {type(tangents).__name__}. Pass (x,) for one."
        )
    level = Level(primals, "jvp")
    _check_tangents("jvp", level, tangents)
    with enable_grad():
        output, aux = _split_aux(func(*level.arguments), has_aux, "jvp")
    watched = level.is_watched(flatten(output))
    tangent = _pushed(level, output, watched, flatten(tangents))
    left = level.leave(output, watched)
    return (left, tangent, level.leave(aux, watched)) if has_aux else (left, tangent)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of a function, and its derivative there as a function of directions.

    The function is called once; `jvp_fn` pushes any number of tangents through what that recorded.

    Args:
        func: Any function of the primals.
        *primals: Where it is differentiated.

    Returns:
        (output, jvp_fn). `jvp_fn` takes a tangent for each primal and gives one shaped as output.
    """
    level = Level(primals, "linearize")
    with enable_grad():
        output = func(*level.arguments)
    watched = level.is_watched(flatten(output))

    def jvp_fn(*tangents: Any) -> Any:
        _check_tangents("linearize", level, tangents)
        return _pushed(level, output, watched, flatten(tangents))

    return level.leave(output, watched), jvp_fn


def _check_tangents(name: str, level: Level, tangents: Any) -> None:
    directions = flatten(tangents)
    if [d.shape for d in directions] != [v.shape for v in level.variables]:
        raise vkml.ShapeError(
            f"[{name}] tangents have shapes {[tuple(d.shape) for d in directions]}, primals "
            f"{[tuple(v.shape) for v in level.variables]}. Pass a tangent for each primal."
        )


def _pushed(level: Level, output: Any, watched: bool, directions: list[Tensor]) -> Any:
    """The tangents of a level's output, in its structure."""
    outputs = flatten(output)
    record = vkml.is_grad_enabled() and (watched or any(d.requires_grad for d in directions))
    found = _vkml._tangents(outputs, level.variables, directions, record)
    pushed = [
        vkml.zeros_like(value.detach()) if tangent is None else tangent
        for value, tangent in zip(outputs, found, strict=True)
    ]
    return unflatten(output, level.leave(pushed, record))
