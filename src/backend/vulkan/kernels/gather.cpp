// Gather: out[.., i, ..] = x[.., index[.., i, ..], ..], one invocation an element. An index outside
// its axis is clamped and reported; where the result replaces an input, a dispatch before checks
// all indices. Bound: memory.
#include <algorithm>

#include "kernels/index_check.h"
#include "kernels/kernels.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

bool overwrites_input(const Context& context) {
  return std::any_of(context.kernel.stores.begin(), context.kernel.stores.end(),
                     [&](const dispatch::Operand& store) {
                       const auto index = static_cast<std::size_t>(store.buffer);
                       return context.graph.buffers[index].donor >= 0;
                     });
}

}  // namespace

std::vector<Dispatch> generate_gather(const Context& context) {
  const dispatch::Kernel& kernel = context.kernel;
  const auto axis = static_cast<std::size_t>(kernel.attributes[0]);
  const int site = kernel.core_site;
  const dispatch::Operand& source = kernel.core_inputs[0];
  const dispatch::Operand& indices = kernel.core_inputs[1];
  std::vector<Dispatch> dispatches;
  if (overwrites_input(context)) {
    dispatches.push_back(generate_index_check(context, indices, source.extents[axis], site));
  }
  dispatches.push_back(generate_per_element(context, "gather", [&](Shader& shader) -> CoreAt {
    const CoreInput x(shader, source), index(shader, indices);
    const Value extent = shader.parameter(source.extents[axis]);
    return [&shader, x, index, extent, axis, site](const Coordinates& at) {
      Coordinates from = at;
      from[axis] = checked_position(shader, site, index.load(at), extent);
      return x.load(from);
    };
  }));
  return dispatches;
}

}  // namespace vkml::vulkan
