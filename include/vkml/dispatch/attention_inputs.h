// Which operand of a kernel of attention is which: ops/core_kind.def.h has the order for each core.
#pragma once

#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {

/// Null where the core has none, or the kernel no mask.
struct AttentionInputs {
  const Operand* query = nullptr;
  const Operand* key = nullptr;
  const Operand* value = nullptr;
  const Operand* gradient = nullptr;
  const Operand* log_sum_exp = nullptr;
  const Operand* delta = nullptr;
  const Operand* mask = nullptr;
};

/// `kernel` is one of attention or of its gradients.
inline AttentionInputs attention_inputs(const Kernel& kernel) {
  const auto input = [&](std::size_t i) {
    return i < kernel.core_inputs.size() ? &kernel.core_inputs[i] : nullptr;
  };
  switch (kernel.kind) {
    case ops::CoreKind::kAttentionLogSumExp:
      return {input(0), input(1), nullptr, nullptr, nullptr, nullptr, input(2)};
    case ops::CoreKind::kAttention:
      return {input(0), input(1), input(2), nullptr, nullptr, nullptr, input(3)};
    case ops::CoreKind::kAttentionValueGradient:
      return {input(0), input(1), nullptr, input(2), input(3), nullptr, input(4)};
    default:
      return {input(0), input(1), input(2), input(3), input(4), input(5), input(6)};
  }
}

}  // namespace vkml::dispatch
