"""Optimizer: parameter groups, state, and the one submission that a step is.

A subclass says how one parameter moves. `step` records the updates of all parameters, each an
assignment, and then realises them together: one planned graph. Learning rates, momenta and
step-dependent factors enter as Python numbers, which are run-time inputs of the plan, so that a
schedule or a step count never compiles anything again.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import vkml
from vkml import Tensor, enable_grad, no_grad
from vkml.foreign import is_tensor, tensor_from
from vkml.nn.hooks import Hook, RemovableHandle, register
from vkml.optim.step_hooks import between_hooks
from vkml.recorded_numbers import recorded, recorded_entry, recorded_list

ParameterGroup = dict[str, Any]
Parameters = Iterable[Tensor] | Iterable[ParameterGroup] | Iterable[tuple[str, Tensor]]


class Optimizer:
    """Base class of optimisers.

    Args:
        params: Tensors to update, or dictionaries that each hold `params` and settings of their
            own.
        defaults: The settings of groups that do not give their own.

    Attributes:
        param_groups: One dictionary for each group: `params` and its settings, and the names of
            parameters that came with names, `param_names`. Schedules change the settings.
        state: What the optimiser remembers of each parameter.
    """

    # The entries of a parameter's state that are Python numbers; PyTorch keeps tensors there.
    _integers = frozenset({"step"})
    _floats: frozenset[str] = frozenset()

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "step" in cls.__dict__:
            cls.step = between_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise vkml.DTypeError(
                f"[{type(self).__name__}] params should be an iterable of tensors or "
                f"dictionaries, got a Tensor. Pass [tensor]."
            )
        if not isinstance(params, Iterable):
            raise vkml.DTypeError(
                f"[{type(self).__name__}] params should be an iterable of tensors or "
                f"dictionaries, got {params!r}. Pass model.parameters()."
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[ParameterGroup] = []
        self._step_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._state_dict_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._state_dict_post_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._load_state_dict_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._load_state_dict_post_hooks: OrderedDict[int, Hook] = OrderedDict()
        groups: list[Any] = list(params)
        if not groups:
            raise vkml.ArgumentError(f"[{type(self).__name__}] got an empty parameter list.")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: ParameterGroup) -> None:
        """Adds a group: a dictionary with `params` and any settings that differ."""
        group = dict(param_group)
        listed = group["params"]
        listed = [listed] if isinstance(listed, Tensor) else list(listed)
        names = [entry[0] for entry in listed if isinstance(entry, tuple)]
        tensors = [entry[1] if isinstance(entry, tuple) else entry for entry in listed]
        if names and len(names) != len(listed):
            raise vkml.ArgumentError(
                f"[{type(self).__name__}] {len(names)} of {len(listed)} parameters have names. "
                "Name all of them or none."
            )
        known = {id(tensor) for other in self.param_groups for tensor in other["params"]}
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise vkml.DTypeError(
                    f"[{type(self).__name__}] can only optimize Tensors, got {tensor!r} of type "
                    f"{type(tensor).__name__}. Pass model.parameters()."
                )
            if tensor.requires_grad and not tensor.is_leaf:
                raise vkml.ArgumentError(
                    f"[{type(self).__name__}] can't optimize a non-leaf Tensor: one of shape "
                    f"{tuple(tensor.shape)} is the result of an operator, and its gradient is not "
                    "kept. Pass the tensor that it was computed from, or tensor.detach()."
                )
            if id(tensor) in known:
                raise vkml.ArgumentError(
                    f"[{type(self).__name__}] a parameter of shape {tuple(tensor.shape)} appears "
                    f"twice. List each parameter once."
                )
            known.add(id(tensor))
        group["params"] = tensors
        if names:
            group["param_names"] = names
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients, or fills them with zeros."""
        for group in self.param_groups:
            for tensor in group["params"]:
                if set_to_none or tensor.grad is None:
                    tensor.grad = None
                else:
                    tensor.grad = vkml.zeros_like(tensor.grad)

    @between_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient.

        Args:
            closure: Computes the loss again, with gradients, and returns it. Optional.

        Returns:
            What the closure returned, or None.
        """
        loss = None
        if closure is not None:
            check_closure(type(self).__name__, closure)
            with enable_grad():
                loss = closure()
        changed: list[Tensor] = []
        with no_grad():
            for settings in recorded_list(self.param_groups, "param_groups"):
                group = recorded(settings)
                for tensor in group["params"]:
                    if tensor.grad is None:
                        continue
                    state = recorded_entry(self.state, tensor)
                    self._update(tensor, tensor.grad, state, group)
                    changed.append(tensor)
                    changed.extend(v for v in state.values() if isinstance(v, Tensor))
            vkml.realize_by_device(changed)
        return loss

    def _update(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: ParameterGroup
    ) -> None:
        """Assigns new values to one parameter and its state. Called under `no_grad`."""
        raise NotImplementedError(f"{type(self).__name__} does not define _update")

    def state_dict(self) -> dict[str, Any]:
        """State and settings, with parameters as numbers in order of appearance."""
        for hook in tuple(self._state_dict_pre_hooks.values()):
            hook(self)
        number = {id(t): n for n, t in enumerate(self._all_parameters())}
        groups = [
            {**group, "params": [number[id(tensor)] for tensor in group["params"]]}
            for group in self.param_groups
        ]
        state = {
            number[id(tensor)]: {
                name: _map_tensors(lambda t: t.snapshot(), value) for name, value in entries.items()
            }
            for tensor, entries in self.state.items()
        }
        saved: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in tuple(self._state_dict_post_hooks.values()):
            replaced = hook(self, saved)
            saved = saved if replaced is None else replaced
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over state and settings that `state_dict` gave, this class's or PyTorch's.

        Tensors go to the device of their parameter; floating ones take its dtype.

        Raises:
            ArgumentError: When the groups differ in number or length. Nothing is changed then.
        """
        state_dict = dict(state_dict)  # hooks may change it
        for hook in tuple(self._load_state_dict_pre_hooks.values()):
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        groups = state_dict["param_groups"]
        ours = [len(group["params"]) for group in self.param_groups]
        theirs = [len(group["params"]) for group in groups]
        if ours != theirs:
            raise vkml.ArgumentError(
                f"[{type(self).__name__}] the state has parameter groups of sizes {theirs}, this "
                f"optimizer {ours}. Build it as when the state was saved."
            )
        for group, saved in zip(self.param_groups, groups, strict=True):
            group.update({name: value for name, value in saved.items() if name != "params"})
        numbers = [number for group in groups for number in group["params"]]
        by_number = dict(zip(numbers, self._all_parameters(), strict=True))
        self.state.clear()
        with no_grad():
            for number, entries in state_dict["state"].items():
                parameter = by_number[int(number)]
                self.state[parameter] = {
                    name: self._load_entry(name, value, parameter)
                    for name, value in entries.items()
                    if value is not None
                }
        for hook in tuple(self._load_state_dict_post_hooks.values()):
            hook(self)

    # Hooks.

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step.

        Unless None, what it returns, a pair, replaces the step's arguments.
        """
        return register(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return register(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` before the state is saved."""
        return register(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` when it was; what it returns replaces the state."""
        return register(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before a state, a copy, is loaded.

        What it returns replaces the state.
        """
        return register(self._load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` after a state was loaded."""
        return register(self._load_state_dict_post_hooks, hook, prepend)

    def _load_entry(self, name: str, value: Any, like: Tensor) -> Any:
        if name in self._integers:
            return int(value)
        if name in self._floats:
            return float(value)

        def load(tensor: Tensor) -> Tensor:
            dtype = like.dtype if tensor.dtype.is_floating_point else tensor.dtype
            return tensor.snapshot().to(like.device).to(dtype)

        return _map_tensors(load, value)

    def _all_parameters(self) -> list[Tensor]:
        return [tensor for group in self.param_groups for tensor in group["params"]]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params"]
        return "\n".join([*lines, ")"])


def ascent_or_decay(
    parameter: Tensor, gradient: Tensor, group: ParameterGroup, decay: bool = True
) -> Tensor:
    """The gradient as most rules take it: turned round by `maximize`, with coupled weight decay."""
    if group["maximize"]:
        gradient = -gradient
    if decay and group["weight_decay"] != 0:
        gradient = gradient + parameter * group["weight_decay"]
    return gradient


def _map_tensors(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The value with `function` of each tensor in it, also of those in lists."""
    if isinstance(value, list | tuple):
        return type(value)(_map_tensors(function, each) for each in value)
    return function(tensor_from(value)) if is_tensor(value) else value


def check_closure(optimizer: str, closure: object) -> None:
    """Throws DTypeError in the name of an optimiser unless `closure` can be called."""
    if not callable(closure):
        raise vkml.DTypeError(
            f"[{optimizer}] the closure is {closure!r}. Pass a function that computes the loss, or "
            "nothing."
        )


def require(condition: bool, optimizer: str, setting: str, value: object, wanted: str) -> None:
    """Raises ArgumentError for a setting that makes no sense."""
    if not condition:
        raise vkml.ArgumentError(f"[{optimizer}] {setting} is {value}. Pass {wanted}.")


def refuse_differentiable(differentiable: bool, optimizer: str) -> None:
    """Raises for PyTorch's option that has no meaning here."""
    require(
        not differentiable,
        optimizer,
        "differentiable",
        differentiable,
        "False; an update written as a function has gradients",
    )
