"""vkml.func against torch.func in double precision, and by closed forms."""

import numpy as np
import pytest

import vkml
from checking import assert_close, exact, inputs
from vkml import func, nn

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
# PyTorch compiles parts of its forward mode with what it deprecates itself.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")

A = inputs((3, 4), -1, 1)
B = inputs((4, 3), -1, 1, seed=1)
V = inputs((4,), 0.2, 1.5, seed=2)
BATCH = inputs((5, 3, 4), -1, 1, seed=3)


def ours(tree, device):
    """NumPy arrays of a tree as tensors of vkML."""
    if isinstance(tree, np.ndarray):
        return vkml.tensor(tree, device=device)
    if isinstance(tree, dict):
        return {key: ours(entry, device) for key, entry in tree.items()}
    return type(tree)(ours(entry, device) for entry in tree)


def theirs(tree):
    """The same as PyTorch's, in double precision."""
    if isinstance(tree, np.ndarray):
        return torch.tensor(tree, dtype=torch.float64 if tree.dtype == np.float32 else None)
    if isinstance(tree, dict):
        return {key: theirs(entry) for key, entry in tree.items()}
    return type(tree)(theirs(entry) for entry in tree)


def assert_same(mine, wanted, units=64):
    """Compares results of one structure."""
    if isinstance(wanted, torch.Tensor):
        if wanted.is_floating_point():
            assert_close(mine, wanted.detach().numpy(), units)
        else:
            np.testing.assert_array_equal(mine.numpy(), wanted.numpy())
    elif isinstance(wanted, dict):
        assert set(mine) == set(wanted)
        for key, entry in wanted.items():
            assert_same(mine[key], entry, units)
    else:
        assert type(mine) is type(wanted)
        for one, other in zip(mine, wanted, strict=True):
            assert_same(one, other, units)


# Functions of one element, written once for both libraries.
SCALARS = {
    "elementwise": (lambda lib, x: (x.sin() * x.exp() / (x * x + 1)).sum(), (A,)),
    "matmul": (lambda lib, x: ((x @ x.transpose(0, 1)).tanh() ** 2).sum(), (A,)),
    "reductions": (lambda lib, x: (x.var() + x.amax() * x.mean(0).prod()).sum(), (A,)),
    "softmax": (lambda lib, x: (lib.softmax(x, -1) * x).sum(), (A,)),
    "logsumexp": (lambda lib, x: lib.logsumexp(x, 1).sum() ** 2, (A,)),
    "views": (
        lambda lib, x: (x[1:, ::2].transpose(0, 1).reshape(-1) * x[0]).cumsum(0).square().sum(),
        (A,),
    ),
    "concat": (lambda lib, x: (lib.cat([x, x * x], 1) @ lib.cat([x.T, x.T], 0)).sin().sum(), (A,)),
    "broadcast": (lambda lib, x: ((x.unsqueeze(1) - x.unsqueeze(0)) ** 3).cos().sum(), (V,)),
    "square_root": (lambda lib, x: (x.sqrt() + x.log() + x.rsqrt() / x).sum(), (V,)),
    "constant": (lambda lib, x: (x * 0 + 3).sum(), (V,)),
}


@pytest.mark.parametrize("name", SCALARS)
def test_grad_is_torchs(name, device):
    function, arguments = SCALARS[name]
    mine = func.grad(lambda *x: function(vkml, *x))(*ours(arguments, device))
    assert_same(mine, torch.func.grad(lambda *x: function(torch, *x))(*theirs(arguments)))
    assert not mine.requires_grad


@pytest.mark.parametrize("name", SCALARS)
def test_hessian_is_torchs(name, device):
    function, arguments = SCALARS[name]
    mine = func.hessian(lambda *x: function(vkml, *x))(*ours(arguments, device))
    wanted = torch.func.hessian(lambda *x: function(torch, *x))(*theirs(arguments))
    assert_same(mine, wanted, 512)


@pytest.mark.parametrize("name", SCALARS)
def test_third_derivative_in_a_direction_is_torchs(name, device):
    function, arguments = SCALARS[name]
    direction = inputs(arguments[0].shape, -1, 1, seed=9)

    def third(lib, x, t):
        def first(y):
            return (lib.func.grad(lambda z: function(lib, z))(y) * t).sum()

        return lib.func.jvp(lib.func.grad(first), (x,), (t,))[1]

    mine = third(vkml, *ours((*arguments, direction), device))
    assert_same(mine, third(torch, *theirs((*arguments, direction))), 4096)


def test_argnums_aux_and_trees(device):
    def function(x, parameters, scale=1.0):
        y = (x @ parameters["w"]).tanh() * scale + parameters["b"][0]
        return (y * y).sum(), {"y": y}

    arguments = (A, {"w": B, "b": (inputs((3,), -1, 1),)})
    for argnums in (0, 1, -1, (1, 0), (0,)):
        mine = func.grad(function, argnums, has_aux=True)(*ours(arguments, device), scale=0.5)
        wanted = torch.func.grad(function, argnums, has_aux=True)(*theirs(arguments), scale=0.5)
        assert_same(mine, wanted)
    gradient, (value, aux) = func.grad_and_value(function, 1, True)(*ours(arguments, device))
    first, (gradient_again) = func.value_and_grad(function, 1, True)(*ours(arguments, device))
    assert_same(first, torch.func.grad_and_value(function, 1, True)(*theirs(arguments))[1])
    assert value.item() == first[0].item()
    assert aux["y"].tolist() == first[1]["y"].tolist()
    assert gradient["w"].tolist() == gradient_again["w"].tolist()


def test_vjp_may_be_called_again_and_has_many_results(device):
    def function(x, y):
        return x @ y, (x.sum() * y.amax(0),)

    outputs, pull = func.vjp(function, *ours((A, B), device))
    wanted, wanted_pull = torch.func.vjp(function, *theirs((A, B)))
    assert_same(outputs, wanted)
    for seed in range(2):
        cotangents = (inputs((3, 3), -1, 1, seed), (inputs((3,), -1, 1, seed),))
        assert_same(pull(ours(cotangents, device)), wanted_pull(theirs(cotangents)))


TANGENTS = {
    **{name: (function, arguments) for name, (function, arguments) in SCALARS.items()},
    "many_results": (lambda lib, x: (x * x, {"s": x.sum(0), "k": lib.ones_like(x)}), (A,)),
    "gather": (lambda lib, x: lib.sort(x, -1)[0] * x, (A,)),
    "relu": (lambda lib, x: lib.relu(x) + lib.where(x > 0.5, x * 2, x.exp()), (A,)),
    "maximum": (lambda lib, x: lib.maximum(x, x.flip(0)) + x.abs(), (A,)),
    "two": (lambda lib, x, y: (x @ y).exp().cumprod(0), (A, B)),
    "norm": (lambda lib, x: lib.nn.functional.layer_norm(x, (4,)), (A,)),
}


@pytest.mark.parametrize("name", TANGENTS)
def test_jvp_is_torchs(name, device):
    function, arguments = TANGENTS[name]
    directions = tuple(inputs(a.shape, -1, 1, seed=7 + i) for i, a in enumerate(arguments))
    mine = func.jvp(
        lambda *x: function(vkml, *x), ours(arguments, device), ours(directions, device)
    )
    wanted = torch.func.jvp(lambda *x: function(torch, *x), theirs(arguments), theirs(directions))
    assert_same(mine, wanted, 256)


def test_jvp_goes_through_custom_functions(device):
    class Cube(vkml.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 3 * x * x * gradient

    x = ours(V, device)
    _, tangent = func.jvp(Cube.apply, (x,), (vkml.ones_like(x),))
    assert_close(tangent, 3.0 * V.astype(np.float64) ** 2)


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
@pytest.mark.parametrize("kind", ["jacrev", "jacfwd"])
def test_jacobians_are_torchs(kind, chunk_size, device):
    def function(lib, x, y):
        return {"p": x @ y[:, 0], "s": (x * x).sum(0)}

    for argnums in (0, (0, 1)):
        mine = getattr(func, kind)(lambda *x: function(vkml, *x), argnums, chunk_size=chunk_size)(
            *ours((A, B), device)
        )
        wanted = getattr(torch.func, kind)(lambda *x: function(torch, *x), argnums)(*theirs((A, B)))
        assert_same(mine, wanted)


def test_convolution_has_a_jacobian_row_by_row(device):
    x = inputs((1, 1, 3, 3), -1, 1)
    w = inputs((1, 1, 2, 2), -1, 1)

    def function(lib, a, b):
        return lib.nn.functional.conv2d(a, b).reshape(-1)[:2]

    with pytest.raises(vkml.UnsupportedError, match=r"rank 5.*chunk_size=1"):
        func.jacrev(lambda a: function(vkml, a, ours(w, device)).reshape(-1))(ours(x, device))
    flat = x.reshape(-1)
    mine = func.jacrev(
        lambda a: function(vkml, a.reshape(1, 1, 3, 3), ours(w, device)), chunk_size=1
    )(ours(flat, device))
    wanted = torch.func.jacrev(lambda a: function(torch, a.reshape(1, 1, 3, 3), theirs(w)))(
        theirs(flat)
    )
    assert_same(mine, wanted)


def test_transformations_see_outer_gradients(device):
    """A gradient of a function that closes over a trained tensor can be trained on."""
    w = vkml.tensor(V, device=device, requires_grad=True)
    x = ours(inputs((4,), -1, 1), device)
    penalty = func.grad(lambda z: (w * z.sin()).sum())(x).square().sum()
    assert penalty.requires_grad
    penalty.backward()
    exact = 2 * V.astype(np.float64) * np.cos(inputs((4,), -1, 1).astype(np.float64)) ** 2
    assert_close(w.grad, exact)


def test_functional_call_with_gradients_of_parameters(device):
    model = nn.Sequential(nn.Linear(4, 3, device=device), nn.Tanh(), nn.Linear(3, 1, device=device))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    x = ours(inputs((6, 4), -1, 1), device)

    def loss(given, batch):
        return (func.functional_call(model, given, (batch,)) ** 2).mean()

    gradients = func.grad(loss)(parameters, x)
    loss(dict(model.named_parameters()), x).backward()
    for name, parameter in model.named_parameters():
        assert_close(gradients[name], parameter.grad.numpy().astype(np.float64))
    per_example = func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, x.unsqueeze(1))
    assert per_example["0.weight"].shape == (6, 3, 4)
    assert_close(per_example["0.weight"].mean(0), gradients["0.weight"].numpy().astype(np.float64))


def test_functional_call_restores_ties_and_checks_names(device):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2, bias=False, device=device)
            self.b = nn.Linear(2, 2, bias=False, device=device)
            self.b.weight = self.a.weight
            self.register_buffer("shift", vkml.zeros(2, device=device))

        def forward(self, x, scale=1.0):
            return self.b(self.a(x)) * scale + self.shift

    model = Tied()
    before = model.a.weight
    double = vkml.eye(2, device=device) * 2
    x = vkml.ones((1, 2), device=device)
    given = [{"a.weight": double}, {"shift": vkml.ones(2, device=device)}]
    assert func.functional_call(model, given, x, {"scale": 3.0}).tolist() == [[13.0, 13.0]]
    assert model.a.weight is before
    assert model.b.weight is before
    with pytest.raises(vkml.ArgumentError, match=r"unexpected: c\.weight"):
        func.functional_call(model, {"c.weight": double}, x)
    with pytest.raises(vkml.ArgumentError, match=r"missing: shift, b\.weight"):
        func.functional_call(model, {"a.weight": double}, x, strict=True)
    with pytest.raises(vkml.ArgumentError, match="two dictionaries"):
        func.functional_call(model, [{"a.weight": double}] * 2, x)
    with pytest.raises(vkml.ShapeError):
        func.functional_call(model, {"a.weight": vkml.ones((3, 3), device=device)}, x)
    assert model.a.weight is before


# vmap.

MAPPED = {
    "elementwise": (lambda lib, x: x.sin() * 2 + x, (BATCH,), 0, 0),
    "broadcast": (lambda lib, x, y: x * y + y.sum(), (BATCH, V), (0, None), 0),
    "broadcast_up": (lambda lib, x, y: x + y, (BATCH, inputs((5, 4), -1, 1)), 0, 0),
    "reductions": (lambda lib, x: (x.sum(), x.mean(0), x.amax(1), x.var(1)), (BATCH,), 0, 0),
    "positions": (lambda lib, x: (x.argmax(1), x.argmin(), x.argsort(0)), (BATCH,), 0, 0),
    "any_axis": (lambda lib, x: x @ x.transpose(0, 1), (BATCH,), 2, 1),
    "negative_axis": (lambda lib, x: x.cumsum(0), (BATCH,), -1, -1),
    "matmul_shared": (lambda lib, x, w: x @ w, (BATCH, B), (0, None), 0),
    "matmul_shared_left": (lambda lib, w, x: w @ x, (B, BATCH), (None, 0), 0),
    "matmul_both": (lambda lib, x, y: x @ y, (BATCH, inputs((5, 4, 2), -1, 1)), 0, 0),
    "matmul_vector": (lambda lib, x, v: (x @ v, v @ v), (BATCH, inputs((5, 4), -1, 1)), 0, 0),
    "matmul_rank": (
        lambda lib, x, y: x @ y,
        (BATCH, inputs((2, 4, 3), -1, 1)),
        (0, None),
        0,
    ),
    "views": (
        lambda lib, x: x[1:, ::2].transpose(0, 1).reshape(-1).flip(0),
        (BATCH,),
        0,
        0,
    ),
    "diagonal": (lambda lib, x: x.diagonal(), (BATCH,), 0, 0),
    "concat": (lambda lib, x, y: lib.cat([x, y], 1), (BATCH, A), (0, None), 0),
    "stack": (lambda lib, x, y: lib.stack([x, y]), (BATCH, A), (0, None), 0),
    "gather": (lambda lib, x: lib.sort(x, 1)[0], (BATCH,), 0, 0),
    "scan": (lambda lib, x: x.cumprod(1), (BATCH,), 0, 0),
    "softmax": (lambda lib, x: lib.softmax(x, -1), (BATCH,), 0, 0),
    "layer_norm": (lambda lib, x: lib.nn.functional.layer_norm(x, (4,)), (BATCH,), 0, 0),
    "pad": (lambda lib, x: lib.nn.functional.pad(x, (1, 2)), (BATCH,), 0, 0),
    "cast": (lambda lib, x: (x > 0).sum(1), (BATCH,), 0, 0),
    "constant": (lambda lib, x: (x, lib.ones_like(x[0])), (BATCH,), 0, 0),
    "trees": (
        lambda lib, d, t: {"a": d["x"] * t[0], "b": (d["x"].sum(0),)},
        ({"x": BATCH}, (V,)),
        ({"x": 0}, None),
        {"a": 1, "b": 0},
    ),
    "gradient": (
        lambda lib, x, w: lib.func.grad(lambda y: ((y @ w).tanh() ** 2).sum())(x),
        (BATCH, B),
        (0, None),
        0,
    ),
    "gradient_of_shared": (
        lambda lib, x, w: lib.func.grad(lambda v: lib.softmax(x @ v, -1)[:, 0].sum())(w),
        (BATCH, B),
        (0, None),
        0,
    ),
    "jvp": (
        lambda lib, x: lib.func.jvp(lambda y: (y * y).sum(0), (x,), (lib.ones_like(x),))[1],
        (BATCH,),
        0,
        0,
    ),
    "hessian": (lambda lib, x: lib.func.hessian(lambda y: (y**3).sum())(x[0]), (BATCH,), 0, 0),
    "nested": (
        lambda lib, x, y: lib.func.vmap(lambda a: lib.func.vmap(lambda b: (a * b).sum())(y))(x),
        (BATCH, inputs((5, 2, 4), -1, 1)),
        0,
        0,
    ),
    "nested_shared": (
        lambda lib, x, y: lib.func.vmap(lambda b: x @ b, 0, 1)(y),
        (BATCH, inputs((2, 4), -1, 1)),
        (0, None),
        0,
    ),
}


@pytest.mark.parametrize("name", MAPPED)
def test_vmap_is_torchs(name, device):
    function, arguments, in_dims, out_dims = MAPPED[name]
    mine = func.vmap(lambda *x: function(vkml, *x), in_dims, out_dims)(*ours(arguments, device))
    wanted = torch.func.vmap(lambda *x: function(torch, *x), in_dims, out_dims)(*theirs(arguments))
    assert_same(mine, wanted, 256)


@pytest.mark.parametrize(
    "name", [n for n in MAPPED if n not in ("positions", "cast", "trees", "constant", "nested")]
)
def test_gradients_pass_through_vmap(name, device):
    function, arguments, in_dims, out_dims = MAPPED[name]

    def total(lib, *given):
        found = lib.func.vmap(lambda *x: function(lib, *x), in_dims, out_dims)(*given)
        results = found if isinstance(found, tuple) else (found,)
        return sum((each.float() if lib is vkml else each).sin().sum() for each in results)

    argnums = tuple(range(len(arguments)))
    mine = func.grad(lambda *x: total(vkml, *x), argnums)(*ours(arguments, device))
    wanted = torch.func.grad(lambda *x: total(torch, *x), argnums)(*theirs(arguments))
    assert_same(mine, wanted, 512)


def test_custom_functions_keep_their_gradient_under_vmap(device):
    class Scaled(vkml.autograd.Function):
        """x * w, with a gradient that is none of that: twice w, and three times x."""

        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, gradient):
            x, w = ctx.saved_tensors
            return 2 * w * gradient, 3 * x * gradient

    x = vkml.tensor(BATCH[:, 0], device=device, requires_grad=True)
    w = vkml.tensor(V, device=device, requires_grad=True)
    func.vmap(Scaled.apply, in_dims=(0, None))(x, w).sum().backward()
    assert_close(x.grad, np.broadcast_to(2.0 * V.astype(np.float64), (5, 4)))
    assert_close(w.grad, 3.0 * BATCH[:, 0].astype(np.float64).sum(0))


def test_vmap_leaves_outer_tensors_and_modes_alone(device):
    x = ours(BATCH, device)
    vkml.set_eager(True)
    try:
        result = func.vmap(lambda a: a.sum(0))(x)
        assert vkml.is_eager()
    finally:
        vkml.set_eager(False)
    assert_close(result, BATCH.astype(np.float64).sum(1))
    with vkml.no_grad():
        y = vkml.tensor(BATCH, device=device, requires_grad=True)
        assert not func.vmap(lambda a: a * 2)(y).requires_grad


def test_vmap_of_a_batch_of_none_and_of_one(device):
    for count in (0, 1):
        x = ours(BATCH[:count], device)
        result = func.vmap(lambda a: (a @ a.transpose(0, 1)).sum(1))(x)
        assert result.shape == (count, 3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x * x.sum().item(), "reads the value"),
        (lambda x: x if x.sum() > 0 else -x, "reads the value"),
        (lambda x: nn.functional.conv2d(x.reshape(1, 1, 3, 4), vkml.ones((1, 1, 2, 2))), "rank 5"),
        (lambda x: vkml.nonzero(x), "reads the value"),
    ],
)
def test_vmap_refuses_what_it_cannot_do(function, message):
    with pytest.raises(vkml.UnsupportedError, match=rf"\[vmap\].*{message}.*once for each example"):
        func.vmap(function)(vkml.tensor(BATCH))


def test_vmap_checks_axes():
    x, y = vkml.tensor(BATCH), vkml.tensor(A)
    with pytest.raises(vkml.ArgumentError, match=r"sizes \[3, 5\]"):
        func.vmap(lambda a, b: a)(x, y)
    with pytest.raises(vkml.ArgumentError, match="nothing to map over"):
        func.vmap(lambda a: a, in_dims=None)(x)
    with pytest.raises(vkml.ShapeError, match="axis 3"):
        func.vmap(lambda a: a, in_dims=3)(x)
    with pytest.raises(ValueError, match="in_dims has 1 entries for 2"):
        func.vmap(lambda a, b: a, in_dims=(0,))(x, y)
    with pytest.raises(vkml.ArgumentError, match="out_dims is None"):
        func.vmap(lambda a: a, out_dims=None)(x)


def test_derivatives_check_their_arguments():
    x = vkml.tensor(V)
    with pytest.raises(vkml.ShapeError, match=r"\(4,\).*jacrev"):
        func.grad(lambda a: a * 2)(x)
    with pytest.raises(vkml.DTypeError, match="argnums"):
        func.grad(lambda a: a.sum())(vkml.arange(3))
    with pytest.raises(vkml.ArgumentError, match="argument 1 of 1"):
        func.grad(lambda a: a.sum(), argnums=1)(x)
    with pytest.raises(vkml.ShapeError, match="tangents have shapes"):
        func.jvp(lambda a: a, (x,), (vkml.ones(3),))
    with pytest.raises(TypeError, match="tuples"):
        func.jvp(lambda a: a, x, x)
    with pytest.raises(vkml.ArgumentError, match="2 cotangents for 1"):
        func.vjp(lambda a: a, x)[1](x, x)
    with pytest.raises(vkml.ArgumentError, match="aux"):
        func.grad(lambda a: a.sum(), has_aux=True)(x)


def test_transformed_functions_compile_nothing_the_second_time(device):
    def loss(w, x):
        return ((x @ w).tanh() ** 2).sum()

    per_example = func.vmap(func.grad(loss), in_dims=(None, 0))
    w = ours(B, device)
    misses = []
    for seed in range(3):
        x = ours(inputs((5, 3, 4), -1, 1, seed=seed), device)
        per_example(w, x).realize()
        func.jvp(lambda a: loss(a, x), (w,), (w,))[1].realize()  # noqa: B023
        misses.append(vkml.cache_info(device).misses)
    assert misses[1] == misses[2]


def test_linearize(device: object) -> None:
    calls = []

    def f(x: object, y: object) -> dict:
        calls.append(1)
        return {"product": vkml.sin(x) * y, "sum": (x + y).sum()}

    x = vkml.tensor([0.3, 1.1], device=device)
    y = vkml.tensor([2.0, -1.0], device=device)
    output, push = func.linearize(f, x, y)
    np.testing.assert_allclose(exact(output["product"]), np.sin(exact(x)) * exact(y), rtol=1e-6)
    for k in range(3):
        dx = vkml.tensor([1.0, float(k)], device=device)
        dy = vkml.tensor([0.5, -2.0], device=device)
        tangent = push(dx, dy)
        expected = np.cos(exact(x)) * exact(y) * exact(dx) + np.sin(exact(x)) * exact(dy)
        np.testing.assert_allclose(exact(tangent["product"]), expected, rtol=1e-5)
        assert tangent["sum"].item() == pytest.approx(1 + k - 1.5)
    assert len(calls) == 1
    with pytest.raises(vkml.ShapeError, match=r"\[linearize\] tangents"):
        push(x)


def test_an_ensemble_of_models(device: object) -> None:
    models = [vkml.nn.Linear(3, 2).to(device) for _ in range(4)]
    parameters, buffers = func.stack_module_state(models)
    assert buffers == {}
    assert {name: value.shape for name, value in parameters.items()} == {
        "weight": (4, 2, 3),
        "bias": (4, 2),
    }
    assert all(value.requires_grad and value.is_leaf for value in parameters.values())
    x = vkml.tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device=device)
    apply = func.vmap(lambda p, x: func.functional_call(models[0], p, (x,)), (0, None))
    together = apply(parameters, x)
    for k, model in enumerate(models):
        np.testing.assert_allclose(exact(together[k]), exact(model(x)), rtol=1e-5, atol=1e-6)
    together.sum().backward()
    assert parameters["bias"].grad.tolist() == [[2.0, 2.0]] * 4
    with pytest.raises(vkml.ArgumentError, match=r"\[stack_module_state\] models are"):
        func.stack_module_state([vkml.nn.Linear(1, 1), vkml.nn.Tanh()])


WRITERS = {
    "all": lambda a: a.add_(1),
    "an element": lambda a: (a.__setitem__(0, 5.0), a)[1],
    "a constant": lambda a: a.fill_(3.0),
    "twice": lambda a: a.mul_(2).sub_(a.sum()),
}


@pytest.mark.parametrize("in_dims", [0, 1])
@pytest.mark.parametrize("name", WRITERS)
def test_vmap_writes_to_its_arguments(name: str, in_dims: int, device: object) -> None:
    x = vkml.tensor(A, device=device)
    wanted = torch.tensor(A)
    result = func.vmap(WRITERS[name], in_dims)(x)
    expected = torch.func.vmap(WRITERS[name], in_dims)(wanted)
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)
    np.testing.assert_allclose(x.numpy(), wanted.numpy(), rtol=1e-6)


def test_vjp_gives_a_tuple_for_one_primal(device):
    x = vkml.tensor([2.0, 3.0], device=device)
    _, pull = func.vjp(lambda a: a.square(), x)
    assert pull(vkml.ones(2, device=device))[0].tolist() == [4, 6]
