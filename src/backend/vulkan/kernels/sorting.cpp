// Stable sorting along an axis, and binary search in sorted lines.
//
// line_sort.cpp sorts; what remains of argsort is to hand the positions to the program. A search
// takes one invocation for each value. Bound: memory; searches by log2(n) scattered reads.
#include "kernels/kernels.h"
#include "kernels/line_sort.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

/// The order of sorted values: NaN is above all.
Value is_before(Value a, Value b) {
  if (!spirv::is_float(a.type)) return signed_less(a, b);
  return logical_or(less(a, b), logical_and(is_nan(b), logical_not(is_nan(a))));
}

LineSort sort_of(const dispatch::Kernel& kernel) {
  return {kernel.core_inputs[0], static_cast<std::size_t>(kernel.attributes[0]),
          kernel.attributes[1] != 0};
}

}  // namespace

std::int64_t argsort_scratch_bytes(const dispatch::Kernel& kernel) {
  return line_sort_scratch_bytes(sort_of(kernel));
}

std::vector<Dispatch> generate_argsort(const Context& context) {
  const LineSort sort = sort_of(context.kernel);
  std::vector<Dispatch> dispatches = generate_line_sort(context, sort);
  const auto open = [&](Shader& shader) -> CoreAt {
    const SortedLines lines(shader, sort);
    return [lines, axis = sort.axis](const Coordinates& at) {
      return lines.position(lines.line_of(at), at[axis]);
    };
  };
  dispatches.push_back(generate_per_element(context, "sort_result", open, reads_sorted_lines()));
  return dispatches;
}

std::vector<Dispatch> generate_search_sorted(const Context& context) {
  const dispatch::Kernel& kernel = context.kernel;
  const bool right = kernel.attributes[0] != 0;
  return {generate_per_element(context, "searchsorted", [&](Shader& shader) -> CoreAt {
    const CoreInput sorted(shader, kernel.core_inputs[0]), values(shader, kernel.core_inputs[1]);
    const Value length = shader.parameter(kernel.core_inputs[0].extents[3]);
    return [&shader, sorted, values, length, right](const Coordinates& at) {
      spirv::Builder& b = shader.builder();
      const Value value = values.load(at);
      return count_leading(b, b.u32(0), length, [&](Value slot) {
        Coordinates from = at;
        from[3] = slot;
        const Value element = sorted.load(from);
        return right ? logical_not(is_before(value, element)) : is_before(element, value);
      });
    };
  })};
}

}  // namespace vkml::vulkan
