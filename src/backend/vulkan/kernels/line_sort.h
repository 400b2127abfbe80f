// Lines of an operand in order, left in scratch: the first dispatches of argsort, and of scatters
// that have many indices.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/per_element.h"

namespace vkml::vulkan {

/// The lines along one axis of an operand, each sorted by itself, stably, NaN above all numbers.
struct LineSort {
  dispatch::Operand operand;
  std::size_t axis = 0;
  bool descending = false;

  std::int64_t length() const { return operand.extents[axis]; }
};

std::int64_t line_sort_scratch_bytes(const LineSort& sort);

std::vector<Dispatch> generate_line_sort(const Context& context, const LineSort& sort);

/// The lines in scratch, as a shader that reads them sees them. Keys are signed integers in the
/// order of the values.
class SortedLines {
 public:
  /// `half` of the scratch: where generate_line_sort leaves its result unless one is named.
  SortedLines(Shader& shader, const LineSort& sort);
  SortedLines(Shader& shader, const LineSort& sort, int half);

  spirv::Value length() const { return length_; }
  spirv::Type key_type() const { return key_type_; }
  /// The first slot of the line through a place; extents of 1 repeat along their axes.
  spirv::Value line_of(const Coordinates& at) const;

  spirv::Value key(spirv::Value line, spirv::Value slot) const;
  /// Where the element of a slot stood along the axis.
  spirv::Value position(spirv::Value line, spirv::Value slot) const;
  void set(spirv::Value line, spirv::Value slot, spirv::Value key, spirv::Value position) const;

 private:
  Shader& shader_;
  spirv::Type key_type_;
  Coordinates strides_;  // from line to line, in slots
  spirv::Value length_;
  Shader::Base keys_, positions_;
};

/// The number of slots in [begin, end) that `comes_first` holds for; it holds for a first part.
spirv::Value count_leading(spirv::Builder& b, spirv::Value begin, spirv::Value end,
                           const std::function<spirv::Value(spirv::Value slot)>& comes_first);

/// What a dispatch touches that reads sorted lines beside the kernel's operands.
Touches reads_sorted_lines();

}  // namespace vkml::vulkan
