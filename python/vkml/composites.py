"""Functions of PyTorch that are a few lines of others, and run and differentiate as those do."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import vkml
from vkml._vkml import Tensor
from vkml._vkml import dtype as DType

__all__ = [
    "as_tensor",
    "atleast_1d",
    "atleast_2d",
    "block_diag",
    "cdist",
    "clone",
    "column_stack",
    "concatenate",
    "corrcoef",
    "cov",
    "cross",
    "cumulative_trapezoid",
    "diagflat",
    "diagonal_scatter",
    "dist",
    "dsplit",
    "hsplit",
    "inner",
    "is_floating_point",
    "is_tensor",
    "kron",
    "numel",
    "row_stack",
    "select_scatter",
    "slice_scatter",
    "t",
    "trapezoid",
    "unravel_index",
    "vander",
    "vdot",
    "vsplit",
]

Index = slice | int


def as_tensor(
    data: Any, dtype: DType | None = None, device: vkml.DeviceLike | None = None
) -> Tensor:
    """A tensor itself where dtype and device fit, else what `tensor` makes of it."""
    return vkml.asarray(data, dtype=dtype, device=device)


def clone(input: Tensor) -> Tensor:
    """A copy of its own, with the gradient passed on."""
    return input.clone()


def numel(input: Tensor) -> int:
    """Number of elements."""
    return input.numel()


def is_tensor(obj: object) -> builtins.bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether the elements have fractions."""
    return input.dtype.is_floating_point


# Shapes.


def t(input: Tensor) -> Tensor:
    """A matrix transposed; what has fewer axes, as it is. A view."""
    if input.ndim > 2:
        raise vkml.ShapeError(f"[t] shape {input.shape} has more than two axes. Use transpose")
    return input.T if input.ndim == 2 else input


def atleast_1d(input: Tensor) -> Tensor:
    """A number as a vector of one element; anything else as it is."""
    return input.reshape(1) if input.ndim == 0 else input


def atleast_2d(input: Tensor) -> Tensor:
    """A number or vector as a matrix of one row; anything else as it is."""
    return input.reshape(1, -1) if input.ndim < 2 else input


def concatenate(tensors: Sequence[Tensor], dim: int = 0, axis: int | None = None) -> Tensor:
    """`cat` by NumPy's name."""
    return vkml.cat(tensors, dim if axis is None else axis)


def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """`vstack` by NumPy's other name."""
    return vkml.vstack(tensors)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as the columns of a matrix, matrices side by side."""
    return vkml.cat([x.reshape(-1, 1) if x.ndim < 2 else x for x in tensors], 1)


def _split(operator: str, input: Tensor, parts: int | Sequence[int], axis: int) -> Any:
    if input.ndim <= axis:
        raise vkml.ShapeError(f"[{operator}] shape {input.shape} has no axis {axis}")
    if isinstance(parts, int) and input.shape[axis] % parts != 0:
        raise vkml.ShapeError(
            f"[{operator}] extent {input.shape[axis]} does not divide into {parts} equal parts"
        )
    return vkml.tensor_split(input, parts, axis)


def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> Any:
    """Parts side by side: of equal widths, or cut at indices; of a vector along its one axis."""
    return _split("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> Any:
    """Parts one below the other, of equal heights, or cut at indices."""
    return _split("vsplit", input, indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> Any:
    """Parts along the third axis, equal ones, or cut at indices."""
    return _split("dsplit", input, indices_or_sections, 2)


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one, zeros elsewhere; numbers and vectors are one row."""
    matrices = [atleast_2d(x) for x in tensors]
    width = sum(x.shape[1] for x in matrices)
    rows, left = [], 0
    for x in matrices:
        rows.append(vkml.pad(x, (left, width - left - x.shape[1])))
        left += x.shape[1]
    return vkml.cat(rows, 0)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A square matrix with all elements on a diagonal."""
    return vkml.diag_embed(input.reshape(-1), offset)


# Copies with a part replaced.


def _with(input: Tensor, index: tuple[Index, ...], source: Tensor) -> Tensor:
    result = input.clone()
    result[index] = source
    return result


def _at(input: Tensor, dim: int, part: Index) -> tuple[Index, ...]:
    return (*(slice(None),) * (dim % input.ndim), part)


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with the slice at one index along an axis replaced."""
    return _with(input, _at(input, dim, index), src)


def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A copy with a slice along an axis replaced."""
    return _with(input, _at(input, dim, slice(start, end, step)), src)


def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy with a diagonal of two axes replaced."""
    result = input.clone()
    vkml.diagonal(result, offset, dim1, dim2).copy_(src)
    return result


# Products and distances.


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums of products over the last axes of both."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return vkml.tensordot(input, other, ((-1,), (-1,)))


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    return vkml.dot(input, other)


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along an axis of extent 3: the named one, or the first that has it."""
    if dim is None:
        dim = next((axis for axis, extent in enumerate(input.shape) if extent == 3), -1)
    return vkml.array_api.linalg.cross(input, other, axis=dim)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`, up to rank 2."""
    rank = max(input.ndim, other.ndim)
    if rank > 2:
        raise vkml.ShapeError(f"[kron] shapes {input.shape} and {other.shape} exceed rank 2")
    a, b = atleast_2d(input), atleast_2d(other)
    blocks = a.reshape(a.shape[0], 1, a.shape[1], 1) * b.reshape(1, b.shape[0], 1, b.shape[1])
    result = blocks.reshape(a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    return result if rank == 2 else result.reshape(-1) if rank == 1 else result.reshape(())


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference of each row of (..., n, k) and each of (..., m, k)."""
    return vkml.norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def dist(input: Tensor, other: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference of two tensors."""
    return vkml.norm(input - other, p)


def vander(x: Tensor, N: int | None = None, increasing: builtins.bool = False) -> Tensor:  # noqa: N803
    """Powers of a vector's elements as rows, the highest first unless they increase."""
    count = x.shape[0] if N is None else N
    exponents = vkml.arange(count, device=x.device)
    powers: Tensor = x.unsqueeze(1) ** (exponents if increasing else exponents.flip(0))
    return powers


# Statistics and integrals.


def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """Covariances of variables in rows of (variables, observations), or of one vector."""
    rows = atleast_2d(input)
    centred = rows - rows.mean(1, keepdim=True)
    result: Tensor = centred @ centred.T / (rows.shape[1] - correction)
    return result if input.ndim == 2 else result.reshape(())


def corrcoef(input: Tensor) -> Tensor:
    """Correlations of variables in rows of (variables, observations)."""
    covariance = atleast_2d(cov(input))
    spread = vkml.diagonal(covariance).sqrt()
    result = covariance / vkml.outer(spread, spread)
    return result if input.ndim == 2 else result.reshape(())


def _trapezoids(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    heights = vkml.narrow(y, dim, 1, y.shape[dim] - 1) + vkml.narrow(y, dim, 0, y.shape[dim] - 1)
    if x is None:
        return heights * (dx * 0.5)
    if x.ndim == 1:
        x = x.reshape(-1, *(1,) * (y.ndim - 1 - dim % y.ndim))
    return heights * vkml.diff(x, 1, dim if x.ndim == y.ndim else 0) * 0.5


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral along an axis by the trapezoidal rule, over points `x` or steps `dx`."""
    return _trapezoids(y, x, dx, dim).sum(dim)


def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1
) -> Tensor:
    """The integrals up to each point but the first."""
    return _trapezoids(y, x, dx, dim).cumsum(dim)


def unravel_index(indices: Tensor, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Positions in a shape of numbers in row-major order, a tensor for each axis."""
    rest, places = indices, []
    for extent in reversed(tuple(shape)):
        places.append(rest % extent)
        rest = rest // extent
    return tuple(reversed(places))
