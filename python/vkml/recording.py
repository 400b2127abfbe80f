"""vkml.jit: a function is recorded once for each signature, then replayed without Python.

This module is at work only while a function is recorded. Replays are the native module's: they
check what the recording depends on (`_Guards`), compute the numbers that change (`_NumberProgram`)
and run one plan.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar, overload

import vkml
from vkml import Tensor, _vkml
from vkml.dependencies import collect
from vkml.recorded_numbers import NumberRecorder, recording_numbers

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_debug = os.environ.get("VKML_DEBUG", "0") not in ("", "0")


class JitFunction(Generic[Parameters, Result]):
    """What `vkml.jit` makes of a function: called like it, it replays what the function did."""

    def __init__(self, function: Callable[Parameters, Result]) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self._table = _vkml._ReplayTable()
        self._replay = self._table.replay
        self._lock = threading.RLock()

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        result: Any = self._replay(args, kwargs)
        if result is NotImplemented:
            result = self._record(args, kwargs)
        return result  # type: ignore[no-any-return]

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def recording_count(self) -> int:
        """How many recordings there are."""
        return len(self._table)

    def clear(self) -> None:
        """Forgets all recordings, and with them the tensors that they keep alive."""
        self._table.clear()

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = self.__wrapped__
        if _vkml.is_recording() or _vkml.is_eager():
            return function(*args, **kwargs)
        with self._lock:
            result = self._replay(args, kwargs)  # another thread may have recorded it meanwhile
            if result is not NotImplemented:
                return result
            if _debug and len(self._table) > 0:
                reason = self._table.reason(args, kwargs)
                name = getattr(function, "__qualname__", repr(function))
                print(f"[jit] {name} is recorded again: {reason}", file=sys.stderr)
            signature = _vkml._Signature(args, kwargs)
            found = collect(function, args, kwargs)
            recorder = _vkml._Recorder(signature)
            try:
                with recording_numbers(NumberRecorder(found.guards)) as numbers:
                    returned = numbers.settled(function(*args, **kwargs))
                    found.guards.drop_changed()
                    numbers.write_numbers()
                    result = self._table.add(
                        signature,
                        found.guards,
                        numbers.program,
                        recorder,
                        returned,
                        numbers.made_tensors(),
                        found.tensors,
                        args,
                        kwargs,
                    )
                    numbers.commit()
                return result
            finally:
                recorder.close()


@overload
def jit(function: Callable[Parameters, Result]) -> JitFunction[Parameters, Result]: ...


@overload
def jit() -> Callable[[Callable[Parameters, Result]], JitFunction[Parameters, Result]]: ...


def jit(function: Callable[..., Any] | None = None) -> Any:
    """Records a function once for each signature, then replays it as one plan.

    A replay runs no Python and builds no graph. It does what the function did when it was
    recorded: forward, gradients, the optimiser's update, random draws, results. The bits are those
    of the function without `jit`.

    What counts as the signature, so that a change records again (`VKML_DEBUG=1` says so and why):
    shapes, strides, dtypes and devices of the tensors in the arguments (in nested lists, tuples and
    dictionaries); all other arguments, numbers, strings, booleans and None by value; the gradient
    mode; and the Python values that the function captures: globals, closures, default values,
    attributes that it names, the settings of modules such as `training`. What the function itself
    does to Python objects (counting, printing, appending to a list) it does when it is recorded.

    What is state, read and changed by every replay: tensors that were there before the call
    (parameters, buffers, gradients, the tensors of an optimiser), the random stream, and the
    numbers of an optimiser: its step counts advance, and a learning rate that a schedule changed
    between calls is used without recording again. `scheduler.step()` belongs outside.

    The first step of an optimiser that makes its state is recorded apart, and not kept. In eager
    mode the function simply runs. Inside another recorded function it becomes part of that one.

    Args:
        function: What is recorded. May be a module or a method. Without it, `jit()` is a decorator.

    Raises:
        ArgumentError: By the call, when the function observes a value (`item()`, `numpy()`,
            `bool()`, printing), which it does not have yet.
        AutogradError: By the call, when a result would need a gradient that a replay cannot give.
        After an error everything is as it was before the call.

    Example:
        >>> @vkml.jit
        ... def step(x, y):
        ...     optimizer.zero_grad()
        ...     loss = F.cross_entropy(model(x), y)
        ...     loss.backward()
        ...     optimizer.step()
        ...     return loss
    """
    if function is None:
        return jit
    if isinstance(function, JitFunction):
        return function
    if not callable(function) or isinstance(function, Tensor):
        raise vkml.DTypeError(
            f"[jit] takes a function, not {function!r} of type {type(function).__name__}."
        )
    return JitFunction(function)
