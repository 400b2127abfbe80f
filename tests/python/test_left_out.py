"""Every function and method of PyTorch is here, or left out for a reason that is written down."""

import fnmatch
import inspect

import pytest

import vkml
from torch_agreement import torch
from vkml import left_out

F = torch.nn.functional


def functions_of(module: object) -> set[str]:
    """Public functions, without classes, and without what a module has imported."""
    return {
        name
        for name in dir(module)
        if not name.startswith("_")
        and callable(getattr(module, name))
        and not inspect.isclass(getattr(module, name))
    }


def optimizers() -> set[str]:
    kinds = {name for name, kind in vars(torch.optim).items() if inspect.isclass(kind)}
    return {name for name in kinds if issubclass(getattr(torch.optim, name), torch.optim.Optimizer)}


def methods() -> set[str]:
    return {name for name in dir(torch.Tensor) if not name.startswith("_")}


def classes_and_functions_of(module: object) -> set[str]:
    """What a module lists, or defines itself."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return {name for name in listed if not name.startswith("_")}
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }


PLACES = {
    "torch": (functions_of(torch), vkml, left_out.FUNCTIONS),
    "linalg": (functions_of(torch.linalg), vkml.linalg, left_out.LINALG),
    "special": (functions_of(torch.special), vkml.special, left_out.SPECIAL),
    "functional": (functions_of(F), vkml.nn.functional, left_out.FUNCTIONAL),
    "optim": (optimizers(), vkml.optim, left_out.OPTIM),
    "utils": (classes_and_functions_of(torch.nn.utils), vkml.nn.utils, left_out.UTILS),
    "func": (classes_and_functions_of(torch.func), vkml.func, left_out.FUNC),
    "data": (classes_and_functions_of(torch.utils.data), vkml.data, left_out.DATA),
    "init": (classes_and_functions_of(torch.nn.init), vkml.nn.init, left_out.INIT),
    "schedulers": (
        set(torch.optim.lr_scheduler.__all__),
        vkml.optim.lr_scheduler,
        {},
    ),
    "Tensor": (methods(), vkml.Tensor, left_out.METHODS),
    "autograd": (set(torch.autograd.__all__), vkml.autograd, left_out.AUTOGRAD),
    "Module": (
        {name for name in dir(torch.nn.Module) if not name.startswith("_")},
        vkml.nn.Module,
        left_out.MODULE,
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_missing_has_a_reason(place: str) -> None:
    theirs, ours, reasons = PLACES[place]
    missing = {name for name in theirs if not hasattr(ours, name)}
    unexplained = {
        name for name in missing if not any(fnmatch.fnmatchcase(name, key) for key in reasons)
    }
    assert unexplained == set()
    assert len(theirs - missing) > 5


@pytest.mark.parametrize("place", PLACES)
def test_every_reason_is_needed(place: str) -> None:
    theirs, ours, reasons = PLACES[place]
    missing = {name for name in theirs if not hasattr(ours, name)}
    assert [key for key in reasons if not fnmatch.filter(missing, key)] == []
    assert all(reasons.values())


def test_graphs_of_pytorchs_own_have_reasons() -> None:
    names = set(torch.autograd.graph.__all__)
    keys = left_out.AUTOGRAD_GRAPH
    assert {n for n in names if not any(fnmatch.fnmatchcase(n, key) for key in keys)} == set()
    assert all(fnmatch.filter(names, key) and reason for key, reason in keys.items())


def test_reasons_that_name_another_place_are_true() -> None:
    for key, reason in left_out.FUNCTIONS.items():
        if reason.startswith("vkml.nn.functional"):
            assert fnmatch.filter(dir(vkml.nn.functional), key)
    for place, reasons in (("torch", left_out.FUNCTIONS), ("functional", left_out.FUNCTIONAL)):
        theirs, ours, _ = PLACES[place]
        others = set(reasons) - {"*_"}
        for name in theirs:
            explained = any(fnmatch.fnmatchcase(name, key) for key in others)
            if name.endswith("_") and not hasattr(ours, name) and not explained:
                assert hasattr(vkml.Tensor, name)
