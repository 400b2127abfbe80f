"""`autocast`: which dtype operators take their operands in.

The native module keeps the mode, one for each thread, and applies it to the operators it has;
`in_float32` applies it to those written in Python. `through_float32` is for those that square or
add up, which overflows in half precision whether the mode is on or not.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from vkml import _vkml
from vkml._vkml import ArgumentError, DTypeError
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.thread_mode import ThreadMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from vkml import Tensor
    from vkml import dtype as DType

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_HALF = (_vkml.float16, _vkml.bfloat16)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether `autocast` is on in this thread, on every device alike."""
    return _vkml._autocast_dtype() != _vkml.float32


def get_autocast_dtype(device_type: str | None = None) -> DType:
    """What products take float32 operands as where `autocast` is on; bfloat16 where it is off."""
    dtype = _vkml._autocast_dtype()
    return _vkml.bfloat16 if dtype == _vkml.float32 else dtype


class autocast(ThreadMode["DType"]):  # noqa: N801 (PyTorch's name)
    """Mixed precision inside the block, or inside each call of the function it decorates.

    Matrix products, convolutions, attention and what is made of them (linear layers, recurrent
    cells) take float32 operands as `dtype` and give that dtype; they add in float32 as always.
    Sums, products, norms, softmax, exponentials, logarithms, powers and losses take operands of
    half precision as float32. Other operators run in the dtype of their operands. Parameters stay
    float32, and so do their gradients. Backward passes need no block of their own: each gradient
    is as precise as the operator it belongs to.

    Args:
        device_type: "cpu" or "vulkan", for scripts that say so; the mode holds on every device.
        dtype: bfloat16 or float16. float16 gradients underflow: use `GradScaler` with it.
        enabled: False turns the mode off inside.
        cache_enabled: Accepted as PyTorch's: nothing is cached, for a cast is planned with the
            graph that needs it.
    """

    def __init__(
        self,
        device_type: str | None = None,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if isinstance(device_type, _vkml.dtype):
            raise DTypeError(
                f"[autocast] the first argument is the type of device. Pass dtype={device_type!r}."
            )
        if device_type is not None and str(device_type).split(":")[0] not in ("cpu", "vulkan"):
            raise ArgumentError(
                f"[autocast] there are no devices of type {device_type!r}. Pass 'cpu' or 'vulkan', "
                "or leave it out."
            )
        inside = _vkml.bfloat16 if dtype is None else dtype
        if inside not in _HALF:
            raise DTypeError(
                f"[autocast] products cannot take their operands as {dtype!r}. Pass vkml.float16 "
                "or vkml.bfloat16."
            )
        super().__init__(_vkml._set_autocast_dtype, inside if enabled else _vkml.float32)


def in_float32(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function that takes tensors of half precision as float32 where `autocast` is on."""

    @functools.wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if _vkml._autocast_dtype() == _vkml.float32:
            return function(*args, **kwargs)
        wide: dict[str, Any] = {name: _precise(value) for name, value in kwargs.items()}
        return function(*(_precise(value) for value in args), **wide)

    return call


def through_float32(function: Callable[Parameters, Tensor]) -> Callable[Parameters, Tensor]:
    """A function whose sums and squares of half precision are float32's.

    Its result has the dtype of its operands, or is float32 where `autocast` is on.
    """

    @functools.wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Tensor:
        given: list[Any] = [*args, *kwargs.values()]
        if not any(_is_half(value) for value in given):
            return function(*args, **kwargs)
        wide: dict[str, Any] = {name: _precise(value) for name, value in kwargs.items()}
        result = function(*(_precise(value) for value in args), **wide)
        tensors = [value for value in given if isinstance(value, _vkml.Tensor)]
        if is_autocast_enabled() or not all(_is_half(value) for value in tensors):
            return result
        promote: Any = _vkml.promote_types
        dtype = functools.reduce(promote, (value.dtype for value in tensors))
        return result.to(dtype)

    return call


def _is_half(value: object) -> bool:
    return isinstance(value, _vkml.Tensor) and value.dtype in _HALF


def _precise(value: Any) -> Any:
    return value.to(_vkml.float32) if _is_half(value) else value


_check_arguments(globals(), ("autocast", "get_autocast_dtype", "is_autocast_enabled"))
