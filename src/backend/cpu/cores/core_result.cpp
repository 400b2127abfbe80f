#include "cores/core_result.h"

#include "tile/aliasing.h"

namespace vkml::cpu {
namespace {

using dispatch::Extents;
using dispatch::Kernel;
using dispatch::Operand;

Extents dense_strides(const Extents& space) {
  Extents strides{};
  std::int64_t stride = 1;
  for (std::size_t i = space.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= space[i];
  }
  return strides;
}

bool is_dense(const Operand& operand, const Extents& space) {
  const Extents dense = dense_strides(space);
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (space[i] > 1 && operand.strides[i] != dense[i]) return false;
  }
  return true;
}

bool reads_core_only(const Kernel& kernel, const std::vector<dispatch::Buffer>& buffers,
                     int buffer) {
  for (const Operand& load : kernel.loads) {
    if (may_overlap(buffers, load.buffer, buffer)) return false;
  }
  for (const Operand& input : kernel.core_inputs) {
    if (may_overlap(buffers, input.buffer, buffer)) return false;
  }
  return true;
}

// Whether scratch was asked for: without the buffers, what might alias is not known, so only the
// shape decides here, and CoreResult uses the scratch whenever there is some.
bool fits_destination(const Kernel& kernel) {
  if (kernel.stores.size() != 1) return false;
  const Operand& store = kernel.stores[0];
  if (is_identity(kernel)) return store.dtype == ops::storage_type(kernel.core_type);
  return store.dtype == ops::storage_type(kernel.core_type) && is_dense(store, kernel.space);
}

}  // namespace

bool is_identity(const Kernel& kernel) {
  return kernel.program.outputs.size() == 1 &&
         kernel.program.code[kernel.program.outputs[0]].op == ops::Opcode::kCore;
}

std::int64_t core_scratch_bytes(const Kernel& kernel) {
  if (is_identity(kernel) && fits_destination(kernel)) return 0;
  // In place only when no operand could lie in the destination.
  if (fits_destination(kernel) && kernel.loads.empty()) return 0;
  return dispatch::numel(kernel.space) *
         static_cast<std::int64_t>(size_of(ops::storage_type(kernel.core_type)));
}

CoreResult::CoreResult(const Kernel& kernel, const std::vector<dispatch::Buffer>& buffers) {
  const bool identity = is_identity(kernel);
  const bool in_destination =
      fits_destination(kernel) &&
      (identity || kernel.scratch < 0 || reads_core_only(kernel, buffers, kernel.stores[0].buffer));
  if (in_destination) {
    target_ = kernel.stores[0];
    if (identity) return;
  } else {
    target_.buffer = kernel.scratch;
    target_.dtype = ops::storage_type(kernel.core_type);
    target_.extents = kernel.space;
    target_.strides = dense_strides(kernel.space);
  }
  epilogue_.emplace(with_core_as_load(kernel, target_), buffers);
}

std::byte* CoreResult::address(const RunContext& run) const {
  return run.buffers[target_.buffer] +
         target_.offset * static_cast<std::int64_t>(size_of(target_.dtype));
}

void CoreResult::finish(const RunContext& run) const {
  if (epilogue_) epilogue_->run(run);
}

}  // namespace vkml::cpu
