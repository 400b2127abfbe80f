"""Functions of PyTorch that are a few lines of others, and run and differentiate as those do."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import vkml
from vkml import _vkml
from vkml._vkml import Tensor
from vkml._vkml import dtype as DType
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = [
    "addbmm",
    "addr",
    "adjoint",
    "as_tensor",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "cartesian_prod",
    "cdist",
    "clone",
    "column_stack",
    "combinations",
    "concatenate",
    "corrcoef",
    "cov",
    "cross",
    "cumulative_trapezoid",
    "detach",
    "diagflat",
    "diagonal_scatter",
    "dist",
    "dsplit",
    "fill",
    "get_default_dtype",
    "gradient",
    "hsplit",
    "index_reduce",
    "inner",
    "is_floating_point",
    "is_nonzero",
    "is_same_size",
    "is_tensor",
    "kron",
    "narrow_copy",
    "numel",
    "pdist",
    "put",
    "randint_like",
    "renorm",
    "row_stack",
    "scalar_tensor",
    "select_scatter",
    "slice_scatter",
    "t",
    "trapezoid",
    "trapz",
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


def detach(input: Tensor) -> Tensor:
    """The same elements without their history; see `Tensor.detach`."""
    return input.detach()


def fill(input: Tensor, value: float | Tensor) -> Tensor:
    """A tensor like another that holds one value everywhere; a tensor's gradient is its sum's."""
    if isinstance(value, Tensor):
        return value.to(input.dtype).broadcast_to(input.shape).clone()
    return vkml.full_like(input, value)


def scalar_tensor(
    s: float, *, dtype: DType | None = None, device: vkml.DeviceLike | None = None
) -> Tensor:
    """A tensor of one number and no axes, float32 unless told."""
    return vkml.tensor(s, dtype=vkml.float32 if dtype is None else dtype, device=device)


def randint_like(
    input: Tensor, low: int, high: int | None = None, *, dtype: DType | None = None
) -> Tensor:
    """Random integers of another tensor's shape, dtype and device.

    Args:
        input: What the result is like.
        low: The lowest, or without `high` the number past the highest from 0 on.
        high: The number past the highest.
        dtype: That of `input` if None.
    """
    ends = (0, low) if high is None else (low, high)
    drawn = vkml.randint(*ends, tuple(input.shape), device=input.device)
    return drawn.to(input.dtype if dtype is None else dtype)


def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the one element of a tensor is not 0. Waits for it."""
    if input.numel() != 1:
        raise vkml.ShapeError(
            f"[is_nonzero] takes one element, not shape {input.shape}. Use any() or all()"
        )
    return builtins.bool(input.item())


def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have one shape."""
    return tuple(input.shape) == tuple(other.shape)


def numel(input: Tensor) -> int:
    """Number of elements."""
    return input.numel()


def is_tensor(obj: object) -> builtins.bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def get_default_dtype() -> vkml.dtype:
    """The dtype of floats that are made without one: float32, always."""
    return vkml.float32


def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether the elements have fractions."""
    return input.dtype.is_floating_point


# Shapes.


def t(input: Tensor) -> Tensor:
    """A matrix transposed; what has fewer axes, as it is. A view."""
    if input.ndim > 2:
        raise vkml.ShapeError(f"[t] shape {input.shape} has more than two axes. Use transpose")
    return input.T if input.ndim == 2 else input


def _of_each(function: Callable[[Tensor], Tensor], tensors: tuple[Any, ...]) -> Any:
    """The function of one tensor, or a tuple of those of several, which may be one list."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    listed = tensors[0] if len(tensors) == 1 else tensors
    return tuple(function(each) for each in listed)


def _matrix(input: Tensor) -> Tensor:
    return input.reshape(1, input.numel()) if input.ndim < 2 else input


def atleast_1d(*tensors: Any) -> Any:
    """A number as a vector of one element; anything else as it is. Of several a tuple."""
    return _of_each(lambda x: x.reshape(1) if x.ndim == 0 else x, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """A number or vector as a matrix of one row; anything else as it is. Of several a tuple."""
    return _of_each(_matrix, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Axes of extent 1 added up to three: a matrix gets one behind. Of several a tuple."""

    def cube(x: Tensor) -> Tensor:
        if x.ndim >= 3:
            return x
        return x.reshape(1, x.numel(), 1) if x.ndim < 2 else x.unsqueeze(-1)

    return _of_each(cube, tensors)


def adjoint(input: Tensor) -> Tensor:
    """Matrices (..., m, n) transposed, as all numbers here are real. A view."""
    return input.mT


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A part along an axis, as a copy of its own."""
    return vkml.narrow(input, dim, start, length).clone()


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
    matrices = [_matrix(x) for x in tensors]
    width = sum(x.shape[1] for x in matrices)
    rows, left = [], 0
    for x in matrices:
        rows.append(vkml.pad(x, (left, width - left - x.shape[1])))
        left += x.shape[1]
    return vkml.cat(rows, 0)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A square matrix with all elements on a diagonal."""
    return vkml.diag_embed(input.reshape(-1), offset)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All ways to take one element of each vector, as rows; the last vector runs fastest."""
    if len(tensors) == 1:
        return tensors[0]
    columns = vkml.meshgrid(*tensors, indexing="ij")
    return vkml.stack([column.reshape(-1) for column in columns], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: builtins.bool = False) -> Tensor:
    """All ways to take r elements of a vector, in its order, as rows."""
    if input.ndim != 1 or r < 0:
        raise vkml.ShapeError(f"[combinations] of {r} elements of shape {input.shape}")
    kind = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = [place for row in kind(range(input.shape[0]), r) for place in row]
    index = vkml.tensor(places, dtype=vkml.int32, device=input.device)
    return vkml.index_select(input, 0, index).reshape(-1, r) if places else input[:0].reshape(0, r)


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


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor:
    """A copy with elements replaced, or added to, by their numbers in row-major order."""
    flat = vkml.index_put(
        input.reshape(-1), (index.reshape(-1),), source.reshape(-1), accumulate=accumulate
    )
    return flat.reshape(input.shape)


def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: builtins.bool = True,
) -> Tensor:
    """A copy in which slices of `source` are joined to those of `input` that `index` names.

    Args:
        input: Any shape.
        dim: The axis.
        index: A vector: for each slice of `source` along the axis, its place in `input`.
        source: The slices.
        reduce: `prod`, `mean`, `amax` or `amin`.
        include_self: Whether what `input` holds counts.
    """
    if source.dtype != input.dtype:
        raise vkml.DTypeError(
            f"[index_reduce] the tensor is {input.dtype}, the source {source.dtype}. Convert it."
        )
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise vkml.ArgumentError(
            f"[index_reduce] reduce is {reduce!r}. Pass 'prod', 'mean', 'amax' or 'amin'."
        )
    return _vkml._index_reduce(input, dim, index, source, reduce, include_self)


# Products and distances.


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """The sum beta * input + alpha * outer(vec1, vec2); with beta = 0 the input is not read."""
    product: Tensor = vkml.outer(vec1, vec2) * alpha
    return product if beta == 0 else input * beta + product


def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """The sum of the products of two batches of matrices, times alpha, plus beta * input."""
    # The batch joins the inner axis: one product.
    rows = batch1.transpose(0, 1).reshape(batch1.shape[1], -1)
    product: Tensor = (rows @ batch2.reshape(-1, batch2.shape[2])) * alpha
    return product if beta == 0 else input * beta + product


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
    a, b = _matrix(input), _matrix(other)
    blocks = a.reshape(a.shape[0], 1, a.shape[1], 1) * b.reshape(1, b.shape[0], 1, b.shape[1])
    result = blocks.reshape(a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    return result if rank == 2 else result.reshape(-1) if rank == 1 else result.reshape(())


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference of each row of (..., n, k) and each of (..., m, k)."""
    return vkml.norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def dist(input: Tensor, other: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the difference of two tensors."""
    return vkml.norm(input - other, p)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order of `combinations`."""
    if input.ndim != 2:
        raise vkml.ShapeError(f"[pdist] takes a matrix, not shape {input.shape}")
    first, second = vkml.unbind(
        vkml.triu_indices(input.shape[0], input.shape[0], 1, device=input.device), 0
    )
    difference = vkml.index_select(input, 0, first) - vkml.index_select(input, 0, second)
    return vkml.norm(difference, p, -1)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices along an axis whose p-norm exceeds a limit, scaled down to it."""
    others = tuple(axis for axis in range(input.ndim) if axis != dim % input.ndim)
    norms = vkml.norm(input, p, others, True)
    # 1e-7 keeps a scaled slice from exceeding the limit by rounding, as in PyTorch.
    return input * vkml.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


def vander(x: Tensor, N: int | None = None, increasing: builtins.bool = False) -> Tensor:  # noqa: N803
    """Powers of a vector's elements as rows, the highest first unless they increase."""
    count = x.shape[0] if N is None else N
    exponents = vkml.arange(count, device=x.device)
    powers: Tensor = x.unsqueeze(1) ** (exponents if increasing else exponents.flip(0))
    return powers


# Statistics and integrals.


def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariances of variables in rows of (variables, observations), or of one vector.

    One variable has one number, without axes.

    Args:
        input: The observations.
        correction: What is taken away from their number before it divides.
        fweights: How often each was made: integers.
        aweights: How much each counts.
    """
    rows = _matrix(input)
    weights = vkml.ones(rows.shape[1], dtype=rows.dtype, device=rows.device)
    for given in (fweights, aweights):
        weights = weights if given is None else weights * given.to(rows.dtype)
    total = weights.sum()
    if fweights is None and aweights is None:
        degrees: Any = rows.shape[1] - correction
        centred = rows - rows.mean(1, keepdim=True)
        weighted = centred
    else:
        share = correction if aweights is None else correction * (weights * aweights).sum() / total
        degrees = total - share
        centred = rows - (rows * weights).sum(1, keepdim=True) / total
        weighted = centred * weights
    if rows.shape[1] == 0:
        shape = (rows.shape[0],) * 2 if rows.shape[0] != 1 else ()
        return vkml.full(shape, math.nan, dtype=rows.dtype, device=rows.device)
    # Without degrees of freedom it is undefined, or infinite: never of the other sign.
    if isinstance(degrees, int):
        degrees = vkml.scalar_tensor(degrees, dtype=rows.dtype, device=rows.device)
    result: Tensor = (weighted @ centred.T) / degrees.clamp(min=0)
    return result if rows.shape[0] != 1 else result.reshape(())


def corrcoef(input: Tensor) -> Tensor:
    """Correlations of variables in rows of (variables, observations)."""
    covariance = cov(input)
    matrix = covariance.reshape(1, 1) if covariance.ndim == 0 else covariance
    spread = vkml.diagonal(matrix).sqrt()
    return (matrix / vkml.outer(spread, spread)).reshape(covariance.shape)


def _trapezoids(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    if not y.is_floating_point():
        y = y.to(vkml.float32)
    if y.shape[dim] == 0:
        return vkml.zeros_like(y)
    heights = vkml.narrow(y, dim, 1, y.shape[dim] - 1) + vkml.narrow(y, dim, 0, y.shape[dim] - 1)
    if x is None:
        return heights * (dx * 0.5)
    if x.ndim == 1:
        x = x.reshape(-1, *(1,) * (y.ndim - 1 - dim % y.ndim))
    return heights * vkml.diff(x, 1, dim if x.ndim == y.ndim else 0) * 0.5


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral along an axis by the trapezoidal rule, over points `x` or steps `dx`."""
    return _trapezoids(y, x, dx, dim).sum(dim)


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """`trapezoid` by its older name."""
    return trapezoid(y, x, dx=dx, dim=dim)


def _slopes(input: Tensor, dim: int, spacing: float, edge_order: int) -> Tensor:
    count = input.shape[dim]
    if count <= edge_order:
        raise vkml.ShapeError(
            f"[gradient] axis {dim} of shape {input.shape} has no more than {edge_order} elements"
        )

    def at(place: int) -> Tensor:
        return vkml.narrow(input, dim, place % count, 1)

    inner = (vkml.narrow(input, dim, 2, count - 2) - vkml.narrow(input, dim, 0, count - 2)) * 0.5
    if edge_order == 1:
        ends = [at(1) - at(0), at(-1) - at(-2)]
    else:
        ends = [
            -1.5 * at(0) + 2.0 * at(1) - 0.5 * at(2),
            1.5 * at(-1) - 2.0 * at(-2) + 0.5 * at(-3),
        ]
    return vkml.cat([ends[0], inner, ends[1]], dim) / spacing


def gradient(
    input: Tensor,
    *,
    spacing: float | Sequence[float] = 1.0,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Slopes along axes by central differences, and by one-sided ones at both ends.

    Args:
        input: Samples of a function.
        spacing: How far neighbours are apart: one number, or one for each axis.
        dim: The axes; all if None.
        edge_order: Of the error at the ends: 1 or 2.

    Returns:
        A tensor for each axis.
    """
    axes = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = [spacing] * len(axes) if isinstance(spacing, int | float) else list(spacing)
    if len(steps) != len(axes) or edge_order not in (1, 2):
        raise vkml.ArgumentError(
            f"[gradient] {len(steps)} spacings for {len(axes)} axes, edge_order {edge_order}. Pass "
            f"one spacing for each axis, and 1 or 2."
        )
    return tuple(
        _slopes(input, axis % input.ndim, step, edge_order)
        for axis, step in zip(axes, steps, strict=True)
    )


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


_check_arguments(globals(), __all__)
