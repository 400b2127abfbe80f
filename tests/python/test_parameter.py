"""Parameters made of any tensor, and what becomes of them when their data is set."""

import numpy as np
import pytest

import vkml
from vkml import nn, optim


@pytest.mark.parametrize("view", [lambda w: w.T, lambda w: w[:, ::2], lambda w: w[:1].expand(4, 3)])
def test_a_parameter_made_of_a_view_trains_and_loads(view: object, device: object) -> None:
    parameter = nn.Parameter(view(vkml.rand(3, 3, device=device)))
    optimizer = optim.SGD([parameter], lr=0.5)
    before = parameter.tolist()
    (parameter * 2).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(parameter.numpy(), np.array(before, np.float32) - 1, rtol=1e-6)
    module = nn.Module()
    module.weight = parameter
    module.load_state_dict({"weight": vkml.zeros(*parameter.shape)})
    assert not parameter.numpy().any()
    parameter.data = view(vkml.ones(3, 3, device=device))
    (parameter * 2).sum().backward()
    optimizer.step()
