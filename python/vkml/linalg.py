"""Linear algebra of small matrices, by PyTorch's and the Array API's names.

Factorisations run on the CPU alone, in double precision, and wait for their operands; on another
device they raise `UnsupportedError` with the way out. The last two axes are the matrix, those
before it a batch. All have gradients, of every order but where their documentation says otherwise.
"""

# ruff: noqa: N803 (PyTorch names matrices A and B)
from __future__ import annotations

import math
from typing import NamedTuple

import vkml
from vkml import Tensor, _vkml
from vkml._vkml import matmul as matmul
from vkml._vkml import vecdot as vecdot
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "logdet",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class QRResult(NamedTuple):
    """Orthonormal columns and an upper triangle."""

    Q: Tensor
    R: Tensor


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVDResult(NamedTuple):
    """Left vectors as columns, singular values, descending, and right vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X of `A @ X = B`, or of `X @ A = B` without `left`, by LU factorisation with pivoting.

    Args:
        A: Shape (..., n, n).
        B: Shape (..., n, k), or (..., k, n) without `left`; or a vector (n,). Batches broadcast.
        left: On which side of X the matrix stands.

    Raises:
        ArgumentError: For a singular matrix.
    """
    if left:
        return _vkml._linalg_solve(A, B)
    if B.ndim == 1:
        return _vkml._linalg_solve(A.mT, B)
    return _vkml._linalg_solve(A.mT, B.mT).mT


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X of `A @ X = B`, or of `X @ A = B` without `left`, for a triangular A.

    Args:
        A: Shape (..., n, n); the other triangle is not read.
        B: Shape (..., n, k), or (..., k, n) without `left`.
        upper: Whether the upper triangle counts.
        left: On which side of X the matrix stands.
        unitriangular: Whether the diagonal is taken as 1.
    """
    if left:
        return _vkml._linalg_solve_triangular(A, B, upper, unitriangular)
    return _vkml._linalg_solve_triangular(A.mT, B.mT, not upper, unitriangular).mT


def inv(A: Tensor) -> Tensor:
    """The inverse of (..., n, n). Raises ArgumentError for a singular matrix."""
    return _vkml._linalg_inv(A)


def det(A: Tensor) -> Tensor:
    """The determinant of (..., n, n), shape (...).

    Singular matrices have two derivatives, others all.
    """
    return _vkml._linalg_det(A)


def slogdet(A: Tensor) -> SlogdetResult:
    """The sign of the determinant of (..., n, n) and the logarithm of its magnitude.

    The gradient at a singular matrix is infinite, and NaN in entries whose cofactor is 0.
    """
    return SlogdetResult(*_vkml._linalg_slogdet(A))


def logdet(A: Tensor) -> Tensor:
    """The logarithm of the determinant of (..., n, n); NaN where that is negative."""
    sign, logarithm = slogdet(A)
    return vkml.where(sign < 0, float("nan"), logarithm)


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L of `A = L @ L.T`, or its transpose with `upper`; reads the lower triangle.

    Args:
        A: Symmetric positive definite matrices, shape (..., n, n).
        upper: Whether the upper factor is returned.

    Raises:
        ArgumentError: Unless the matrix is positive definite.
    """
    factor = _vkml._linalg_cholesky(A)
    return factor.mT if upper else factor


def qr(A: Tensor, mode: str = "reduced") -> QRResult:
    """`A = Q @ R` by Householder reflections.

    Args:
        A: Shape (..., m, n). The gradient raises AutogradError where the first k columns are
            linearly dependent: there Q has no derivative.
        mode: `reduced`: Q has shape (..., m, k) and R (..., k, n), with k = min(m, n). `complete`:
            the same with k = m; where m > n any columns complete Q, so that it has no gradient.
            `r`: R as in `reduced`, and no elements for Q.
    """
    if mode not in ("reduced", "complete", "r"):
        raise vkml.ArgumentError(f"[qr] mode is {mode!r}. Pass 'reduced', 'complete' or 'r'.")
    columns, triangle = _vkml._linalg_qr(A)
    if mode == "r":
        return QRResult(vkml.empty(0, dtype=A.dtype, device=A.device), triangle)
    missing = A.shape[-2] - A.shape[-1]
    if mode == "complete" and missing > 0:
        columns = _completed(columns)
        triangle = vkml.pad(triangle, (0, 0, 0, missing))
    return QRResult(columns, triangle)


def _completed(columns: Tensor) -> Tensor:
    """A square matrix that begins with given orthonormal columns."""
    return vkml.cat([columns, _vkml._linalg_complement(columns)], -1)


def eigh(A: Tensor, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of symmetric matrices (..., n, n), by Jacobi's rotations.

    Args:
        A: The matrices. Gradients of the vectors need distinct values, and are infinite or NaN
            elsewhere; those of the values do not.
        UPLO: The triangle that is read: `L` for the lower one, `U` for the upper one.
    """
    if UPLO not in ("L", "U", "l", "u"):
        raise vkml.ArgumentError(f"[eigh] UPLO is {UPLO!r}. Pass 'L' or 'U'.")
    return EighResult(*_vkml._linalg_eigh(A if UPLO in ("L", "l") else A.mT))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices (..., n, n), ascending; arguments as `eigh`."""
    return eigh(A, UPLO).eigenvalues


def svd(A: Tensor, full_matrices: bool = True) -> SVDResult:
    """`A = U @ diag(S) @ Vh` by one-sided Jacobi rotations.

    Gradients of U and Vh need distinct singular values, and are infinite or NaN elsewhere; those of
    S do not.

    Args:
        A: Shape (..., m, n).
        full_matrices: Whether U has shape (..., m, m) and Vh (..., n, n) instead of (..., m, k) and
            (..., k, n), k = min(m, n). Any columns complete them, so that the larger of both has no
            gradient then: pass False to differentiate it.
    """
    left, values, right = _vkml._linalg_svd(A)
    if full_matrices and A.shape[-2] > A.shape[-1]:
        left = _completed(left)
    elif full_matrices and A.shape[-1] > A.shape[-2]:
        right = _completed(right.mT).mT
    return SVDResult(left, values, right)


def svdvals(A: Tensor) -> Tensor:
    """The singular values of (..., m, n), descending."""
    return svd(A, full_matrices=False).S


def default_tolerance(A: Tensor) -> float:
    """max(m, n) times the step from 1 of the dtype of A: below it a singular value is rounding."""
    return float(max(A.shape[-2:]) * vkml.finfo(A.dtype).eps)


def _limit(
    A: Tensor, values: Tensor, atol: float | Tensor | None, rtol: float | Tensor | None
) -> Tensor:
    """The magnitude up to which a value is rounding: the larger of `atol` and a share."""

    def column(tolerance: float | Tensor) -> float | Tensor:
        return tolerance.unsqueeze(-1) if isinstance(tolerance, Tensor) else tolerance

    # As in PyTorch an absolute tolerance alone stands for itself.
    default = default_tolerance(A) if atol is None else 0.0
    empty = values.shape[-1] == 0
    largest = values.sum(-1, keepdim=True) if empty else values.abs().amax(-1, keepdim=True)
    return vkml.maximum(largest * column(default if rtol is None else rtol), column(atol or 0.0))


def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """How many singular values of (..., m, n) exceed a limit.

    Args:
        A: The matrices.
        tol: NumPy's name of `atol`.
        hermitian: Whether they are symmetric, so that the lower triangle says all.
        atol: The limit itself.
        rtol: The limit as a share of the largest value; as in `pinv` if None.
    """
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    limit = _limit(A, values, tol if atol is None else atol, rtol)
    return (values > limit).sum(-1).to(vkml.int64)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The vector product along an axis of extent 3; see `vkml.cross`."""
    return vkml.cross(input, other, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices (..., m, n): a view."""
    return vkml.diagonal(A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers 0 to N - 1 of the elements of a vector, as rows; N is its length if None."""
    return vkml.vander(x, N, increasing=True)


def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """The pseudo-inverse of (..., m, n): singular values up to a limit count as 0.

    The gradient (Golub and Pereyra, 1973) takes the rank as constant.

    Args:
        A: The matrices.
        rcond: NumPy's name of `rtol`.
        hermitian: Whether they are symmetric, so that the lower triangle says all.
        atol: The limit itself; a tensor has one number for each matrix.
        rtol: The limit as a share of the largest value: `default_tolerance(A)` if None, 0 beside
            `atol`.
    """
    share = rcond if rtol is None else rtol
    if hermitian:
        lower = A.tril()
        return pinv(lower + lower.tril(-1).mT, share, atol=atol)
    limit = _limit(A, svdvals(A.detach()), atol, share).squeeze(-1)
    return _vkml._linalg_pinv(A, limit)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """The matrix (..., n, n) times itself `n` times, by repeated squaring; on every device.

    Negative powers are those of the inverse.
    """
    base = inv(A) if n < 0 else A
    result = None
    count = abs(n)
    while count > 0:
        if count % 2 == 1:
            result = base if result is None else result @ base
        count //= 2
        if count > 0:
            base = base @ base
    if result is not None:
        return result
    identity = vkml.eye(A.shape[-1], dtype=A.dtype, device=A.device).broadcast_to(A.shape)
    # A constant has the gradient 0: that of what it is chosen instead of.
    return vkml.where(vkml.zeros(A.shape, dtype=vkml.bool, device=A.device), A, identity)


def vector_norm(
    x: Tensor,
    ord: float = 2.0,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: vkml.dtype | None = None,
) -> Tensor:
    """The `ord`-norm over axes, or over everything; on every device. In `dtype`, if given."""
    x = x if dtype is None else x.to(dtype)
    axes = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    if (ord < 0 or ord == math.inf) and math.prod(x.shape[axis] for axis in axes) == 0:
        raise vkml.ShapeError(
            f"[vector_norm] of no elements: shape {tuple(x.shape)}, ord {ord}. Pass a finite "
            "ord >= 0."
        )
    return vkml.norm(x, ord, dim, keepdim)


def matrix_norm(
    A: Tensor,
    ord: str | float = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: vkml.dtype | None = None,
) -> Tensor:
    """A norm of matrices (..., m, n).

    Args:
        A: The matrices.
        ord: `fro`; 1, -1, inf or -inf (sums of columns or rows), on every device; 2, -2 or `nuc`
            (singular values), on the CPU.
        dim: The axes of rows and columns.
        keepdim: Whether the two axes stay, with extents of 1.
        dtype: What the matrices are converted to first.
    """
    if dtype is not None:
        return matrix_norm(A.to(dtype), ord, dim, keepdim)
    axes = (-2, -1)
    if tuple(axis % A.ndim for axis in dim) != (A.ndim - 2, A.ndim - 1):
        moved = matrix_norm(vkml.movedim(A, tuple(dim), axes), ord, keepdim=True)
        back = vkml.movedim(moved, axes, tuple(dim))
        return back if keepdim else back.squeeze(tuple(dim))
    if ord == "fro":
        return vkml.norm(A, 2, axes, keepdim)
    if ord in (1, -1, float("inf"), -float("inf")):
        axis = -2 if abs(float(ord)) == 1 else -1
        sums = A.abs().sum(axis, keepdim=True)
        if sums.numel() == 0 and float(ord) > 0:
            sums = sums.sum(axes, keepdim=True)  # no sums, whose largest is 0
        result = sums.amax(axes, keepdim=True) if float(ord) > 0 else sums.amin(axes, keepdim=True)
    elif ord in (2, -2, "nuc"):
        values = svdvals(A)
        found = {2: values.amax, -2: values.amin, "nuc": values.sum}[ord](-1)
        result = found.unsqueeze(-1).unsqueeze(-1)
    else:
        raise vkml.ArgumentError(
            f"[matrix_norm] ord is {ord!r}. Pass 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."
        )
    return result if keepdim else result.squeeze(axes)


# Written in terms of the above.
from vkml.matrix_functions import cholesky_inverse as cholesky_inverse  # noqa: E402
from vkml.matrix_functions import cholesky_solve as cholesky_solve  # noqa: E402
from vkml.matrix_functions import cond as cond  # noqa: E402
from vkml.matrix_functions import lstsq as lstsq  # noqa: E402
from vkml.matrix_functions import matrix_exp as matrix_exp  # noqa: E402
from vkml.matrix_functions import multi_dot as multi_dot  # noqa: E402
from vkml.matrix_functions import norm as norm  # noqa: E402
from vkml.matrix_functions import tensorinv as tensorinv  # noqa: E402
from vkml.matrix_functions import tensorsolve as tensorsolve  # noqa: E402

_check_arguments(globals(), (*__all__, "default_tolerance"))
