"""Every argument of PyTorch's functions is here, or left out for a reason that is written down."""

import fnmatch
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import vkml
from torch_agreement import torch
from vkml import nn, optim
from vkml.left_out_arguments import ARGUMENTS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch.nn.utils.rnn
    import torch.utils.checkpoint
    from torch.overrides import get_testing_overrides

    # Signatures of what PyTorch has in C++ alone.
    OVERRIDES = get_testing_overrides()

PLACES: dict[str, tuple[Any, Any]] = {
    "vkml": (vkml, torch),
    "Tensor": (vkml.Tensor, torch.Tensor),
    "linalg": (vkml.linalg, torch.linalg),
    "special": (vkml.special, torch.special),
    "func": (vkml.func, torch.func),
    "autograd": (vkml.autograd, torch.autograd),
    "autograd.functional": (vkml.autograd.functional, torch.autograd.functional),
    "nn": (nn, torch.nn),
    "functional": (nn.functional, torch.nn.functional),
    "Module": (nn.Module, torch.nn.Module),
    "init": (nn.init, torch.nn.init),
    "utils": (nn.utils, torch.nn.utils),
    "rnn": (nn.utils.rnn, torch.nn.utils.rnn),
    "optim": (optim, torch.optim),
    "Optimizer": (optim.optimizer.Optimizer, torch.optim.Optimizer),
    "lr_scheduler": (optim.lr_scheduler, torch.optim.lr_scheduler),
    "swa_utils": (optim.swa_utils, torch.optim.swa_utils),
    "data": (vkml.data, torch.utils.data),
    "checkpoint": (vkml.utils.checkpoint, torch.utils.checkpoint),
}


def parameters_in(signature: str) -> set[str]:
    """Names of parameters in the text of a signature."""
    depth, current, parts = 0, "", []
    for letter in signature[signature.index("(") + 1 :]:
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            if depth == 0:
                break
            depth -= 1
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    found = (re.match(r"\s*(\w+)", part) for part in [*parts, current])
    return {match.group(1) for match in found if match} - {"self"}


def named(parameters: Any) -> set[str]:
    flexible = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name for p in parameters.values() if p.kind not in flexible} - {"self"}


def ours(function: Callable[..., Any]) -> set[str] | None:
    """Arguments of all overloads."""
    signatures = getattr(function, "__nb_signature__", None)
    if signatures:
        return set().union(*(parameters_in(text) for text, *_ in signatures))
    try:
        return named(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def theirs(function: Callable[..., Any]) -> set[str] | None:
    try:
        return named(inspect.signature(OVERRIDES.get(function, function)).parameters)
    except (TypeError, ValueError):
        return None


def shared() -> Iterator[tuple[str, set[str], set[str]]]:
    """`place.function` with our arguments and PyTorch's, of all that both have."""
    for place, (mine, torchs) in PLACES.items():
        for name in dir(mine):
            function, wanted = getattr(mine, name), getattr(torchs, name, None)
            is_function = callable(function) and callable(wanted)
            is_own = (getattr(function, "__module__", None) or "vkml").startswith("vkml")
            if name.startswith("_") or not is_function or not is_own:
                continue
            if inspect.isclass(function):
                function, wanted = function.__init__, getattr(wanted, "__init__", wanted)
            found, expected = ours(function), theirs(wanted)
            if found is not None and expected is not None:
                is_method = place in ("Tensor", "Module", "Optimizer")
                expected -= {"input"} if is_method else set()
                yield f"{place}.{name}", found, expected


def missing() -> set[str]:
    return {
        f"{name}.{argument}"
        for name, found, expected in shared()
        for argument in expected - found
        if not argument.startswith("_")
    }


def test_arguments_that_are_missing_have_a_reason() -> None:
    unexplained = {
        name for name in missing() if not any(fnmatch.fnmatchcase(name, key) for key in ARGUMENTS)
    }
    assert unexplained == set()


def test_every_reason_is_needed() -> None:
    absent = missing()
    assert [key for key in ARGUMENTS if not fnmatch.filter(absent, key)] == []
    assert all(ARGUMENTS.values())


def test_much_is_compared() -> None:
    assert len(list(shared())) > 1100


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("def f(self, a: int = 0, b: tuple[int, int] = (1, 2), *, c) -> x", {"a", "b", "c"}),
        ("def f() -> x", set()),
        ("def f(a, /, *args, **kwargs)", {"a"}),
    ],
)
def test_signatures_are_read(signature: str, expected: set[str]) -> None:
    assert parameters_in(signature) == expected
