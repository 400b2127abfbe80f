// Hand-built kernels of attention and of its gradients.
#pragma once

#include <algorithm>
#include <bit>

#include "kernel_cases.h"
#include "vkml/ops/core_kind.h"

namespace vkml::oracle {

struct AttentionCase {
  std::int64_t batches = 1, heads = 2, shared_heads = 2, queries = 5, keys = 7;
  std::int64_t width = 8, value_width = 8;
  DType dtype = DType::kF32;
  bool is_causal = false, has_epilogue = false, has_companion = true;
  std::optional<DType> mask = {};
};

inline KernelCase attention_case(CoreKind kind, const AttentionCase& c) {
  const Extents query{c.batches, c.heads, c.queries, c.width};
  const Extents key{c.batches, c.shared_heads, c.keys, c.width};
  const Extents value{c.batches, c.shared_heads, c.keys, c.value_width};
  const Extents output{c.batches, c.heads, c.queries, c.value_width};
  const Extents row{c.batches, c.heads, c.queries, 1};
  const bool is_sum = kind == CoreKind::kAttentionLogSumExp;
  const bool is_value = kind == CoreKind::kAttentionValueGradient;
  const bool is_forward = is_sum || kind == CoreKind::kAttention;
  const Extents space = is_sum                                      ? row
                        : kind == CoreKind::kAttention              ? output
                        : kind == CoreKind::kAttentionQueryGradient ? query
                        : kind == CoreKind::kAttentionKeyGradient   ? key
                                                                    : value;
  KernelBuilder b(kind, space);
  // Scores of moderate size, whatever the operands.
  b.kernel.attributes = {std::bit_cast<std::int64_t>(0.02), c.is_causal ? 1 : 0};
  auto& inputs = b.kernel.core_inputs;
  inputs = {b.dense(c.dtype, query), b.dense(c.dtype, key)};
  if (!is_sum && !is_value) inputs.push_back(b.dense(c.dtype, value));
  if (!is_forward) {
    inputs.push_back(b.dense(c.dtype, output));
    inputs.push_back(b.dense(DType::kF32, row));
    if (!is_value) inputs.push_back(b.dense(DType::kF32, row));
  }
  if (c.mask) {
    const Extents whole{c.batches, c.heads, c.queries, c.keys};
    inputs.push_back(broadcast(b.dense(*c.mask, {1, 1, c.queries, c.keys}), whole));
  }
  const DType result = is_sum ? DType::kF32 : c.dtype;
  Register core = b.core(ScalarType::kF32);
  if (c.has_epilogue) {
    core = b.emit(Opcode::kAdd, ScalarType::kF32,
                  {core, b.load(broadcast(b.dense(DType::kF32, {1, 1, 1, space[3]}), space))});
  }
  b.result(result, core);
  const ops::Companion companion = ops::companion_of(kind);
  if (companion.source >= 0 && c.has_companion) {
    const bool is_lse = companion.kind == CoreKind::kAttentionLogSumExp;
    b.kernel.core_stores = {b.dense(is_lse ? DType::kF32 : c.dtype, is_lse ? row : value,
                                    dispatch::BufferKind::kResult)};
  }
  const double relative = c.dtype == DType::kBF16 ? 2e-2 : c.dtype == DType::kF16 ? 3e-3 : 1e-4;
  // On matrix units the gradient of each score is rounded to the operands' type. The log-sum-exp
  // here is any number, so that weights reach exp(5), and with them a term of a sum about this
  // much.
  constexpr double kLargestTerm = 2000;
  const double unit = c.dtype == DType::kBF16 ? 0x1p-8 : c.dtype == DType::kF16 ? 0x1p-11 : 0;
  const double absolute = is_forward ? 50 * relative : std::max(50 * relative, unit * kLargestTerm);
  return {name_of(kind), b.finish(), relative, absolute, {}};
}

inline std::vector<KernelCase> attention_cases_of(const AttentionCase& c) {
  std::vector<KernelCase> cases;
  for (const CoreKind kind :
       {CoreKind::kAttentionLogSumExp, CoreKind::kAttention, CoreKind::kAttentionQueryGradient,
        CoreKind::kAttentionKeyGradient, CoreKind::kAttentionValueGradient}) {
    cases.push_back(attention_case(kind, c));
  }
  return cases;
}

inline std::vector<KernelCase> attention_cases() {
  std::vector<KernelCase> cases;
  const auto add = [&](const AttentionCase& c) {
    for (KernelCase& test : attention_cases_of(c)) cases.push_back(std::move(test));
  };
  add({});
  add({.batches = 2,
       .heads = 4,
       .shared_heads = 2,
       .queries = 9,
       .keys = 6,
       .width = 5,
       .value_width = 3,
       .is_causal = true,
       .has_epilogue = true});
  add({.heads = 3,
       .shared_heads = 1,
       .queries = 70,
       .keys = 67,
       .width = 8,
       .value_width = 12,
       .has_companion = false,
       .mask = DType::kBool});
  add({.queries = 40, .keys = 50, .dtype = DType::kF16, .is_causal = true, .mask = DType::kF16});
  add({.queries = 3, .keys = 33, .width = 12, .dtype = DType::kBF16, .mask = DType::kF32});
  return cases;
}

/// For matrix units: heads of all widths, lengths that steps divide and others.
inline std::vector<KernelCase> matrix_attention_cases() {
  std::vector<KernelCase> cases;
  for (const bool is_causal : {false, true}) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      for (const CoreKind kind : {CoreKind::kAttention, CoreKind::kAttentionQueryGradient,
                                  CoreKind::kAttentionKeyGradient}) {
        AttentionCase c{.queries = 64,
                        .keys = 64,
                        .width = 32,
                        .value_width = 32,
                        .dtype = dtype,
                        .is_causal = is_causal};
        cases.push_back(attention_case(kind, c));
        c.queries = 70;
        c.keys = 83;
        c.width = c.value_width = 16;
        c.shared_heads = 1;
        cases.push_back(attention_case(kind, c));
        c.heads = 1;
        c.queries = c.keys = 37;
        c.width = 64;
        c.value_width = 48;
        c.has_companion = false;
        c.has_epilogue = true;
        cases.push_back(attention_case(kind, c));
        c.width = 112;
        c.value_width = 128;
        c.queries = 21;
        cases.push_back(attention_case(kind, c));
      }
    }
  }
  return cases;
}

}  // namespace vkml::oracle
