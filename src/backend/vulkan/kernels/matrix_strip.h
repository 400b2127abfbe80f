// Sums of matrices on their way out of a subgroup: a strip of them, one matrix high, goes through
// shared memory of the subgroup's own, where each invocation finds neighbours along a row and keeps
// to its columns.
#pragma once

#include <functional>
#include <span>

#include "kernels/matrix_parts.h"
#include "kernels/shader.h"

namespace vkml::vulkan {

class MatrixStrip {
 public:
  /// For `matrices` side by side.
  MatrixStrip(Shader& shader, std::uint32_t matrices);

  /// 16-byte vectors of shared memory that a subgroup takes.
  std::uint32_t shared_vectors() const { return kMatrixEdge * stride(); }
  void set_memory(const spirv::SharedArray& memory, spirv::Value first);

  using Sink = std::function<void(spirv::Value row, spirv::Value column, spirv::Value sums)>;
  /// Hands on `neighbours` (1 or 4) sums at a time, with the place of the first in the strip.
  void write(std::span<const spirv::Matrix> sums, std::uint32_t neighbours, const Sink& sink) const;

 private:
  std::uint32_t columns() const { return matrices_ * kMatrixEdge; }
  std::uint32_t stride() const { return columns() / 4 + 1; }

  spirv::Builder& b_;
  std::uint32_t matrices_, lanes_;
  spirv::SharedArray memory_;
  spirv::Value first_;
};

}  // namespace vkml::vulkan
