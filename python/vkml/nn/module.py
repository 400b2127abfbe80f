"""Module: the base of everything that holds parameters.

A module keeps three tables: parameters, buffers (tensors that are saved but not trained) and child
modules. Setting an attribute files the value into the right one; everything else here walks the
tables. Names, arguments and hooks are PyTorch's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import vkml
from vkml import Tensor, no_grad
from vkml.argument_errors import BUILTIN_ERRORS, translated
from vkml.nn import state_dicts
from vkml.nn.hooked import TABLES_OF_HOOKS, Hooked
from vkml.nn.hooks import call_between_hooks, call_with_forward_hooks
from vkml.nn.parameter import Parameter
from vkml.nn.state_dicts import IncompatibleKeys

if TYPE_CHECKING:
    from typing_extensions import Self

Named = TypeVar("Named")


class Module(Hooked):
    """Base class of layers and models: subclass it, set attributes, write `forward`."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        # Past __setattr__, which needs these tables to exist.
        tables: dict[str, Any] = {
            "training": True,
            "_parameters": {},
            "_buffers": {},
            "_modules": {},
            "_non_persistent_buffers": set(),
            **{name: OrderedDict() for name in TABLES_OF_HOOKS},
        }
        for name, table in tables.items():
            object.__setattr__(self, name, table)

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """Computes the module's result. Subclasses define it; callers call the module."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        try:
            if not (self._forward_hooks or self._forward_pre_hooks):
                return self._call_forward(inputs, keywords)
            return call_with_forward_hooks(self, inputs, keywords)
        except BUILTIN_ERRORS as error:
            ours = translated(error, type(self).__name__, inputs, keywords, self.forward)
            if ours is None:
                raise
            raise ours from error

    def _call_forward(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if (self._backward_hooks or self._backward_pre_hooks) and vkml.is_grad_enabled():
            return call_between_hooks(self, inputs, lambda *given: self.forward(*given, **keywords))
        return self.forward(*inputs, **keywords)

    # Attributes.

    _non_persistent_buffers: set[str]
    # Names that a state may lack.
    _optional_state: frozenset[str] = frozenset()
    # Buffers that state dicts hold in another dtype.
    _state_dtypes: Mapping[str, vkml.dtype] = MappingProxyType({})

    def __getattr__(self, name: str) -> Any:
        # Only called when the ordinary lookup has failed.
        for table in ("_parameters", "_buffers", "_modules"):
            entries = self.__dict__.get(table)
            if entries is not None and name in entries:
                return entries[name]
        raise vkml.MissingAttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._make_room(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._make_room(name, "_modules")
            self.register_module(name, value)
        elif name in self.__dict__.get("_parameters", ()):
            if value is not None:
                raise vkml.DTypeError(
                    f"[{type(self).__name__}] cannot assign '{type(value).__name__}' as parameter "
                    f"'{name}'. Assign a vkml.nn.Parameter or None."
                )
            self._parameters[name] = None
        elif name in self.__dict__.get("_modules", ()):
            if value is not None:
                raise vkml.DTypeError(
                    f"[{type(self).__name__}] cannot assign '{type(value).__name__}' as child "
                    f"module '{name}'. Assign a vkml.nn.Module or None."
                )
            self._modules[name] = None
        elif name in self.__dict__.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise vkml.DTypeError(
                    f"[{type(self).__name__}] cannot assign '{type(value).__name__}' as buffer "
                    f"'{name}'. Assign a vkml.Tensor or None."
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = set(super().__dir__())
        return sorted(names | set(self._parameters) | set(self._buffers) | set(self._modules))

    def _make_room(self, name: str, table: str) -> None:
        """Takes `name` out of every place but `table`, where it keeps its position."""
        if table not in self.__dict__:
            raise vkml.MissingAttributeError(
                f"[{type(self).__name__}] call super().__init__() before assigning "
                f"parameters or modules"
            )
        if name not in self.__dict__[table]:
            self._forget(name)

    def _forget(self, name: str) -> bool:
        """Takes `name` out of whichever table or dictionary holds it."""
        self._non_persistent_buffers.discard(name)
        found = False
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                found = True
        if not found and name in self.__dict__:
            del self.__dict__[name]
            found = True
        return found

    def _check_new_name(self, name: str, kind: str) -> None:
        if not isinstance(name, str):
            raise vkml.DTypeError(
                f"[register_{kind}] the name should be a string, got {name!r} of type "
                f"{type(name).__name__}."
            )
        if name == "" or "." in name:
            raise vkml.NamingError(
                f"[register_{kind}] the name can't be empty or contain '.', got {name!r}. Use "
                f"letters, digits and '_'."
            )
        if hasattr(self, name):
            raise vkml.NamingError(
                f"[register_{kind}] attribute '{name}' already exists in {type(self).__name__}. "
                f"Delete it first, or use another name."
            )

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Files a parameter, or None as the note that there is none."""
        if name not in self._parameters:
            self._check_new_name(name, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise vkml.DTypeError(
                f"[register_parameter] cannot assign '{type(param).__name__}' as parameter "
                f"'{name}'. Wrap it: vkml.nn.Parameter(tensor)."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Files a tensor that belongs to the state but is not trained.

        Args:
            name: The attribute under which it is found.
            tensor: Its value, or None as the note that there is none.
            persistent: Whether `state_dict` holds it.
        """
        if name not in self._buffers:
            self._check_new_name(name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise vkml.DTypeError(
                f"[register_buffer] cannot assign '{type(tensor).__name__}' as buffer '{name}'. "
                f"Pass a vkml.Tensor or None."
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers.discard(name)
        else:
            self._non_persistent_buffers.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Files a child module, or None as the note that there is none."""
        if name not in self._modules:
            self._check_new_name(name, "module")
        if module is not None and not isinstance(module, Module):
            raise vkml.DTypeError(
                f"[register_module] '{name}' is {module!r}; {type(module).__name__} is not a "
                f"Module subclass. Pass a vkml.nn.Module or None."
            )
        self._modules[name] = module

    add_module = register_module

    # Walking the tree.

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct child modules with their names, each module once."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct child modules, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self,
        memo: set[Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with dotted names, each module once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _join(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each once unless told otherwise."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def _named_entries(
        self,
        entries_of: Callable[[Module], Mapping[str, Named | None]],
        prefix: str,
        recurse: bool,
        remove_duplicate: bool,
    ) -> Iterator[tuple[str, Named]]:
        seen: set[int] = set()
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for owner_name, owner in owners:
            for name, entry in entries_of(owner).items():
                if entry is None or id(entry) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(entry))
                yield _join(owner_name, name), entry

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with dotted names; a shared one comes once, under its first name."""
        return self._named_entries(lambda m: m._parameters, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once: what an optimiser takes."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with dotted names; a shared one comes once, under its first name."""
        return self._named_entries(lambda m: m._buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module under a dotted name, for example `encoder.layers.0`."""
        module = self
        for part in target.split(".") if target else ():
            child = module._modules.get(part)
            if child is None:
                raise vkml.MissingAttributeError(
                    f"[get_submodule] {type(module).__name__} has no submodule `{part}`"
                )
            module = child
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module under a dotted name, whose parent has to exist.

        With `strict` there has to be one of that name, which is replaced.
        """
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise vkml.MissingAttributeError(
                f"[set_submodule] {type(parent).__name__} has no submodule `{name}`. Pass "
                "strict=False to add one."
            )
        if name in parent._modules:
            parent._modules[name] = module
        else:
            parent.register_module(name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter under a dotted name, for example `encoder.0.weight`."""
        path, _, name = target.rpartition(".")
        parameter = self.get_submodule(path)._parameters.get(name)
        if parameter is None:
            raise vkml.MissingAttributeError(
                f"[get_parameter] {type(self).__name__} has no parameter `{target}`"
            )
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer under a dotted name, for example `norm.running_mean`."""
        path, _, name = target.rpartition(".")
        buffer = self.get_submodule(path)._buffers.get(name)
        if buffer is None:
            raise vkml.MissingAttributeError(
                f"[get_buffer] {type(self).__name__} has no buffer `{target}`"
            )
        return buffer

    # Modes, devices and dtypes.

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn` on every module below this one and then on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets training mode here and below: dropout drops, batch norm uses the batch."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Sets evaluation mode here and below: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Switches gradients of all parameters on or off."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients, or fills them with zeros."""
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = vkml.zeros_like(parameter.grad)

    def _convert(self, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Gives each parameter, gradient and buffer the value that `convert` makes of it."""
        with no_grad():
            for parameter in self.parameters(recurse):
                gradient = parameter.grad
                converted = convert(parameter.data)
                if (converted.dtype, converted.device) == (parameter.dtype, parameter.device):
                    continue
                parameter.data = converted
                parameter.grad = None if gradient is None else convert(gradient)
            shared: dict[int, Tensor] = {}
            for module in self.modules() if recurse else [self]:
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        if id(buffer) not in shared:
                            shared[id(buffer)] = convert(buffer)
                        module._buffers[name] = shared[id(buffer)]
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves to a device, to a dtype, or like another tensor: as `Tensor.to`.

        A dtype converts floating-point parameters and buffers only. Parameters keep their
        identity, so that an optimiser made before still updates them.
        """
        device, dtype = _parse_destination(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            raise vkml.DTypeError(
                f"[Module.to] only takes floating-point dtypes, got {dtype}. "
                f"Convert single tensors by tensor.to(dtype)."
            )

        def convert(tensor: Tensor) -> Tensor:
            if device is not None:
                tensor = tensor.to(device)
            if dtype is not None and tensor.dtype.is_floating_point:
                tensor = tensor.to(dtype)
            return tensor

        return self._convert(convert)

    def float(self) -> Self:
        """Converts floating-point parameters and buffers to float32."""
        return self.to(vkml.float32)

    def double(self) -> Self:
        """Converts floating-point parameters and buffers to float64."""
        return self.to(vkml.float64)

    def half(self) -> Self:
        """Converts floating-point parameters and buffers to float16."""
        return self.to(vkml.float16)

    def bfloat16(self) -> Self:
        """Converts floating-point parameters and buffers to bfloat16."""
        return self.to(vkml.bfloat16)

    def cpu(self) -> Self:
        """Moves all parameters and buffers to the CPU."""
        return self.to(vkml.cpu)

    def type(self, dst_type: vkml.dtype) -> Self:
        """Converts floating-point parameters and buffers to a dtype: `to` by its older name."""
        return self.to(dst_type)

    def to_empty(self, *, device: vkml.DeviceLike | None, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without their values, which are to be written.

        Args:
            device: Where they live from now on; the default device if None.
            recurse: Whether modules below are moved too.
        """
        return self._convert(lambda tensor: _without_value(tensor, device), recurse)

    def share_memory(self) -> Self:
        """Accepted as PyTorch's: processes get copies, for devices share no memory."""
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepted as PyTorch's: what a module computes is planned anyway; see `vkml.jit`."""

    # State.

    def state_dict(
        self,
        destination: dict[str, Tensor] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Tensor]:
        """All parameters and persistent buffers under dotted names.

        The values are snapshots: later training steps do not change them. With `keep_vars` they
        are the parameters themselves.
        """
        state: dict[str, Tensor] = {} if destination is None else destination
        state_dicts.save(self, state, prefix, keep_vars)
        return state

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters and persistent buffers of this module alone."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers:
                yield name, buffer

    def get_extra_state(self) -> Any:
        """What else belongs to the state: a class that defines this defines `set_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what `get_extra_state` returned."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies values into parameters and buffers of the same names.

        Everything is checked before anything is written.

        Args:
            state_dict: Values by dotted name, vkML's, PyTorch's or NumPy's; each is converted to
                the dtype and device of its destination.
            strict: Whether names that only one side has are an error.
            assign: Whether parameters and buffers take dtype and device of the values as well,
                instead of converting the values to theirs. Parameters stay the same objects.

        Raises:
            ArgumentError: For names missing or unexpected under `strict`, and for shapes that
                differ.
        """
        return state_dicts.load(self, state_dict, strict, assign)

    # Printing.

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The arguments shown between the parentheses of `repr`."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        body = "".join(f"  {line}\n" for line in lines + children)
        return f"{self._get_name()}(\n{body})" if body else f"{self._get_name()}()"


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _without_value(tensor: Tensor, device: vkml.DeviceLike | None) -> Tensor:
    return vkml.empty(tuple(tensor.shape), dtype=tensor.dtype, device=device)


def _parse_destination(
    *args: Any,
    device: Any = None,
    dtype: vkml.dtype | None = None,
    non_blocking: bool = False,
) -> tuple[Any, vkml.dtype | None]:
    """Reads the arguments of `to`: a device, a dtype, both, or a tensor to be like.

    Copies wait for nobody, whatever `non_blocking` says.
    """
    for argument in args:
        if isinstance(argument, Tensor):
            device, dtype = argument.device, argument.dtype
        elif isinstance(argument, vkml.dtype):
            dtype = argument
        elif not isinstance(argument, bool):  # which is non_blocking: copies wait for nobody
            device = argument
    return device, dtype
