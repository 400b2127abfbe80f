"""Chapter 15 in Python: the record of calls, operators by name, custom operators.

Expected numbers are the chapter's worked examples and self-check questions, or follow from
calculus.
"""

import gc
import itertools
import threading

import numpy as np
import pytest

import vkml
from vkml import autograd
from vkml.autograd import (
    ComputationGraph,
    Differentiable,
    OpRegistry,
    grad_fn_index,
    registry,
    topological_backward_order,
)


class Swish(Differentiable):
    """x * sigmoid(x), of vkML's expressions."""

    def forward(self, inputs):
        return inputs[0] * inputs[0].sigmoid()

    def backward(self, output_gradient, inputs, output):
        s = inputs[0].sigmoid()
        return [output_gradient * (s + output * (1 - s))]


class FrozenMul(Differentiable):
    """x * y with a gradient for x alone."""

    def forward(self, inputs):
        x, y = inputs
        return x * y

    def backward(self, output_gradient, inputs, output):
        return output_gradient * inputs[1], None


def leaf(value, device):
    return vkml.tensor(value, dtype=vkml.float32, device=device, requires_grad=True)


def running_example(x_value, y_value, device):
    """W = x * y + x, recorded."""
    graph = ComputationGraph()
    x, y = leaf(x_value, device), leaf(y_value, device)
    z = graph.apply("mul", x, y)
    w = graph.apply("add", z, x)
    return graph, x, y, z, w


def test_example_15_1_1_backward_needs_the_other_operand(device):
    mul = registry.get("mul")
    assert isinstance(mul, Differentiable)
    inputs = [leaf(3.0, device), leaf(4.0, device)]
    z = mul.forward(inputs)
    gradients = mul.backward(vkml.tensor(1.0), inputs, z)
    assert [g.item() for g in gradients] == [4.0, 3.0]


def test_example_15_1_2_and_question_4_unknown_names():
    empty = OpRegistry()
    with pytest.raises(vkml.UnregisteredOpError, match=r'"relu".*empty'):
        empty.get("relu")
    assert len(empty) == 0
    before = registry.names()
    with pytest.raises(KeyError, match=r'"sofmax".*"softmax"'):
        registry.get("sofmax")
    assert registry.names() == before
    assert "sofmax" not in registry
    assert {"mul", "add", "sub", "sum", "matmul", "conv2d", "softmax", "reshape"} <= set(before)


def test_unknown_names_leave_the_record_alone():
    graph = ComputationGraph()
    x = leaf(1.0, vkml.cpu)
    for attempt in (lambda: graph.apply("nul", x, x), lambda: graph.record("nul", [x], x)):
        with pytest.raises(vkml.UnregisteredOpError):
            attempt()
    assert len(graph) == 0


@pytest.mark.parametrize(("x_value", "y_value", "z_value"), [(3.0, 4.0, 12.0), (5.0, 2.0, 10.0)])
def test_examples_15_2_1_and_15_3_1_and_question_1(x_value, y_value, z_value, device):
    graph, x, y, z, w = running_example(x_value, y_value, device)
    assert w.item() == 15.0
    assert [node.op_name for node in graph.nodes] == ["mul", "add"]
    assert [t.item() for t in graph.nodes[0].inputs] == [x_value, y_value]
    assert [t.item() for t in graph.nodes[1].inputs] == [z_value, x_value]
    assert [node.output.item() for node in graph.nodes] == [z_value, 15.0]
    assert [node.grad.item() for node in graph.nodes] == [0.0, 0.0]
    assert all(node.requires_grad for node in graph.nodes)
    assert [grad_fn_index(t) for t in (x, y, z, w)] == [-1, -1, 0, 1]
    assert z.grad_fn_index == 0
    assert graph.grad_fn_index(w) == 1
    assert repr(graph) == (
        "#0 mul(float32(), float32()) -> float32()\n#1 add(#0: float32(), float32()) -> float32()\n"
    )


def test_example_15_2_2_and_question_2_what_requires_grad_gates():
    graph = ComputationGraph()
    x, y = leaf(3.0, vkml.cpu), vkml.tensor(4.0)
    assert graph.apply("mul", x, y).requires_grad
    assert len(graph) == 1
    plain = graph.apply("mul", y, y)
    assert len(graph) == 1
    assert not plain.requires_grad
    assert (plain.item(), plain.grad_fn_index) == (16.0, -1)
    with vkml.no_grad():
        assert not graph.apply("mul", x, x).requires_grad
    assert len(graph) == 1


def test_example_15_4_1_backward_order():
    graph, x, _, z, w = running_example(3.0, 4.0, vkml.cpu)
    assert topological_backward_order(graph) == [1, 0]
    assert topological_backward_order(graph, w) == [1, 0]
    assert topological_backward_order(graph, z) == [0]
    assert topological_backward_order(graph, x) == []


def test_example_15_4_2_and_questions_3_and_5(device):
    graph = ComputationGraph()
    x, y = leaf(3.0, device), leaf(4.0, device)
    z = graph.apply("mul", x, y)
    q = graph.apply("sub", x, 1.0)
    w = graph.apply("add", z, x)
    assert topological_backward_order(graph) == [2, 1, 0]
    assert topological_backward_order(graph, w) == [2, 0]
    r = graph.apply("mul", q, x)
    assert topological_backward_order(graph, r) == [3, 1]
    graph.backward(w)
    assert [node.grad.item() for node in graph.nodes] == [1.0, 0.0, 1.0, 0.0]
    assert (x.grad.item(), y.grad.item()) == (5.0, 3.0)
    sub = graph.nodes[1]
    wasted = registry.get("sub").backward(sub.grad, sub.inputs, sub.output)
    assert wasted[0].item() == 0.0
    graph.backward(r)  # r = (x - 1) x: the record stays for another pass
    assert [node.grad.item() for node in graph.nodes] == [0.0, 3.0, 0.0, 1.0]
    assert x.grad.item() == 5.0 + 5.0


def test_values_are_shared():
    graph, x, _, _, w = running_example(3.0, 4.0, vkml.cpu)
    graph.backward(w)
    assert graph.nodes[0].inputs[0].grad.item() == 5.0
    assert graph.nodes[0].inputs[0].is_leaf
    with vkml.no_grad():
        x.assign_(vkml.tensor(7.0))
    assert graph.nodes[0].inputs[0].item() == 3.0


def test_parameters_go_to_the_function_of_that_name(device):
    graph = ComputationGraph()
    x = vkml.tensor([[1.0, 2.0], [3.0, 4.0]], device=device, requires_grad=True)
    y = graph.apply("sum", x, dim=1)
    assert y.tolist() == [3.0, 7.0]
    z = graph.record("reshape", [y], y.reshape(1, 2))
    assert [node.op_name for node in graph.nodes] == ["sum", "reshape"]
    graph.backward(z, vkml.tensor([[1.0, 10.0]], device=device))
    assert x.grad.tolist() == [[1.0, 1.0], [10.0, 10.0]]
    assert graph.nodes[0].grad.tolist() == [1.0, 10.0]
    with pytest.raises(vkml.ArgumentError, match="parameters"):
        graph.apply("reshape", x)


def test_backward_refuses_what_it_did_not_record():
    graph, x, _, _, w = running_example(3.0, 4.0, vkml.cpu)
    for stranger in (x, w * 2):
        with pytest.raises(vkml.AutogradError, match="not recorded"):
            graph.backward(stranger)
    vector = graph.apply("mul", x, vkml.ones(3))
    with pytest.raises(vkml.AutogradError, match="needs a gradient"):
        graph.backward(vector)


@pytest.mark.parametrize("name", ["mul", "div", "exp", "pow", "mean", "softmax", "matmul"])
def test_built_in_operators_by_themselves(name, device):
    """Whether gradients were on or not, backward is the gradient of forward."""
    x = vkml.tensor([[0.5, 1.5], [2.0, 0.25]], device=device)
    op = registry.get(name)
    inputs = [x] if name in {"exp", "mean", "softmax"} else [x, x]
    leaves = [vkml.tensor(t.numpy(), device=device, requires_grad=True) for t in inputs]
    expected = getattr(vkml, name)(*leaves, **({"dim": -1} if name == "softmax" else {}))
    cotangent = vkml.ones_like(expected) * 2
    expected.backward(cotangent)
    found = op.backward(cotangent, inputs, op.forward(inputs))
    for gradient, tensor in zip(found, leaves, strict=True):
        np.testing.assert_array_max_ulp(gradient.numpy(), tensor.grad.numpy(), 4)


def test_built_in_gradients_can_be_differentiated(device):
    x, y = leaf(3.0, device), leaf(2.0, device)
    div = registry.get("div")
    in_x, in_y = div.backward(vkml.tensor(1.0), [x, y], div.forward([x, y]))
    assert (in_x.item(), in_y.item()) == (0.5, -0.75)
    assert [g.item() for g in vkml.grad(in_y, [x, y])] == [-0.25, 0.75]
    # The same value twice: each operand has its own gradient.
    mul = registry.get("matmul")
    row = vkml.tensor([3.0], device=device, requires_grad=True)
    first, second = mul.backward(vkml.tensor(1.0), [row, row], mul.forward([row, row]))
    assert (first.tolist(), second.tolist()) == ([3.0], [3.0])
    assert vkml.grad(first.sum(), [row])[0].tolist() == [1.0]


def test_an_output_with_parameters_of_its_own_is_no_silent_error(device):
    x = vkml.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    with pytest.raises(vkml.AutogradError, match="parameters of its own"):
        registry.get("mean").backward(vkml.ones(2), [x], vkml.mean(x, dim=0))
    x.requires_grad_()
    for name, expected in (("sum", [1.0, 10.0]), ("mean", [0.5, 5.0])):
        output = getattr(vkml, name)(x, dim=0)
        (gradient,) = registry.get(name).backward(vkml.tensor([1.0, 10.0]), [x], output)
        assert gradient.tolist() == [expected, expected]


def test_a_custom_operator_everywhere(device):
    own = OpRegistry()
    swish = Swish()
    own.register_op("swish", swish)
    assert own.get("swish") is swish
    x = vkml.tensor([-1.0, 0.5, 2.0], dtype=vkml.float32, device=device, requires_grad=True)
    with vkml.no_grad():
        assert not autograd.apply("swish", x, registry=own).requires_grad
    y = autograd.apply("swish", x, registry=own)
    built_in = vkml.tensor(x.detach().numpy(), device=device, requires_grad=True)
    reference = vkml.silu(built_in)
    np.testing.assert_allclose(y.detach().numpy(), reference.detach().numpy(), rtol=1e-6)
    (first,) = vkml.grad(y.sum(), [x], create_graph=True)
    (expected,) = vkml.grad(reference.sum(), [built_in], create_graph=True)
    np.testing.assert_allclose(first.detach().numpy(), expected.detach().numpy(), rtol=1e-5)
    first.sum().backward()
    expected.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), built_in.grad.numpy(), rtol=1e-4)


def test_a_custom_operator_in_a_record(device):
    own = OpRegistry()
    own.register_op("frozen_mul", FrozenMul())
    graph = ComputationGraph(own)
    x, y = leaf(3.0, device), leaf(4.0, device)
    z = graph.apply("frozen_mul", x, y)
    graph.backward(z)
    assert x.grad.item() == 4.0
    assert y.grad is None
    with pytest.raises(vkml.UnregisteredOpError):
        graph.apply("mul", x, y)
    # A call made by hand gets the registered operator's gradient.
    again = graph.record("frozen_mul", [x, y], (x * y).detach())
    assert again.requires_grad
    graph.backward(again)
    assert x.grad.item() == 8.0


@pytest.mark.parametrize("made", ["plain", "detached", "without gradients", "a leaf"])
def test_a_result_without_history_gets_the_built_in_gradient(made, device):
    x, y = leaf(3.0, device), leaf(4.0, device)
    if made == "without gradients":
        with vkml.no_grad():
            result = x * y
    elif made == "detached":
        result = (x * y).detach()
    else:
        result = leaf(12.0, device).detach().requires_grad_(made == "a leaf")
    graph = ComputationGraph()
    q = graph.record("mul", [x, y], result)
    graph.backward(q)
    assert (x.grad.item(), y.grad.item()) == (4.0, 3.0)
    (slope,) = vkml.grad(q, [x], create_graph=True)
    assert slope.item() == 4.0
    assert vkml.grad(slope, [y])[0].item() == 1.0
    (q * 2).backward()
    assert (x.grad.item(), y.grad.item()) == (12.0, 9.0)
    squared = graph.record("mul", [x, x], vkml.tensor(9.0, device=device))
    assert vkml.grad(squared, [x])[0].item() == 6.0


def test_custom_operators_are_fused():
    own = OpRegistry()
    own.register_op("swish", Swish())
    x = vkml.ones(1000, requires_grad=True)
    (autograd.apply("swish", x + 1, registry=own) * 2).realize()  # compiled
    before = vkml.cache_info().kernels
    (autograd.apply("swish", x + 1, registry=own) * 2).realize()
    assert vkml.cache_info().kernels - before == 1


def test_errors_in_a_custom_operator():
    class Broken(Differentiable):
        def forward(self, inputs):
            return inputs[0] * 1

        def backward(self, output_gradient, inputs, output):
            raise ZeroDivisionError("from backward")

    class WrongCount(Broken):
        def backward(self, output_gradient, inputs, output):
            return [output_gradient, output_gradient]

    class WrongShape(Broken):
        def backward(self, output_gradient, inputs, output):
            return output_gradient.sum()

    own = OpRegistry()
    x = vkml.ones(3, requires_grad=True)
    for name, op, error, message in (
        ("broken", Broken(), ZeroDivisionError, "from backward"),
        ("count", WrongCount(), vkml.AutogradError, r"\[count\].*2 gradients for 1"),
        ("shape", WrongShape(), vkml.AutogradError, r"\[shape\].*input 0"),
    ):
        own.register_op(name, op)
        with pytest.raises(error, match=message):
            autograd.apply(name, x, registry=own).sum().backward()
        assert x.grad is None
    with pytest.raises(vkml.DTypeError, match="forward and backward"):
        own.register_op("nothing", 3)


def test_hooks(device):
    x = leaf(3.0, device)
    z = x * 2
    seen = []

    def scale(gradient):
        seen.append(gradient.item())
        return gradient * 10

    on_z = z.register_hook(scale)
    on_x = x.register_hook(lambda gradient: seen.append(gradient.item()))
    (z * z + z).backward(retain_graph=True)
    assert seen == [13.0, 260.0]
    assert x.grad.item() == 260.0
    on_z.remove()
    on_z.remove()
    with vkml.no_grad():
        x.assign_(vkml.tensor(1.0, device=device))
    seen.clear()
    (x * 5).backward()
    assert seen == [5.0]  # a leaf keeps its hooks when it is assigned to
    on_x.remove()
    z.register_hook(lambda gradient: vkml.ones(2))
    with pytest.raises(vkml.ShapeError, match="register_hook"):
        (z * 1).backward()
    with pytest.raises(vkml.AutogradError):
        vkml.tensor(1.0).register_hook(print)


def test_operators_and_hooks_are_freed():
    """Neither a record nor a hook keeps Python objects alive that nobody else holds."""
    freed = []

    class Watched(Swish):
        def __del__(self):
            freed.append(True)

    own = OpRegistry()
    own.register_op("swish", Watched())
    x = vkml.ones(3, requires_grad=True)
    y = autograd.apply("swish", x, registry=own)
    y.register_hook(lambda gradient: gradient)
    del own
    gc.collect()
    assert not freed  # y still needs it
    y.sum().backward()
    del y
    gc.collect()
    assert freed


def test_threads_with_callbacks_do_not_wait_for_each_other():
    """One thread's backward calls Python while others evaluate, eagerly and not."""
    own = OpRegistry()
    own.register_op("swish", Swish())
    failures = []

    def train():
        try:
            for _ in range(100):
                x = vkml.ones(64, requires_grad=True)
                x.register_hook(lambda gradient: gradient * 2)
                y = x
                for _ in range(5):
                    y = autograd.apply("swish", y, registry=own)
                y.sum().backward()
                x.grad.sum().item()
        except Exception as error:
            failures.append(error)

    def evaluate():
        try:
            for i in range(2000):
                assert ((vkml.ones(64) * i) + 1).shape == (64,)
        except Exception as error:
            failures.append(error)

    vkml.set_eager(True)
    try:
        threads = [threading.Thread(target=f, daemon=True) for f in (train, evaluate, evaluate)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert not any(thread.is_alive() for thread in threads)
    finally:
        vkml.set_eager(False)
    assert not failures


def test_an_order_can_be_asked_for_while_another_thread_records() -> None:
    graph = vkml.autograd.ComputationGraph()
    x = vkml.tensor(1.0, requires_grad=True)
    chain = [x]
    for _ in range(400):
        chain.append(chain[-1] * 1.5)
    output = graph.apply("add", chain[-1], x)
    failures: list[BaseException] = []

    def record() -> None:
        for source, result in itertools.pairwise(chain):
            graph.record("mul", [source, x], result)

    def ask() -> None:
        try:
            for _ in range(30):
                order = vkml.autograd.topological_backward_order(graph, output)
                assert order[0] == 0
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=target) for target in (record, ask, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_built_in_operator_by_itself_follows_eager_mode(device):
    mul = registry.get("mul")
    inputs = [leaf(3.0, device), leaf(4.0, device)]
    vkml.set_eager(True)
    try:
        output = mul.forward(inputs)
        gradients = mul.backward(vkml.tensor(1.0), inputs, output)
        assert output.is_computed
        assert all(gradient.is_computed for gradient in gradients)
    finally:
        vkml.set_eager(False)


def test_backward_of_an_operator_walks_a_graph_that_another_thread_releases(device):
    softmax = registry.get("softmax")
    for _ in range(30):
        x = vkml.ones((4, 5), device=device, requires_grad=True)
        output = x
        for _ in range(20):
            output = (output * 2).softmax(0)
        loss = output.sum()
        walker = threading.Thread(target=loss.backward)
        walker.start()
        try:
            softmax.backward(vkml.ones((4, 5), device=device), [x], output)
        except vkml.AutogradError as error:
            assert "released" in str(error)  # noqa: PT017
        walker.join()
        assert np.isfinite(x.grad.numpy()).all()
