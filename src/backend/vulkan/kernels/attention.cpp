#include "kernels/attention.h"

#include <bit>

#include "kernels/conversions.h"
#include "kernels/kernels.h"

namespace vkml::vulkan {

using ops::CoreKind;
using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 4;

}  // namespace

AttentionSize attention_size(const dispatch::Kernel& kernel) {
  const AttentionInputs inputs = attention_inputs(kernel);
  const dispatch::Extents& query = inputs.query->extents;
  const dispatch::Operand* values = inputs.value != nullptr ? inputs.value : inputs.gradient;
  AttentionSize size;
  size.batches = query[0];
  size.heads = query[1];
  size.shared_heads = inputs.key->extents[1];
  size.queries = query[2];
  size.keys = inputs.key->extents[2];
  size.width = query[3];
  size.value_width = values != nullptr ? values->extents[3] : 0;
  size.scale = std::bit_cast<double>(kernel.attributes[0]);
  size.is_causal = kernel.attributes[1] != 0;
  return size;
}

HeadRows::HeadRows(Shader& shader, const dispatch::Operand& operand)
    : shader_(&shader),
      elements_(shader, operand),
      width_(operand.extents[3]),
      may_be_vector_(operand.strides[3] == 1 && width_ % kVector == 0) {
  for (std::size_t axis = 0; axis < strides_.size(); ++axis) {
    const std::int64_t stride = operand.extents[axis] == 1 ? 0 : operand.strides[axis];
    strides_[axis] = shader.stride_parameter(stride);
    may_be_vector_ &= axis == 3 || stride % kVector == 0;
  }
}

void HeadRows::set_head(Value batch, Value head) {
  first_ = batch * strides_[0] + head * strides_[1];
}

Value HeadRows::load(Value row, Value column) const {
  return elements_.load(first_ + row * strides_[2] + column * strides_[3]);
}

Value HeadRows::load4(Value row, Value vector) const {
  spirv::Builder& b = shader_->builder();
  const Value column = vector * kVector;
  const auto one_by_one = [&] {
    std::array<Value, kVector> lanes;
    const Value last = b.u32(static_cast<std::uint32_t>(width_) - 1);
    for (std::uint32_t k = 0; k < kVector; ++k) {
      const Value at = column + k;
      const Value is_inside = less_equal(at, last);
      const Value element = load(row, b.select(is_inside, at, last));
      lanes[k] = b.select(is_inside, element, b.f32(0));
    }
    return b.compose(lanes);
  };
  if (!may_be_vector_) return one_by_one();
  const spirv::Variable loaded(b, value_type(ops::ScalarType::kF32, kVector));
  loaded.store(b.constant(value_type(ops::ScalarType::kF32, kVector), 0));
  b.if_then(less(vector, static_cast<std::uint32_t>(width_) / kVector), [&] {
    b.if_else(
        elements_.is_aligned(),
        [&] { loaded.store(elements_.load4(first_ + row * strides_[2] + column)); },
        [&] { loaded.store(one_by_one()); });
  });
  return loaded.load();
}

CompanionRows::CompanionRows(Shader& shader, const dispatch::Operand& operand)
    : shader_(&shader),
      elements_(shader, operand),
      width_(operand.extents[3]),
      heads_(shader.parameter(operand.extents[1])),
      rows_(shader.parameter(operand.extents[2])) {}

void CompanionRows::set_head(Value batch, Value head) {
  first_row_ = (batch * heads_ + head) * rows_;
}

void CompanionRows::store(Value row, Value column, Value value) const {
  elements_.store((first_row_ + row) * static_cast<std::uint32_t>(width_) + column, value);
}

void CompanionRows::store4(Value row, Value vector, Value values) const {
  spirv::Builder& b = shader_->builder();
  const auto width = static_cast<std::uint32_t>(width_);
  const auto one_by_one = [&] {
    for (std::uint32_t k = 0; k < kVector; ++k) {
      const Value column = vector * kVector + k;
      b.if_then(less(column, width),
                [&] { store(row, column, b.component(values, static_cast<int>(k))); });
    }
  };
  if (width % kVector != 0) {
    one_by_one();
    return;
  }
  b.if_then(less(vector, width / kVector), [&] {
    b.if_else(
        elements_.is_aligned(),
        [&] { elements_.store4((first_row_ + row) * width + vector * kVector, values); },
        one_by_one);
  });
}

std::vector<Dispatch> generate_attention(const Context& context) {
  return fits_attention_matrix(context) ? generate_attention_matrix(context)
                                        : generate_attention_rows(context);
}

}  // namespace vkml::vulkan
