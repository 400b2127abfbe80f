"""Tools around training, by PyTorch's names."""

from vkml.utils import checkpoint

__all__ = ["checkpoint"]
