"""Exceptions of the Python half: like those of the native module, each is a built-in one too."""

from __future__ import annotations

from vkml._vkml import VkmlError

__all__ = ["MissingAttributeError", "NamingError", "WorkerError"]


class NamingError(VkmlError, KeyError):
    """A name or key that is not there, is taken, or cannot be one."""

    __str__ = Exception.__str__  # KeyError shows its message as a quoted key


class MissingAttributeError(VkmlError, AttributeError):
    """An attribute that an object does not have."""


class WorkerError(VkmlError, RuntimeError):
    """A worker process of a DataLoader that failed, died, or gave nothing in time."""
