"""Functions of functions: derivatives, batches, and modules called with given parameters.

The names and arguments are those of `torch.func`. Transformations nest: `vmap(grad(f))` gives a
gradient for each example, `jacfwd(jacrev(f))` is the Hessian. Arguments and results may be tensors,
or tuples, lists and dictionaries of them.

Each transformation calls the function once and works on the graph that this records: a gradient is
the graph's backward pass, a tangent is pushed through it, and `vmap` records it again with one more
axis. What the function computes besides tensors therefore happens once, as under a tracer.
"""

from vkml.argument_errors import check_arguments as _check_arguments
from vkml.func.batching import vmap
from vkml.func.derivatives import grad, grad_and_value, jvp, linearize, value_and_grad, vjp
from vkml.func.jacobians import hessian, jacfwd, jacrev
from vkml.func.modules import functional_call, stack_module_state

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
]

_check_arguments(globals(), __all__)
