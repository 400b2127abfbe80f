"""Layers and losses: value and gradient against NumPy in double precision."""

import math

import numpy as np
import pytest

import vkml
import vkml.nn.functional as F
from checking import assert_close, check, inputs
from torch_agreement import torch
from vkml import nn

# Oracles: the definitions, in NumPy.


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def log_softmax(x, axis):
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def conv2d(x, weight, bias, stride, padding, dilation, groups):
    n, _, height, width = x.shape
    out, per_group, rows, columns = weight.shape
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    out_height = (height + 2 * padding[0] - dilation[0] * (rows - 1) - 1) // stride[0] + 1
    out_width = (width + 2 * padding[1] - dilation[1] * (columns - 1) - 1) // stride[1] + 1
    result = np.zeros((n, out, out_height, out_width))
    for o, i, r, c in np.ndindex(out, per_group, rows, columns):
        channel = (o // (out // groups)) * per_group + i
        top, left = r * dilation[0], c * dilation[1]
        window = padded[
            :,
            channel,
            top : top + stride[0] * (out_height - 1) + 1 : stride[0],
            left : left + stride[1] * (out_width - 1) + 1 : stride[1],
        ]
        result[:, o] += weight[o, i, r, c] * window
    return result + bias.reshape(1, -1, 1, 1)


def pool(x, kernel, stride, padding, fill, reduce):
    padded = np.pad(
        x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=fill
    )
    rows = (padded.shape[2] - kernel) // stride + 1
    columns = (padded.shape[3] - kernel) // stride + 1
    result = np.zeros((*x.shape[:2], rows, columns))
    for r, c in np.ndindex(rows, columns):
        top, left = r * stride, c * stride
        result[:, :, r, c] = reduce(padded[:, :, top : top + kernel, left : left + kernel])
    return result


def normalised(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


# Activations.

ACTIVATIONS = {
    "relu": (F.relu, lambda x: np.maximum(x, 0)),
    "relu6": (F.relu6, lambda x: np.clip(x, 0, 6)),
    "sigmoid": (F.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (F.tanh, np.tanh),
    "silu": (F.silu, lambda x: x / (1 + np.exp(-x))),
    "gelu": (F.gelu, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
    "gelu_tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": (F.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    "softplus": (F.softplus, lambda x: np.logaddexp(0, x)),
    "softplus_beta": (
        lambda x: F.softplus(x, beta=2.0),
        lambda x: np.logaddexp(0, 2 * x) / 2,
    ),
    "logsigmoid": (F.logsigmoid, lambda x: -np.logaddexp(0, -x)),
}


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3, 1, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name, shape, device):
    function, oracle = ACTIVATIONS[name]
    check(function, oracle, inputs(shape, -8, 8), device)


def test_softplus_and_logsigmoid_have_gradient_one_half_at_zero(device):
    for function in (F.softplus, F.logsigmoid):
        x = vkml.tensor([0.0], device=device, requires_grad=True)
        function(x).sum().backward()
        assert x.grad.tolist() == [0.5]


def test_softplus_and_logsigmoid_do_not_overflow(device):
    x = vkml.tensor([-1000.0, 1000.0], device=device)
    assert F.softplus(x).tolist() == [0.0, 1000.0]
    assert F.logsigmoid(x).tolist() == [-1000.0, 0.0]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_log_softmax(axis, device):
    x = inputs((4, 5, 3), -5, 5)
    check(lambda t: F.log_softmax(t, axis), lambda a: log_softmax(a, axis), x, device)
    check(lambda t: F.softmax(t, axis), lambda a: np.exp(log_softmax(a, axis)), x, device)


# Layers.


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 4, 3), (2, 2, 2, 3)])
def test_linear(shape, device):
    arguments = [inputs(shape, -1, 1), inputs((4, 3), -1, 1), inputs((4,), -1, 1)]
    check(F.linear, lambda x, w, b: x @ w.T + b, arguments, device)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [
        ((1, 1), (0, 0), (1, 1), 1),
        ((1, 1), (1, 1), (1, 1), 1),
        ((2, 1), (1, 2), (1, 1), 1),
        ((1, 1), (2, 2), (2, 2), 1),
        ((1, 1), (1, 1), (1, 1), 2),
        ((2, 2), (1, 1), (1, 1), 4),
    ],
)
def test_conv2d(stride, padding, dilation, groups, device):
    arguments = [
        inputs((1, 4, 5, 4), -1, 1),
        inputs((4, 4 // groups, 3, 3), -1, 1),
        inputs((4,), -1, 1),
    ]
    check(
        lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups),
        lambda x, w, b: conv2d(x, w, b, stride, padding, dilation, groups),
        arguments,
        device,
    )


@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
def test_conv2d_with_same_padding_keeps_extents(kernel, device):
    x = vkml.ones((1, 1, 6, 7), device=device)
    result = F.conv2d(x, vkml.ones((1, 1, kernel, kernel), device=device), padding="same")
    assert tuple(result.shape) == (1, 1, 6, 7)
    # Each result counts the elements of its window that lie inside: one zero more stands behind.
    before = (kernel - 1) // 2
    counts = [[min(i + kernel - before, n) - max(i - before, 0) for i in range(n)] for n in (6, 7)]
    assert result.reshape(6, 7).tolist() == np.outer(*counts).astype(float).tolist()


def test_conv2d_of_ones_with_wide_padding_has_gradient_nine_everywhere(device):
    x = vkml.ones((1, 1, 11, 14), device=device, requires_grad=True)
    result = F.conv2d(x, vkml.ones((1, 1, 3, 3), device=device), padding=4)
    assert tuple(result.shape) == (1, 1, 17, 20)
    result.sum().backward()
    assert (x.grad == 9).all().item()


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 0)])
def test_pooling(kernel, stride, padding, device):
    x = np.random.default_rng(3).permutation(2 * 7 * 6).reshape(1, 2, 7, 6) / 20 - 2
    x = x.astype(np.float32)
    check(
        lambda t: F.max_pool2d(t, kernel, stride, padding),
        lambda a: pool(a, kernel, stride, padding, -np.inf, lambda w: w.max((2, 3))),
        x,
        device,
    )
    check(
        lambda t: F.avg_pool2d(t, kernel, stride, padding),
        lambda a: pool(a, kernel, stride, padding, 0, lambda w: w.mean((2, 3))),
        x,
        device,
    )


def test_padding_never_wins_a_max_pool(device):
    x = vkml.full((1, 1, 4, 4), -5.0, device=device)
    assert (F.max_pool2d(x, 3, 1, 1) == -5).all().item()


@pytest.mark.parametrize("size", [1, (2, 3)])
def test_adaptive_avg_pool2d(size, device):
    rows, columns = (size, size) if isinstance(size, int) else size

    def oracle(x):
        return x.reshape(2, 3, rows, 4 // rows, columns, 6 // columns).mean((3, 5))

    check(lambda t: F.adaptive_avg_pool2d(t, size), oracle, inputs((2, 3, 4, 6), -1, 1), device)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8)])
def test_layer_norm(shape, device):
    arguments = [inputs(shape, -2, 2), inputs((8,), 0.5, 2), inputs((8,), -1, 1)]
    check(
        lambda x, w, b: F.layer_norm(x, (8,), w, b),
        lambda x, w, b: normalised(x, -1) * w + b,
        arguments,
        device,
        units=64,
    )


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_batch_norm_in_training(shape, device):
    axes = (0, *range(2, len(shape)))
    column = (1, 3) + (1,) * (len(shape) - 2)
    arguments = [inputs(shape, -2, 2), inputs((3,), 0.5, 2), inputs((3,), -1, 1)]
    check(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: normalised(x, axes) * w.reshape(column) + b.reshape(column),
        arguments,
        device,
        units=64,
    )


def test_batch_norm_keeps_running_statistics_with_the_unbiased_variance(device):
    layer = nn.BatchNorm1d(1, momentum=0.1, device=device)
    layer(vkml.tensor([[1.0], [2.0], [3.0], [4.0]], device=device))
    assert_close(layer.running_var, [0.9 + 0.1 * 5 / 3])
    assert_close(layer.running_mean, [0.25])
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    result = layer(vkml.tensor([[0.25]], device=device))
    assert result.tolist() == [[0.0]]
    assert layer.num_batches_tracked.item() == 1


def test_batch_norm_without_momentum_averages_all_batches(device):
    layer = nn.BatchNorm1d(1, momentum=None, device=device)
    for mean in (1.0, 2.0, 6.0):
        layer(vkml.tensor([[mean - 1], [mean + 1]], device=device))
    assert_close(layer.running_mean, [3.0])


def test_embedding_adds_gradients_of_repeated_rows(device):
    table = vkml.tensor(inputs((5, 3), -1, 1), device=device, requires_grad=True)
    rows = vkml.tensor([[0, 2], [2, 2]], device=device)
    result = F.embedding(rows, table)
    np.testing.assert_array_equal(result.numpy(), inputs((5, 3), -1, 1)[[[0, 2], [2, 2]]])
    result.sum().backward()
    assert table.grad.tolist() == [[1.0] * 3, [0.0] * 3, [3.0] * 3, [0.0] * 3, [0.0] * 3]


def test_embedding_padding_row_is_zero_and_gets_no_gradient(device):
    layer = nn.Embedding(4, 2, padding_idx=-1, device=device)
    assert layer.weight[3].tolist() == [0.0, 0.0]
    layer(vkml.tensor([3, 1], device=device)).sum().backward()
    assert layer.weight.grad.tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_dropout_zeroes_a_share_and_scales_the_rest(device):
    vkml.manual_seed(0)
    layer = nn.Dropout(0.25)
    x = vkml.ones((10_000,), device=device, requires_grad=True)
    result = layer(x)
    values = result.numpy()
    assert set(np.unique(values)) == {0.0, np.float32(1 / 0.75)}
    assert abs((values == 0).mean() - 0.25) < 0.02  # 4.6 standard deviations
    result.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)
    assert (layer(x).numpy() != values).any()
    assert layer.eval()(x) is x


# Losses.


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("function", "oracle"),
    [
        (F.mse_loss, lambda x, y: (x - y) ** 2),
        (F.l1_loss, lambda x, y: np.abs(x - y)),
        (
            F.huber_loss,
            lambda x, y: np.where(np.abs(x - y) <= 1, 0.5 * (x - y) ** 2, np.abs(x - y) - 0.5),
        ),
        (
            F.binary_cross_entropy_with_logits,
            lambda x, y: np.logaddexp(0, x) - x * y,
        ),
    ],
    ids=["mse_loss", "l1_loss", "huber_loss", "binary_cross_entropy_with_logits"],
)
def test_loss(function, oracle, reduction, device):
    reduce = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}[reduction]
    arguments = [inputs((4, 5), -3, 3), inputs((4, 5), 0, 1, seed=2)]
    check(
        lambda x, y: function(x, y, reduction=reduction),
        lambda x, y: reduce(oracle(x, y)),
        arguments,
        device,
    )


def cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing):
    """The definition, row by row, for class numbers and inputs of shape (rows, classes)."""
    log_probability = log_softmax(x, 1)
    classes = x.shape[1]
    losses, weights = [], []
    for row, label in zip(log_probability, target, strict=True):
        if label == ignore_index:
            losses.append(0.0)
            weights.append(0.0)
            continue
        share = np.full(classes, label_smoothing / classes)
        share[label] += 1 - label_smoothing
        losses.append(-np.sum(share * weight * row))
        weights.append(weight[label])
    if reduction == "none":
        return np.array(losses)
    total = np.sum(losses)
    return total if reduction == "sum" else total / np.sum(weights)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", [[0, 3, 1, 2, 3], [0, -100, 1, -100, 3]])
def test_cross_entropy(target, weighted, label_smoothing, reduction, device):
    weight = np.array([1.0, 2.0, 0.5, 3.0]) if weighted else np.ones(4)
    labels = vkml.tensor(target, device=device)
    given = vkml.tensor(weight.astype(np.float32), device=device) if weighted else None
    check(
        lambda x: F.cross_entropy(
            x, labels, given, reduction=reduction, label_smoothing=label_smoothing
        ),
        lambda x: cross_entropy(x, target, weight, -100, reduction, label_smoothing),
        inputs((5, 4), -3, 3),
        device,
    )


def test_cross_entropy_over_positions_and_probabilities(device):
    x = inputs((2, 3, 4), -2, 2)
    labels = np.arange(8).reshape(2, 4) % 3

    def oracle(a):
        return -np.take_along_axis(log_softmax(a, 1), labels[:, None], 1).mean()

    target = vkml.tensor(labels, device=device)
    check(lambda t: F.cross_entropy(t, target), oracle, x, device)
    one_hot = vkml.tensor(np.moveaxis(np.eye(3, dtype=np.float32)[labels], -1, 1), device=device)
    check(lambda t: F.cross_entropy(t, one_hot), oracle, x, device)


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0]])
def test_cross_entropy_of_ignored_rows_alone(weight, device):
    x = vkml.tensor(inputs((2, 3), -1, 1), device=device)
    target = vkml.tensor([-100, -100], device=device)
    weight = None if weight is None else vkml.tensor(weight, device=device)
    assert math.isnan(F.cross_entropy(x, target, weight).item())
    assert F.cross_entropy(x, target, weight, reduction="sum").item() == 0.0
    assert F.cross_entropy(x, target, weight, reduction="none").tolist() == [0.0, 0.0]


def test_cross_entropy_of_a_class_that_is_not_there_raises(device):
    loss = F.cross_entropy(vkml.zeros((2, 3), device=device), vkml.tensor([0, 3], device=device))
    with pytest.raises(IndexError):
        loss.item()


def test_nll_loss_of_log_softmax_is_cross_entropy(device):
    x = vkml.tensor(inputs((4, 3), -2, 2), device=device)
    target = vkml.tensor([0, 1, 2, 1], device=device)
    nll = F.nll_loss(F.log_softmax(x, 1), target)
    np.testing.assert_allclose(nll.item(), F.cross_entropy(x, target).item(), rtol=1e-6)


def test_losses_refuse_shapes_that_would_broadcast(device):
    with pytest.raises(vkml.ShapeError, match=r"\(3, 1\).*\(3,\)"):
        F.soft_margin_loss(vkml.zeros((3, 1), device=device), vkml.zeros((3,), device=device))
    with pytest.raises(vkml.ShapeError, match="class numbers"):
        F.cross_entropy(
            vkml.zeros((3, 2), device=device), vkml.tensor([[0], [1], [1]], device=device)
        )
    with pytest.raises(ValueError, match="reduction"):
        F.mse_loss(vkml.zeros(3), vkml.zeros(3), reduction="average")


# Initial values.


def test_default_initial_values_are_pytorchs_distributions(device):
    vkml.manual_seed(0)
    weight = nn.Linear(400, 500, device=device).weight.numpy()
    bound = 1 / math.sqrt(400)
    assert np.abs(weight).max() <= bound
    assert np.abs(weight).max() > 0.999 * bound
    np.testing.assert_allclose(weight.std(), bound / math.sqrt(3), rtol=0.01)
    kernel = nn.Conv2d(16, 64, 5, device=device).weight.numpy()
    assert np.abs(kernel).max() <= 1 / math.sqrt(16 * 25)
    np.testing.assert_allclose(nn.Embedding(300, 300).weight.numpy().std(), 1.0, rtol=0.02)


@pytest.mark.parametrize(
    ("function", "std"),
    [
        (nn.init.xavier_uniform_, math.sqrt(2 / (200 + 300))),
        (nn.init.xavier_normal_, math.sqrt(2 / (200 + 300))),
        (lambda t: nn.init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 300)),
        (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), 0.1),
    ],
)
def test_initial_deviations(function, std, device):
    vkml.manual_seed(1)
    tensor = vkml.zeros((200, 300), device=device)
    assert function(tensor) is tensor
    np.testing.assert_allclose(tensor.numpy().std(), std, rtol=0.02)
    np.testing.assert_allclose(tensor.numpy().mean(), 0, atol=0.02 * std)


def test_same_seed_gives_the_same_network(device):
    states = []
    for _ in range(2):
        vkml.manual_seed(3)
        net = nn.Sequential(nn.Linear(3, 4), nn.Conv2d(1, 2, 3))
        states.append([p.tolist() for p in net.parameters()])
    assert states[0] == states[1]


# Helpers.


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
def test_clip_grad_norm(norm_type, device):
    values = [np.array([3.0, -4.0]), np.array([[12.0]])]
    parameters = [nn.Parameter(vkml.zeros(v.shape, device=device)) for v in values]
    for parameter, value in zip(parameters, values, strict=True):
        parameter.grad = vkml.tensor(value.astype(np.float32), device=device)
    flat = np.array([3.0, -4.0, 12.0])
    norm = np.linalg.norm(flat, norm_type)
    returned = nn.utils.clip_grad_norm_(parameters, 2.0, norm_type)
    np.testing.assert_allclose(returned.item(), norm, rtol=1e-6)
    clipped = np.concatenate([p.grad.numpy().reshape(-1) for p in parameters])
    np.testing.assert_allclose(clipped, flat * 2 / norm, rtol=1e-6)
    nn.utils.clip_grad_norm_(parameters, 100.0, norm_type)
    kept = np.concatenate([p.grad.numpy().reshape(-1) for p in parameters])
    np.testing.assert_array_equal(kept, clipped)


def test_parameters_go_through_a_vector_and_back(device):
    net = nn.Linear(2, 3, device=device)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (9,)
    nn.utils.vector_to_parameters(vkml.arange(9, device=device).to(vkml.float32), net.parameters())
    assert net.bias.tolist() == [6.0, 7.0, 8.0]
    with pytest.raises(vkml.ShapeError):
        nn.utils.vector_to_parameters(vkml.zeros(8, device=device), net.parameters())


# Gradient modes.


def test_no_grad_and_enable_grad_nest_and_decorate():
    x = vkml.ones(1).requires_grad_()

    @vkml.no_grad()
    def plain():
        with vkml.enable_grad():
            inner = (x * 2).requires_grad
        return (x * 2).requires_grad, inner

    assert plain() == (False, True)
    assert (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError), vkml.no_grad():
        _ = 1 / 0
    assert vkml.is_grad_enabled()
    with vkml.set_grad_enabled(False):
        assert not vkml.is_grad_enabled()
    assert vkml.is_grad_enabled()


def test_bags_of_halves_are_summed_in_float32(device):
    rows = vkml.zeros(1, 500, dtype=vkml.int64, device=device)
    table = vkml.full((1, 4), 300.0, dtype=vkml.float16, device=device)
    assert F.embedding_bag(rows, table).tolist() == [[300.0] * 4]
    ones = vkml.full((1, 2), 1.0, dtype=vkml.bfloat16, device=device)
    assert F.embedding_bag(rows, ones, mode="sum").tolist() == [[500.0] * 2]


def test_binary_cross_entropy_at_its_ends(device):
    """A wrong and certain input has PyTorch's slope, and what is no probability is an error."""
    values, targets = [0.0, 1.0, 0.0, 0.25, 1e-13], [1.0, 0.0, 0.0, 0.5, 1.0]
    x = vkml.tensor(values, device=device, requires_grad=True)
    loss = F.binary_cross_entropy(x, vkml.tensor(targets, device=device), reduction="none")
    wanted = torch.tensor(values, requires_grad=True)
    expected = torch.nn.functional.binary_cross_entropy(
        wanted, torch.tensor(targets), reduction="none"
    )
    np.testing.assert_allclose(loss.tolist(), expected.tolist(), rtol=1e-5)
    loss.sum().backward()
    expected.sum().backward()
    is_wrong = [0, 1, 3, 4]  # where it is right and certain, PyTorch's slope jumps to 0
    np.testing.assert_allclose(x.grad.numpy()[is_wrong], wanted.grad[is_wrong], rtol=1e-5)
    for bad in (-0.1, 1.2, float("nan")):
        with pytest.raises(vkml.ArgumentError, match=r"\[binary_cross_entropy\] the probability"):
            F.binary_cross_entropy(vkml.tensor([0.5, bad], device=device), x.detach()[:2]).item()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_lp_pooling_of_negative_sums(p, device):
    """As PyTorch: the sum itself for p = 1, no real root of a negative one for p = 3."""
    values = inputs((1, 2, 6, 6), -1, 0.5)
    mine = F.lp_pool2d(vkml.tensor(values, device=device), p, 3, 2)
    wanted = torch.nn.functional.lp_pool2d(torch.tensor(values), p, 3, 2)
    np.testing.assert_allclose(mine.numpy(), wanted.numpy(), rtol=1e-4)


def test_convolutions_print_what_they_were_given():
    for make in (
        lambda nn: nn.Conv1d(4, 6, 3),
        lambda nn: nn.Conv2d(4, 6, (3, 5), stride=2, padding=1, groups=2, bias=False),
        lambda nn: nn.Conv2d(4, 6, 3, padding="same", dilation=2, padding_mode="circular"),
        lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
    ):
        assert repr(make(nn)) == repr(make(torch.nn))
