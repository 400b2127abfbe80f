"""Layers, losses and their building blocks, by PyTorch's names and arguments."""

from vkml.nn import functional, init, utils
from vkml.nn.activation import (
    ELU,
    GELU,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from vkml.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from vkml.nn.convolution import Conv2d
from vkml.nn.linear import Embedding, Identity, Linear
from vkml.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from vkml.nn.module import Module
from vkml.nn.normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from vkml.nn.parameter import Parameter
from vkml.nn.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from vkml.nn.shaping import Dropout, Flatten, Unflatten

__all__ = [
    "ELU",
    "GELU",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "HuberLoss",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ParameterList",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "Unflatten",
    "functional",
    "init",
    "utils",
]
