"""Functions of matrices that products and factorisations express; `vkml.linalg` offers them.

Those that factorise run where `vkml.linalg`'s factorisations do, the others on every device.
"""

# ruff: noqa: N803 (PyTorch names matrices A and B)
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import vkml
from vkml import Tensor, linalg
from vkml.argument_errors import check_arguments as _check_arguments

_DEGREE = 15  # of the Taylor polynomial: 0.5^16 / 16! is below float64's rounding
_BLOCK = 4  # powers of the matrix that are kept, so that few products give the polynomial


class LstsqResult(NamedTuple):
    """What minimises the squares, their sums, the ranks, and the singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _square(operator: str, A: Tensor) -> None:
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise vkml.ShapeError(f"[{operator}] needs square matrices, not {A.shape}.")


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X of `A @ X = B`, from the Cholesky factor of A.

    Args:
        B: Shape (..., n, k).
        L: Shape (..., n, n): the lower factor, or with `upper` the upper one.
        upper: Which.
    """
    lower = L.mT if upper else L
    inner = linalg.solve_triangular(lower, B, upper=False)
    return linalg.solve_triangular(lower.mT, inner, upper=True)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A from its Cholesky factor (..., n, n)."""
    identity = vkml.eye(L.shape[-1], dtype=L.dtype, device=L.device)
    return cholesky_solve(identity.broadcast_to(L.shape), L, upper)


def cond(A: Tensor, p: str | float | None = None) -> Tensor:
    """The condition number of (..., m, n): how much a relative error can grow in `solve`.

    Args:
        A: The matrices; square unless p is None, 2 or -2.
        p: The norm, as for `matrix_norm`; the largest singular value over the smallest if None.
    """
    if p is None or p in (2, -2):
        values = linalg.svdvals(A)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    _square("cond", A)
    return linalg.matrix_norm(A, p) * linalg.matrix_norm(linalg.inv(A), p)


def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LstsqResult:
    """The X of smallest norm that minimises `norm(A @ X - B)`, by the singular values of A.

    Args:
        A: Shape (..., m, n).
        B: Shape (..., m, k).
        rcond: Singular values up to this share of the largest count as 0; see `pinv`.
        driver: None, or LAPACK's name of this way, `gelsd`.

    Returns:
        A named tuple: the solution (..., n, k); the sums of squares (..., k) if m > n and every A
        has rank n, else no elements; the ranks; the singular values.
    """
    if driver not in (None, "gelsd"):
        raise vkml.ArgumentError(f"[lstsq] driver is {driver!r}. Pass 'gelsd' or None.")
    values = linalg.svdvals(A)
    share = linalg.default_tolerance(A) if rcond is None else rcond
    rank = linalg.matrix_rank(A, rtol=share)
    solution = linalg.pinv(A, share) @ B
    rows, columns = A.shape[-2:]
    if rows > columns and bool((rank == columns).all().item()):
        residuals = ((A @ solution - B) ** 2).sum(-2)
    else:
        residuals = vkml.zeros(0, dtype=A.dtype, device=A.device)
    return LstsqResult(solution, residuals, rank, values)


def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of (..., n, n): the limit of the sum of A^k / k!; on every device.

    Scaling and squaring (Moler and Van Loan, SIAM Review 45, 2003): a Taylor polynomial of the
    matrix halved until its norm is below 1/2, by Paterson and Stockmeyer's scheme, then squared as
    often. Waits for A, whose norm says how often.
    """
    _square("matrix_exp", A)
    if A.numel() == 0:
        return A.clone()
    norm = A.detach().abs().sum(-2).amax().item()
    if not math.isfinite(norm):
        return vkml.full_like(A, math.nan)
    halvings = max(0, math.ceil(math.log2(norm)) + 1) if norm > 0 else 0
    scaled = A * 2.0**-halvings
    identity = vkml.eye(A.shape[-1], dtype=A.dtype, device=A.device).broadcast_to(A.shape)
    powers = [identity, scaled]
    while len(powers) <= _BLOCK:
        powers.append(powers[-1] @ scaled)
    result: Tensor | None = None
    for first in reversed(range(0, _DEGREE + 1, _BLOCK)):
        block = vkml.zeros_like(A)
        for k in range(_BLOCK):
            block = block + powers[k] / math.factorial(first + k)
        result = block if result is None else result @ powers[_BLOCK] + block
    assert result is not None
    for _ in range(halvings):
        result = result @ result
    return result


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the order of brackets that takes the fewest multiplications.

    Args:
        tensors: Two or more matrices; the first and the last may be vectors.
    """
    factors = list(tensors)
    if len(factors) < 2:
        raise vkml.ArgumentError(f"[multi_dot] takes two tensors or more, not {len(factors)}.")
    is_row, is_column = factors[0].ndim == 1, factors[-1].ndim == 1
    if is_row:
        factors[0] = factors[0].unsqueeze(0)
    if is_column:
        factors[-1] = factors[-1].unsqueeze(1)
    extents = [*(factor.shape[0] for factor in factors), factors[-1].shape[1]]
    # cost[i, j] and where to split the factors i to j (Cormen et al., Introduction to Algorithms).
    cost = {(i, i): 0 for i in range(len(factors))}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, len(factors)):
        for i in range(len(factors) - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k)
                for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return factors[i]
        return product(i, split[i, j]) @ product(split[i, j] + 1, j)

    result = product(0, len(factors) - 1)
    if is_column:
        result = result.squeeze(-1)
    return result.squeeze(0) if is_row else result


def norm(
    A: Tensor,
    ord: str | float | None = None,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
) -> Tensor:
    """A vector norm along one axis, or a matrix norm over two.

    Args:
        A: Any shape.
        ord: As for `vector_norm` or `matrix_norm`; None for the root of the sum of squares.
        dim: One axis, or two; None for all elements, or with `ord` for the one or two axes of A.
        keepdim: Whether the axes stay, with extents of 1.
    """
    if ord is None:
        return vkml.norm(A, 2, dim, keepdim)
    axes = tuple(range(A.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if len(axes) == 1 and not isinstance(ord, str):
        return linalg.vector_norm(A, ord, axes[0], keepdim)
    if len(axes) != 2:
        raise vkml.ShapeError(f"[norm] order {ord!r} over {len(axes)} axes. Pass dim: one or two.")
    moved = vkml.movedim(A, axes, (-2, -1))
    result = linalg.matrix_norm(moved, ord, keepdim=keepdim)
    return vkml.movedim(result, (-2, -1), axes) if keepdim else result


def tensorsolve(A: Tensor, B: Tensor) -> Tensor:
    """X of `tensordot(A, X, X.ndim) = B`, where A has the axes of B and then those of X."""
    unknown = tuple(A.shape[B.ndim :])
    size = math.prod(unknown)
    if tuple(A.shape[: B.ndim]) != tuple(B.shape) or size != B.numel():
        raise vkml.ShapeError(f"[tensorsolve] shapes {A.shape} and {B.shape} are no square system.")
    return linalg.solve(A.reshape(size, size), B.reshape(-1)).reshape(unknown)


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a map from its axes past the first `ind` to those."""
    first, rest = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if ind < 1 or math.prod(first) != math.prod(rest):
        raise vkml.ShapeError(f"[tensorinv] shape {A.shape} is no square matrix past axis {ind}.")
    return linalg.inv(A.reshape(math.prod(first), -1)).reshape(*rest, *first)


_check_arguments(globals())
