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
#include "kernels/attention_matrix.h"

#include <spirv/unified1/GLSL.std.450.h>

#include <algorithm>
#include <bit>

#include "kernels/contraction.h"

namespace vkml::vulkan {

using ops::CoreKind;
using spirv::MatrixLayout;
using spirv::MatrixScalar;
using spirv::MatrixVariable;
using spirv::Value;

namespace {

constexpr std::uint32_t kEdge = kMatrixEdge;
constexpr std::uint32_t kVector = 4;  // f32 in 16 bytes

bool is_key_pass(const dispatch::Kernel& kernel) {
  return kernel.kind == CoreKind::kAttentionKeyGradient;
}

AttentionShape shape_for(const dispatch::Kernel& kernel, const AttentionSize& size) {
  const bool is_wide = std::max(size.width, size.value_width) > 64;
  AttentionShape shape;
  shape.row_tiles = is_wide ? 1 : 2;
  if (is_key_pass(kernel)) {
    shape.step = is_wide ? 32 : 64;
    shape.loads_ahead = false;
  }
  return shape;
}

MatrixScalar scalar_of(const dispatch::Kernel& kernel) {
  return kernel.core_inputs[0].dtype == DType::kF16 ? MatrixScalar::kF16 : MatrixScalar::kBF16;
}

}  // namespace

AttentionMatrix::AttentionMatrix(const Context& context, const AttentionShape& shape)
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
    zeros.emplace_back(b_, kAttentionSums);
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

  is_aligned_ = logical_and(other_first_->is_aligned(), other_second_->is_aligned());
  if (by_keys()) {
    own_start_ = spirv::Variable(b_, spirv::kFloat32);
    own_delta_ = spirv::Variable(b_, spirv::kFloat32);
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
      tops_.emplace_back(b_, kAttentionSums);
      tops_.back().store(spirv::constant_matrix(b_, kAttentionSums, kHiddenScore));
      totals_.emplace_back(b_, kAttentionSums);
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
        return spirv::load_matrix(memory, kAttentionSums, subgroup_row_ + r * kEdge, 0,
                                  MatrixLayout::kColumnMajor);
      };
      starts_.emplace_back(b_, kAttentionSums);
      starts_.back().store(row_values(row_starts_));
      deltas_.emplace_back(b_, kAttentionSums);
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

/// One log-sum-exp and one delta for each of the first invocations.
void AttentionMatrix::load_numbers(Value first) {
  if (!by_keys()) return;
  b_.if_then(less(local_, shape_.step), [&] {
    const Value wanted = first + local_;
    const Value row = b_.select(less(wanted, queries_), wanted, queries_ - 1);
    own_start_.store(log_sum_exp_->load(row, b_.u32(0)));
    own_delta_.store(delta_->load(row, b_.u32(0)));
  });
}

void AttentionMatrix::store_numbers(Value first) {
  if (!by_keys()) return;
  b_.if_then(less(local_, shape_.step), [&] {
    // Of queries that are not there every weight is 0.
    const Value start = own_start_.load() * b_.f32(-1.0F / scale_);
    row_starts_.store(local_,
                      b_.select(less(first + local_, queries_), start, b_.f32(kHiddenScore)));
    row_deltas_.store(local_, -own_delta_.load());
  });
}

void AttentionMatrix::store(Value first) {
  b_.if_else(
      is_aligned_,
      [&] {
        other_first_->store();
        other_second_->store();
      },
      [&] {
        const Value extent = by_keys() ? queries_ : keys_;
        other_first_->stage_elements(first, extent);
        other_second_->stage_elements(first, extent);
      });
  store_numbers(first);
}

void AttentionMatrix::walk(Value begin, Value end) {
  const auto ask = [&](Value is_there, Value first) {
    if (by_keys()) b_.if_then(is_there, [&] { load_numbers(first); });
    b_.if_then(logical_and(is_there, is_aligned_), [&] { load(first); });
  };
  b_.workgroup_barrier();
  const Value has_any = less(begin, end);
  ask(has_any, begin);
  b_.if_then(has_any, [&] { store(begin); });
  b_.workgroup_barrier();
  b_.for_range(begin, end, b_.u32(shape_.step), [&](Value first) {
    const Value next = first + shape_.step;
    const Value has_next = less(next, end);
    if (shape_.loads_ahead) ask(has_next, next);
    b_.if_then(is_needed(first), [&] { step(first); });
    b_.workgroup_barrier();
    if (!shape_.loads_ahead) ask(has_next, next);
    b_.if_then(has_next, [&] { store(next); });
    b_.workgroup_barrier();
  });
}

/// Whether the subgroup has rows, and some that see something of the step. The branch also keeps
/// compilers from moving loads into the multiplication.
Value AttentionMatrix::is_needed(Value first) {
  const Value own = first_row_ + subgroup_row_;
  const Value has_rows = less(own, by_keys() ? keys_ : queries_);
  if (!size_.is_causal) return has_rows;
  return logical_and(has_rows, by_keys() ? less(own, first + shape_.step)
                                         : less(first, own + shape_.subgroup_rows()));
}

void AttentionMatrix::step(Value first) {
  if (is_forward()) {
    step_forward(first);
  } else if (by_keys()) {
    step_keys(first);
  } else {
    step_query(first);
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
  MatrixVariable lse(b_, kAttentionSums);
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
  const AttentionShape shape = shape_for(context.kernel, attention_size(context.kernel));
  return {AttentionMatrix(context, shape).generate()};
}

}  // namespace vkml::vulkan
