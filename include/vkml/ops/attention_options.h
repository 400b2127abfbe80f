// How queries attend to keys.
#pragma once

#include <cstdint>
#include <optional>

namespace vkml::graph {

struct AttentionOptions {
  bool is_causal = false;       // query i attends to keys 0 to i alone
  std::optional<double> scale;  // of the scores; 1 / sqrt(width) if there is none
  bool shares_heads = false;    // several heads of the query may share one of key and value
};

/// The widest heads that the kernels of attention take.
inline constexpr std::int64_t kMaxAttentionWidth = 128;

}  // namespace vkml::graph
