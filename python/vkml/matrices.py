"""Functions of `vkml.linalg` at the top, where PyTorch calls the matrix `input`."""

from __future__ import annotations

from typing import Any

from vkml import linalg
from vkml._vkml import Tensor
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = [
    "cholesky",
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "slogdet",
]


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """See `vkml.linalg.cholesky`."""
    return linalg.cholesky(input, upper=upper)


def det(input: Tensor) -> Tensor:
    """See `vkml.linalg.det`."""
    return linalg.det(input)


def inverse(input: Tensor) -> Tensor:
    """See `vkml.linalg.inv`."""
    return linalg.inv(input)


def logdet(input: Tensor) -> Tensor:
    """See `vkml.linalg.logdet`."""
    return linalg.logdet(input)


def matrix_exp(input: Tensor) -> Tensor:
    """See `vkml.linalg.matrix_exp`."""
    return linalg.matrix_exp(input)


def matrix_power(input: Tensor, n: int) -> Tensor:
    """See `vkml.linalg.matrix_power`."""
    return linalg.matrix_power(input, n)


def pinverse(input: Tensor, rcond: float | None = None) -> Tensor:
    """See `vkml.linalg.pinv`."""
    return linalg.pinv(input, rcond)


def slogdet(input: Tensor) -> Any:
    """See `vkml.linalg.slogdet`."""
    return linalg.slogdet(input)


_check_arguments(globals(), __all__)
