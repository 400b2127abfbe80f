"""Methods of vkML's Python classes turn what they cannot take into vkML's own exceptions.

Every public method of every public class is called with wrong arguments, on an object made with
small right ones.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vkml
from vkml import autograd, data, nn, optim

MODULES = (nn, nn.utils.rnn, optim, optim.lr_scheduler, optim.swa_utils, data, vkml.amp, autograd)
WRONG = ("a", None, 3, [1], {"a": 3})
# Abstract, made by vkML alone, or a mode of the whole process.
LEFT_OUT = {
    "Differentiable",
    "GradcheckError",
    "GraphNode",
    "HookHandle",
    "LRScheduler",
    "Optimizer",
    "detect_anomaly",
    "set_detect_anomaly",
}


def optimizer() -> optim.SGD:
    return optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1, momentum=0.9)


def adam() -> optim.Adam:
    return optim.Adam(nn.Linear(2, 2).parameters())


def steps() -> optim.lr_scheduler.LRScheduler:
    return optim.lr_scheduler.StepLR(optimizer(), 2)


def sequence() -> tuple[Any, ...]:
    shared = optimizer()
    return shared, [optim.lr_scheduler.StepLR(shared, 2) for _ in range(2)], [1]


def rows() -> data.TensorDataset:
    return data.TensorDataset(vkml.ones(4, 2))


# Right arguments, tried in order: whatever a class takes first is good enough.
RIGHT: tuple[Callable[[], tuple[Any, ...]], ...] = (
    tuple,
    lambda: (optimizer(),),
    lambda: (optimizer(), 2),
    lambda: (optimizer(), 0.1, 0.2),
    lambda: (optimizer(), lambda step: 1.0),
    lambda: (optimizer(), [1, 2]),
    lambda: ([steps()],),
    lambda: ([vkml.ones(2, 2, requires_grad=True)],),
    lambda: (nn.Linear(2, 2),),
    lambda: (rows(),),
    lambda: (rows(), [0, 1]),
    lambda: (rows(), 2, False),
    lambda: ([rows(), rows()],),
    lambda: (range(4), 2, False),
    lambda: ([1.0, 2.0], 2),
    lambda: (2,),
    lambda: (2, 2),
    lambda: (2, 2, 2),
    lambda: (4, 2, 2, 2),
)
# Those whose defaults are large, or whose arguments are of their own kind.
OWN: dict[str, Callable[[], tuple[Any, ...]]] = {
    "Parameter": lambda: (vkml.ones(2),),
    "SequentialLR": sequence,
    "TensorDataset": lambda: (vkml.ones(4, 2), vkml.ones(4)),
    "Transformer": lambda: (4, 2, 1, 1, 8),
    "TransformerEncoderLayer": lambda: (4, 2, 8),
    "TransformerDecoderLayer": lambda: (4, 2, 8),
    "TransformerEncoder": lambda: (nn.TransformerEncoderLayer(4, 2, 8), 1),
    "TransformerDecoder": lambda: (nn.TransformerDecoderLayer(4, 2, 8), 1),
}


def public_classes() -> dict[str, type]:
    return {
        f"{module.__name__.removeprefix('vkml.')}.{name}": value
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, type)
        and not name.startswith("_")
        and name not in LEFT_OUT
        and value.__module__.startswith(module.__name__)
    }


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives, or raises."""
    try:
        return function(*arguments)
    except Exception as error:
        return error


def made(kind: type) -> Any:
    """An object of a class; None where no right arguments are known."""
    own = OWN.get(kind.__name__)
    for arguments in (own,) if own else RIGHT:
        subject = attempt(kind, *arguments())
        if not isinstance(subject, Exception):
            return subject
    return None


def takes(method: Any, arguments: tuple[Any, ...]) -> bool:
    """False where the number of arguments is wrong: that error is Python's own."""
    return not isinstance(attempt(inspect.signature(method).bind, *arguments), TypeError)


def calls(method: Any) -> Iterator[tuple[Any, ...]]:
    """Wrong arguments in the numbers that a method takes."""
    for wrong in WRONG:
        yield from ((wrong,) * count for count in range(4) if takes(method, (wrong,) * count))


def faults(kind: type) -> dict[str, list[str]]:
    """By method, what calls raised that is not vkML's."""
    found: dict[str, list[str]] = {}
    for name in dir(kind):
        method = getattr(kind, name)
        # What every module inherits is walked once.
        is_seen = kind is not nn.Linear and method is getattr(nn.Module, name, None)
        if name.startswith("_") or not inspect.isfunction(method) or is_seen:
            continue
        subject = made(kind)
        # Users call a module, not its forward().
        called = "__call__" if name == "forward" and issubclass(kind, nn.Module) else name
        for arguments in calls(getattr(subject, name)):
            error = attempt(getattr(subject, called), *arguments)
            if isinstance(error, vkml.VkmlError):
                subject = made(kind)  # half done, for all that is known here
            elif isinstance(error, Exception) and not isinstance(error, NotImplementedError):
                found.setdefault(name, []).append(f"{arguments}: {type(error).__name__} {error}")
    return found


CLASSES = public_classes()


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A method that writes the file "a" was called rightly."""
    monkeypatch.chdir(tmp_path)


def test_every_public_class_can_be_made() -> None:
    assert len(CLASSES) > 150
    assert [name for name, kind in CLASSES.items() if made(kind) is None] == []


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_rejects_with_an_exception_of_vkml(name: str) -> None:
    assert faults(CLASSES[name]) == {}


NAMED: dict[str, Callable[[], Any]] = {
    "Linear.load_state_dict": lambda: nn.Linear(2, 2).load_state_dict([1]),
    "Linear.load_state_dict of numbers": lambda: nn.Linear(2, 2).load_state_dict(
        {"weight": 3, "bias": 4}
    ),
    "Adam.load_state_dict": lambda: adam().load_state_dict({}),
    "Adam.load_state_dict of a number": lambda: adam().load_state_dict(3),
    "Adam.add_param_group": lambda: adam().add_param_group(3),
    "GradScaler.load_state_dict": lambda: vkml.amp.GradScaler().load_state_dict(3),
    "GradScaler.unscale_": lambda: vkml.amp.GradScaler().unscale_(3),
    "Linear.register_buffer": lambda: nn.Linear(2, 2).register_buffer(3, None),
    "StepLR.load_state_dict": lambda: optim.lr_scheduler.StepLR(adam(), 2).load_state_dict(3),
}


@pytest.mark.parametrize("name", NAMED)
def test_the_text_names_class_and_method(name: str) -> None:
    kind, method = name.split()[0].split(".")
    with pytest.raises(vkml.VkmlError, match=rf"\[({kind}\.)?({kind}|{method})\]"):
        NAMED[name]()


def test_errors_of_a_users_override_pass_through() -> None:
    class Mine(nn.Linear):
        def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Mine(2, 2).load_state_dict({})
