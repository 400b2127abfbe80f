// What the passes of attention on matrix units compute in a step: products with rows in shared
// memory, masks, weights.
#include <spirv/unified1/GLSL.std.450.h>

#include "kernels/attention_matrix.h"

namespace vkml::vulkan {

using spirv::Matrix;
using spirv::MatrixLayout;
using spirv::MatrixVariable;
using spirv::Value;

namespace {

constexpr std::uint32_t kEdge = kMatrixEdge;
constexpr std::uint32_t kElements = 8;  // of a matrix of sums in one of 32 invocations

}  // namespace

Value AttentionMatrix::exp2(Value x) { return b_.extended(GLSLstd450Exp2, x.type, {x}); }
Value AttentionMatrix::maximum(Value x, Value y) {
  return b_.extended(GLSLstd450FMax, x.type, {x, y});
}

void AttentionMatrix::for_elements(const std::function<void(std::uint32_t)>& body) const {
  for (std::uint32_t e = 0; e < kElements; ++e) body(e);
}

/// start + own rows @ (16 rows of the other side)^T, for each row tile.
AttentionMatrix::Matrices AttentionMatrix::products(const Matrices& rows,
                                                    const AttentionStaging& other,
                                                    std::uint32_t column,
                                                    const std::vector<Matrix>& start) {
  Matrices result;
  for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
    result.emplace_back(b_, kAttentionSums);
    result.back().store(start[r]);
  }
  const auto width_tiles = static_cast<std::uint32_t>(rows.size()) / shape_.row_tiles;
  for (std::uint32_t d = 0; d < width_tiles; ++d) {
    const Matrix transposed = other.read_transposed(column, d);
    for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
      result[r].store(multiply_add(rows[r * width_tiles + d].load(), transposed, result[r].load()));
    }
  }
  return result;
}

/// sums += weights @ 16 rows of the other side, for each row tile.
void AttentionMatrix::add_products(const std::vector<Matrix>& weights,
                                   const AttentionStaging& other, std::uint32_t column,
                                   Matrices& sums, std::uint32_t width_tiles) {
  for (std::uint32_t d = 0; d < width_tiles; ++d) {
    const Matrix rows = other.read_right(column, d);
    for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
      MatrixVariable& sum = sums[r * width_tiles + d];
      sum.store(multiply_add(weights[r], rows, sum.load()));
    }
  }
}

/// Hides keys after the query. `row` and `column` are those of the first element of the first row
/// tile; where rows are keys, the matrix is transposed.
void AttentionMatrix::hide(Matrices& scores, Value row, Value column, bool is_transposed) {
  MatrixVariable distance(b_, kAttentionSums);
  distance.store(
      spirv::load_matrix(distances_, kAttentionSums, b_.u32(0), kEdge, MatrixLayout::kRowMajor));
  for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
    const Value offset = row + r * kEdge - column;
    const Value limit = b_.op(spv::Op::OpConvertSToF, spirv::kFloat32, {offset});
    for_elements([&](std::uint32_t e) {
      const Value d = distance.element(e);
      // A key's column is at most its query's row; transposed, the other way round.
      const Value visible = is_transposed ? less_equal(limit, d) : less_equal(d, limit);
      scores[r].set_element(e, b_.select(visible, scores[r].element(e), b_.f32(kHiddenScore)));
    });
  }
}

/// Hides keys that are not there, in columns from `first` on.
void AttentionMatrix::hide_past_end(Matrices& scores, Value first) {
  MatrixVariable columns(b_, kAttentionSums);
  columns.store(spirv::load_matrix(distances_, kAttentionSums, b_.u32(kEdge * kEdge), kEdge,
                                   MatrixLayout::kRowMajor));
  const Value limit = b_.op(spv::Op::OpConvertSToF, spirv::kFloat32, {keys_ - first});
  for (const MatrixVariable& score : scores) {
    for_elements([&](std::uint32_t e) {
      const Value is_there = less(columns.element(e), limit);
      score.set_element(e, b_.select(is_there, score.element(e), b_.f32(kHiddenScore)));
    });
  }
}

/// Softmax along the way: a larger score scales what has been summed so far.
void AttentionMatrix::update_row_tile(std::uint32_t tile, std::vector<Matrices>& scores) {
  MatrixVariable largest(b_, kAttentionSums), factor(b_, kAttentionSums);
  largest.store(scores[0][tile].load());
  for (std::size_t j = 1; j < scores.size(); ++j) {
    for_elements([&](std::uint32_t e) {
      largest.set_element(e, maximum(largest.element(e), scores[j][tile].element(e)));
    });
  }
  largest.store(spirv::reduce_rows(largest.load(), spirv::MatrixReduction::kMax));
  const Value scale2 = b_.f32(scale2_);
  for_elements([&](std::uint32_t e) {
    const Value before = tops_[tile].element(e);
    const Value top = maximum(before, largest.element(e) * scale2);
    factor.set_element(e, exp2(before - top));
    tops_[tile].set_element(e, top);
    totals_[tile].set_element(e, totals_[tile].element(e) * factor.element(e));
  });
  const std::uint32_t width_tiles = tiles(size_.value_width);
  for (std::uint32_t d = 0; d < width_tiles; ++d) {
    MatrixVariable& sum = second_sums_[tile * width_tiles + d];
    for_elements([&](std::uint32_t e) { sum.set_element(e, sum.element(e) * factor.element(e)); });
  }
  for (Matrices& score : scores) {
    for_elements([&](std::uint32_t e) {
      const Value weight = exp2(b_.fma(score[tile].element(e), scale2, -tops_[tile].element(e)));
      score[tile].set_element(e, weight);
      totals_[tile].set_element(e, totals_[tile].element(e) + weight);
    });
  }
}

void AttentionMatrix::step_forward(Value first) {
  std::vector<Matrices> scores;
  const std::uint32_t columns = shape_.step / kEdge;
  const std::vector<Matrix> start(shape_.row_tiles, zero());
  for (std::uint32_t j = 0; j < columns; ++j) {
    scores.push_back(products(own_first_rows_, *other_first_, j * kEdge, start));
  }
  const Value row = first_row_ + subgroup_row_;
  if (size_.is_causal) {
    b_.if_then(less(row, first + shape_.step), [&] {
      for (std::uint32_t j = 0; j < columns; ++j) hide(scores[j], row, first + j * kEdge, false);
    });
  }
  if (passes_end()) {
    b_.if_then(less(keys_, first + shape_.step), [&] {
      for (std::uint32_t j = 0; j < columns; ++j) hide_past_end(scores[j], first + j * kEdge);
    });
  }
  for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) update_row_tile(r, scores);
  for (std::uint32_t j = 0; j < columns; ++j) {
    std::vector<Matrix> weights;
    for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
      weights.push_back(spirv::convert(scores[j][r].load(), left()));
    }
    add_products(weights, *other_second_, j * kEdge, second_sums_, tiles(size_.value_width));
  }
}

void AttentionMatrix::step_query(Value first) {
  const Value row = first_row_ + subgroup_row_;
  const std::vector<Matrix> start(shape_.row_tiles, zero());
  for (std::uint32_t j = 0; j < shape_.step / kEdge; ++j) {
    Matrices scores = products(own_first_rows_, *other_first_, j * kEdge, start);
    if (size_.is_causal) {
      b_.if_then(less(row, first + shape_.step),
                 [&] { hide(scores, row, first + j * kEdge, false); });
    }
    if (passes_end()) {
      b_.if_then(less(keys_, first + shape_.step),
                 [&] { hide_past_end(scores, first + j * kEdge); });
    }
    Matrices of_weights = products(own_second_rows_, *other_second_, j * kEdge, start);
    std::vector<Matrix> of_scores;
    for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
      for_elements([&](std::uint32_t e) {
        const Value weight =
            exp2(b_.fma(scores[r].element(e), b_.f32(scale2_), -starts_[r].element(e)));
        scores[r].set_element(e, weight * (of_weights[r].element(e) - deltas_[r].element(e)));
      });
      of_scores.push_back(spirv::convert(scores[r].load(), left()));
    }
    add_products(of_scores, *other_first_, j * kEdge, first_sums_, tiles(size_.width));
  }
}

void AttentionMatrix::step_keys(Value first) {
  const Value row = first_row_ + subgroup_row_;
  for (std::uint32_t j = 0; j < shape_.step / kEdge; ++j) {
    const auto column_values = [&](const spirv::SharedArray& memory) {
      return std::vector<Matrix>(shape_.row_tiles,
                                 spirv::load_matrix(memory, kAttentionSums, b_.u32(j * kEdge), 0,
                                                    MatrixLayout::kRowMajor));
    };
    Matrices scores =
        products(own_first_rows_, *other_first_, j * kEdge, column_values(row_starts_));
    if (size_.is_causal) {
      b_.if_then(less(first, row + shape_.subgroup_rows()),
                 [&] { hide(scores, row, first + j * kEdge, true); });
    }
    std::vector<Matrix> weights;
    for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
      for_elements([&](std::uint32_t e) {
        scores[r].set_element(e, exp2(scores[r].element(e) * b_.f32(scale2_)));
      });
      weights.push_back(spirv::convert(scores[r].load(), left()));
    }
    Matrices of_weights =
        products(own_second_rows_, *other_second_, j * kEdge, column_values(row_deltas_));
    add_products(weights, *other_second_, j * kEdge, second_sums_, tiles(size_.value_width));
    std::vector<Matrix> of_scores;
    for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
      for_elements([&](std::uint32_t e) {
        scores[r].set_element(e, scores[r].element(e) * of_weights[r].element(e));
      });
      of_scores.push_back(spirv::convert(scores[r].load(), left()));
    }
    add_products(of_scores, *other_first_, j * kEdge, first_sums_, tiles(size_.width));
  }
}

}  // namespace vkml::vulkan
