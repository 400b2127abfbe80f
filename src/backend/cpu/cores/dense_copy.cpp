#include "cores/dense_copy.h"

namespace vkml::cpu {

using dispatch::Extents;
using dispatch::Kernel;
using dispatch::Operand;

Extents dense_strides(const Extents& extents) {
  Extents strides{};
  std::int64_t stride = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= extents[i];
  }
  return strides;
}

Operand dense_copy_of(const Operand& operand, DType dtype, int scratch, std::int64_t offset) {
  Operand copy;
  copy.buffer = scratch;
  copy.dtype = dtype;
  copy.offset = offset / static_cast<std::int64_t>(size_of(dtype));
  copy.extents = operand.extents;
  copy.strides = dense_strides(operand.extents);
  return copy;
}

Region copy_region(const Operand& from, const Operand& to,
                   const std::vector<dispatch::Buffer>& buffers) {
  Kernel kernel;
  kernel.space = to.extents;
  kernel.loads = {from};
  kernel.stores = {to};
  const ops::ScalarType type = ops::compute_type(from.dtype);
  kernel.program.code = {{ops::Opcode::kLoad, type, 0, 0, 0, 0}};
  kernel.program.outputs = {0};
  const ops::ScalarType target = ops::compute_type(to.dtype);
  if (type != target) {
    kernel.program.code.push_back({ops::Opcode::kConvert, target, 0, 0, 0, 0});
    kernel.program.outputs = {1};
  }
  return Region(kernel, buffers);
}

std::byte* address_of(const Operand& operand, const RunContext& run) {
  return run.buffers[operand.buffer] +
         operand.offset * static_cast<std::int64_t>(size_of(operand.dtype));
}

}  // namespace vkml::cpu
