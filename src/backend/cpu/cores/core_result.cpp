#include "cores/core_result.h"

#include "cores/dense_copy.h"
#include "tile/aliasing.h"

namespace vkml::cpu {
namespace {

using dispatch::Extents;
using dispatch::Kernel;
using dispatch::Operand;

bool is_dense(const Operand& operand, const Extents& space) {
  const Extents dense = dense_strides(space);
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (space[i] > 1 && operand.strides[i] != dense[i]) return false;
  }
  return true;
}

bool overlaps_operand(const Kernel& kernel, const std::vector<dispatch::Buffer>& buffers,
                      int buffer) {
  for (const auto* operands : {&kernel.loads, &kernel.core_inputs}) {
    for (const Operand& operand : *operands) {
      if (may_overlap(buffers, operand.buffer, buffer)) return true;
    }
  }
  return false;
}

bool fits_destination(const Kernel& kernel, TargetLayout layout) {
  if (kernel.stores.size() != 1) return false;
  const Operand& store = kernel.stores[0];
  const bool any_strides = layout == TargetLayout::kAnyStrides && is_identity(kernel);
  return store.dtype == ops::storage_type(kernel.core_type) &&
         (any_strides || is_dense(store, kernel.space));
}

}  // namespace

bool is_identity(const Kernel& kernel) {
  return kernel.program.outputs.size() == 1 &&
         kernel.program.code[kernel.program.outputs[0]].op == ops::Opcode::kCore;
}

std::int64_t core_scratch_bytes(const Kernel& kernel, TargetLayout layout) {
  // Without the plan's buffers, an operand of the program might lie in the destination.
  const bool in_place =
      fits_destination(kernel, layout) && (is_identity(kernel) || kernel.loads.empty());
  if (in_place) return 0;
  return dispatch::numel(kernel.space) *
         static_cast<std::int64_t>(size_of(ops::storage_type(kernel.core_type)));
}

CoreResult::CoreResult(const Kernel& kernel, const std::vector<dispatch::Buffer>& buffers,
                       TargetLayout layout) {
  if (dispatch::numel(kernel.space) == 0) {
    // Nothing is written, and no scratch was asked for.
    target_ = kernel.stores[0];
    return;
  }
  const bool identity = is_identity(kernel);
  const bool in_destination = fits_destination(kernel, layout) &&
                              (identity || kernel.loads.empty() ||
                               !overlaps_operand(kernel, buffers, kernel.stores[0].buffer));
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

std::byte* CoreResult::address(const RunContext& run) const { return address_of(target_, run); }

void CoreResult::finish(const RunContext& run) const {
  if (epilogue_) epilogue_->run(run);
}

}  // namespace vkml::cpu
