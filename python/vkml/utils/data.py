"""`vkml.data` where PyTorch has it, so that `from vkml.utils.data import DataLoader` works."""

from vkml.data import *  # noqa: F403
from vkml.data import __all__ as __all__
