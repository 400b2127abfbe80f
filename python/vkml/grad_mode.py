"""Switches for recording gradients, each a context manager and a decorator.

The native module keeps one flag for each thread; a node captures it when it is made. The classes
here set the flag and put the old value back, also when the block raises.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, TypeVar

from vkml import _vkml

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Function = TypeVar("Function", bound="Callable[..., Any]")

is_grad_enabled = _vkml.is_grad_enabled


class _GradMode(ContextDecorator):
    """Sets the thread's flag to `mode` for the length of a block or of a call."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._previous: list[bool] = []

    def _recreate_cm(self) -> _GradMode:
        # A decorated function may run in several threads: each call needs its own stack.
        return _GradMode(self._mode)

    def __enter__(self) -> None:
        self._previous.append(_vkml.is_grad_enabled())
        _vkml.set_grad_enabled(self._mode)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _vkml.set_grad_enabled(self._previous.pop())


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
        self._before = _vkml.is_grad_enabled()
        _vkml.set_grad_enabled(mode)

    def __call__(self, func: Function) -> Function:
        _vkml.set_grad_enabled(self._before)  # a decorator acts only inside its function
        return super().__call__(func)

    def __enter__(self) -> None:
        self._previous.append(self._before)
        _vkml.set_grad_enabled(self._mode)
