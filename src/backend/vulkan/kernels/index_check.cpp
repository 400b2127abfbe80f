#include "kernels/index_check.h"

#include <algorithm>

namespace vkml::vulkan {

using spirv::Value;

Value checked_position(Shader& shader, int site, Value index, Value extent) {
  spirv::Builder& b = shader.builder();
  return b.widen(emit_index_check(shader, site, index, b.widen(extent, index.type.scalar)),
                 spirv::Scalar::kInt32);
}

Dispatch generate_index_check(const Context& context, const dispatch::Operand& indices,
                              std::int64_t axis_extent, int site) {
  // Broadcast indices need one look.
  dispatch::Extents distinct = indices.extents;
  for (std::size_t i = 0; i < distinct.size(); ++i) {
    if (indices.strides[i] == 0) distinct[i] = std::min<std::int64_t>(distinct[i], 1);
  }
  return generate_per_index(context, "check_indices", distinct, [&](Shader& shader) {
    const CoreInput index(shader, indices);
    const Value extent = shader.parameter(axis_extent);
    return [&shader, index, extent, site](const Coordinates& at) {
      checked_position(shader, site, index.load(at), extent);
    };
  });
}

}  // namespace vkml::vulkan
