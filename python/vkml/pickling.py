"""Lets `pickle` and `copy.deepcopy` take tensors: as their elements, dtype, device and flag.

A copy is a leaf: what a tensor was computed from stays behind.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

from vkml import _vkml
from vkml._vkml import Tensor

State = tuple[Any, str, str, bool]


def state_of(tensor: Tensor) -> State:
    """What `rebuild` needs: a NumPy array, the names of dtype and device, `requires_grad`."""
    value = tensor.detach()
    # NumPy has no bfloat16; float32 holds each of its values.
    wide = value.to(_vkml.float32) if value.dtype == _vkml.bfloat16 else value
    # A copy, because the array may share the tensor's memory.
    return wide.numpy().copy(), dtype_name(value.dtype), str(value.device), tensor.requires_grad


def rebuild(array: Any, dtype: str, device: str, requires_grad: bool) -> Tensor:
    """The tensor that `state_of` took apart."""
    value = _vkml.tensor(array, device=_vkml.device(device)).to(getattr(_vkml, dtype))
    return value.requires_grad_() if requires_grad else value


def dtype_name(dtype: _vkml.dtype) -> str:
    """The name under which vkML offers a dtype: `float32`."""
    return str(dtype).rpartition(".")[2]


def _reduce(tensor: Tensor) -> tuple[Callable[..., Tensor], State]:
    return rebuild, state_of(tensor)


copyreg.pickle(Tensor, _reduce)
