"""What a function depends on beside its arguments, found before it is recorded.

Followed from the function: closures, default values, the globals and attributes that its code
names, the functions among them, containers, and modules (`vkml.nn.Module`) with all they hold.
Numbers, strings, booleans and None are compared by value at each replay, everything else by
identity.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from vkml import Tensor, _vkml

_MISSING = NotImplemented
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
# Their code is the same from call to call, and holds no state of the user's.
_LIBRARIES = frozenset(sys.stdlib_module_names) | {"vkml", "numpy"}


class Dependencies:
    """What was found.

    Attributes:
        guards: What a replay compares.
        tensors: Tensors among it: state of the function.
    """

    def __init__(self) -> None:
        self.guards = _vkml._Guards()
        self.tensors: list[Tensor] = []
        self._seen: dict[int, Any] = {}  # by id; holds what it names, so that no id is used twice
        self._names: set[str] = set()  # that any function's code loads
        self._guarded: set[tuple[int, Any]] = set()
        self._objects: list[tuple[Any, str]] = []  # whose attributes are looked at by name

    def visit(self, value: Any, path: str) -> None:
        """Follows one value."""
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors.append(value)
        elif isinstance(value, (list, tuple)):
            self._visit_sequence(value, path)
        elif type(value) is dict:
            self._visit_dictionary(value, path)
        elif isinstance(value, FunctionType):
            self._visit_function(value)
        elif isinstance(value, MethodType):
            self.visit(value.__func__, path)
            self.visit(value.__self__, path)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.visit(part, path)
        elif hasattr(value, "__wrapped__") and callable(value):
            self.visit(value.__wrapped__, path)
        elif _is_network(value):
            self._visit_network(value, path)
        elif not isinstance(value, (type, BuiltinFunctionType)) and not _is_optimizer(value):
            self._objects.append((value, path))

    def finish(self) -> None:
        """Looks at the attributes that the functions name, until no new function turns up."""
        looked_at = -1
        while looked_at != len(self._seen) + len(self._names):
            looked_at = len(self._seen) + len(self._names)
            for value, path in tuple(self._objects):
                self._visit_attributes(value, path)

    def _guard_item(self, container: Any, key: Any, value: Any, path: str) -> None:
        if (id(container), key) in self._guarded:
            return
        self._guarded.add((id(container), key))
        self.guards.item(container, key, value, path)

    def _visit_sequence(self, items: Any, path: str) -> None:
        if isinstance(items, list):
            self.guards.length(items, path)
        for index, item in enumerate(items):
            if isinstance(items, list):
                self._guard_item(items, index, item, f"{path}[{index}]")
            self.visit(item, f"{path}[{index}]")

    def _visit_dictionary(self, items: dict[Any, Any], path: str) -> None:
        self.guards.length(items, path)
        for key, item in items.items():
            self._guard_item(items, key, item, f"{path}[{key!r}]")
            self.visit(item, f"{path}[{key!r}]")

    def _visit_function(self, function: FunctionType) -> None:
        if _is_library(function.__module__):
            return
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            value = getattr(cell, "cell_contents", _MISSING)
            self.guards.attribute(cell, "cell_contents", value, name)
            self.visit(value, name)
        self.visit(function.__defaults__ or (), function.__name__)
        self.visit(function.__kwdefaults__ or {}, function.__name__)
        for code in _all_code(function.__code__):
            self._names.update(code.co_names)
            for name in code.co_names:
                value = function.__globals__.get(name, _MISSING)
                if value is _MISSING and name not in function.__globals__:
                    continue
                self._guard_item(function.__globals__, name, value, name)
                self.visit(value, name)

    def _visit_network(self, network: Any, path: str) -> None:
        self.visit(network.__dict__, path)
        forward = type(network).forward
        if isinstance(forward, FunctionType):
            self.visit(forward, path)

    def _visit_attributes(self, value: Any, path: str) -> None:
        if isinstance(value, ModuleType) and _is_library(value.__name__):
            return
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is not dict:
            return
        for name in tuple(self._names & attributes.keys()):
            self._guard_item(attributes, name, attributes[name], f"{path}.{name}")
            self.visit(attributes[name], f"{path}.{name}")
        for name in tuple(self._names):
            method = getattr(type(value), name, None)
            if isinstance(method, FunctionType):
                self.visit(method, f"{path}.{name}")


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_code(constant)


def _is_library(name: str | None) -> bool:
    return name is not None and name.partition(".")[0] in _LIBRARIES


def _is_network(value: object) -> bool:
    # Without importing vkml.nn for those who do not use it.
    module = sys.modules.get("vkml.nn.module")
    return module is not None and isinstance(value, module.Module)


def _is_optimizer(value: object) -> bool:
    # What a step reads of its optimiser it guards itself (vkml.recorded_numbers).
    module = sys.modules.get("vkml.optim.optimizer")
    return module is not None and isinstance(value, module.Optimizer)


def collect(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Dependencies:
    """What a call of `function` depends on. Tensors among the arguments are no captured ones."""
    found = Dependencies()
    found.visit(function, getattr(function, "__name__", "the function"))
    for index, value in [*enumerate(args), *kwargs.items()]:
        if _is_network(value) or not isinstance(value, (*_PLAIN, Tensor, list, tuple, dict)):
            found.visit(value, f"argument {index}")
    found.finish()
    return found
