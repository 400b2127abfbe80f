"""What of `torch.nn` is missing here, and why: the one list, which a test compares with PyTorch."""

from __future__ import annotations

_RANK = "its input has five axes, and a tensor has at most four"
_LAZY = "a layer is made with its sizes, which it could only learn from a first input"
_OLD = "PyTorch has deprecated it"

LEFT_OUT: dict[str, str] = {
    "AdaptiveAvgPool3d": _RANK,
    "AdaptiveLogSoftmaxWithLoss": "rows of a cluster vary: a plan for each batch",
    "AdaptiveMaxPool3d": _RANK,
    "AvgPool3d": _RANK,
    "BatchNorm3d": _RANK,
    "CircularPad3d": _RANK,
    "ConstantPad3d": _RANK,
    "Container": _OLD,
    "Conv3d": _RANK,
    "ConvTranspose3d": _RANK,
    "CrossMapLRN2d": "LocalResponseNorm computes it",
    "DataParallel": "a graph runs on one device",
    "Dropout3d": _RANK,
    "FractionalMaxPool2d": "its windows are drawn anew for every call, each a plan of its own",
    "FractionalMaxPool3d": _RANK,
    "InstanceNorm3d": _RANK,
    "LPPool3d": _RANK,
    "LazyBatchNorm1d": _LAZY,
    "LazyBatchNorm2d": _LAZY,
    "LazyBatchNorm3d": _RANK,
    "LazyConv1d": _LAZY,
    "LazyConv2d": _LAZY,
    "LazyConv3d": _RANK,
    "LazyConvTranspose1d": _LAZY,
    "LazyConvTranspose2d": _LAZY,
    "LazyConvTranspose3d": _RANK,
    "LazyInstanceNorm1d": _LAZY,
    "LazyInstanceNorm2d": _LAZY,
    "LazyInstanceNorm3d": _RANK,
    "LazyLinear": _LAZY,
    "LinearCrossEntropyLoss": "the fuser joins Linear and CrossEntropyLoss by itself",
    "MaxPool3d": _RANK,
    "MaxUnpool3d": _RANK,
    "NLLLoss2d": _OLD,
    "RNNBase": "RNN, LSTM and GRU are the layers to derive from",
    "RNNCellBase": "RNNCell, LSTMCell and GRUCell are the layers to derive from",
    "ReflectionPad3d": _RANK,
    "ReplicationPad3d": _RANK,
    "SyncBatchNorm": "a graph runs on one device",
    "ZeroPad3d": _RANK,
}
"""Layers, by name."""
