// Lines of a kernel's space along one axis, and an operand's elements on them.
#pragma once

#include <cstdint>

#include "cores/dense_copy.h"
#include "run_context.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

/// The lines of a space along `axis`, numbered in row-major order of the other axes.
class Lines {
 public:
  Lines(const dispatch::Extents& space, std::size_t axis) : extents_(space), axis_(axis) {
    length_ = extents_[axis];
    extents_[axis] = 1;
  }

  std::int64_t count() const { return dispatch::numel(extents_); }
  std::int64_t length() const { return length_; }
  std::size_t axis() const { return axis_; }
  /// Where line `line` of an operand starts, in elements from the operand's first.
  std::int64_t start(const dispatch::Operand& operand, std::int64_t line) const {
    std::int64_t position = 0;
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      position += line % extents_[axis] * operand.strides[axis];
      line /= extents_[axis];
    }
    return position;
  }

 private:
  dispatch::Extents extents_;
  std::size_t axis_;
  std::int64_t length_;
};

/// Address of an element of an operand.
inline std::byte* element_at(const dispatch::Operand& operand, const RunContext& run,
                             std::int64_t position) {
  return address_of(operand, run) + position * static_cast<std::int64_t>(size_of(operand.dtype));
}

}  // namespace vkml::cpu
