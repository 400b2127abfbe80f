// Attention and its gradients, as both engines see them: one kernel of the plan is a pass over
// blocks of rows, queries or keys, each of which walks along the rows of the other side.
//
// attention_rows.cpp runs anywhere, on vector units; attention_matrix.cpp multiplies f16 and bf16
// on matrix units, where there are no masks but that of causality.
#pragma once

#include <optional>

#include "kernels/epilogue.h"
#include "vkml/dispatch/attention_inputs.h"

namespace vkml::vulkan {

using dispatch::attention_inputs;
using dispatch::AttentionInputs;

struct AttentionSize {
  std::int64_t batches = 1, heads = 1, shared_heads = 1, queries = 1, keys = 1;
  std::int64_t width = 1;        // of queries and keys
  std::int64_t value_width = 1;  // of values; 0 where there are none
  double scale = 1;
  bool is_causal = false;
};
AttentionSize attention_size(const dispatch::Kernel& kernel);

inline constexpr double kLog2E = 1.4426950408889634;

/// Rows of one head of an operand (batch, head, row, column).
class HeadRows {
 public:
  HeadRows(Shader& shader, const dispatch::Operand& operand);
  /// Called before anything is loaded.
  void set_head(spirv::Value batch, spirv::Value head);
  spirv::Value load(spirv::Value row, spirv::Value column) const;
  /// Elements 4 * vector .. 4 * vector + 3 of a row; 0 past the row's end.
  spirv::Value load4(spirv::Value row, spirv::Value vector) const;

 private:
  Shader* shader_;
  Elements elements_;
  std::int64_t width_;
  bool may_be_vector_;
  Coordinates strides_;
  spirv::Value first_;
};

/// Rows of the companion's result, which is dense.
class CompanionRows {
 public:
  CompanionRows(Shader& shader, const dispatch::Operand& operand);
  void set_head(spirv::Value batch, spirv::Value head);
  void store(spirv::Value row, spirv::Value column, spirv::Value value) const;
  void store4(spirv::Value row, spirv::Value vector, spirv::Value values) const;

 private:
  Shader* shader_;
  Elements elements_;
  std::int64_t width_;
  spirv::Value heads_, rows_, first_row_;
};

std::vector<Dispatch> generate_attention_rows(const Context& context);

/// Whether the kernel, its operands and the device suit matrix units.
bool fits_attention_matrix(const Context& context);
std::vector<Dispatch> generate_attention_matrix(const Context& context);

}  // namespace vkml::vulkan
