"""Modules that hold modules or parameters: Sequential, lists and dictionaries."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

import vkml
from vkml import Tensor
from vkml.nn.module import Module
from vkml.nn.parameter import Parameter

Entry = TypeVar("Entry")


def _position(index: int, length: int, kind: str) -> int:
    try:
        position = operator.index(index)
    except TypeError as error:
        raise vkml.DTypeError(
            f"[{kind}] takes an integer or a slice, not {index!r} of type {type(index).__name__}."
        ) from error
    if not -length <= position < length:
        raise vkml.IndexError(f"[{kind}] index {index} is out of range for length {length}.")
    return position % length


def _named(table: Mapping[str, Entry | None], name: str, kind: str) -> Entry:
    entry = table.get(name) if isinstance(name, str) else None
    if entry is None:
        raise vkml.NamingError(
            f"[{kind}] has no {name!r}. It has: {', '.join(table) or 'nothing'}."
        )
    return entry


class Sequential(Module):
    """Calls its modules one after the other.

    Args:
        *modules: The modules in order, or one dictionary of them by name.
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            named: Iterable[tuple[str, Any]] = modules[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(modules))
        for name, module in named:
            self.register_module(name, module)

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self:
            input = module(input)
        return input

    def append(self, module: Module) -> Sequential:
        """Adds a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Adds modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Adds a module before a position; those behind it get the next names."""
        modules = list(self)
        modules.insert(index, module)
        self._modules.clear()
        return self.extend(modules)

    def pop(self, key: int | slice) -> Module:
        """Takes the module at a position out, and returns it; those behind it are renamed."""
        module = self[key]
        del self[key]
        return module

    def __delitem__(self, key: int | slice) -> None:
        modules = list(self)
        del modules[key if isinstance(key, slice) else _position(key, len(self), "Sequential")]
        self._modules.clear()
        self.extend(modules)

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(other) if isinstance(other, Sequential) else NotImplemented

    def __mul__(self, count: int) -> Sequential:
        if not isinstance(count, int) or count < 1:
            raise vkml.ArgumentError(f"[Sequential] times {count!r}. Pass a positive integer.")
        return Sequential(*(module for _ in range(count) for module in self))

    __rmul__ = __mul__

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return (module for module in self._modules.values() if module is not None)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module:
        """The module at a position, or a Sequential of a slice of them."""
        if isinstance(index, slice):
            return Sequential(dict(list(self._named())[index]))
        return list(self)[_position(index, len(self), "Sequential")]

    def __setitem__(self, index: int, module: Module) -> None:
        name = list(self._modules)[_position(index, len(self), "Sequential")]
        setattr(self, name, module)

    def _named(self) -> Iterator[tuple[str, Module]]:
        return ((name, m) for name, m in self._modules.items() if m is not None)


class ModuleList(Module):
    """A list of modules, all registered."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def append(self, module: Module) -> ModuleList:
        """Adds a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Adds a module before a position."""
        modules = list(self)
        modules.insert(index, module)
        self._modules.clear()
        self.extend(modules)

    def pop(self, key: int | slice) -> Module:
        """Takes the module at a position out, and returns it."""
        module = self[key]
        del self[key]
        return module

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[
            index if isinstance(index, slice) else _position(index, len(self), "ModuleList")
        ]
        self._modules.clear()
        self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return (module for module in self._modules.values() if module is not None)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Module:
        """The module at a position, or a ModuleList of a slice of them."""
        modules = list(self)
        if isinstance(index, slice):
            return ModuleList(modules[index])
        return modules[_position(index, len(modules), "ModuleList")]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(_position(index, len(self), "ModuleList")), module)


class ModuleDict(Module):
    """A dictionary of modules, all registered."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        """Adds or replaces modules."""
        for name, module in modules.items():
            self[name] = module

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes a module out by its name, and returns it."""
        module = self[key]
        del self[key]
        return module

    def __getitem__(self, name: str) -> Module:
        return _named(self._modules, name, "ModuleDict")

    def __setitem__(self, name: str, module: Module) -> None:
        self.register_module(name, module)

    def __delitem__(self, name: str) -> None:
        _named(self._modules, name, "ModuleDict")
        del self._modules[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return [module for module in self._modules.values() if module is not None]

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names with modules."""
        return [(name, m) for name, m in self._modules.items() if m is not None]


class ParameterList(Module):
    """A list of parameters, all registered. Plain tensors become parameters."""

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Tensor) -> ParameterList:
        """Adds a parameter at the end."""
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        self.register_parameter(str(len(self)), parameter)
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        """Adds parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return (p for p in self._parameters.values() if p is not None)

    def __getitem__(self, index: int) -> Parameter:
        return list(self)[_position(index, len(self), "ParameterList")]

    def __setitem__(self, index: int, value: Tensor) -> None:
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        setattr(self, str(_position(index, len(self), "ParameterList")), parameter)

    def extra_repr(self) -> str:
        """One line for each parameter."""
        return "\n".join(
            f"({name}): Parameter of {p.dtype}, shape {tuple(p.shape)}"
            for name, p in self.named_parameters()
        )


class ParameterDict(Module):
    """Parameters by name, all registered. Plain tensors become parameters."""

    def __init__(self, parameters: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def update(self, parameters: Mapping[str, Tensor]) -> None:
        """Adds or replaces parameters."""
        for name, value in parameters.items():
            self[name] = value

    def __setitem__(self, name: str, value: Tensor) -> None:
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        self._parameters.pop(name, None)
        self.register_parameter(name, parameter)

    def __getitem__(self, name: str) -> Parameter:
        return _named(self._parameters, name, "ParameterDict")

    def __delitem__(self, name: str) -> None:
        _named(self._parameters, name, "ParameterDict")
        del self._parameters[name]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, name: str) -> bool:
        return name in self._parameters

    def keys(self) -> list[str]:
        """The names, in the order of their registration."""
        return list(self._parameters)

    def values(self) -> list[Parameter]:
        """The parameters."""
        return [self[name] for name in self]

    def items(self) -> list[tuple[str, Parameter]]:
        """Names and parameters."""
        return [(name, self[name]) for name in self]

    def extra_repr(self) -> str:
        """One line for each parameter."""
        return "\n".join(
            f"({name}): Parameter of {p.dtype}, shape {tuple(p.shape)}" for name, p in self.items()
        )
