// The end of every kernel with a core: the scalar program at the element where the core left its
// result, and the stores.
#pragma once

#include <array>
#include <vector>

#include "kernels/program.h"

namespace vkml::vulkan {

/// A place in the kernel's space.
using Coordinates = std::array<spirv::Value, kMaxDims>;

class Epilogue {
 public:
  /// Opens the loads and stores of the shader's kernel.
  explicit Epilogue(Shader& shader);

  void run(const Coordinates& at, spirv::Value core);
  /// Four neighbours along the last axis, from `at` on, which is a multiple of 4 there. Those past
  /// the end of the axis are left out.
  void run4(const Coordinates& at, spirv::Value core);

  /// Coordinates of an element from its number in row-major order.
  Coordinates coordinates_of(spirv::Value element);

 private:
  struct Access {
    Elements elements;
    Coordinates strides;
    bool may_be_vector = false;  // dense along the last axis and aligned along the others
  };

  spirv::Value index_of(const Access& access, const Coordinates& at);
  spirv::Value load4(const Access& access, const Coordinates& at);
  void store4(const Access& access, const Coordinates& at, spirv::Value value);
  spirv::Value whole_vector(const Access& access, const Coordinates& at);

  Shader& shader_;
  spirv::Builder& b_;
  const dispatch::Kernel& kernel_;
  Coordinates extents_;
  std::vector<Access> loads_, stores_;
};

}  // namespace vkml::vulkan
