"""The base of modes that each thread has for itself: recording gradients, `autocast`.

The native module keeps their values. What is here sets one for the length of a block, or of each
call of a function that it decorates, and puts the old value back, also when the block raises.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Value = TypeVar("Value")
Mode = TypeVar("Mode", bound="ThreadMode[Any]")


class ThreadMode(ContextDecorator, Generic[Value]):
    """A context manager and decorator.

    Args:
        exchange: Sets the value of this thread and returns what it was.
        value: The value inside.
    """

    def __init__(self, exchange: Callable[[Value], Value], value: Value) -> None:
        self._exchange = exchange
        self._value = value
        self._previous: list[Value] = []

    def _recreate_cm(self) -> ThreadMode[Value]:
        # A decorated function may run in several threads: each call needs its own stack.
        return ThreadMode(self._exchange, self._value)

    def __enter__(self: Mode) -> Mode:
        self._previous.append(self._exchange(self._value))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exchange(self._previous.pop())
