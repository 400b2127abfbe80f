"""What gradient rules read: declared beside each rule, and kept for a later backward pass."""

from collections import defaultdict

import numpy as np

import vkml
from structural_cases import CASES


def host_results() -> list[vkml.Tensor]:
    """Of linear algebra on the host, whose rules show what they read to recorded gradients."""
    a = vkml.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]], requires_grad=True)
    b = vkml.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    linalg = vkml.linalg
    return [
        linalg.inv(a),
        linalg.det(a),
        linalg.slogdet(a)[1],
        linalg.solve(a, b),
        linalg.solve_triangular(a, b, upper=True),
        linalg.cholesky(a),
        *linalg.qr(a),
        *linalg.eigh(a),
        *linalg.svd(a, full_matrices=False),
    ]


def reads_in_cases() -> dict[str, list[tuple[set, set]]]:
    """By operator: what is declared and what is read, in first derivatives and in second ones."""
    found = defaultdict(list)
    for case in (case for case in CASES if case.gradient):
        tensors = [vkml.tensor(array, device=vkml.cpu) for array in case.arrays]
        leaves = [t for t in tensors if t.dtype.is_floating_point]
        for leaf in leaves:
            leaf.requires_grad_()
        output = case.function(*tensors)
        gradients = vkml.grad(output.sum(), leaves, create_graph=True)
        graphs = [output, *(g for g in gradients if g is not None)]
        for name, declared, read in vkml._vkml._gradient_reads(graphs):
            found[name].append((declared, read))
    for name, declared, read in vkml._vkml._gradient_reads(host_results()):
        found[name].append((declared, read))
    return found


def test_rules_declare_what_they_read() -> None:
    """Some case reads everything that is declared, and no case anything else."""
    found = reads_in_cases()
    assert {"matmul", "gather", "scatter_reduce", "linear_recurrence", "softmax", "svd"} <= set(
        found
    )
    for name, reads in found.items():
        assert [read for declared, read in reads if not read <= declared] == [], name
        assert set().union(*(read for _, read in reads)) == set().union(
            *(declared for declared, _ in reads)
        ), name


def test_a_later_backward_pass_does_not_run_an_operator_again(device: object) -> None:
    """The rule of a largest element reads the output, which the sum after it does not keep."""

    def function(x: vkml.Tensor) -> vkml.Tensor:
        index = vkml.tensor([[0, 1, 1, 0], [3, 3, 3, 3]], device=device)
        zeros = vkml.zeros(2, 4, dtype=x.dtype, device=device)
        return zeros.scatter_reduce(1, index, x, "amax") + 1

    def runs(step: object) -> int:
        vkml.clear_coverage()
        vkml.set_coverage(True)
        try:
            step()
            return vkml.coverage()[str(device)].get("scatter_reduce", 0)
        finally:
            vkml.set_coverage(False)

    array = np.array([[1.0, 3.0, 2.0, 0.5], [4.0, -1.0, 0.0, 2.0]])
    x = vkml.tensor(array, device=device, requires_grad=True)
    assert runs(lambda: function(x).sum().backward()) == 1
    expected = x.grad.numpy()
    x.grad = None
    output = function(x)
    assert runs(output.realize) == 1
    assert runs(lambda: output.sum().backward()) == 0
    np.testing.assert_array_equal(x.grad.numpy(), expected)
