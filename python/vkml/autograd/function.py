"""Custom operators in PyTorch's form: a class with static `forward` and `backward`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import vkml
from vkml import _vkml
from vkml._vkml import AutogradError, Tensor
from vkml.grad_mode import no_grad

if TYPE_CHECKING:
    from collections.abc import Callable


class Context:
    """What one call's `forward` leaves for its `backward`. Any attribute may be set, too."""

    needs_input_grad: tuple[bool, ...]
    """For each argument of `forward`, whether its gradient is asked for."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._names: tuple[Tensor | None, ...] = ()
        self._saved: tuple[Tensor | None, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        # What forward returned and, while backward runs, the same tensors as the caller has them.
        self._materializes = True
        self._results: list[Tensor] = []
        self._recorded: list[Tensor] = []

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `backward`, with their values of now."""
        # What forward made is held under forward's own name: the tensor that the caller gets refers
        # to this object, and must not be referred to from here.
        self._saved = tuple(None if t is None else _vkml._pin(t) for t in tensors)
        self._names = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Accepted as PyTorch's: forward mode transposes `backward`, and asks for nothing else."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for a result to which no gradient arrives: else None."""
        self._materializes = value

    def mark_dirty(self, *arguments: Tensor) -> None:
        """Says which arguments `forward` changed in place; it has to return them, too.

        The caller's tensor then has the function's result, and its history.
        """
        self._dirty = arguments

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Says which results of `forward` have no gradient."""
        self._non_differentiable = outputs

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` was given. A result of `forward` can be differentiated again."""
        saved = list(self._saved)
        for result, recorded in zip(self._results, self._recorded, strict=False):
            for position, name in enumerate(self._names):
                if name is result:
                    saved[position] = recorded
        return tuple(saved)


class Function:
    """An operator with a gradient of its own.

    ::

        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return 2 * x * gradient

        y = Square.apply(x)

    Or, as PyTorch recommends, `forward` has no context and `setup_context` fills it::

        class Square(Function):
            @staticmethod
            def forward(x):
                return x * x

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

    `forward` runs with gradients off and returns a tensor or a tuple of tensors. `backward` gets
    one gradient for each of them (zeros where none arrived, unless `set_materialize_grads` says
    otherwise) and returns one for each argument of
    `forward`, None for what has none. Written with vkML's functions, both are fused, and
    `backward` can be differentiated again. `vkml.func.vmap` and `jvp` follow from both: static
    methods of these names are not called.
    """

    @staticmethod
    def forward(*arguments: Any) -> Any:
        """The operator's value, from a context and the arguments, or from the arguments alone."""
        raise NotImplementedError

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fills the context of a `forward` that has none, from its arguments and its result."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradients of `forward`'s arguments."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        """Calls `forward`, and arranges for `backward` where an argument requires a gradient."""
        inputs = [argument for argument in arguments if isinstance(argument, Tensor)]
        context = Context(
            tuple(isinstance(each, Tensor) and each.requires_grad for each in arguments)
        )
        before = [_vkml._pin(each) for each in inputs]
        with no_grad():
            if cls.setup_context is Function.setup_context:
                result = cls.forward(context, *arguments)
            else:
                result = cls.forward(*arguments)
                cls.setup_context(context, arguments, result)
        if context._dirty:
            return _record_dirty(cls, context, before, arguments, result)
        if not vkml.is_grad_enabled() or not any(context.needs_input_grad):
            return result
        is_tensor = [isinstance(argument, Tensor) for argument in arguments]
        if isinstance(result, Tensor):
            return _record(cls, context, inputs, is_tensor, result)
        return _record_many(cls, context, inputs, is_tensor, tuple(result))


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` whose own gradient is not what its expressions say.

    Differentiating through it raises AutogradError.
    """

    @functools.wraps(backward)
    def checked(ctx: Any, *gradients: Any) -> Any:
        if vkml.is_grad_enabled():
            raise AutogradError(
                f"[{backward.__qualname__}] can be differentiated once only. Leave out create_graph"
            )
        return backward(ctx, *gradients)

    return checked


def _call_backward(
    cls: type[Function],
    context: Context,
    gradients_of_results: tuple[Tensor | None, ...],
    recorded: list[Tensor],
    is_tensor: list[bool],
) -> list[Tensor | None]:
    """What `backward` returns for every argument, reduced to the arguments that are tensors."""
    context._recorded = recorded
    try:
        returned = cls.backward(context, *gradients_of_results)
    finally:
        context._recorded = []  # they refer to this context
    gradients = list(returned) if isinstance(returned, tuple | list) else [returned]
    if len(gradients) != len(is_tensor):
        raise AutogradError(
            f"[{cls.__name__}] backward gave {len(gradients)} gradients for {len(is_tensor)} "
            "arguments of forward. Return one for each, None where there is none"
        )
    return [gradient for gradient, wanted in zip(gradients, is_tensor, strict=True) if wanted]


def _record(
    cls: type[Function],
    context: Context,
    inputs: list[Tensor],
    is_tensor: list[bool],
    result: Tensor,
) -> Tensor:
    """One result: a node whose gradient is `backward`."""
    if any(result is marked for marked in context._non_differentiable):
        return result
    context._results = [result]

    def pullback(gradient: Tensor, output: Tensor) -> list[Tensor | None]:
        return _call_backward(cls, context, (gradient,), [output], is_tensor)

    return _vkml._with_pullback(cls.__name__, result, inputs, pullback)


def _record_dirty(
    cls: type[Function],
    context: Context,
    before: list[Tensor],
    arguments: tuple[Any, ...],
    result: Any,
) -> Any:
    """Results that are arguments, changed in place: those have the history from now on."""
    results = (result,) if isinstance(result, Tensor) else tuple(result)
    for each in context._dirty:
        if not any(each is other for other in results):
            raise AutogradError(
                f"[{cls.__name__}] forward marked an argument dirty and did not return it. Return "
                "what it changes"
            )
    if not vkml.is_grad_enabled() or not any(context.needs_input_grad):
        return result
    is_tensor = [isinstance(argument, Tensor) for argument in arguments]
    context._dirty = ()
    values = tuple(each.snapshot() if isinstance(each, Tensor) else each for each in results)
    context._non_differentiable = tuple(
        values[place]
        for place, each in enumerate(results)
        if any(each is marked for marked in context._non_differentiable)
    )
    # What was saved under the name of a changed argument is the value that the function gave.
    context._names = tuple(
        next((values[i] for i, each in enumerate(results) if each is name), name)
        for name in context._names
    )
    if isinstance(result, Tensor):
        recorded: tuple[Any, ...] = (_record(cls, context, before, is_tensor, values[0]),)
    else:
        recorded = _record_many(cls, context, before, is_tensor, values)
    shown = list(recorded)
    for place, each in enumerate(results):
        if any(each is argument for argument in arguments):
            each.copy_(recorded[place])
            shown[place] = each
    return shown[0] if isinstance(result, Tensor) else tuple(shown)


def _record_many(
    cls: type[Function],
    context: Context,
    inputs: list[Tensor],
    is_tensor: list[bool],
    results: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Several results: parts of one node, so that their gradients arrive together."""
    differentiable = [
        index
        for index, result in enumerate(results)
        if isinstance(result, Tensor)
        and result.dtype.is_floating_point
        and not any(result is marked for marked in context._non_differentiable)
    ]
    if not differentiable:
        return results
    parts = [results[index] for index in differentiable]
    context._results = parts
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + part.numel())

    def split(joined: Tensor) -> list[Tensor]:
        return [
            joined[start:stop].reshape(part.shape).to(part.dtype)
            for part, start, stop in zip(parts, ends[:-1], ends[1:], strict=True)
        ]

    arrived: set[int] = set()  # in this pass, where somebody asks

    def pullback(gradient: Tensor, output: Tensor) -> list[Tensor | None]:
        by_result: list[Tensor | None] = [None] * len(results)
        for index, part in zip(differentiable, split(gradient), strict=True):
            if context._materializes or index in arrived:
                by_result[index] = part
        arrived.clear()
        return _call_backward(cls, context, tuple(by_result), split(output), is_tensor)

    with no_grad():
        joined = vkml.concat([part.reshape(-1) for part in parts])
    recorded = list(results)
    node = _vkml._with_pullback(cls.__name__, joined, inputs, pullback)
    for index, part in zip(differentiable, split(node), strict=True):
        recorded[index] = part
        if not context._materializes:
            part.register_hook(functools.partial(_note, arrived, index))
    return tuple(recorded)


def _note(arrived: set[int], index: int, gradient: Tensor) -> None:
    """A hook that says where a gradient came."""
    del gradient
    arrived.add(index)
