// What attention does with a block of queries and a block of keys, in f32: the loops behind
// cores/attention.cpp.
//
// Matrices come in two forms. Rows: row-major, each row padded with zeros to whole panels of 16.
// Columns: blocks of kKeyBlock rows, transposed; in each block, panels of 16 rows lie behind each
// other, element d of row r at [panel of r][d][r % 16], so that products read them in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vkml/core/dtype.h"

namespace vkml::cpu {

inline constexpr std::int64_t kPanelRows = 16;
/// Scores of a block fill half of the first-level cache; its keys the other half, where heads are
/// 64 wide.
inline constexpr std::int64_t kQueryBlock = 64;
inline constexpr std::int64_t kKeyBlock = 64;

constexpr std::int64_t whole_panels(std::int64_t count) {
  return (count + kPanelRows - 1) / kPanelRows * kPanelRows;
}

/// Of one head, from its first query and key on; strides in elements.
struct AttentionMask {
  const std::byte* data = nullptr;
  DType dtype = DType::kBool;
  std::int64_t query_stride = 0;
  std::int64_t key_stride = 0;
};

struct AttentionHead {
  std::int64_t keys = 0;
  std::int64_t width = 0;        // of queries and keys, without padding
  std::int64_t value_width = 0;  // of values
  bool is_causal = false;
  float scale = 1;
  AttentionMask mask;
};

/// Queries first .. first + count - 1, in rows, and what belongs to them.
struct QueryBlock {
  std::int64_t first = 0;
  std::int64_t count = 0;
  const float* query = nullptr;
  std::int64_t query_stride = 0;
  // For gradients:
  const float* gradient = nullptr;
  std::int64_t gradient_stride = 0;
  const float* log_sum_exp = nullptr;
  const float* delta = nullptr;
};

/// Keys first .. first + count - 1.
struct KeyBlock {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// The keys that some query of the block sees.
std::int64_t visible_keys(const AttentionHead& head, const QueryBlock& block);

/// Floats of working memory that each function below wants.
inline constexpr std::int64_t kAttentionWork = 2 * kQueryBlock * kKeyBlock + 2 * kQueryBlock;

/// Weighted sums of values, rows of whole_panels(value_width), and the log-sum-exp. `keys` are
/// columns, times scale * log2(e); `values` are rows, or null where only the log-sum-exp is wanted.
void attend_block(const AttentionHead& head, const QueryBlock& block, const float* keys,
                  const float* values, float* work, float* out, float* log_sum_exp);

/// The gradient of the block's queries, rows of whole_panels(width). `keys` as above, `values` as
/// columns, `key_rows` as rows.
void query_gradient_block(const AttentionHead& head, const QueryBlock& block, const float* keys,
                          const float* values, const float* key_rows, float* work, float* out);

/// Adds what the block of queries contributes to the gradients of a block of keys and of values;
/// either may be null. `keys` and `values` are those of the block, as above.
void add_key_gradients(const AttentionHead& head, const QueryBlock& block, const KeyBlock& range,
                       const float* keys, const float* values, float* work, float* key_gradient,
                       float* value_gradient);

}  // namespace vkml::cpu
