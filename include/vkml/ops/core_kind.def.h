// The cores of kernels: what runs before a kernel's program. One row each,
// VKML_CORE(enumerator, name, whether it checks indices), under its contract. Shapes are those of
// dispatch::Kernel::core_inputs, axes those of the padded rank 4; accumulation is in f32 for f16,
// bf16 and f32, in f64 for f64, wrapping for integers.

/// No core: the program alone, over `space`; a map, or with reduce_dims > 0 a row reduction.
VKML_CORE(kNone, "region", false)
/// a (B0, B1, M, K) @ b (B0, B1, K, N), any strides; space (B0, B1, M, N).
/// attributes: none, or a graph::MatmulPrecision.
VKML_CORE(kMatmul, "matmul", false)
/// input (N, C, H, W), weight (O, C/groups, KH, KW); space (N, O, OH, OW).
/// attributes: stride h, w; padding h, w; dilation h, w; groups.
VKML_CORE(kConv2d, "conv2d", false)
/// output gradient (N, O, OH, OW), weight; space (N, C, H, W). Same attributes.
VKML_CORE(kConv2dInputGradient, "conv2d_input_gradient", false)
/// input, output gradient; space (O, C/groups, KH, KW). Same attributes.
VKML_CORE(kConv2dWeightGradient, "conv2d_weight_gradient", false)
/// input (N, C, H, W); space (N, C, OH, OW). Padding never wins; NaN does.
/// attributes: kernel h, w; stride h, w; padding h, w; dilation h, w.
VKML_CORE(kMaxPool2d, "max_pool2d", false)
/// The same, giving the position h * W + w of the (first) maximum as i32.
VKML_CORE(kMaxPool2dIndices, "max_pool2d_indices", false)
/// output gradient (N, C, OH, OW), indices (N, C, OH, OW); space (N, C, H, W): each input adds
/// the gradients of the windows whose index names it, in window order. Same attributes.
VKML_CORE(kMaxPool2dGradient, "max_pool2d_gradient", false)
/// attributes: kernel h, w; stride h, w; padding h, w; count_include_pad (0 or 1).
VKML_CORE(kAvgPool2d, "avg_pool2d", false)
/// output gradient (N, C, OH, OW); space (N, C, H, W). Same attributes.
VKML_CORE(kAvgPool2dGradient, "avg_pool2d_gradient", false)
/// x, index (i32 or i64); space is the index's shape;
/// out[.., i, ..] = x[.., index[.., i, ..], ..].
/// attributes: axis. Axes other than `axis` have equal extents or the index's is smaller.
VKML_CORE(kGather, "gather", true)
/// base, index, source; space is the base's shape; every element of the base combined with the
/// source elements whose index along the axis names it, in the order of the source: added,
/// replaced by the last, multiplied, or the largest or smallest of all (NaN wins).
/// attributes: axis; ScatterKind.
VKML_CORE(kScatter, "scatter", true)
/// x, or a and b for kLinear, dense or strided; space is their shape. Element i along the axis
/// from elements 0 to i: their sum, their product, y_i = a_i y_(i-1) + b_i with y_(-1) = 0, or
/// the position (i32) of their last largest or smallest (of the last NaN, if any). Floats carry
/// at least f32, integers wrap. attributes: axis; ScanKind.
VKML_CORE(kScan, "scan", false)
/// x; space is its shape. The positions (i32) along the axis that sort it stably, NaN last, or
/// with `descending` first. attributes: axis; descending (0 or 1).
VKML_CORE(kArgSort, "argsort", false)
/// sorted (.., N), ascending along the last axis, and values (.., M) of one dtype; the other
/// axes of `sorted` are the values' or 1. Space is the values' shape. The number (i32) of sorted
/// elements before each value: below it, or with `right` not above it. NaN is above all.
/// attributes: right (0 or 1).
VKML_CORE(kSearchSorted, "searchsorted", false)

// Attention: T queries and S keys in each of H heads. The score of query t and key s is
// scale * (query t . key s) + mask(t, s), and -inf where a bool mask is false or, with `causal`,
// where s > t; head h of the queries meets head h / (H / G) of the keys and values. Query
// (B, H, T, D), key (B, G, S, D), value (B, G, S, V), mask (B, H, T, S), bool, f16, bf16 or f32,
// or none. Weights are exp(score - log-sum-exp). attributes: bits of the scale, an f64; causal (0
// or 1).

/// query, key, mask; space (B, H, T, 1): log(sum over s of exp(score)), f32. Where a query's scores
/// are all -inf it is +inf if there is a mask, so that its weights are 0, and else NaN.
VKML_CORE(kAttentionLogSumExp, "attention_log_sum_exp", false)
/// query, key, value, mask; space (B, H, T, V): the sum over s of weight * value s.
/// Companion: kAttentionLogSumExp.
VKML_CORE(kAttention, "scaled_dot_product_attention", false)
/// query, key, value, output gradient g (B, H, T, V), log-sum-exp, delta (B, H, T, 1), f32, mask;
/// space is the query's shape: the sum over s of weight * (g . value s - delta) * scale * key s.
VKML_CORE(kAttentionQueryGradient, "attention_query_gradient", false)
/// The same inputs; space is the key's shape: the sum over t and the heads that share the key of
/// weight * (g . value s - delta) * scale * query t. Companion: kAttentionValueGradient.
VKML_CORE(kAttentionKeyGradient, "attention_key_gradient", false)
/// query, key, output gradient, log-sum-exp, mask; space is the value's shape: the sum over t and
/// the heads that share the value of weight * g.
VKML_CORE(kAttentionValueGradient, "attention_value_gradient", false)

#undef VKML_CORE
