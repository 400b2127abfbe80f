"""Mixed precision: products in half precision, everything that needs it in float32.

scaler = vkml.amp.GradScaler()          # float16 only; bfloat16 has float32's range
with vkml.autocast(dtype=vkml.float16):
    loss = loss_function(model(x), y)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
"""

from vkml.amp.grad_scaler import GradScaler
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.mixed_precision import autocast, get_autocast_dtype, is_autocast_enabled

__all__ = ["GradScaler", "autocast", "get_autocast_dtype", "is_autocast_enabled"]

_check_arguments(globals(), __all__)
