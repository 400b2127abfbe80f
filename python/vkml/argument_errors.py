"""Arguments that a function written in Python does not take raise vkML's exceptions.

Such a function fails wherever its code first trips over the argument, with whatever Python raises
there. `check_arguments` puts one shell round each public function, and round the constructor and
the public methods of each class of a module; it gives the failure the name of the function, the
values and what it takes. The native module does the same for its own functions
(`bindings/python/argument_errors.cpp`).

Exceptions that come out of code of the user's, a function handed over or a method overridden, pass
through as they are.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from types import FunctionType, TracebackType
from typing import Any

from vkml._vkml import ArgumentError, DTypeError, IndexError, VkmlError

_PACKAGE = os.path.dirname(__file__)
_LIBRARY = os.path.dirname(os.__file__)
_LONGEST_VALUE = 60
# Built-in exceptions, derived ones first, with ours for them.
_OURS: tuple[tuple[type[Exception], type[Exception]], ...] = (
    (TypeError, DTypeError),
    (AttributeError, DTypeError),  # of an argument that should have been a tensor
    (LookupError, IndexError),
    (ArithmeticError, ArgumentError),
    (ValueError, ArgumentError),
)
_BUILTIN = tuple(builtin for builtin, _ in _OURS)
# Methods without a shell: those that run at each step and check what they are given themselves, and
# those whose failures are a container's own.
_BARE = frozenset(("forward", "step", "zero_grad", "pop", "popitem"))


def check_arguments(namespace: dict[str, Any], names: Iterable[str] | None = None) -> None:
    """Puts the shell round functions, constructors and methods of a module, in its namespace.

    Args:
        namespace: The module's `globals()`.
        names: Those to treat; None for all that are public and defined in that very module.
    """
    if names is None:
        names = [
            name
            for name, value in namespace.items()
            if not name.startswith("_")
            and getattr(value, "__module__", None) == namespace["__name__"]
        ]
    for name in names:
        value = namespace[name]
        if isinstance(value, FunctionType):
            namespace[name] = checked(value, name)
        elif isinstance(value, type):
            for owner in value.__mro__:
                if owner.__module__.partition(".")[0] == "vkml":
                    _check_methods(owner)


def _check_methods(owner: type) -> None:
    for name, method in list(owner.__dict__.items()):
        has_shell = hasattr(method, "__wrapped__")
        is_public = name == "__init__" or (not name.startswith("_") and name not in _BARE)
        if isinstance(method, FunctionType) and is_public and not has_shell:
            setattr(owner, name, checked(method, None))


def checked(function: Callable[..., Any], name: str | None) -> Callable[..., Any]:
    """The function in its shell; without a name a method, which has that of its object too."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _BUILTIN as error:
            if isinstance(error, VkmlError) or not _is_of_package(error.__traceback__):
                raise
            ours = next(ours for builtin, ours in _OURS if isinstance(error, builtin))
            shown, called = args, name
            if called is None:
                method = "" if function.__name__ == "__init__" else f".{function.__name__}"
                shown, called = args[1:], type(args[0]).__name__ + method
            given = [_described(value) for value in shown]
            given += [f"{key}={_described(value)}" for key, value in kwargs.items()]
            raise ours(
                f"[{called}] does not take ({', '.join(given)}): {error}. It takes "
                f"{called}{_signature(function)}."
            ) from error

    return call


def _is_of_package(traceback: TracebackType | None) -> bool:
    """Whether an exception went through code of this package and of Python's library alone."""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        is_of_library = file.startswith(_LIBRARY) and "site-packages" not in file
        if not (file.startswith(_PACKAGE) or is_of_library):
            return False
        traceback = traceback.tb_next
    return True


def _described(value: object) -> str:
    """Python's own simple values as they are; of others the type, for they may be long."""
    if value is None or isinstance(value, (str, bytes, int, float)):
        text = repr(value)
        if len(text) <= _LONGEST_VALUE:
            return text
    return type(value).__name__


def _signature(function: Callable[..., Any]) -> str:
    import inspect  # slow to load, and needed for failures alone

    parameters = inspect.signature(function).parameters
    shown = [str(parameter) for name, parameter in parameters.items() if name != "self"]
    return f"({', '.join(shown)})"
