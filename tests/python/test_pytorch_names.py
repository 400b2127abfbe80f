"""Names, positions and defaults of arguments are PyTorch's, wherever both have them."""

import inspect

import pytest

import vkml
from vkml import nn, optim
from vkml.data import DataLoader, TensorDataset, random_split
from vkml.nn.left_out import LEFT_OUT

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def pairs():
    """(name, ours, PyTorch's) for everything that both have."""
    places = [
        ("nn", nn, torch.nn),
        ("nn.functional", nn.functional, torch.nn.functional),
        ("nn.init", nn.init, torch.nn.init),
        ("nn.utils", nn.utils, torch.nn.utils),
        ("optim", optim, torch.optim),
        ("optim.lr_scheduler", optim.lr_scheduler, torch.optim.lr_scheduler),
    ]
    for label, ours, theirs in places:
        for name, value in vars(ours).items():
            public = inspect.isclass(value) or inspect.isfunction(value)
            is_own = public and value.__module__.startswith("vkml")
            if is_own and not name.startswith("_") and hasattr(theirs, name):
                yield pytest.param(value, getattr(theirs, name), id=f"{label}.{name}")
    data = torch.utils.data
    for value in (DataLoader, TensorDataset, random_split):
        yield pytest.param(value, getattr(data, value.__name__), id=f"data.{value.__name__}")
    for name in ("register_buffer", "load_state_dict", "named_parameters", "to", "zero_grad"):
        yield pytest.param(
            getattr(nn.Module, name), getattr(torch.nn.Module, name), id=f"Module.{name}"
        )


def parameters_of(value):
    function = value.__init__ if inspect.isclass(value) else value
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def same_default(ours, theirs):
    # PyTorch's None for a flag means False, and its generator is its global one.
    if theirs.default is None or isinstance(theirs.default, torch.Generator):
        return not ours.default
    if inspect.isroutine(theirs.default):
        return ours.default.__name__ == theirs.default.__name__
    return ours.default == theirs.default or theirs.default is inspect.Parameter.empty


@pytest.mark.parametrize(("ours", "theirs"), list(pairs()))
def test_arguments_are_pytorchs(ours, theirs):
    try:
        expected = parameters_of(theirs)
    except ValueError:
        pytest.skip("PyTorch's function has no signature")
    positional = list(expected)
    if not expected:
        pytest.skip("PyTorch's function takes any arguments")
    for position, (name, parameter) in enumerate(parameters_of(ours).items()):
        assert name in expected
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            assert positional[position] == name
        if parameter.default is not parameter.empty:
            assert same_default(parameter, expected[name])


def test_there_is_something_to_compare():
    assert len(list(pairs())) > 80
    assert vkml.nn is nn


def layers_of_pytorch():
    names = {name for name, value in vars(torch.nn).items() if inspect.isclass(value)}
    return {name for name in names if issubclass(getattr(torch.nn, name), torch.nn.Module)}


def test_layers_are_there_or_left_out_for_a_reason():
    missing = {name for name in layers_of_pytorch() if not hasattr(nn, name)}
    assert missing == set(LEFT_OUT)
    assert all(LEFT_OUT.values())
