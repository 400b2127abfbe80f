#include "kernels/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/conversions.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

/// The lowest place that reversed axes reach, from the first element. Throws UnsupportedError when
/// the operand spans more than 32-bit indices hold.
std::int64_t lowest_element(const Shader& shader, const dispatch::Operand& operand) {
  std::int64_t lowest = 0;
  if (reach_of(operand) > kLargestIndex) {
    throw UnsupportedError(fmt::format(
        "[{}] an operand spans {} elements, more than the {} that this kernel's indices hold. "
        "Split "
        "it along its first axis",
        name_of(shader.context().kernel.kind), reach_of(operand), kLargestIndex));
  }
  for (std::size_t axis = 0; axis < operand.extents.size(); ++axis) {
    if (operand.extents[axis] < 2) continue;
    lowest += std::min<std::int64_t>(0, (operand.extents[axis] - 1) * operand.strides[axis]);
  }
  return lowest;
}

/// Whether the operand starts at a multiple of so many bytes.
Value alignment_of(Shader& shader, const dispatch::Operand& operand, const Shader::Base& base,
                   std::uint32_t bytes) {
  spirv::Builder& b = shader.builder();
  const auto elements = bytes / static_cast<std::uint32_t>(size_of(operand.dtype));
  const dispatch::Buffer& buffer =
      shader.context().graph.buffers[static_cast<std::size_t>(operand.buffer)];
  if (buffer.kind == dispatch::BufferKind::kTemporary) {
    return b.boolean(operand.offset % elements == 0 &&
                     lowest_element(shader, operand) % elements == 0);
  }
  if (!shader.traits().use_addresses) return equal(base.offset & (elements - 1), 0);
  const Value low = b.widen(base.address, spirv::Scalar::kInt32);
  return equal((low & (bytes - 1)) | (base.offset & (elements - 1)), 0);
}

}  // namespace

std::int64_t reach_of(const dispatch::Operand& operand) {
  std::int64_t reach = 1;
  for (std::size_t axis = 0; axis < operand.extents.size(); ++axis) {
    const std::int64_t extent = operand.extents[axis];
    if (extent > 1) reach += (extent - 1) * std::abs(operand.strides[axis]);
  }
  return reach;
}

void require_type(const Context& context, ops::ScalarType type) {
  const bool is_missing = (type == ops::ScalarType::kI64 && !context.traits.has_int64) ||
                          (type == ops::ScalarType::kF64 && !context.traits.has_float64);
  if (!is_missing) return;
  throw UnsupportedError(fmt::format(
      "[{}] needs {} arithmetic, which this Vulkan device does not offer ({}). Convert to a 32-bit "
      "type, or compute on the CPU: vkml.tensor(t.numpy(), device=vkml.cpu)",
      name_of(context.kernel.kind), ops::name_of(type),
      type == ops::ScalarType::kI64 ? "shaderInt64" : "shaderFloat64"));
}

Elements::Elements(Shader& shader, const dispatch::Operand& operand)
    : shader_(&shader),
      dtype_(operand.dtype),
      base_(shader.base_of(shader.buffer_of(operand), operand.offset,
                           lowest_element(shader, operand))) {
  require_type(shader.context(), ops::compute_type(dtype_));
  constexpr std::uint32_t kVectorBytes = 16;
  const auto four = static_cast<std::uint32_t>(4 * size_of(dtype_));
  is_aligned_ = alignment_of(shader, operand, base_, std::min(four, kVectorBytes));
  is_vector_aligned_ =
      four >= kVectorBytes ? is_aligned_ : alignment_of(shader, operand, base_, kVectorBytes);
}

Value Elements::bits_within_word(Value word, Value position) const {
  const std::uint32_t bits = size_of(dtype_) == 1 ? 8 : 16;
  return (word >> (position * bits)) & ((1u << bits) - 1);
}

Value Elements::load(Value index) const {
  spirv::Builder& b = shader_->builder();
  const Value position = base_.offset + index;
  switch (size_of(dtype_)) {
    case 1:
      if (shader_->traits().has_storage8) {
        return value_of_bits(dtype_,
                             b.widen(shader_->load(base_, kByte, position), spirv::Scalar::kInt32));
      }
      return value_of_bits(
          dtype_, bits_within_word(shader_->load(base_, kWord, position >> 2), position & 3u));
    case 2:
      if (shader_->traits().has_storage16) {
        return value_of_bits(
            dtype_, b.widen(shader_->load(base_, kHalfWord, position), spirv::Scalar::kInt32));
      }
      return value_of_bits(
          dtype_, bits_within_word(shader_->load(base_, kWord, position >> 1), position & 1u));
    case 4:
      return value_of_bits(dtype_, shader_->load(base_, kWord, position));
    default:
      return b.bitcast(shader_->load(base_, kWord2, position),
                       value_type(ops::compute_type(dtype_)));
  }
}

void Elements::store(Value index, Value value) const {
  spirv::Builder& b = shader_->builder();
  const Value position = base_.offset + index;
  const std::size_t bytes = size_of(dtype_);
  if (bytes == 8) {
    shader_->store(base_, kWord2, position, b.bitcast(value, kWord2));
    return;
  }
  const Value bits = bits_of_value(dtype_, value);
  if (bytes == 4) {
    shader_->store(base_, kWord, position, bits);
  } else if (bytes == 1 && shader_->traits().has_storage8) {
    shader_->store(base_, kByte, position, b.widen(bits, spirv::Scalar::kInt8));
  } else if (bytes == 2 && shader_->traits().has_storage16) {
    shader_->store(base_, kHalfWord, position, b.widen(bits, spirv::Scalar::kInt16));
  } else {
    const std::uint32_t width = bytes == 1 ? 8 : 16;
    const std::uint32_t shift = bytes == 1 ? 2 : 1;
    const Value place = (position & ((1u << shift) - 1)) * width;
    const Value mask = b.u32((1u << width) - 1) << place;
    shader_->replace_bits(base_, position >> shift, mask, bits << place);
  }
}

Value Elements::load4(Value index) const {
  spirv::Builder& b = shader_->builder();
  const Value position = base_.offset + index;
  switch (size_of(dtype_)) {
    case 1: {
      const Value word = b.splat(shader_->load(base_, kWord, position >> 2), 4);
      const std::array<Value, 4> shifts{b.u32(0), b.u32(8), b.u32(16), b.u32(24)};
      return value_of_bits(dtype_, (word >> b.compose(shifts)) & 0xffu);
    }
    case 2: {
      const Value words = shader_->load(base_, kWord2, position >> 2);
      const Value first = b.component(words, 0), second = b.component(words, 1);
      const std::array<Value, 4> halves{first & 0xffffu, first >> 16, second & 0xffffu,
                                        second >> 16};
      return value_of_bits(dtype_, b.compose(halves));
    }
    case 4:
      return value_of_bits(dtype_, shader_->load(base_, kWord4, position >> 2));
    default: {
      const spirv::Type type = value_type(ops::compute_type(dtype_));
      std::array<Value, 4> values;
      for (std::uint32_t half = 0; half < 2; ++half) {
        const Value words = shader_->load(base_, kWord4, (position >> 1) + half);
        for (int k = 0; k < 2; ++k) {
          const std::array<Value, 2> pair{b.component(words, 2 * k), b.component(words, 2 * k + 1)};
          values[std::size_t{2} * half + static_cast<std::size_t>(k)] =
              b.bitcast(b.compose(pair), type);
        }
      }
      return b.compose(values);
    }
  }
}

Value Elements::load_vector(Value index) const {
  return shader_->load_vector(base_, base_.offset + index);
}

Value Elements::load_bits(Value index, std::uint32_t count) const {
  const Value unit = (base_.offset + index) / count;
  switch (count * size_of(dtype_)) {
    case 2:
      return shader_->builder().widen(shader_->load(base_, kHalfWord, unit), spirv::Scalar::kInt32);
    case 4:
      return shader_->load(base_, kWord, unit);
    case 8:
      return shader_->load(base_, kWord2, unit);
    default:
      return shader_->load(base_, kWord4, unit);
  }
}

void Elements::store4(Value index, Value value) const {
  spirv::Builder& b = shader_->builder();
  const Value position = base_.offset + index;
  const std::size_t bytes = size_of(dtype_);
  if (bytes == 8) {
    for (std::uint32_t half = 0; half < 2; ++half) {
      std::array<Value, 4> words;
      for (int k = 0; k < 2; ++k) {
        const int lane = static_cast<int>(half) * 2 + k;
        const Value pair = b.bitcast(b.component(value, lane), kWord2);
        words[std::size_t{2} * static_cast<std::size_t>(k)] = b.component(pair, 0);
        words[std::size_t{2} * static_cast<std::size_t>(k) + 1] = b.component(pair, 1);
      }
      shader_->store(base_, kWord4, (position >> 1) + half, b.compose(words));
    }
    return;
  }
  const Value bits = bits_of_value(dtype_, value);
  if (bytes == 4) {
    shader_->store(base_, kWord4, position >> 2, bits);
    return;
  }
  std::array<Value, 4> lanes;
  for (int k = 0; k < 4; ++k) lanes[static_cast<std::size_t>(k)] = b.component(bits, k);
  if (bytes == 1) {
    const Value word = (lanes[0] | (lanes[1] << 8)) | ((lanes[2] << 16) | (lanes[3] << 24));
    shader_->store(base_, kWord, position >> 2, word);
  } else {
    const std::array<Value, 2> words{lanes[0] | (lanes[1] << 16), lanes[2] | (lanes[3] << 16)};
    shader_->store(base_, kWord2, position >> 2, b.compose(words));
  }
}

}  // namespace vkml::vulkan
