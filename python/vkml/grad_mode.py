"""Switches for recording gradients, each a context manager and a decorator.

The native module keeps one flag for each thread; a node captures it when it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from vkml import _vkml
from vkml.thread_mode import ThreadMode

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")
Switch = TypeVar("Switch", bound="set_grad_enabled")

is_grad_enabled = _vkml.is_grad_enabled


class _GradMode(ThreadMode[bool]):
    """Sets the thread's flag to `mode` for the length of a block or of a call."""

    def __init__(self, mode: bool) -> None:
        super().__init__(_vkml.set_grad_enabled, mode)


class no_grad(_GradMode):  # noqa: N801 (PyTorch's name)
    """Inside, operators record nothing for gradients: `with vkml.no_grad(): ...`."""

    def __init__(self) -> None:
        super().__init__(False)


class inference_mode(_GradMode):  # noqa: N801 (PyTorch's name)
    """`no_grad` by PyTorch's other name: tensors made inside are ordinary ones here.

    Args:
        mode: False leaves the flag as `enable_grad` does.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)


class enable_grad(_GradMode):  # noqa: N801 (PyTorch's name)
    """Inside, operators record gradients again, also within `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):  # noqa: N801 (PyTorch's name)
    """Sets the flag at once; used with `with`, puts the old value back at the end."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._before = _vkml.set_grad_enabled(mode)

    def __call__(self, func: Function) -> Function:
        _vkml.set_grad_enabled(self._before)  # a decorator acts only inside its function
        return super().__call__(func)

    def __enter__(self: Switch) -> Switch:
        super().__enter__()
        self._previous[-1] = self._before
        return self
