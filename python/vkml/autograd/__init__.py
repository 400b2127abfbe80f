"""Automatic differentiation one can look into and add to.

* `ComputationGraph` records calls of operators as `GraphNode`s, with the lazy tensors themselves as
  inputs and outputs; `registry` is the `OpRegistry` that holds vkML's own operators.
* `Differentiable` is an operator of one's own, registered by name; `Function` is PyTorch's way to
  write one.
* `detect_anomaly` finds the operator that gives a NaN gradient.
* `grad` and `backward` are the passes themselves; `functional` has jacobians and hessians.
* `gradcheck` and `gradgradcheck` compare gradients with finite differences.
"""

from vkml._vkml import ComputationGraph as ComputationGraph
from vkml._vkml import GraphNode as GraphNode
from vkml._vkml import HookHandle as HookHandle
from vkml._vkml import OpRegistry as OpRegistry
from vkml._vkml import UnregisteredOpError as UnregisteredOpError
from vkml._vkml import _registry
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.autograd import functional as functional
from vkml.autograd.anomaly import detect_anomaly as detect_anomaly
from vkml.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from vkml.autograd.differentiable import Differentiable as Differentiable
from vkml.autograd.differentiable import apply as apply
from vkml.autograd.differentiable import grad_fn_index as grad_fn_index
from vkml.autograd.differentiable import topological_backward_order as topological_backward_order
from vkml.autograd.function import Context as Context
from vkml.autograd.function import Function as Function
from vkml.autograd.function import once_differentiable as once_differentiable
from vkml.autograd.gradcheck import GradcheckError as GradcheckError
from vkml.autograd.gradcheck import gradcheck as gradcheck
from vkml.autograd.gradcheck import gradgradcheck as gradgradcheck
from vkml.autograd.loss_operators import register_losses as _register_losses
from vkml.grad_mode import enable_grad as enable_grad
from vkml.grad_mode import inference_mode as inference_mode
from vkml.grad_mode import no_grad as no_grad
from vkml.grad_mode import set_grad_enabled as set_grad_enabled
from vkml.gradients import backward as backward
from vkml.gradients import grad as grad

registry: OpRegistry = _registry
"""The registry of vkML's own operators, and of those that users add to it."""
_register_losses(registry)

_check_arguments(
    globals(),
    (
        *("apply", "detect_anomaly", "grad_fn_index", "gradcheck", "gradgradcheck"),
        *("set_detect_anomaly", "topological_backward_order"),
    ),
)
