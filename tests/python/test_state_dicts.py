"""State dicts have PyTorch's names and shapes, and load from it; initialisers by their formulas."""

import numpy as np
import pytest

import vkml
from checking import inputs
from vkml import nn
from vkml.nn import init

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

# Every layer that has parameters or buffers, with arguments that make all of them.
LAYERS = {
    "BatchNorm1d": (4,),
    "BatchNorm2d": (4,),
    "Bilinear": (2, 3, 4),
    "Conv1d": (4, 6, 3, 1, 0, 1, 2),
    "Conv2d": (4, 6, (3, 2), 1, 0, 1, 2),
    "ConvTranspose1d": (4, 6, 3, 1, 0, 0, 2),
    "ConvTranspose2d": (4, 6, (3, 2), 1, 0, 0, 2),
    "Embedding": (5, 3),
    "EmbeddingBag": (5, 3),
    "GRU": (3, 4, 2, True, False, 0.0, True),
    "GRUCell": (3, 4),
    "GroupNorm": (2, 4),
    "InstanceNorm1d": (4, 1e-5, 0.1, True, True),
    "InstanceNorm2d": (4, 1e-5, 0.1, True, True),
    "LSTM": (3, 4, 2, True, False, 0.0, True),
    "LSTMCell": (3, 4),
    "LayerNorm": ((3, 4),),
    "Linear": (3, 4),
    "MultiheadAttention": (4, 2),
    "PReLU": (4,),
    "RMSNorm": ((3, 4),),
    "RNN": (3, 4, 2, "tanh", True, False, 0.0, True),
    "RNNCell": (3, 4),
    "TransformerDecoderLayer": (4, 2, 8),
    "TransformerEncoderLayer": (4, 2, 8),
}


def with_state() -> set[str]:
    """The names of vkML's layers that hold tensors, found by their annotations and tables."""
    found = set()
    for name in nn.__all__:
        kind = getattr(nn, name)
        if isinstance(kind, type) and issubclass(kind, nn.Module):
            notes = {n for base in kind.__mro__ for n in getattr(base, "__annotations__", {})}
            if {"weight", "weight_ih", "in_proj_weight", "running_mean"} & notes:
                found.add(name)
    return found


def test_the_list_of_layers_is_complete():
    losses = {name for name in nn.__all__ if name.endswith("Loss")}
    assert with_state() - losses <= set(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_layer_loads_from_pytorch_and_back(name, device):
    ours = getattr(nn, name)(*LAYERS[name])
    theirs = getattr(torch.nn, name)(*LAYERS[name])
    with torch.no_grad():
        for position, tensor in enumerate(theirs.state_dict().values()):
            if tensor.is_floating_point():
                tensor.copy_(torch.tensor(inputs(tuple(tensor.shape), -1, 1, seed=position)))
    expected = theirs.state_dict()
    assert {key: tuple(value.shape) for key, value in ours.state_dict().items()} == {
        key: tuple(value.shape) for key, value in expected.items()
    }
    assert list(ours.state_dict()) == list(expected)
    assert not any(ours.load_state_dict(expected))
    for key, value in ours.state_dict().items():
        assert value.device == device
        np.testing.assert_array_equal(value.numpy(), expected[key].numpy())
    again = {key: torch.tensor(value.numpy()) for key, value in ours.state_dict().items()}
    theirs.load_state_dict(again)
    assert not any(ours.load_state_dict({k: v.numpy() for k, v in expected.items()}))


def test_what_is_loaded_is_a_copy(device):
    layer = nn.Linear(2, 2, bias=False)
    source = torch.ones(2, 2)
    layer.load_state_dict({"weight": source})
    source.fill_(5.0)
    assert layer.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    layer.load_state_dict({"weight": torch.full((2, 2), 2.0, dtype=torch.bfloat16)})
    assert layer.weight.dtype == vkml.float32
    assert layer.weight.sum().item() == 8.0


def test_a_dictionary_of_parameters():
    table = nn.ParameterDict({"a": vkml.ones(2)})
    table["b"] = nn.Parameter(vkml.zeros(3))
    assert list(table) == list(table.keys()) == ["a", "b"]
    assert [p.shape for p in table.values()] == [(2,), (3,)]
    assert dict(table.items())["b"] is table["b"]
    assert "a" in table
    del table["a"]
    assert len(table) == 1
    assert list(table.state_dict()) == ["b"]
    assert "(b): Parameter of" in repr(table)
    with pytest.raises(KeyError):
        table["a"]


# Initialisers.


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (3, 2, 2)])
def test_orthogonal_rows_or_columns(shape, device):
    tensor = init.orthogonal_(vkml.empty(shape, device=device), gain=2.0)
    matrix = tensor.numpy().reshape(shape[0], -1).astype(np.float64)
    smaller = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(smaller, 4 * np.eye(len(smaller)), atol=1e-5)
    assert init.orthogonal_(vkml.empty((2, 0), device=device)).shape == (2, 0)


def test_truncated_normal_stays_inside(device):
    values = init.trunc_normal_(vkml.empty(20000, device=device), 1.0, 2.0, -1.0, 2.0).numpy()
    assert -1.0 <= values.min() < -0.98
    assert 1.98 < values.max() <= 2.0
    # The mean of a normal on [-1, 1/2] deviations: (phi(-1) - phi(1/2)) / (Phi(1/2) - Phi(-1)).
    expected = 1.0 + 2.0 * (0.2419707 - 0.3520653) / (0.6914625 - 0.1586553)
    assert values.mean() == pytest.approx(expected, abs=5 * 0.82 / np.sqrt(20000))


def test_sparse_columns(device):
    matrix = init.sparse_(vkml.empty((10, 50), device=device), 0.25, 2.0).numpy()
    assert ((matrix == 0).sum(0) == 3).all()
    assert len({tuple(column) for column in (matrix == 0).T}) > 10
    assert matrix[matrix != 0].std() == pytest.approx(2.0, rel=0.25)


@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 3, 3, 3), (6, 2, 2, 5)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_is_pytorchs(shape, groups, device):
    mine = init.dirac_(vkml.empty(shape, device=device), groups)
    wanted = torch.nn.init.dirac_(torch.empty(shape), groups)
    np.testing.assert_array_equal(mine.numpy(), wanted.numpy())


@pytest.mark.parametrize(
    "build",
    [
        lambda: init.orthogonal_(vkml.empty(3)),
        lambda: init.sparse_(vkml.empty(3), 0.5),
        lambda: init.dirac_(vkml.empty((3, 3))),
        lambda: init.dirac_(vkml.empty((3, 3, 3)), 2),
    ],
)
def test_impossible_shapes_are_refused(build):
    with pytest.raises(vkml.ShapeError):
        build()
