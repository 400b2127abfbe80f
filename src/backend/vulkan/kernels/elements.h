// One operand as a kernel sees it: elements of the type that arithmetic exists in, one at a time or
// four neighbours at once, whatever the storage type and the device's support for it.
#pragma once

#include "kernels/shader.h"

namespace vkml::vulkan {

/// Elements that a kernel can index in one operand.
inline constexpr std::int64_t kLargestIndex = 0x7fffffff;
/// From the lowest to the highest place that an operand touches, in elements.
std::int64_t reach_of(const dispatch::Operand& operand);

class Elements {
 public:
  Elements() = default;
  /// `operand` must be among the operands that the shader declared.
  Elements(Shader& shader, const dispatch::Operand& operand);

  DType dtype() const { return dtype_; }

  /// Element `index` from the operand's first one, as a value of compute_type(dtype).
  spirv::Value load(spirv::Value index) const;
  void store(spirv::Value index, spirv::Value value) const;

  /// Elements index .. index + 3, where index is a multiple of 4 and is_aligned() holds.
  spirv::Value load4(spirv::Value index) const;
  void store4(spirv::Value index, spirv::Value value) const;

  /// Whether four neighbours may be moved at once: known for the plan's own memory, tested at run
  /// time for memory that is bound from outside.
  spirv::Value is_aligned() const { return is_aligned_; }

  /// The 16 bytes from element `index` on, a multiple of what they hold, where is_vector_aligned().
  spirv::Value load_vector(spirv::Value index) const;
  spirv::Value is_vector_aligned() const { return is_vector_aligned_; }

  /// The bits of `count` (1, 2 or 4) neighbours of 2 or 4 bytes from element `index`, a multiple of
  /// `count`, on, where is_aligned() holds: u32 or vectors of it, the lower element in the lower
  /// half.
  spirv::Value load_bits(spirv::Value index, std::uint32_t count) const;

 private:
  spirv::Value bits_within_word(spirv::Value word, spirv::Value position) const;

  Shader* shader_ = nullptr;
  DType dtype_ = DType::kF32;
  Shader::Base base_;
  spirv::Value is_aligned_, is_vector_aligned_;
};

/// Throws UnsupportedError, naming the feature, when the device has no arithmetic of the type.
void require_type(const Context& context, ops::ScalarType type);

}  // namespace vkml::vulkan
