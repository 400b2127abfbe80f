// Attention of f16 and bf16 on matrix units (16 x 16 matrices of a subgroup, sums in f32), where
// the device converts a sum to the left operand of the next product within registers and reduces
// rows of matrices (VK_NV_cooperative_matrix2): scores never leave the registers of the subgroup
// that owns their rows.
//
// A subgroup keeps 32 rows of the result (16 where heads are wider than 64) and walks along the
// rows of the other side, which its workgroup stages in one slot of shared memory. Forward and the
// pass for queries ask memory for the next rows before they multiply, the pass for keys and values
// after it, where registers are full. That pass forms scores transposed, S^T = K Q^T, so that it
// never transposes weights; its products start from -log-sum-exp and -delta, which makes the
// subtractions free. Masks of causality and of the last keys compare a matrix of distances, in the
// blocks that need it. Bound: matrix units, the exponentials beside them, and registers.
#include <spirv/unified1/GLSL.std.450.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "kernels/attention.h"
#include "kernels/attention_staging.h"
#include "kernels/contraction.h"
#include "spirv/matrix.h"

namespace vkml::vulkan {

using ops::CoreKind;
using spirv::Matrix;
using spirv::MatrixLayout;
using spirv::MatrixScalar;
using spirv::MatrixType;
using spirv::MatrixUse;
using spirv::MatrixVariable;
using spirv::Value;

namespace {

constexpr std::uint32_t kEdge = 16;
constexpr std::uint32_t kVector = 4;    // f32 in 16 bytes
constexpr std::uint32_t kElements = 8;  // of a matrix of sums in one of 32 invocations
constexpr float kHidden = -1e30F;       // a score that has no weight
constexpr MatrixType kSums{MatrixScalar::kF32, MatrixUse::kAccumulator, kEdge, kEdge};

/// How a kernel is dealt out.
struct Shape {
  std::uint32_t subgroups = 4;
  std::uint32_t row_tiles = 2;  // of 16 rows, in a subgroup
  std::uint32_t step = 32;      // rows of the other side
  bool loads_ahead = true;

  std::uint32_t subgroup_rows() const { return row_tiles * kEdge; }
  std::uint32_t rows() const { return subgroups * subgroup_rows(); }
};

bool is_key_pass(const dispatch::Kernel& kernel) {
  return kernel.kind == CoreKind::kAttentionKeyGradient;
}

Shape shape_for(const dispatch::Kernel& kernel, const AttentionSize& size) {
  const bool is_wide = std::max(size.width, size.value_width) > 64;
  Shape shape;
  shape.row_tiles = is_wide ? 1 : 2;
  if (is_key_pass(kernel)) {
    shape.step = is_wide ? 32 : 64;
    shape.loads_ahead = false;
  } else if (kernel.kind == CoreKind::kAttention && !size.is_causal && !is_wide) {
    shape.subgroups = 8;
    shape.step = 64;
  }
  return shape;
}

class AttentionMatrix {
 public:
  AttentionMatrix(const Context& context, const Shape& shape);
  Dispatch generate();

 private:
  using Matrices = std::vector<MatrixVariable>;  // by row tile, then column tile

  bool is_forward() const { return kernel_.kind == CoreKind::kAttention; }
  bool by_keys() const { return is_key_pass(kernel_); }
  /// Whether the last step reaches past the keys: of what is not there, a weight may be infinite.
  bool passes_end() const { return !by_keys() && size_.keys % shape_.step != 0; }
  std::uint32_t tiles(std::int64_t width) const {
    return static_cast<std::uint32_t>(width) / kEdge;
  }
  std::uint32_t threads() const { return shape_.subgroups * shader_.traits().subgroup_size; }
  MatrixType left() const { return {scalar_, MatrixUse::kA, kEdge, kEdge}; }
  MatrixType right() const { return {scalar_, MatrixUse::kB, kEdge, kEdge}; }
  Matrix zero() { return spirv::zero_matrix(b_, kSums); }

  void open();
  void place(Value group);
  void make_distances();
  Matrices load_rows(AttentionStaging& rows, std::uint32_t width_tiles);
  Matrices sums(std::uint32_t width_tiles);
  void walk(Value begin, Value end);
  void load(Value first);
  void store(Value first);
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

  Value exp2(Value x) { return b_.extended(GLSLstd450Exp2, x.type, {x}); }
  Value maximum(Value x, Value y) { return b_.extended(GLSLstd450FMax, x.type, {x, y}); }

  dispatch::Kernel kernel_;
  AttentionInputs inputs_;
  AttentionSize size_;
  Shape shape_;
  MatrixScalar scalar_;
  Shader shader_;
  spirv::Builder& b_;
  std::unique_ptr<AttentionStaging> own_first_, own_second_, other_first_, other_second_;
  std::optional<HeadRows> log_sum_exp_, delta_;
  std::optional<CompanionRows> companion_;
  std::optional<Epilogue> epilogue_;
  spirv::SharedArray memory_, row_starts_, row_deltas_, distances_;
  Matrices own_first_rows_, own_second_rows_, first_sums_, second_sums_;
  Matrices tops_, totals_, starts_, deltas_;
  Value batch_, head_, first_row_, subgroup_row_, subgroup_, lane_, local_, queries_, keys_;
  float scale_, scale2_;
};

MatrixScalar scalar_of(const dispatch::Kernel& kernel) {
  return kernel.core_inputs[0].dtype == DType::kF16 ? MatrixScalar::kF16 : MatrixScalar::kBF16;
}

AttentionMatrix::AttentionMatrix(const Context& context, const Shape& shape)
    : kernel_(context.kernel),
      inputs_(attention_inputs(kernel_)),
      size_(attention_size(kernel_)),
      shape_(shape),
      scalar_(scalar_of(kernel_)),
      shader_(context, "attention_matrix", {shape.subgroups * context.traits.subgroup_size, 1, 1}),
      b_(shader_.builder()),
      scale_(static_cast<float>(size_.scale)),
      scale2_(static_cast<float>(size_.scale * kLog2E)) {
  b_.module().use_vulkan_memory_model();
}

void AttentionMatrix::open() {
  epilogue_.emplace(shader_);
  const auto staging = [&](const dispatch::Operand* operand, std::uint32_t rows) {
    return operand == nullptr
               ? nullptr
               : std::make_unique<AttentionStaging>(shader_, *operand, rows, threads());
  };
  const dispatch::Operand* own_second = by_keys() ? inputs_.value : inputs_.gradient;
  const dispatch::Operand* other_second = by_keys() ? inputs_.gradient : inputs_.value;
  own_first_ = staging(by_keys() ? inputs_.key : inputs_.query, shape_.rows());
  own_second_ = staging(own_second, shape_.rows());
  other_first_ = staging(by_keys() ? inputs_.query : inputs_.key, shape_.step);
  other_second_ = staging(other_second, shape_.step);
  if (inputs_.log_sum_exp != nullptr) log_sum_exp_.emplace(shader_, *inputs_.log_sum_exp);
  if (inputs_.delta != nullptr) delta_.emplace(shader_, *inputs_.delta);
  if (!kernel_.core_stores.empty()) companion_.emplace(shader_, kernel_.core_stores[0]);
  queries_ = shader_.parameter(size_.queries);
  keys_ = shader_.parameter(size_.keys);

  std::uint32_t vectors = other_first_->shared_vectors() + other_second_->shared_vectors();
  vectors = std::max(vectors, own_first_->shared_vectors());
  if (own_second_) vectors = std::max(vectors, own_second_->shared_vectors());
  vectors = std::max(vectors, shape_.subgroups * kEdge * (kEdge / kVector + 1));
  memory_ = spirv::SharedArray(b_, kWord4, vectors);
  own_first_->set_memory(memory_, 0);
  if (own_second_) own_second_->set_memory(memory_, 0);
  other_first_->set_memory(memory_, 0);
  other_second_->set_memory(memory_, other_first_->shared_vectors());
  const std::uint32_t numbers = by_keys() ? shape_.step : shape_.rows();
  if (!is_forward()) {
    row_starts_ = spirv::SharedArray(b_, spirv::kFloat32, numbers);
    row_deltas_ = spirv::SharedArray(b_, spirv::kFloat32, numbers);
  }
  if (size_.is_causal || passes_end()) {
    distances_ = spirv::SharedArray(b_, spirv::kFloat32, 2 * kEdge * kEdge);
  }
}

/// Column - row of each element of a matrix, then its column.
void AttentionMatrix::make_distances() {
  b_.for_range(local_, b_.u32(kEdge * kEdge), b_.u32(threads()), [&](Value i) {
    const Value column = i % kEdge;
    const auto number = [&](Value integer) {
      return b_.op(spv::Op::OpConvertSToF, spirv::kFloat32, {integer});
    };
    distances_.store(i, number(column - i / kEdge));
    distances_.store(i + kEdge * kEdge, number(column));
  });
}

/// The subgroup's own rows as left operands, by way of shared memory.
AttentionMatrix::Matrices AttentionMatrix::load_rows(AttentionStaging& rows,
                                                     std::uint32_t width_tiles) {
  b_.workgroup_barrier();
  rows.stage(first_row_, by_keys() ? keys_ : queries_);
  b_.workgroup_barrier();
  Matrices loaded;
  for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
    for (std::uint32_t d = 0; d < width_tiles; ++d) {
      loaded.emplace_back(b_, left());
      loaded.back().store(rows.read_left(subgroup_row_ + r * kEdge, d));
    }
  }
  return loaded;
}

AttentionMatrix::Matrices AttentionMatrix::sums(std::uint32_t width_tiles) {
  Matrices zeros;
  for (std::uint32_t i = 0; i < shape_.row_tiles * width_tiles; ++i) {
    zeros.emplace_back(b_, kSums);
    zeros.back().store(zero());
  }
  return zeros;
}

void AttentionMatrix::place(Value group) {
  const std::int64_t extent = by_keys() ? size_.keys : size_.queries;
  const std::int64_t heads = by_keys() ? size_.shared_heads : size_.heads;
  const std::int64_t blocks = (extent + shape_.rows() - 1) / shape_.rows();
  const Value block_count = shader_.parameter(blocks);
  const Value head_count = shader_.parameter(heads);
  const std::int64_t sharing = size_.heads / size_.shared_heads;
  Value block, outer;
  if (size_.is_causal) {
    // The longest blocks of all heads first.
    const Value outers = shader_.parameter(size_.batches * heads);
    block = group / outers;
    outer = group - block * outers;
    if (!by_keys()) block = block_count - 1 - block;
  } else {
    outer = group / block_count;
    block = group - outer * block_count;
  }
  batch_ = outer / head_count;
  head_ = outer - batch_ * head_count;
  subgroup_ = b_.subgroup_id();
  lane_ = b_.subgroup_lane();
  local_ = b_.local_index();
  first_row_ = block * shape_.rows();
  subgroup_row_ = subgroup_ * shape_.subgroup_rows();
  if (companion_) companion_->set_head(batch_, head_);
  for (auto* staging : {&own_first_, &own_second_, &other_first_, &other_second_}) {
    if (*staging) (*staging)->set_place(local_);
  }
  if (size_.is_causal || passes_end()) make_distances();
  own_first_->set_head(batch_, head_);
  own_first_rows_ = load_rows(*own_first_, tiles(size_.width));
  if (own_second_) {
    own_second_->set_head(batch_, head_);
    own_second_rows_ = load_rows(*own_second_, tiles(size_.value_width));
  }
  if (!is_forward()) first_sums_ = sums(tiles(size_.width));
  if (is_forward() || by_keys()) second_sums_ = sums(tiles(size_.value_width));

  if (by_keys()) {
    const Value heads_each = shader_.parameter(sharing);
    const Value begin = size_.is_causal ? first_row_ / shape_.step * shape_.step : b_.u32(0);
    b_.for_range(b_.u32(0), heads_each, b_.u32(1), [&](Value i) {
      const Value query_head = head_ * heads_each + i;
      other_first_->set_head(batch_, query_head);
      other_second_->set_head(batch_, query_head);
      log_sum_exp_->set_head(batch_, query_head);
      delta_->set_head(batch_, query_head);
      walk(begin, queries_);
    });
    return;
  }
  const Value shared = head_ / shader_.parameter(sharing);
  other_first_->set_head(batch_, shared);
  other_second_->set_head(batch_, shared);
  if (is_forward()) {
    for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
      tops_.emplace_back(b_, kSums);
      tops_.back().store(spirv::constant_matrix(b_, kSums, kHidden));
      totals_.emplace_back(b_, kSums);
      totals_.back().store(zero());
    }
  } else {
    log_sum_exp_->set_head(batch_, head_);
    delta_->set_head(batch_, head_);
    b_.for_range(local_, b_.u32(shape_.rows()), b_.u32(threads()), [&](Value i) {
      const Value wanted = first_row_ + i;
      const Value row = b_.select(less(wanted, queries_), wanted, queries_ - 1);
      row_starts_.store(i, log_sum_exp_->load(row, b_.u32(0)) * b_.f32(static_cast<float>(kLog2E)));
      row_deltas_.store(i, delta_->load(row, b_.u32(0)));
    });
    b_.workgroup_barrier();
    for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
      const auto row_values = [&](const spirv::SharedArray& memory) {
        return spirv::load_matrix(memory, kSums, subgroup_row_ + r * kEdge, 0,
                                  MatrixLayout::kColumnMajor);
      };
      starts_.emplace_back(b_, kSums);
      starts_.back().store(row_values(row_starts_));
      deltas_.emplace_back(b_, kSums);
      deltas_.back().store(row_values(row_deltas_));
    }
  }
  Value end = keys_;
  if (size_.is_causal) {
    const Value visible = first_row_ + shape_.rows();
    end = b_.select(less(visible, keys_), visible, keys_);
  }
  walk(b_.u32(0), end);
}

void AttentionMatrix::load(Value first) {
  const Value extent = by_keys() ? queries_ : keys_;
  other_first_->load(first, extent);
  other_second_->load(first, extent);
}

void AttentionMatrix::store(Value first) {
  const Value extent = by_keys() ? queries_ : keys_;
  other_first_->store(first, extent);
  other_second_->store(first, extent);
  if (!by_keys()) return;
  // Of queries that are not there every weight is 0.
  b_.for_range(local_, b_.u32(shape_.step), b_.u32(threads()), [&](Value i) {
    const Value wanted = first + i;
    const Value is_there = less(wanted, queries_);
    const Value row = b_.select(is_there, wanted, queries_ - 1);
    const Value start = log_sum_exp_->load(row, b_.u32(0)) * b_.f32(-1.0F / scale_);
    row_starts_.store(i, b_.select(is_there, start, b_.f32(kHidden)));
    row_deltas_.store(i, -delta_->load(row, b_.u32(0)));
  });
}

void AttentionMatrix::walk(Value begin, Value end) {
  b_.workgroup_barrier();
  b_.if_then(less(begin, end), [&] {
    load(begin);
    store(begin);
  });
  b_.workgroup_barrier();
  b_.for_range(begin, end, b_.u32(shape_.step), [&](Value first) {
    const Value next = first + shape_.step;
    const Value has_next = less(next, end);
    if (shape_.loads_ahead) b_.if_then(has_next, [&] { load(next); });
    step(first);
    b_.workgroup_barrier();
    b_.if_then(has_next, [&] {
      if (!shape_.loads_ahead) load(next);
      store(next);
    });
    b_.workgroup_barrier();
  });
}

void AttentionMatrix::step(Value first) {
  const auto body = [&] {
    if (is_forward()) {
      step_forward(first);
    } else if (by_keys()) {
      step_keys(first);
    } else {
      step_query(first);
    }
  };
  if (!size_.is_causal) {
    body();
    return;
  }
  // Rows that see nothing of this step.
  const Value own = first_row_ + subgroup_row_;
  b_.if_then(by_keys() ? less(own, first + shape_.step) : less(first, own + shape_.subgroup_rows()),
             body);
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
    result.emplace_back(b_, kSums);
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
  MatrixVariable distance(b_, kSums);
  distance.store(spirv::load_matrix(distances_, kSums, b_.u32(0), kEdge, MatrixLayout::kRowMajor));
  for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
    const Value offset = row + r * kEdge - column;
    const Value limit = b_.op(spv::Op::OpConvertSToF, spirv::kFloat32, {offset});
    for_elements([&](std::uint32_t e) {
      const Value d = distance.element(e);
      // A key's column is at most its query's row; transposed, the other way round.
      const Value visible = is_transposed ? less_equal(limit, d) : less_equal(d, limit);
      scores[r].set_element(e, b_.select(visible, scores[r].element(e), b_.f32(kHidden)));
    });
  }
}

/// Hides keys that are not there, in columns from `first` on.
void AttentionMatrix::hide_past_end(Matrices& scores, Value first) {
  MatrixVariable columns(b_, kSums);
  columns.store(
      spirv::load_matrix(distances_, kSums, b_.u32(kEdge * kEdge), kEdge, MatrixLayout::kRowMajor));
  const Value limit = b_.op(spv::Op::OpConvertSToF, spirv::kFloat32, {keys_ - first});
  for (const MatrixVariable& score : scores) {
    for_elements([&](std::uint32_t e) {
      const Value is_there = less(columns.element(e), limit);
      score.set_element(e, b_.select(is_there, score.element(e), b_.f32(kHidden)));
    });
  }
}

/// Softmax along the way: a larger score scales what has been summed so far.
void AttentionMatrix::update_row_tile(std::uint32_t tile, std::vector<Matrices>& scores) {
  MatrixVariable largest(b_, kSums), factor(b_, kSums);
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
      return std::vector<Matrix>(
          shape_.row_tiles,
          spirv::load_matrix(memory, kSums, b_.u32(j * kEdge), 0, MatrixLayout::kRowMajor));
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

/// Matrices reach the epilogue, or the companion's result, through a strip of shared memory that
/// the subgroup has for itself: 16 rows of 16 columns, four neighbours for an invocation at a time.
void AttentionMatrix::write(Matrices& values, std::uint32_t width_tiles, bool is_companion) {
  constexpr std::uint32_t kStride = kEdge / kVector + 1;
  const Value base = subgroup_ * (kEdge * kStride);
  const Value extent = by_keys() ? keys_ : queries_;
  for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) {
    for (std::uint32_t d = 0; d < width_tiles; ++d) {
      spirv::store_matrix(memory_, values[r * width_tiles + d].load(), base, kStride);
      b_.subgroup_barrier();
      b_.for_range(lane_, b_.u32(kEdge * kEdge / kVector), b_.u32(shader_.traits().subgroup_size),
                   [&](Value i) {
                     const Value line = i / (kEdge / kVector);
                     const Value vector = i % (kEdge / kVector);
                     const Value row = first_row_ + subgroup_row_ + r * kEdge + line;
                     const Value four =
                         b_.bitcast(memory_.load(base + line * kStride + vector),
                                    spirv::with_components(spirv::kFloat32, kVector));
                     b_.if_then(less(row, extent), [&] {
                       if (is_companion) {
                         companion_->store4(row, vector + d * (kEdge / kVector), four);
                       } else {
                         epilogue_->run4({batch_, head_, row, vector * kVector + d * kEdge}, four);
                       }
                     });
                   });
      b_.subgroup_barrier();
    }
  }
}

void AttentionMatrix::write_log_sum_exp(std::uint32_t tile) {
  constexpr std::uint32_t kStride = kEdge / kVector + 1;
  const Value base = subgroup_ * (kEdge * kStride);
  MatrixVariable lse(b_, kSums);
  for_elements([&](std::uint32_t e) {
    const Value logarithm =
        b_.extended(GLSLstd450Log2, spirv::kFloat32, {totals_[tile].element(e)});
    lse.set_element(e,
                    (tops_[tile].element(e) + logarithm) * b_.f32(static_cast<float>(1 / kLog2E)));
  });
  spirv::store_matrix(memory_, lse.load(), base, kStride);
  b_.subgroup_barrier();
  const Value row = first_row_ + subgroup_row_ + tile * kEdge + lane_;
  b_.if_then(logical_and(less(lane_, kEdge), less(row, queries_)), [&] {
    const Value bits = memory_.load_component(base + lane_ * kStride, b_.u32(0));
    companion_->store(row, b_.u32(0), b_.bitcast(bits, spirv::kFloat32));
  });
  b_.subgroup_barrier();
}

Dispatch AttentionMatrix::generate() {
  open();
  const std::int64_t extent = by_keys() ? size_.keys : size_.queries;
  const std::int64_t heads = by_keys() ? size_.shared_heads : size_.heads;
  const std::int64_t blocks = (extent + shape_.rows() - 1) / shape_.rows();
  const std::int64_t count = size_.batches * heads * blocks;
  const std::array<std::uint32_t, 3> groups = shader_.groups_for(count);
  const Value group = b_.workgroup_id(1) * b_.workgroup_count(0) + b_.workgroup_id(0);
  const auto body = [&] {
    place(group);
    const std::uint32_t width_tiles = tiles(size_.width);
    const std::uint32_t value_tiles = tiles(size_.value_width);
    const auto scale_all =
        [&](Matrices& values, const std::function<Value(std::uint32_t tile, std::uint32_t e)>& by) {
          for (std::size_t i = 0; i < values.size(); ++i) {
            const auto tile = static_cast<std::uint32_t>(i / (values.size() / shape_.row_tiles));
            for_elements([&](std::uint32_t e) {
              values[i].set_element(e, values[i].element(e) * by(tile, e));
            });
          }
        };
    if (is_forward()) {
      for (MatrixVariable& total : totals_) {
        total.store(spirv::reduce_rows(total.load(), spirv::MatrixReduction::kSum));
      }
      scale_all(second_sums_, [&](std::uint32_t tile, std::uint32_t e) {
        return b_.f32(1) / totals_[tile].element(e);
      });
      write(second_sums_, value_tiles, false);
      if (!companion_) return;
      for (std::uint32_t r = 0; r < shape_.row_tiles; ++r) write_log_sum_exp(r);
      return;
    }
    scale_all(first_sums_, [&](std::uint32_t, std::uint32_t) { return b_.f32(scale_); });
    write(first_sums_, width_tiles, false);
    if (companion_) write(second_sums_, value_tiles, true);
  };
  if (groups[1] > 1) {
    b_.if_then(less(group, shader_.parameter(count)), body);
  } else {
    body();
  }
  return shader_.finish(groups);
}

}  // namespace

bool fits_attention_matrix(const Context& context) {
  const dispatch::Kernel& kernel = context.kernel;
  const DeviceTraits& traits = context.traits;
  const AttentionInputs inputs = attention_inputs(kernel);
  const AttentionSize size = attention_size(kernel);
  const bool has_units = (inputs.query->dtype == DType::kF16 && traits.has_matrix_f16) ||
                         (inputs.query->dtype == DType::kBF16 && traits.has_matrix_bf16);
  const bool has_kind = kernel.kind == CoreKind::kAttention ||
                        kernel.kind == CoreKind::kAttentionQueryGradient ||
                        kernel.kind == CoreKind::kAttentionKeyGradient;
  if (!has_units || !traits.has_matrix_conversions || !has_kind || inputs.mask != nullptr ||
      size.scale <= 0 || size.width % kEdge != 0 || size.value_width % kEdge != 0 ||
      !may_use_matrix_units(kernel, traits)) {
    return false;
  }
  for (const dispatch::Operand* operand :
       {inputs.query, inputs.key, inputs.value, inputs.gradient}) {
    if (operand != nullptr && !AttentionStaging::takes(*operand)) return false;
  }
  return true;
}

std::vector<Dispatch> generate_attention_matrix(const Context& context) {
  const Shape shape = shape_for(context.kernel, attention_size(context.kernel));
  return {AttentionMatrix(context, shape).generate()};
}

}  // namespace vkml::vulkan
