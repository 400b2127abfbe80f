#include "kernels/per_element.h"

#include <algorithm>

namespace vkml::vulkan {

using spirv::Value;

namespace {

std::array<std::uint32_t, 3> workgroup_for(const DeviceTraits& traits) {
  const std::uint32_t wanted = traits.is_software ? 64 : 256;
  return {std::min(wanted, traits.max_workgroup_invocations), 1, 1};
}

Dispatch finish_for(Shader& shader, std::int64_t count) {
  const std::int64_t size = shader.local_count();
  return shader.finish(shader.groups_for((count + size - 1) / size));
}

}  // namespace

CoreInput::CoreInput(Shader& shader, const dispatch::Operand& operand)
    : elements_(shader, operand) {
  for (std::size_t axis = 0; axis < strides_.size(); ++axis) {
    strides_[axis] =
        shader.stride_parameter(operand.extents[axis] == 1 ? 0 : operand.strides[axis]);
  }
}

Value CoreInput::load(const Coordinates& at) const {
  Value index = at[0] * strides_[0];
  for (std::size_t axis = 1; axis < at.size(); ++axis) index = index + at[axis] * strides_[axis];
  return elements_.load(index);
}

Dispatch generate_per_element(const Context& context, const char* name,
                              const std::function<CoreAt(Shader& shader)>& open, Touches touches) {
  Shader shader(context, name, workgroup_for(context.traits), touches);
  spirv::Builder& b = shader.builder();
  const std::int64_t total = dispatch::numel(context.kernel.space);
  const CoreAt core_at = open(shader);
  Epilogue epilogue(shader);
  const Value count = shader.parameter(total);
  const Value element = shader.global_index();
  b.if_then(less(element, count), [&] {
    const Coordinates at = epilogue.coordinates_of(element);
    epilogue.run(at, core_at(at));
  });
  return finish_for(shader, total);
}

Dispatch generate_per_index(
    const Context& context, const char* name, const dispatch::Extents& extents,
    const std::function<std::function<void(const Coordinates&)>(Shader&)>& open, Touches touches) {
  Shader shader(context, name, workgroup_for(context.traits), touches);
  spirv::Builder& b = shader.builder();
  const std::int64_t total = dispatch::numel(extents);
  const auto visit = open(shader);
  Coordinates sizes;
  for (std::size_t axis = 1; axis < sizes.size(); ++axis) {
    sizes[axis] = extents[axis] == 1 ? b.u32(1) : shader.parameter(extents[axis]);
  }
  const Value count = shader.parameter(total);
  const Value element = shader.global_index();
  b.if_then(less(element, count), [&] {
    Coordinates at;
    Value rest = element;
    for (std::size_t axis = at.size(); axis-- > 1;) {
      const Value outer = rest / sizes[axis];
      at[axis] = rest - outer * sizes[axis];
      rest = outer;
    }
    at[0] = rest;
    visit(at);
  });
  return finish_for(shader, total);
}

}  // namespace vkml::vulkan
