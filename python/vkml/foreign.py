"""Tensors of other libraries where state is loaded: PyTorch's, NumPy's, anything with DLPack."""

from __future__ import annotations

from typing import Any

import vkml
from vkml import Tensor


def is_tensor(value: object) -> bool:
    """Whether `tensor_from` takes a value."""
    return isinstance(value, Tensor) or hasattr(value, "__dlpack__")


def tensor_from(value: Any) -> Tensor:
    """The value itself if it is vkML's; else a copy of it on the CPU, in its own dtype."""
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "detach"):  # PyTorch's: exporting wants no gradient, and the host's memory
        value = value.detach().cpu()
    return vkml.from_dlpack(value.copy() if hasattr(value, "copy") else value.clone())
