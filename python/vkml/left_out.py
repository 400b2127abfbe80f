"""What PyTorch offers and vkML does not, and why: the one list, which a test compares with PyTorch.

A name may stand for many: `cudnn_*`. Layers are in `vkml.nn.left_out`, the Array API's names in
`vkml.array_api.left_out`.
"""

from __future__ import annotations


def _because(reason: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


_COMPLEX = "kernels compute with real numbers alone"
_SPARSE = "tensors are dense"
_QUANTIZED = "the storage types are those of training; integers scaled by a number are not"
_INTERNAL = "PyTorch's own machinery, which users do not call"
_RANK = "its input has five axes, and a tensor has at most four"
_OLD = "PyTorch has deprecated it, for a function that is here"
_SCIPY = "no model needs it so far; SciPy's function takes tensors (SCIPY_ARRAY_API=1)"
_IN_PLACE = "x.copy_(f(x)) says it, and is computed in place"
_SHAPE = "a tensor keeps its shape, dtype and device: assign to the name instead"
_MEMORY = "memory belongs to the plan: no tensor promises a place or a layout"
_DEVICE = "devices are the CPU and Vulkan's"
_FACTORS = "factors with pivots are steps inside `solve`, `inv` and `det`"
_LAYER = "the layer of vkml.nn computes it"
_PIECE = "its result's extent depends on values: a plan for each call"

FUNCTIONS: dict[str, str] = {
    **_because(
        "vkml.nn.functional has it, as PyTorch's does",
        *("adaptive_*", "alpha_dropout", "avg_pool1d", "batch_norm", "bilinear"),
        *("binary_cross_entropy_with_logits", "channel_shuffle", "conv1d", "conv_transpose1d"),
        *("cosine_*", "ctc_loss", "embedding_bag", "feature_alpha_dropout", "group_norm"),
        *("hinge_embedding_loss", "instance_norm", "kl_div", "margin_ranking_loss", "max_pool1d"),
        *("pairwise_distance", "pixel_*", "poisson_nll_loss", "rms_norm", "rrelu"),
        "triplet_margin_loss",
    ),
    **_because("the tensor has the method", "*_"),
    **_because(_SHAPE, "detach_", "resize_as_*"),
    **_because(
        _IN_PLACE,
        *("addmv_", "alpha_dropout_", "dropout_", "feature_alpha_dropout_", "feature_dropout_"),
        "rrelu_",
    ),
    **_because(
        "vkml.linalg has it, with today's arguments",
        *("chain_matmul", "frobenius_norm", "ger", "lobpcg", "lstsq", "matrix_rank"),
        *("norm_except_dim", "nuclear_norm", "pca_lowrank", "qr", "solve", "svd", "svd_lowrank"),
        *("symeig", "triangular_solve", "range"),
    ),
    **_because(_FACTORS, "geqrf", "lu", "lu_solve", "lu_unpack", "orgqr", "ormqr"),
    **_because(_RANK, "conv3d", "conv_transpose3d", "max_pool3d", "grid_sampler_3d"),
    **_because(
        _COMPLEX,
        *("complex", "conj_physical*", "eig", "imag", "is_conj", "is_neg", "istft", "polar"),
        *("resolve_*", "stft", "view_as_complex*", "view_as_real*"),
    ),
    **_because(
        _SPARSE,
        *("ccol_indices_copy", "col_indices_copy", "crow_indices_copy", "dsmm", "hsmm", "hspmm"),
        *("indices_copy", "row_indices_copy", "saddmm", "smm", "sparse_*", "spmm", "sspaddmm"),
        "values_copy",
    ),
    **_because(
        _QUANTIZED,
        *("choose_qparams_optimized", "dequantize", "empty_quantized", "fake_quantize_*"),
        *("fbgemm_*", "fused_moving_avg_obs_fake_quant", "int_repr", "q_*", "quantize_*"),
        "quantized_*",
    ),
    **_because(
        _INTERNAL,
        *("affine_grid_generator", "alias_copy", "autocast_*", "batch_norm_*", "classproperty"),
        *("compiled_with_cxx11_abi", "cond", "constant_pad_nd", "conv_tbc", "convolution"),
        *("cudnn_*", "detach_copy", "diagonal_copy", "embedding_renorm_", "expand_copy"),
        *("feature_dropout", "fork", "get_file_path", "grid_sampler", "grid_sampler_2d"),
        *("hash_tensor", "import_ir_module*", "init_num_threads", "is_distributed", "is_storage"),
        *("max_pool1d_with_indices", "merge_type_from_type_comment", "miopen_*", "mkldnn_*"),
        *("native_*", "nonzero_static", "parse_*", "permute_copy"),
        *("prepare_multiprocessing_environment", "profiler_*", "select_copy", "slice_copy"),
        *("slice_inverse", "split_copy", "split_with_sizes*", "squeeze_copy", "sym_*", "t_copy"),
        *("thread_safe_generator", "transpose_copy", "typename", "unbind_copy", "unfold_copy"),
        *("unify_type_list", "unsafe_*", "unsqueeze_copy", "view_copy", "wait", "while_loop"),
    ),
    **_because(_MEMORY, "as_strided*", "empty_permuted", "empty_strided"),
    **_because(
        "results do not change from run to run, whatever is set",
        *("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
        *("get_deterministic_debug_mode", "set_deterministic_debug_mode"),
        "is_deterministic_algorithms_warn_only_enabled",
    ),
    **_because(
        "autocast is a block and holds on every device; nothing is cached",
        *("set_autocast_*", "clear_autocast_cache", "get_autocast_?pu_dtype"),
        *("get_autocast_xla_dtype", "is_autocast_*_enabled"),
    ),
    **_because(
        "by another name: default_device, set_matmul_precision, manual_seed, jit, from_dlpack",
        *("compile", "get_default_device", "get_float32_matmul_precision", "seed", "to_dlpack"),
        *("set_float32_matmul_precision", "get_device*", "is_vulkan_available"),
    ),
    **_because(
        "the default dtypes do not change, so that a program means one thing",
        *("set_default_dtype", "set_default_tensor_type"),
    ),
    **_because(
        "set by the environment: docs/environment.md",
        *("get_num_threads", "set_num_threads", "get_num_interop_threads"),
        *("set_num_interop_threads", "set_flush_denormal"),
    ),
    **_because(
        "the state of random numbers is a seed and a count: manual_seed starts it again",
        *("get_rng_state", "set_rng_state"),
    ),
    **_because(
        "a tensor prints in one way",
        "set_printoptions",
        *("is_warn_always_enabled", "set_warn_always"),
    ),
    **_because(
        "tensors made in inference_mode are ordinary ones; anomaly mode is "
        "`vkml.autograd.detect_anomaly`",
        *("is_inference*", "set_anomaly_enabled"),
    ),
    **_because(
        "vkml.tensor and vkml.load read arrays, buffers and files", "from_file", "frombuffer"
    ),
    **_because("a draw takes a number of steps that depends on values", "binomial", "poisson"),
    **_because(_PIECE, "segment_reduce"),
    **_because("its bins have as many axes as points have numbers", "histogramdd"),
    **_because(_SCIPY, "igamma", "igammac"),
    **_because(_LAYER, "gru*", "lstm*", "rnn_*"),
}
"""Functions of `torch`."""

LINALG: dict[str, str] = {
    **_because(_COMPLEX, "eig", "eigvals"),
    **_because(_FACTORS, "householder_product", "ldl_*", "lu*"),
    **_because(
        "a singular matrix raises ArgumentError instead of setting a number",
        *("cholesky_ex", "inv_ex", "solve_ex"),
    ),
}
"""Functions of `torch.linalg`."""

SPECIAL: dict[str, str] = {
    **_because(
        _SCIPY,
        *("bessel_*", "gammainc", "gammaincc", "modified_bessel_k*", "scaled_modified_bessel_*"),
    ),
    "airy_ai": "no model needs it so far; SciPy's airy gives arrays of NumPy's",
}
"""Functions of `torch.special`."""

FUNCTIONAL: dict[str, str] = {
    **_because(
        _RANK,
        *("adaptive_avg_pool3d", "adaptive_max_pool3d*", "avg_pool3d", "conv3d"),
        *("conv_transpose3d", "dropout3d", "fractional_max_pool3d*", "lp_pool3d", "max_pool3d*"),
        "max_unpool3d",
    ),
    **_because(
        "its windows are drawn anew for every call, each a plan of its own",
        "fractional_max_pool2d*",
    ),
    **_because("return_indices=True of the function without that ending", "*_with_indices"),
    **_because("the tensor has the method", "*_"),
    **_because(_IN_PLACE, "rrelu_"),
    **_because("interpolate computes it: PyTorch has deprecated it", "upsample*"),
    **_because("the fuser joins linear and cross_entropy by itself", "linear_cross_entropy"),
    **_because(_LAYER, "multi_head_attention_forward"),
    **_because(_QUANTIZED, "scaled_*"),
    **_because("groups of rows of several sizes: a plan for each call", "grouped_mm"),
    **_because("vkml.pdist", "pdist"),
    **_because(
        _INTERNAL,
        *("Optional", "assert_int_or_pair", "boolean_dispatch", "conv_tbc"),
        *("handle_torch_function", "has_torch_function*", "native_channel_shuffle"),
    ),
}
"""Functions of `torch.nn.functional`."""

OPTIM: dict[str, str] = {
    "ASGD": "swa_utils averages the parameters of any optimiser",
    "Adafactor": "no model needs it so far: it saves memory that Lion and Muon save too",
    "RAdam": "a warm-up of the learning rate does the same for Adam",
    "Rprop": "made for whole data sets in one batch, where LBFGS is there",
    "SparseAdam": _SPARSE,
}
"""Optimisers."""

METHODS: dict[str, str] = {
    **_because(
        _IN_PLACE,
        *("addbmm_", "addmv_", "addr_", "baddbmm_", "conj_physical_", "float_power_"),
        *("greater_*", "igamma_", "igammac_", "index_reduce_", "less_*", "mvlgamma_"),
        *("not_equal_", "polygamma_"),
    ),
    **_because(
        _SHAPE,
        *("detach_", "resize*", "set_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_"),
        "unsqueeze_",
    ),
    **_because(
        _MEMORY,
        *("as_strided*", "const_data_ptr", "data_ptr", "dim_order", "is_pinned", "is_set_to"),
        *("is_shared", "layout", "new_empty_strided", "pin_memory", "record_stream"),
        *("share_memory_", "storage", "storage_*", "untyped_storage"),
    ),
    **_because(
        _SPARSE,
        *("ccol_indices", "coalesce", "col_indices", "crow_indices", "dense_dim", "indices"),
        *("is_coalesced", "is_sparse*", "row_indices", "smm", "sparse_*", "sspaddmm", "to_dense"),
        *("to_mkldnn", "to_padded_tensor", "to_sparse*", "values", "is_nested"),
    ),
    **_because(
        _QUANTIZED, "dequantize", "int_repr", "is_quantized", "q_*", "qscheme", "byte", "char"
    ),
    **_because("int32 is the narrowest signed integer", "short"),
    **_because(
        _COMPLEX,
        *("H", "mH", "cdouble", "cfloat", "chalf", "conj_physical", "eig", "imag", "is_conj"),
        *("is_neg", "istft", "real", "resolve_*", "stft"),
    ),
    **_because(
        _DEVICE,
        *("cuda", "get_device", "ipu", "is_ipu", "is_maia", "is_meta", "is_mkldnn"),
        *("is_mps", "is_mtia", "is_xla", "is_xpu", "mtia", "xpu"),
    ),
    **_because(
        _INTERNAL,
        *("as_subclass", "grad_dtype", "hash_tensor", "index", "is_distributed", "is_inference"),
        *("module_load", "name", "new", "nonzero_static", "output_nr", "reinforce"),
        *("slice_inverse", "split_with_sizes", "unsafe_*", "volatile"),
    ),
    **_because("it would run Python for every element", "apply_", "map_", "map2_"),
    **_because(
        "vkml.linalg has it, with today's arguments",
        *("cholesky", "ger", "lstsq", "qr", "solve", "svd", "symeig", "triangular_solve"),
    ),
    **_because(_FACTORS, "geqrf", "lu", "lu_solve", "orgqr", "ormqr"),
    **_because(_SCIPY, "igamma", "igammac"),
    **_because(
        "a recorded operation is at `grad_fn_index` of the record that was asked for", "grad_fn"
    ),
    **_because(
        "register_hook sees every gradient, and an optimiser's hooks every step",
        "register_post_accumulate_grad_hook",
    ),
}
"""Methods and attributes of tensors."""

UTILS: dict[str, str] = {
    **_because(
        "the name without the underscore at its end is PyTorch's older one", "clip_grad_norm"
    ),
    **_because(
        "memory formats are the plan's own choice",
        "convert_conv2d_weight_memory_format",
        "convert_conv3d_weight_memory_format",
    ),
    **_because(
        "the fuser joins a layer and the norm behind it by itself",
        *("fuse_conv_bn_*", "fuse_linear_bn_*"),
    ),
    **_because("a layer is made with its values, which cost little", "skip_init"),
    **_because(
        "weight_norm and spectral_norm are here; another one is a hook before forward",
        *("parametrizations", "parametrize"),
    ),
    **_because("vkml.func.functional_call", "stateless"),
}
"""Functions of `torch.nn.utils`."""

FUNC: dict[str, str] = {
    "debug_unwrap": _INTERNAL,
    "rearrange": "reshape, permute and einsum say it",
    "functionalize": "the graph is functional: a write makes a new value",
    "replace_all_batch_norm_modules_": "BatchNorm(track_running_stats=False) is made as such",
}
"""Functions of `torch.func`."""

DATA: dict[str, str] = {
    **_because(
        "pipes of data are a library of their own, which PyTorch has stopped developing",
        *("DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation"),
        *("functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic"),
        *("runtime_validation", "runtime_validation_disabled"),
    ),
}
"""Names of `torch.utils.data`."""

INIT: dict[str, str] = _because(
    "the name with an underscore: PyTorch has deprecated this one",
    *("constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal"),
    *("orthogonal", "sparse", "uniform", "xavier_normal", "xavier_uniform"),
)
"""Functions of `torch.nn.init`."""

AUTOGRAD: dict[str, str] = {
    **_because(_OLD, "Variable", "variable"),
    **_because(_INTERNAL, "NestedIOFunction", "grad_mode", "enforce_grad_layout_policy"),
    "set_multithreading_enabled": "a backward pass is one plan, whose threads are the backend's",
}
"""Names of `torch.autograd`."""

AUTOGRAD_GRAPH: dict[str, str] = {
    **_because(
        "the plan decides what is kept for a backward pass; vkml.utils.checkpoint keeps less",
        *("*saved_tensors*", "save_on_cpu", "region_activation_memory_budget"),
    ),
    **_because(
        "a record of calls is `vkml.autograd.ComputationGraph`",
        *("GradientEdge", "Node", "get_gradient_edge", "register_multi_grad_hook"),
    ),
    **_because(_INTERNAL, "increment_version", "set_*"),
}
"""Names of `torch.autograd.graph`."""

MODULE: dict[str, str] = {
    **_because(_DEVICE, "cuda", "ipu", "mtia", "xpu"),
    **_because(_INTERNAL, "T_destination", "call_super_init", "dump_patches"),
    "register_backward_hook": "PyTorch has deprecated it: register_full_backward_hook",
}
"""Methods and attributes of `torch.nn.Module`."""
