// Copies matrices into rows padded with zeros to whole vectors. An invocation fills one word: an
// f32 or two elements of 16 bits, each read by itself, so that neighbours read and write
// neighbouring memory whatever the rows' alignment. Bound: memory.
#include "kernels/matrix_copy.h"

#include <cstdlib>

#include "kernels/conversions.h"
#include "kernels/elements.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::uint32_t kGroup = 128;

std::int64_t padded(std::int64_t extent) {
  return (extent + kVectorElements - 1) / kVectorElements * kVectorElements;
}

/// Matrices of the copy along a batch axis.
std::int64_t distinct(const dispatch::Operand& operand, std::size_t axis) {
  return operand.strides[axis] == 0 ? 1 : operand.extents[axis];
}

std::int64_t copied_elements(const dispatch::Operand& operand, std::size_t row) {
  return distinct(operand, 0) * distinct(operand, 1) * operand.extents[5 - row] *
         padded(operand.extents[row]);
}

}  // namespace

std::size_t nearest_axis(const dispatch::Operand& operand) {
  const bool is_transposed = std::abs(operand.strides[2]) == 1 && operand.extents[2] > 1;
  return is_transposed ? 2 : 3;
}

std::int64_t matrix_copy_bytes(const dispatch::Operand& operand, std::size_t row) {
  return copied_elements(operand, row) * static_cast<std::int64_t>(size_of(operand.dtype));
}

dispatch::Operand matrix_copy_of(const dispatch::Operand& operand, std::size_t row, int buffer,
                                 std::int64_t begin) {
  dispatch::Operand copy = operand;
  copy.buffer = buffer;
  copy.offset = begin / static_cast<std::int64_t>(size_of(operand.dtype));
  const std::size_t other = 5 - row;
  copy.extents[row] = padded(operand.extents[row]);
  copy.strides[row] = 1;
  copy.strides[other] = copy.extents[row];
  std::int64_t matrix = copy.extents[row] * copy.extents[other];
  for (const std::size_t axis : {std::size_t{1}, std::size_t{0}}) {
    if (distinct(operand, axis) == 1) {
      copy.strides[axis] = 0;
    } else {
      copy.strides[axis] = matrix;
      matrix *= copy.extents[axis];
    }
  }
  return copy;
}

Dispatch generate_matrix_copy(const Context& context, const dispatch::Operand& operand,
                              std::size_t row, const dispatch::Operand& copy) {
  Touches touches;
  touches.loads = touches.stores = false;
  touches.writes_scratch = true;
  touches.scratch_element_bytes = static_cast<std::uint32_t>(size_of(copy.dtype));
  Shader shader(context, "matrix_copy", {kGroup, 1, 1}, touches);
  spirv::Builder& b = shader.builder();
  const Elements source(shader, operand);
  const Shader::Base target = shader.base_of(shader.buffer_of(copy), copy.offset);
  const auto in_word = static_cast<std::uint32_t>(4 / size_of(copy.dtype));
  const std::size_t other = 5 - row;
  const std::int64_t count = copied_elements(operand, row) / in_word;
  const Value words = shader.parameter(count);
  const Value row_words = shader.parameter(copy.extents[row] / in_word);
  const Value row_extent = shader.parameter(operand.extents[row]);
  const Value rows = shader.parameter(operand.extents[other]);
  const Value matrices = shader.stride_parameter(distinct(operand, 1));
  const auto stride = [&](std::size_t axis) {
    return shader.stride_parameter(distinct(operand, axis) == 1 ? 0 : operand.strides[axis]);
  };
  const Value outer_stride = stride(0), matrix_stride = stride(1);
  const Value line_stride = shader.stride_parameter(operand.strides[other]);
  const Value step = shader.stride_parameter(operand.strides[row]);

  const Value word = shader.global_index();
  b.if_then(less(word, words), [&] {
    const Value line = word / row_words;
    const Value first = (word - line * row_words) * in_word;
    const bool is_one = distinct(operand, 0) * distinct(operand, 1) == 1;
    const Value matrix = is_one ? b.u32(0) : line / rows;
    const Value outer = matrix / matrices;
    const Value start = outer * outer_stride + (matrix - outer * matrices) * matrix_stride +
                        (line - matrix * rows) * line_stride;
    Value bits = b.u32(0);
    for (std::uint32_t i = 0; i < in_word; ++i) {
      const Value place = first + i;
      const Value is_inside = less(place, row_extent);
      const Value value = source.load(start + b.select(is_inside, place, b.u32(0)) * step);
      const Value element = b.select(is_inside, bits_of_value(operand.dtype, value), b.u32(0))
                            << (16 * i);
      bits = i == 0 ? element : bits | element;
    }
    shader.store(target, kWord, target.offset / in_word + word, bits);
  });
  return shader.finish(shader.groups_for((count + kGroup - 1) / kGroup));
}

}  // namespace vkml::vulkan
