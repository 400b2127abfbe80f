"""Python numbers of a recorded function that change from call to call.

An optimiser's learning rate and step counts are Python numbers. While a function is recorded they
are handed out as `RecordedNumber`, which computes as a number does and writes down how; a replay
computes the same in double precision from the values of then. What a comparison decided must be
decided alike, and a number that was used as a plain one must have the same value, else the function
is recorded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import vkml
from vkml import Tensor, _vkml

_current: list[NumberRecorder] = []  # one recording is made at a time in a process


@contextmanager
def recording_numbers(recorder: NumberRecorder) -> Iterator[NumberRecorder]:
    """Makes `recorder` the one that `recorded` wraps for."""
    _current.append(recorder)
    try:
        yield recorder
    finally:
        _current.pop()


def recorded(settings: dict[str, Any]) -> Any:
    """`settings`, a dictionary of state such as an optimiser keeps.

    While this thread records: a mapping like it whose numbers are read and written by each replay.
    """
    if not _current or not _vkml.is_recording():
        return settings
    return _current[-1].mapping(settings)


def recorded_entry(container: MutableMapping[Any, dict[str, Any]], key: Any) -> Any:
    """`recorded(container[key])`; a recording depends on its being the same dictionary."""
    entry = container[key]
    if _current and _vkml.is_recording():
        _current[-1].guards.item(container, key, entry, "an optimiser's state")
    return recorded(entry)


def recorded_list(items: list[Any], description: str) -> list[Any]:
    """`items`; a recording depends on its being the same list of the same objects."""
    if _current and _vkml.is_recording():
        guards = _current[-1].guards
        guards.length(items, description)
        for index, item in enumerate(items):
            guards.item(items, index, item, f"{description}[{index}]")
    return items


class RecordedNumber:
    """A number that a replay computes anew; `value` is what it is in the recorded call."""

    def __init__(self, recorder: NumberRecorder, value: float, index: int) -> None:
        self.recorder = recorder
        self.value = value
        self.__vkml_expression__ = index

    def _operation(self, name: str, a: Any, b: Any) -> Any:
        return self.recorder.operation(name, a, b)

    def __add__(self, other: Any) -> Any:
        return self._operation("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._operation("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._operation("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._operation("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._operation("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._operation("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._operation("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._operation("/", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._operation("**", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._operation("**", other, self)

    def __neg__(self) -> Any:
        return self._operation("neg", self, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._operation("abs", self, self)

    # What follows decides something in Python: a replay must find it decided alike.

    def __lt__(self, other: Any) -> Any:
        return self.recorder.comparison("<", self, other)

    def __le__(self, other: Any) -> Any:
        return self.recorder.comparison("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return self.recorder.comparison("<", other, self)

    def __ge__(self, other: Any) -> Any:
        return self.recorder.comparison("<=", other, self)

    def __eq__(self, other: object) -> Any:
        return self.recorder.comparison("==", self, other)

    def __ne__(self, other: object) -> Any:
        return self.recorder.comparison("!=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self != 0)

    def settle(self) -> float:
        """The plain number, on whose value the recording depends from now on."""
        self.recorder.comparison("==", self, self.value)
        return self.value

    def __float__(self) -> float:
        return float(self.settle())

    def __int__(self) -> int:
        return int(self.settle())

    def __trunc__(self) -> int:
        return int(self.settle())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.settle(), digits)

    def __floordiv__(self, other: Any) -> Any:
        return self.settle() // other

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self.settle()

    def __mod__(self, other: Any) -> Any:
        return self.settle() % other

    def __rmod__(self, other: Any) -> Any:
        return other % self.settle()

    def __format__(self, specification: str) -> str:
        return format(self.settle(), specification)

    def __repr__(self) -> str:
        return repr(self.settle())


class RecordedInteger(RecordedNumber):
    """A recorded number that can be an index."""

    def __index__(self) -> int:
        return int(self.settle())


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "neg": lambda a, _: -a,
    "abs": lambda a, _: abs(a),
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _value(operand: Any) -> Any:
    return operand.value if isinstance(operand, RecordedNumber) else operand


class NumberRecorder:
    """Writes down the arithmetic of one recorded call.

    Attributes:
        guards: What else the recording depends on.
        program: The arithmetic.
    """

    def __init__(self, guards: Any) -> None:
        self.guards = guards
        self.program = _vkml._NumberProgram()
        self._mappings: dict[int, RecordedMapping] = {}

    def mapping(self, settings: dict[str, Any]) -> RecordedMapping:
        """The one stand-in of a dictionary."""
        return self._mappings.setdefault(id(settings), RecordedMapping(self, settings))

    def number(self, value: float, index: int) -> RecordedNumber:
        """A number with this index in the program."""
        kind = RecordedInteger if isinstance(value, int) else RecordedNumber
        return kind(self, value, index)

    def operation(self, name: str, a: Any, b: Any) -> Any:
        """The result of an arithmetic operation, of which at least one operand is recorded."""
        for operand in (a, b):
            if not isinstance(operand, RecordedNumber) and not _is_number(operand):
                return NotImplemented
        value = _OPERATIONS[name](_value(a), _value(b))
        if not _is_number(value):  # a complex power
            return _OPERATIONS[name](_settled(a), _settled(b))
        index = self.program.operation(name, self._index(a), self._index(b))
        return self.number(value, index)

    def comparison(self, name: str, a: Any, b: Any) -> Any:
        """The result of a comparison, on which the recording depends from now on."""
        for operand in (a, b):
            if not isinstance(operand, RecordedNumber) and type(operand) not in (int, float, bool):
                return NotImplemented
        result = _COMPARISONS[name](_value(a), _value(b))
        self.program.expect(name, self._index(a), self._index(b), result)
        return result

    def _index(self, operand: Any) -> int:
        if isinstance(operand, RecordedNumber):
            return operand.__vkml_expression__
        index: int = self.program.constant(operand)
        return index

    def settled(self, result: Any) -> Any:
        """A function's result with plain numbers in it."""
        if isinstance(result, RecordedNumber):
            return result.settle()
        if type(result) in (list, tuple):
            return type(result)(self.settled(item) for item in result)
        if type(result) is dict:
            return {key: self.settled(item) for key, item in result.items()}
        return result

    def made_tensors(self) -> list[Tensor]:
        """Tensors that were put into mappings: they stay."""
        made = [tensor for mapping in self._mappings.values() for tensor in mapping.tensors()]
        return list({id(tensor): tensor for tensor in made}.values())

    def write_numbers(self) -> None:
        """Lets replays write what was written into mappings."""
        for mapping in self._mappings.values():
            mapping.write_numbers()

    def commit(self) -> None:
        """Puts what else was written into the dictionaries that the mappings stand for."""
        for mapping in self._mappings.values():
            mapping.commit()


def _settled(operand: Any) -> Any:
    return operand.settle() if isinstance(operand, RecordedNumber) else operand


class RecordedMapping(MutableMapping[str, Any]):
    """Stands for a dictionary of state.

    What is read of it is written down; what is written to it waits until the recorded call has
    succeeded.
    """

    def __init__(self, recorder: NumberRecorder, settings: dict[str, Any]) -> None:
        self._recorder = recorder
        self._settings = settings
        self._written: dict[str, Any] = {}
        self._read: dict[str, Any] = {}
        self._knows_keys = False

    def __getitem__(self, key: str) -> Any:
        if key in self._written:
            return self._written[key]
        if key not in self._read:
            self._read[key] = self._input(key)
        return self._read[key]

    def _input(self, key: str) -> Any:
        if key not in self._settings:
            self._recorder.guards.item(self._settings, key, NotImplemented, repr(key))
            raise vkml.NamingError(f"[jit] there is no {key!r}.")
        value = self._settings[key]
        program = self._recorder.program
        if _is_number(value):
            return self._recorder.number(value, program.input(self._settings, key, -1))
        if type(value) is tuple and all(map(_is_number, value)):
            self._recorder.guards.length(value, repr(key))
            return tuple(
                self._recorder.number(part, program.input(self._settings, key, position))
                for position, part in enumerate(value)
            )
        self._recorder.guards.item(self._settings, key, value, repr(key))
        return recorded_list(value, repr(key)) if type(value) is list else value

    def __setitem__(self, key: str, value: Any) -> None:
        self._written[key] = value

    def __delitem__(self, key: str) -> None:
        raise vkml.NamingError(
            f"[jit] {key!r} cannot be deleted in a recorded function. Do it outside"
        )

    def _keys(self) -> dict[str, Any]:
        if not self._knows_keys:
            self._knows_keys = True
            self._recorder.guards.length(self._settings, "an optimiser's state")
        return {**self._settings, **self._written}

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def __contains__(self, key: object) -> bool:
        if key in self._written:
            return True
        self._keys()
        return key in self._settings

    def tensors(self) -> list[Tensor]:
        """The tensors that were written."""
        return [value for value in self._written.values() if isinstance(value, Tensor)]

    def write_numbers(self) -> None:
        """Lets replays write the numbers."""
        program = self._recorder.program
        for key, value in self._written.items():
            if isinstance(value, RecordedNumber):
                program.write(self._settings, key, value.__vkml_expression__)
            elif _is_number(value):
                program.write(self._settings, key, program.constant(value))

    def commit(self) -> None:
        """Writes all but the numbers, which the first run has written."""
        for key, value in self._written.items():
            if not isinstance(value, RecordedNumber) and not _is_number(value):
                self._settings[key] = value
