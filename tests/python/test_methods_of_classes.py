"""Methods of vkML's Python classes turn what they cannot take into vkML's own exceptions."""

from collections.abc import Callable
from typing import Any

import pytest

import vkml
from vkml import nn, optim


def adam() -> optim.Adam:
    return optim.Adam(nn.Linear(2, 2).parameters())


WRONG: dict[str, Callable[[], Any]] = {
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


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_of_methods(name: str) -> None:
    kind, method = name.split()[0].split(".")
    with pytest.raises(vkml.VkmlError, match=rf"\[({kind}\.)?({kind}|{method})\]"):
        WRONG[name]()


def test_errors_of_a_users_override_pass_through() -> None:
    class Mine(nn.Linear):
        def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Mine(2, 2).load_state_dict({})
