"""Arguments that a function written in Python does not take raise vkML's exceptions.

Such a function fails wherever its code first trips over the argument, with whatever Python raises
there. `check_arguments` puts one shell round each public function, and round the constructor and
the public methods of each class of a module; it gives the failure the name of the function, the
values and what it takes. What a constructor's parts do not take is said in the constructor's name.
The native module does the same for its own functions (`bindings/python/argument_errors.cpp`).

Exceptions that come out of code of the user's, a function handed over or a method overridden, pass
through as they are.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, TracebackType
from typing import Any

from vkml._vkml import ArgumentError, DTypeError, IndexError, ShapeError, VkmlError

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
BUILTIN_ERRORS = tuple(builtin for builtin, _ in _OURS)
# Ours that are about arguments.
_ABOUT_ARGUMENTS = (ArgumentError, DTypeError, IndexError, ShapeError)
# Methods without a shell: those that run at each step and take nothing or are checked where they
# are called, and those whose failures are a container's own.
_BARE = frozenset(("forward", "zero_grad", "pop", "popitem"))


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
                if _is_ours(owner):
                    _check_methods(owner)


def _check_methods(owner: type) -> None:
    for name, method in list(owner.__dict__.items()):
        has_shell = hasattr(method, "__wrapped__")
        is_public = name == "__init__" or (not name.startswith("_") and name not in _BARE)
        if isinstance(method, FunctionType) and is_public and not has_shell:
            setattr(owner, name, checked(method, None))


def checked(function: Callable[..., Any], name: str | None) -> Callable[..., Any]:
    """The function in its shell; without a name a method, which has that of its object too."""
    is_constructor = name is None and function.__name__ == "__init__"

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BUILTIN_ERRORS as error:
            shown, called = args if name else args[1:], name
            if is_constructor:
                called = _constructed(args[0], call)
            elif called is None:
                called = f"{type(args[0]).__name__}.{function.__name__}"
            if called is None:
                raise
            ours = translated(error, called, shown, kwargs, function, is_constructor)
            if ours is None:
                raise
            raise ours from error

    return call


def translated(
    error: Exception,
    called: str,
    arguments: Iterable[Any],
    keywords: Mapping[str, Any],
    function: Callable[..., Any],
    is_constructor: bool = False,
) -> Exception | None:
    """What to raise instead of a failure of ours to take arguments; None to let it pass.

    Args:
        error: What was raised; its traceback begins where it was caught.
        called: The name of what was called.
        arguments: Its arguments without the object that it is a method of.
        keywords: Those by keyword.
        function: Its signature is shown.
        is_constructor: Whether to name it too where a part of it has refused something.
    """
    ours = _replacement(error, called if is_constructor else None)
    if ours is None or not _is_of_package(error.__traceback__):
        return None
    given = [_described(value) for value in arguments]
    given += [f"{key}={_described(value)}" for key, value in keywords.items()]
    return ours(
        f"[{called}] does not take ({', '.join(given)}): {str(error).rstrip('.')}. It takes "
        f"{called}{_signature(function)}."
    )


def _replacement(error: Exception, constructed: str | None) -> type[Exception] | None:
    """The exception to raise instead; None to let this one pass.

    An exception of ours passes but out of a constructor, if it names another function.
    """
    if not isinstance(error, VkmlError):
        return next(ours for builtin, ours in _OURS if isinstance(error, builtin))
    if constructed is None or not isinstance(error, _ABOUT_ARGUMENTS):
        return None
    return None if str(error).startswith((f"[{constructed}]", f"[{constructed}.")) else type(error)


def _is_ours(owner: type) -> bool:
    return owner.__module__.partition(".")[0] == "vkml"


def _constructed(instance: object, shell: Callable[..., Any]) -> str | None:
    """What is being constructed: the nearest class of ours. None in the shell of a base class.

    The shell of the class that was called has the arguments as they were given.
    """
    classes = [owner for owner in type(instance).__mro__ if _is_ours(owner)]
    outer = next(vars(owner)["__init__"] for owner in classes if "__init__" in vars(owner))
    return classes[0].__name__ if outer is shell or not hasattr(outer, "__wrapped__") else None


def _is_of_package(traceback: TracebackType | None) -> bool:
    """Whether an exception went through code of this package and of its libraries alone."""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        is_of_python = file.startswith(_LIBRARY) and "site-packages" not in file
        is_of_numpy = traceback.tb_frame.f_globals.get("__name__", "").startswith("numpy.")
        if not (file.startswith(_PACKAGE) or is_of_python or is_of_numpy):
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

    shown = []
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation  # a string, which would stand in quotes
        if name != "self":
            shown.append(str(parameter).replace(repr(annotation), str(annotation)))
    return f"({', '.join(shown)})"
