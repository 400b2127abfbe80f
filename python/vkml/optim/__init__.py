"""Optimisers and learning-rate schedules, by PyTorch's names and arguments."""

from vkml.argument_errors import check_arguments as _check_arguments
from vkml.optim import lr_scheduler, swa_utils
from vkml.optim.adadelta import Adadelta
from vkml.optim.adagrad import Adagrad
from vkml.optim.adam import Adam, AdamW
from vkml.optim.adamax import Adamax
from vkml.optim.lbfgs import LBFGS
from vkml.optim.lion import Lion
from vkml.optim.muon import Muon
from vkml.optim.nadam import NAdam
from vkml.optim.optimizer import Optimizer
from vkml.optim.rmsprop import RMSprop
from vkml.optim.sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RMSprop",
    "lr_scheduler",
    "swa_utils",
]

_check_arguments(globals(), __all__)
