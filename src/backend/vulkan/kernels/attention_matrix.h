// The engine of attention_matrix.cpp, whose arithmetic is in attention_matrix_steps.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_staging.h"
#include "kernels/matrix_staging.h"
#include "spirv/matrix.h"

namespace vkml::vulkan {

inline constexpr spirv::MatrixType kAttentionSums{
    spirv::MatrixScalar::kF32, spirv::MatrixUse::kAccumulator, kMatrixEdge, kMatrixEdge};
/// A score that has no weight.
inline constexpr float kHiddenScore = -1e30F;

/// How a kernel is dealt out.
struct AttentionShape {
  std::uint32_t subgroups = 4;
  std::uint32_t row_tiles = 2;  // of 16 rows, in a subgroup
  std::uint32_t step = 32;      // rows of the other side
  bool loads_ahead = true;

  std::uint32_t subgroup_rows() const { return row_tiles * kMatrixEdge; }
  std::uint32_t rows() const { return subgroups * subgroup_rows(); }
};

class AttentionMatrix {
 public:
  AttentionMatrix(const Context& context, const AttentionShape& shape);
  Dispatch generate();

 private:
  using Matrix = spirv::Matrix;
  using MatrixType = spirv::MatrixType;
  using MatrixUse = spirv::MatrixUse;
  using MatrixVariable = spirv::MatrixVariable;
  using Value = spirv::Value;
  using Matrices = std::vector<MatrixVariable>;  // by row tile, then column tile

  bool is_forward() const { return kernel_.kind == ops::CoreKind::kAttention; }
  bool by_keys() const { return kernel_.kind == ops::CoreKind::kAttentionKeyGradient; }
  /// Whether the last step reaches past the keys: of what is not there, a weight may be infinite.
  bool passes_end() const { return !by_keys() && size_.keys % shape_.step != 0; }
  std::uint32_t tiles(std::int64_t width) const {
    return static_cast<std::uint32_t>(width) / kMatrixEdge;
  }
  std::uint32_t threads() const { return shape_.subgroups * shader_.traits().subgroup_size; }
  MatrixType left() const { return {scalar_, MatrixUse::kA, kMatrixEdge, kMatrixEdge}; }
  MatrixType right() const { return {scalar_, MatrixUse::kB, kMatrixEdge, kMatrixEdge}; }
  Matrix zero() { return spirv::zero_matrix(b_, kAttentionSums); }

  void open();
  void place(Value group);
  void make_distances();
  Matrices load_rows(AttentionStaging& rows, std::uint32_t width_tiles);
  Matrices sums(std::uint32_t width_tiles);
  void walk(Value begin, Value end);
  void load(Value first);
  void store(Value first);
  void load_numbers(Value first);
  void store_numbers(Value first);
  Value is_needed(Value first);
  void step(Value first);
  void step_forward(Value first);
  void step_query(Value first);
  void step_keys(Value first);
  Matrices products(const Matrices& rows, const AttentionStaging& other, std::uint32_t column,
                    const std::vector<Matrix>& start);
  void add_products(const std::vector<Matrix>& weights, const AttentionStaging& other,
                    std::uint32_t column, Matrices& sums, std::uint32_t width_tiles);
  void hide(Matrices& scores, Value row, Value column, bool is_transposed);
  void hide_past_end(Matrices& scores, Value first);
  void for_elements(const std::function<void(std::uint32_t)>& body) const;
  void update_row_tile(std::uint32_t tile, std::vector<Matrices>& scores);
  void write(Matrices& values, std::uint32_t width_tiles, bool is_companion);
  void write_log_sum_exp(std::uint32_t tile);

  Value exp2(Value x);
  Value maximum(Value x, Value y);

  dispatch::Kernel kernel_;
  AttentionInputs inputs_;
  AttentionSize size_;
  AttentionShape shape_;
  spirv::MatrixScalar scalar_;
  Shader shader_;
  spirv::Builder& b_;
  std::unique_ptr<AttentionStaging> own_first_, own_second_, other_first_, other_second_;
  std::optional<HeadRows> log_sum_exp_, delta_;
  std::optional<CompanionRows> companion_;
  std::optional<Epilogue> epilogue_;
  spirv::SharedArray memory_, row_starts_, row_deltas_, distances_;
  Matrices own_first_rows_, own_second_rows_, first_sums_, second_sums_;
  Matrices tops_, totals_, starts_, deltas_;
  spirv::Variable own_start_, own_delta_;
  Value is_aligned_, batch_, head_, first_row_, subgroup_row_, subgroup_, lane_, local_, queries_,
      keys_;
  float scale_, scale2_;
};

}  // namespace vkml::vulkan
