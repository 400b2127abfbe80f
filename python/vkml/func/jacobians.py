"""Jacobians and Hessians: one pass over the graph, mapped over a basis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import vkml
from vkml import Tensor
from vkml.func.batching import vmap
from vkml.func.derivatives import ArgNums, Function, chosen, jvp, vjp
from vkml.trees import flatten, unflatten


def jacrev(
    func: Function, argnums: ArgNums = 0, has_aux: bool = False, *, chunk_size: int | None = None
) -> Function:
    """The Jacobian, row by row in reverse mode: for functions with few results.

    Args:
        func: Any function; with `has_aux` it returns (output, aux).
        argnums: The number of the argument that is differentiated, or several.
        has_aux: Whether `func` returns (output, aux).
        chunk_size: How many rows are computed at once; None for all, 1 for functions that `vmap`
            does not take.

    Returns:
        A function of the same arguments. For each result, in the function's structure, it gives the
        Jacobian with each argument, in the arguments' structure: the result's shape, then the
        argument's. Raises ShapeError if these are more than four axes.
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = chosen(func, args, kwargs, argnums, "jacrev")
        output, pull, *aux = vjp(of_chosen, *primals, has_aux=has_aux)
        results = flatten(output)

        def pull_tree(*cotangents: Tensor) -> tuple[Tensor, ...]:
            return tuple(flatten(pull(unflatten(output, cotangents))))

        arguments = flatten(primals)
        columns = []
        for position, result in enumerate(results):
            others = [vkml.zeros_like(other) for other in results]

            def pull_one(row: Tensor, at: int = position, rest: list[Tensor] = others) -> Any:
                return pull_tree(*rest[:at], row, *rest[at + 1 :])

            rows = _over_basis(pull_one, result, chunk_size)
            columns.append(
                [
                    block.reshape(*result.shape, *argument.shape)
                    for block, argument in zip(rows, arguments, strict=True)
                ]
            )
        found = unflatten(output, [_argument_tree(primals, argnums, column) for column in columns])
        return (found, *aux) if has_aux else found

    return jacobian


def jacfwd(
    func: Function, argnums: ArgNums = 0, has_aux: bool = False, *, chunk_size: int | None = None
) -> Function:
    """The Jacobian, column by column in forward mode: for functions of few numbers.

    Arguments and results are those of `jacrev`; `chunk_size` counts columns.
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = chosen(func, args, kwargs, argnums, "jacfwd")
        arguments = flatten(primals)
        blocks: list[list[Tensor]] = []
        structure: list[Any] = []

        for position, argument in enumerate(arguments):
            zeros = [vkml.zeros_like(other) for other in arguments]

            def push(column: Tensor, at: int = position, rest: list[Tensor] = zeros) -> Any:
                tangents = unflatten(primals, [*rest[:at], column, *rest[at + 1 :]])
                output, tangent, *aux = jvp(of_chosen, primals, tangents, has_aux=has_aux)
                structure[:] = [output, aux]
                return tuple(flatten(tangent))

            columns = _over_basis(push, argument, chunk_size)
            blocks.append(
                [
                    vkml.movedim(block.reshape(-1, *shape), 0, -1).reshape(*shape, *argument.shape)
                    for block in columns
                    for shape in [tuple(block.shape[1:])]
                ]
            )
        output, aux = structure
        rows = list(zip(*blocks, strict=True))
        found = unflatten(output, [_argument_tree(primals, argnums, row) for row in rows])
        return (found, *aux) if has_aux else found

    return jacobian


def hessian(func: Function, argnums: ArgNums = 0) -> Function:
    """The second derivatives of a function of one element: `jacfwd` of `jacrev`."""
    return jacfwd(jacrev(func, argnums), argnums)


def _argument_tree(primals: tuple[Any, ...], argnums: ArgNums, blocks: Sequence[Tensor]) -> Any:
    tree = unflatten(primals, blocks)
    return tree[0] if isinstance(argnums, int) else tree


def _over_basis(
    function: Callable[[Tensor], tuple[Tensor, ...]], like: Tensor, chunk_size: int | None
) -> list[Tensor]:
    """The results for each element of the standard basis of `like`'s shape, stacked."""
    count = like.numel()
    basis = vkml.eye(count, dtype=like.dtype, device=like.device).reshape(count, *like.shape)
    if chunk_size is None:
        try:
            return list(vmap(function)(basis))
        except vkml.UnsupportedError as error:
            raise vkml.UnsupportedError(f"{error}: chunk_size=1") from error
    parts = []
    for start in range(0, count, chunk_size):
        chunk = basis[start : start + chunk_size]
        if chunk_size == 1:
            parts.append([part.unsqueeze(0) for part in function(chunk[0])])
        else:
            parts.append(list(vmap(function)(chunk)))
    return [vkml.cat(list(column)) for column in zip(*parts, strict=True)]
