"""Making tensors, by the Array API's signatures."""

from __future__ import annotations

from typing import Any

import vkml
from vkml import DeviceLike, Tensor
from vkml._vkml import dtype as DType
from vkml._vkml import empty_like as empty_like
from vkml._vkml import full_like as full_like
from vkml._vkml import ones_like as ones_like
from vkml._vkml import zeros_like as zeros_like
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

Extents = int | tuple[int, ...]


def asarray(
    obj: Any,
    /,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor from a tensor, a number, nested sequences, or whatever `vkml.tensor` takes.

    Args:
        obj: What becomes a tensor. Tensors keep their device unless another is named.
        dtype: The dtype of the result; that of the object if None.
        device: Where; the default device if None.
        copy: True makes a tensor of its own always, None where need be, False never.

    Raises:
        ArgumentError: With copy=False, for what cannot be had without a copy.
    """
    if not isinstance(obj, Tensor):
        if copy is False:
            raise vkml.ArgumentError(
                "[asarray] copy=False, and only tensors are taken without a copy. For memory of "
                "another library use from_dlpack"
            )
        return vkml.tensor(obj, dtype=dtype, device=device)
    result = obj if dtype is None or dtype == obj.dtype else obj.to(dtype)
    if device is not None and vkml.device(device) != result.device:
        result = result.to(device)
    if copy is False and result is not obj:
        raise vkml.ArgumentError(
            "[asarray] copy=False, and another dtype or device needs one. Pass copy=None"
        )
    return result.clone() if copy and result is obj else result


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares another library's memory on the CPU, where `copy` allows it."""
    return vkml.from_dlpack(x, device=device, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """`start`, `start + step`, ... before `stop`; from 0 where `start` stands alone."""
    return vkml.arange(start, stop, step, dtype=dtype, device=device)


def empty(
    shape: Extents, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of any values: zeros, as vkML has no uninitialised ones."""
    return zeros(shape, dtype=dtype, device=device)


def zeros(
    shape: Extents, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Every element 0."""
    return vkml.zeros(shape, dtype=dtype, device=device)


def ones(shape: Extents, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """Every element 1."""
    return vkml.ones(shape, dtype=dtype, device=device)


def full(
    shape: Extents,
    fill_value: float,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Every element the same number, of the default dtype of its kind where none is named."""
    return vkml.full(shape, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A matrix with ones on its `k`-th diagonal, above the main one where `k` is positive."""
    columns = n_rows if n_cols is None else n_cols
    rows = vkml.arange(n_rows, device=device).reshape(n_rows, 1)
    is_on = vkml.arange(columns, device=device) - rows == k
    return is_on.to(vkml.float32 if dtype is None else dtype)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal distances from `start` to `stop`, which is one of them on request."""
    if endpoint:
        return vkml.linspace(start, stop, num, dtype=dtype, device=device)
    return vkml.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid from vectors along each axis; 'xy' exchanges the first two axes."""
    return vkml.meshgrid(*arrays, indexing=indexing)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices (..., m, n) with 0 above their `k`-th diagonal."""
    return vkml.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices (..., m, n) with 0 below their `k`-th diagonal."""
    return vkml.triu(x, k)


_check_arguments(globals(), __all__)
