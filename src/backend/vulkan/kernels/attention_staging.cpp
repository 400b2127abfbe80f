#include "kernels/attention_staging.h"

#include "kernels/conversions.h"

namespace vkml::vulkan {

using spirv::Matrix;
using spirv::MatrixLayout;
using spirv::MatrixScalar;
using spirv::MatrixUse;
using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 8;  // elements
constexpr std::uint32_t kEdge = 16;

}  // namespace

bool AttentionStaging::takes(const dispatch::Operand& operand) {
  bool fits =
      operand.strides[3] == 1 && operand.extents[3] % kVector == 0 && operand.offset % kVector == 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    fits = fits && (operand.extents[axis] == 1 ||
                    (operand.strides[axis] >= 0 && operand.strides[axis] % kVector == 0));
  }
  return fits;
}

AttentionStaging::AttentionStaging(Shader& shader, const dispatch::Operand& operand,
                                   std::uint32_t rows, std::uint32_t threads)
    : shader_(shader),
      b_(shader.builder()),
      elements_(shader, operand),
      dtype_(operand.dtype),
      width_(static_cast<std::uint32_t>(operand.extents[3])),
      rows_(rows),
      threads_(threads),
      has_whole_tiles_(operand.extents[2] % rows == 0) {
  for (std::size_t axis = 0; axis < strides_.size(); ++axis) {
    strides_[axis] =
        shader.stride_parameter(operand.extents[axis] == 1 ? 0 : operand.strides[axis]);
  }
}

void AttentionStaging::set_memory(const spirv::SharedArray& memory, std::uint32_t first) {
  memory_ = memory;
  first_vector_ = first;
}

void AttentionStaging::set_place(Value local) {
  local_ = local;
  const Value row = local / row_vectors();
  own_start_ = row * strides_[2] + (local - row * row_vectors()) * kVector;
  own_place_ = place_of(local);
}

void AttentionStaging::set_head(Value batch, Value head) {
  head_ = batch * strides_[0] + head * strides_[1];
}

Value AttentionStaging::place_of(Value item) const {
  const Value row = item / row_vectors();
  return row * row_stride() + (item - row * row_vectors()) + first_vector_;
}

Value AttentionStaging::element_of(Value item, Value first, Value extent) const {
  const Value row = item / row_vectors();
  const Value wanted = first + row;
  const Value inside = b_.select(less(wanted, extent), wanted, extent - 1);
  return head_ + inside * strides_[2] + (item - row * row_vectors()) * kVector;
}

Value AttentionStaging::or_zero(Value item, Value first, Value extent, Value words) const {
  return b_.select(less(first + item / row_vectors(), extent), words, b_.constant(kWord4, 0));
}

Value AttentionStaging::vector(Value item, Value first, Value extent) const {
  return or_zero(item, first, extent, elements_.load_vector(element_of(item, first, extent)));
}

Value AttentionStaging::gathered(Value item, Value first, Value extent) const {
  const Value start = element_of(item, first, extent);
  std::array<Value, kVector / 2> words;
  for (std::uint32_t k = 0; k < kVector / 2; ++k) {
    const Value low = bits_of_value(dtype_, elements_.load(start + 2 * k));
    const Value high = bits_of_value(dtype_, elements_.load(start + (2 * k + 1)));
    words[k] = low | (high << 16);
  }
  return or_zero(item, first, extent, b_.compose(words));
}

/// Every row is there: a pass costs an addition.
void AttentionStaging::load_inside(Value first) {
  const Value start = head_ + own_start_;
  for (std::uint32_t i = 0; i < passes(); ++i) {
    loaded_[i].store(elements_.load_vector(start + (first + i * pass_rows()) * strides_[2]));
  }
}

void AttentionStaging::load_bounded(Value first, Value extent) {
  for (std::uint32_t i = 0; i < passes(); ++i) {
    Value item = local_ + i * threads_;
    if (!has_whole_passes()) item = b_.select(less(item, count()), item, b_.u32(count() - 1));
    loaded_[i].store(vector(item, first, extent));
  }
}

void AttentionStaging::load(Value first, Value extent) {
  if (loaded_.empty()) {
    for (std::uint32_t i = 0; i < passes(); ++i) loaded_.emplace_back(b_, kWord4);
  }
  if (!keeps_column()) {
    load_bounded(first, extent);
  } else if (has_whole_tiles_) {
    load_inside(first);
  } else {
    b_.if_else(
        less_equal(first + rows_, extent), [&] { load_inside(first); },
        [&] { load_bounded(first, extent); });
  }
}

void AttentionStaging::store() {
  for (std::uint32_t i = 0; i < passes(); ++i) {
    if (keeps_column()) {
      memory_.store(own_place_ + i * pass_rows() * row_stride(), loaded_[i].load());
      continue;
    }
    const Value item = local_ + i * threads_;
    const auto write = [&] { memory_.store(place_of(item), loaded_[i].load()); };
    if (has_whole_passes()) {
      write();
    } else {
      b_.if_then(less(item, count()), write);
    }
  }
}

void AttentionStaging::stage_elements(Value first, Value extent) {
  b_.for_range(local_, b_.u32(count()), b_.u32(threads_),
               [&](Value item) { memory_.store(place_of(item), gathered(item, first, extent)); });
}

void AttentionStaging::stage(Value first, Value extent) {
  b_.for_range(local_, b_.u32(count()), b_.u32(threads_), [&](Value item) {
    b_.if_else(
        elements_.is_vector_aligned(),
        [&] { memory_.store(place_of(item), vector(item, first, extent)); },
        [&] { memory_.store(place_of(item), gathered(item, first, extent)); });
  });
}

spirv::MatrixType AttentionStaging::type(MatrixUse use) const {
  return {dtype_ == DType::kF16 ? MatrixScalar::kF16 : MatrixScalar::kBF16, use, kEdge, kEdge};
}

Matrix AttentionStaging::read_left(Value row, std::uint32_t column) const {
  const Value first = row * row_stride() + (first_vector_ + column * (kEdge / kVector));
  return spirv::load_matrix(memory_, type(MatrixUse::kA), first, row_stride(),
                            MatrixLayout::kRowMajor);
}

Matrix AttentionStaging::read_right(std::uint32_t row, std::uint32_t column) const {
  const Value first = b_.u32(row * row_stride() + first_vector_ + column * (kEdge / kVector));
  return spirv::load_matrix(memory_, type(MatrixUse::kB), first, row_stride(),
                            MatrixLayout::kRowMajor);
}

Matrix AttentionStaging::read_transposed(std::uint32_t row, std::uint32_t column) const {
  const Value first = b_.u32(row * row_stride() + first_vector_ + column * (kEdge / kVector));
  return spirv::load_matrix(memory_, type(MatrixUse::kB), first, row_stride(),
                            MatrixLayout::kColumnMajor);
}

}  // namespace vkml::vulkan
