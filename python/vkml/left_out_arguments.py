"""Arguments of PyTorch that vkML's function of that name does not have, and why: the one list.

Names of functions are in `vkml.left_out`. A key is `place.function.argument`, and may stand for
many: `*.out`. `tests/python/test_pytorch_arguments.py` compares the list with PyTorch.
"""

from __future__ import annotations


def _because(reason: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


_SLIP = "PyTorch's own table of overrides has this name, its function has not"
_MATRIX = "PyTorch's function calls it A, too"

ARGUMENTS: dict[str, str] = {
    **_because(
        "results are new tensors; x.copy_(f(...)) writes one where it is wanted, without a copy",
        "*.out",
    ),
    **_because("PyTorch has deprecated it: reduction says it", "*.size_average", "*.reduce"),
    **_because("layouts are the plan's own choice", "*.layout", "*.memory_format"),
    **_because("axes have numbers, no names", "*.names"),
    **_because(
        "products of half precision add in float32 and give the dtype of their operands",
        *("*.bmm.out_dtype", "*.mm.out_dtype"),
    ),
    **_because("gradients are dense", "*.gather.sparse_grad"),
    **_because(
        "vkml.nn.functional has the function with its options",
        *("vkml.dropout.*", "vkml.embedding.*", "vkml.celu.inplace", "vkml.layer_norm.*"),
    ),
    **_because("every kernel of that name is one", "vkml.cdist.compute_mode"),
    **_because("the Array API calls it shape", "*.broadcast_to.size"),
    **_because("the Array API calls it offset", "*.diag_embed.diagonal"),
    **_because(
        "they are positional in Python: from is a word of the language",
        *("Tensor.random_.from_", "Tensor.random_.to", "Tensor.uniform_.*"),
    ),
    **_because(
        "extents are given one by one, or as one sequence",
        *("Tensor.expand.size", "Tensor.flip.dims", "Tensor.permute.dim", "Tensor.reshape.shape"),
        *("Tensor.sum_to_size.size", "Tensor.view.shape", "vkml.permute.dim"),
    ),
    **_because(
        _SLIP,
        *("*.relu.inplace", "Tensor.relu_.inplace", "vkml.selu.inplace", "vkml.threshold.inplace"),
        *("*.histogram.max", "*.histogram.min", "*.index_reduce.include_input", "vkml.isin.e"),
        *("vkml.isin.te", "*.isfinite.tensor", "*.isinf.tensor", "*.isreal.tensor"),
        *("*.msort.descending", "*.topk.descending", "*.split.tensor", "*.where.x", "*.where.y"),
        *("*.xlogy*.x", "*.xlogy*.y", "*.dot.other", "*.swapaxes.dim0", "*.swapaxes.dim1"),
        *("*.swapdims.axis0", "*.swapdims.axis1", "vkml.from_dlpack.ext_tensor"),
        *("*.cholesky_solve.input?", "vkml.cholesky_inverse.input", "Tensor.fill_diagonal_.value"),
        *("Tensor.narrow_copy.dimension", "Tensor.put_.indices", "Tensor.put_.tensor"),
        *("linalg.cond.ord", "linalg.lstsq.b", "linalg.lstsq.cond", "linalg.tensorsolve.*"),
        *("linalg.tensorinv.a", "nn.Hardtanh.m*_value"),
    ),
    **_because(_MATRIX, "linalg.*.input"),
    **_because("files are safetensors: nothing is pickled, and nothing mapped", "vkml.load.*"),
    **_because("files are safetensors: nothing is pickled", "vkml.save.pickle*"),
    **_because("x.to(dtype) before it says the same", "linalg.norm.dtype"),
    **_because("random draws are made once for all", "func.jacfwd.randomness"),
    **_because("what does not depend on an argument has zeros", "func.jvp.strict"),
    **_because("PyTorch has deprecated it: grad_tensors", "autograd.backward.grad_variables"),
    **_because(
        "vmap, forward mode and dtypes have tests of their own; every gradient is checked densely",
        *("autograd.grad*check.check_*", "autograd.grad*check.masked"),
    ),
    **_because(
        "a segment is one plan that is computed again; vkML knows what it needs",
        "checkpoint.checkpoint.*",
    ),
}
"""Reasons by argument."""
