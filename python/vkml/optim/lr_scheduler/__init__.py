"""Learning-rate schedules, by PyTorch's names and arguments."""

from vkml.argument_errors import check_arguments as _check_arguments
from vkml.optim.lr_scheduler.base import LRScheduler
from vkml.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from vkml.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from vkml.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from vkml.optim.lr_scheduler.one_cycle import CyclicLR, OneCycleLR
from vkml.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_check_arguments(globals(), __all__)
