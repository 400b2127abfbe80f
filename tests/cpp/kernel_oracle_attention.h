// Attention in the oracle: from the comments of core_kind.def.h, one element at a time. Included by
// kernel_oracle.h, which declares it.
#pragma once

#include "kernel_oracle.h"
#include "vkml/ops/core_kind.h"

namespace vkml::oracle {

/// The operands of a kernel of attention by name; those that it does not have are null.
struct AttentionOperands {
  const Operand *query, *key, *value, *gradient, *lse, *delta, *mask;

  explicit AttentionOperands(const Kernel& kernel) {
    const auto input = [&](std::size_t i) {
      return i < kernel.core_inputs.size() ? &kernel.core_inputs[i] : nullptr;
    };
    query = input(0);
    key = input(1);
    const bool is_sum = kernel.kind == CoreKind::kAttentionLogSumExp;
    const bool is_forward = is_sum || kernel.kind == CoreKind::kAttention;
    const bool is_value = kernel.kind == CoreKind::kAttentionValueGradient;
    value = is_sum || is_value ? nullptr : input(2);
    gradient = is_forward ? nullptr : input(is_value ? 2 : 3);
    lse = is_forward ? nullptr : input(is_value ? 3 : 4);
    delta = is_forward || is_value ? nullptr : input(5);
    mask = input(is_sum ? 2 : is_value ? 4 : is_forward ? 3 : 6);
  }
};

inline double Interpreter::score(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s) {
  const AttentionOperands x(kernel_);
  const std::int64_t shared = h / (x.query->extents[1] / x.key->extents[1]);
  double dot = 0;
  for (std::int64_t d = 0; d < x.query->extents[3]; ++d) {
    dot += element(*x.query, {b, h, t, d}).f * element(*x.key, {b, shared, s, d}).f;
  }
  dot *= std::bit_cast<double>(kernel_.attributes[0]);
  const double hidden = -std::numeric_limits<double>::infinity();
  if (kernel_.attributes[1] != 0 && s > t) return hidden;
  if (x.mask == nullptr) return dot;
  const Number mask = element(*x.mask, {b, h, t, s});
  if (x.mask->dtype == DType::kBool) return mask.i != 0 ? dot : hidden;
  return dot + mask.f;
}

/// Element `at` of what a core of the kind gives of the kernel's operands.
inline Number Interpreter::attend(CoreKind kind, const Extents& at) {
  const AttentionOperands x(kernel_);
  const std::int64_t keys = x.key->extents[2];
  const std::int64_t sharing = x.query->extents[1] / x.key->extents[1];
  const double scale = std::bit_cast<double>(kernel_.attributes[0]);
  double sum = 0;
  if (kind == CoreKind::kAttentionLogSumExp || kind == CoreKind::kAttention) {
    double weights = 0;
    for (std::int64_t s = 0; s < keys; ++s) {
      const double weight = std::exp(score(at[0], at[1], at[2], s));
      weights += weight;
      if (kind == CoreKind::kAttentionLogSumExp) continue;
      sum += weight * element(*x.value, {at[0], at[1] / sharing, s, at[3]}).f;
    }
    const bool is_hidden = weights == 0 && x.mask != nullptr;
    if (kind == CoreKind::kAttention) return {is_hidden ? 0 : sum / weights, 0};
    return {is_hidden ? std::numeric_limits<double>::infinity() : std::log(weights), 0};
  }
  const bool is_query = kind == CoreKind::kAttentionQueryGradient;
  const std::int64_t others = is_query ? keys : x.query->extents[2];
  for (std::int64_t i = 0; i < (is_query ? 1 : sharing); ++i) {
    const std::int64_t h = is_query ? at[1] : at[1] * sharing + i;
    for (std::int64_t other = 0; other < others; ++other) {
      const std::int64_t t = is_query ? at[2] : other;
      const std::int64_t s = is_query ? other : at[2];
      const double lse = element(*x.lse, {at[0], h, t, 0}).f;
      const double weight = std::exp(score(at[0], h, t, s) - lse);
      if (kind == CoreKind::kAttentionValueGradient) {
        sum += weight * element(*x.gradient, {at[0], h, t, at[3]}).f;
        continue;
      }
      double of_weight = -element(*x.delta, {at[0], h, t, 0}).f;
      for (std::int64_t d = 0; d < x.value->extents[3]; ++d) {
        of_weight += element(*x.gradient, {at[0], h, t, d}).f *
                     element(*x.value, {at[0], h / sharing, s, d}).f;
      }
      const Number factor = is_query ? element(*x.key, {at[0], h / sharing, s, at[3]})
                                     : element(*x.query, {at[0], h, t, at[3]});
      sum += weight * of_weight * scale * factor.f;
    }
  }
  return {sum, 0};
}

}  // namespace vkml::oracle
