"""Optimisers and learning-rate schedules, by PyTorch's names and arguments."""

from vkml.optim import lr_scheduler
from vkml.optim.adam import Adam, AdamW
from vkml.optim.optimizer import Optimizer
from vkml.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
