// Gather: out[.., i, ..] = x[.., index[.., i, ..], ..], one invocation an element. Bound: memory.
//
// Scatter-add: each element of the base looks through the indices along its axis, in order, and
// adds the sources that name it. No atomics, so that the order of every sum is fixed. Bound:
// elements of the base times indices along the axis.
//
// An index outside its axis is clamped and reported in the status word. Storage that outlives the
// graph is written by a second dispatch only, after all indices were checked.
#include <algorithm>

#include "kernels/kernels.h"
#include "kernels/per_element.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

/// The index as it is used, in 32 bits; reported when it is bad.
Value checked_position(Shader& shader, int site, Value index, Value extent) {
  spirv::Builder& b = shader.builder();
  return b.widen(emit_index_check(shader, site, index, b.widen(extent, index.type.scalar)),
                 spirv::Scalar::kInt32);
}

Dispatch generate_check(const Context& context, const dispatch::Operand& indices,
                        std::int64_t axis_extent, int site) {
  return generate_per_index(context, "check_indices", indices.extents, [&](Shader& shader) {
    const CoreInput index(shader, indices);
    const Value extent = shader.parameter(axis_extent);
    return [&shader, index, extent, site](const Coordinates& at) {
      checked_position(shader, site, index.load(at), extent);
    };
  });
}

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
  const int site = static_cast<int>(kernel.attributes[1]);
  const dispatch::Operand& source = kernel.core_inputs[0];
  const dispatch::Operand& indices = kernel.core_inputs[1];
  std::vector<Dispatch> dispatches;
  if (overwrites_input(context)) {
    dispatches.push_back(generate_check(context, indices, source.extents[axis], site));
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

std::vector<Dispatch> generate_scatter_add(const Context& context) {
  const dispatch::Kernel& kernel = context.kernel;
  const auto axis = static_cast<std::size_t>(kernel.attributes[0]);
  const int site = static_cast<int>(kernel.attributes[1]);
  const dispatch::Operand& indices = kernel.core_inputs[1];
  std::vector<Dispatch> dispatches;
  if (dispatch::numel(indices.extents) > 0) {
    dispatches.push_back(generate_check(context, indices, kernel.space[axis], site));
  }
  dispatches.push_back(generate_per_element(context, "scatter_add", [&](Shader& shader) -> CoreAt {
    const CoreInput base(shader, kernel.core_inputs[0]), index(shader, indices),
        source(shader, kernel.core_inputs[2]);
    Coordinates extents;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const bool covers = i != axis && indices.extents[i] == kernel.space[i];
      if (!covers) extents[i] = shader.parameter(indices.extents[i]);
    }
    return [&shader, base, index, source, extents, axis](const Coordinates& at) {
      spirv::Builder& b = shader.builder();
      const Value start = base.load(at);
      const spirv::Variable sum(b, start.type);
      sum.store(start);
      Value is_reached = b.boolean(true);
      for (std::size_t i = 0; i < at.size(); ++i) {
        if (i != axis && extents[i]) is_reached = logical_and(is_reached, less(at[i], extents[i]));
      }
      b.if_then(is_reached, [&] {
        b.for_range(b.u32(0), extents[axis], b.u32(1), [&](Value i) {
          Coordinates from = at;
          from[axis] = i;
          const Value position = b.widen(index.load(from), spirv::Scalar::kInt32);
          b.if_then(equal(position, at[axis]), [&] { sum.store(sum.load() + source.load(from)); });
        });
      });
      return sum.load();
    };
  }));
  return dispatches;
}

}  // namespace vkml::vulkan
