"""The Array API's extension `linalg`; factorisations run on the CPU, as `vkml.linalg` says."""

from __future__ import annotations

import vkml
from vkml import Tensor
from vkml import linalg as _linalg
from vkml._vkml import dtype as DType
from vkml._vkml import outer as outer
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.array_api.statistics import matmul as matmul
from vkml.array_api.statistics import matrix_transpose as matrix_transpose
from vkml.array_api.statistics import tensordot as tensordot
from vkml.array_api.statistics import vecdot as vecdot
from vkml.linalg import EighResult, QRResult, SlogdetResult, SVDResult

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """L of `x = L @ L.mT`, or its transpose with `upper`, of positive definite (..., n, n)."""
    return _linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product along an axis of extent 3; the other axes broadcast.

    Raises:
        ShapeError: For another extent.
    """
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise vkml.ShapeError(
            f"[cross] axis {axis} of shapes {x1.shape} and {x2.shape} must have extent 3"
        )
    a, b = vkml.unbind(x1, axis), vkml.unbind(x2, axis)
    parts = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)]
    return vkml.stack(parts, axis)


def det(x: Tensor, /) -> Tensor:
    """The determinants of (..., n, n)."""
    return _linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of (..., m, n), above the main one for a positive offset; a view."""
    return vkml.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors as columns, of symmetric (..., n, n)."""
    return _linalg.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric (..., n, n), ascending."""
    return _linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverses of (..., n, n). Raises ArgumentError for a singular matrix."""
    return _linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: str | float = "fro") -> Tensor:
    """Norms of matrices (..., m, n): 'fro', 'nuc', 1, 2, inf, and the negative ones."""
    return _linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The matrices (..., k, k) times themselves `n` times; negative powers are of the inverse."""
    return _linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values of (..., m, n) exceed `rtol` times the largest; see `pinv`."""
    x = x if x.dtype.is_floating_point else x.to(vkml.float64)
    return _linalg.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverses of (..., m, n).

    Args:
        x: The matrices.
        rtol: Singular values up to this share of the largest count as 0; a tensor has one for each
            matrix. max(m, n) times the dtype's step from 1 if None.
    """
    return _linalg.pinv(x, rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """`x = Q @ R` of (..., m, n); see `vkml.linalg.qr`."""
    return _linalg.qr(x, mode)


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The signs of the determinants of (..., n, n) and the logarithms of their magnitudes."""
    return _linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """X of `x1 @ X = x2`; a vector x2 is one column."""
    return _linalg.solve(x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """`x = U @ diag(S) @ Vh` of (..., m, n); see `vkml.linalg.svd`."""
    return _linalg.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of (..., m, n), descending."""
    return _linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sums of the diagonals of (..., m, n)."""
    return vkml.sum(diagonal(x, offset=offset), -1, dtype=dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """The `ord`-norm along axes, or of all elements."""
    return _linalg.vector_norm(x, ord, axis, keepdims)


_check_arguments(globals(), __all__)
