#include "dispatch_list.h"
#include "kernels/index_range.h"
#include "kernels/kernels.h"
#include "kernels/program.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using ops::CoreKind;

namespace {

/// Nothing to write. A row of no elements still has a value.
bool is_empty(const dispatch::Kernel& kernel) {
  std::int64_t results = 1;
  for (int axis = 0; axis < kMaxDims - kernel.reduce_dims; ++axis) {
    results *= kernel.space[static_cast<std::size_t>(axis)];
  }
  return results == 0;
}

/// A store rounds to its own type, so that a value rounded to it just before need not be.
dispatch::Kernel without_rounding_before_stores(dispatch::Kernel kernel) {
  for (std::size_t i = 0; i < kernel.stores.size(); ++i) {
    auto& output = kernel.program.outputs[i];
    const ops::Instruction& instruction = kernel.program.code[output];
    const bool is_same_rounding = instruction.op == ops::Opcode::kNarrow &&
                                  static_cast<DType>(instruction.imm) == kernel.stores[i].dtype;
    if (is_same_rounding) output = instruction.a;
  }
  return kernel;
}

std::vector<Dispatch> generate_region(const Context& whole) {
  std::vector<Dispatch> dispatches;
  for (const dispatch::Kernel& kernel : within_index_range(whole.kernel)) {
    const Context context{kernel, whole.graph, whole.traits};
    const std::vector<Dispatch> part =
        kernel.reduce_dims > 0 ? generate_rows(context) : generate_map(context);
    dispatches.insert(dispatches.end(), part.begin(), part.end());
  }
  return dispatches;
}

}  // namespace

std::vector<Dispatch> generate(const dispatch::Kernel& planned,
                               const dispatch::ExecutionGraph& graph, const DeviceTraits& traits) {
  const dispatch::Kernel kernel = without_rounding_before_stores(planned);
  const Context context{kernel, graph, traits};
  require_program_types(context);
  if (is_empty(kernel)) return {};
  switch (kernel.kind) {
    case CoreKind::kNone:
      return generate_region(context);
    case CoreKind::kMatmul:
      return generate_matmul(context);
    case CoreKind::kConv2d:
    case CoreKind::kConv2dInputGradient:
    case CoreKind::kConv2dWeightGradient:
      return generate_conv2d(context);
    case CoreKind::kGather:
      return generate_gather(context);
    case CoreKind::kScatter:
      return generate_scatter(context);
    case CoreKind::kScan:
      return generate_scan(context);
    case CoreKind::kArgSort:
      return generate_argsort(context);
    case CoreKind::kSearchSorted:
      return generate_search_sorted(context);
    case CoreKind::kMaxPool2d:
    case CoreKind::kMaxPool2dIndices:
    case CoreKind::kMaxPool2dGradient:
    case CoreKind::kAvgPool2d:
    case CoreKind::kAvgPool2dGradient:
      return generate_pool2d(context);
    case CoreKind::kAttentionLogSumExp:
    case CoreKind::kAttention:
    case CoreKind::kAttentionQueryGradient:
    case CoreKind::kAttentionKeyGradient:
    case CoreKind::kAttentionValueGradient:
      return generate_attention(context);
  }
  throw InternalError("[vulkan] a kernel of unknown kind");
}

std::int64_t scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  if (is_empty(kernel)) return 0;
  switch (kernel.kind) {
    case CoreKind::kNone:
      return kernel.reduce_dims > 0 ? row_scratch_bytes(kernel, traits) : 0;
    case CoreKind::kMatmul:
      return matmul_scratch_bytes(kernel, traits);
    case CoreKind::kConv2d:
    case CoreKind::kConv2dInputGradient:
    case CoreKind::kConv2dWeightGradient:
      return conv2d_scratch_bytes(kernel, traits);
    case CoreKind::kArgSort:
      return argsort_scratch_bytes(kernel);
    case CoreKind::kScatter:
      return scatter_scratch_bytes(kernel, traits);
    case CoreKind::kGather:
    case CoreKind::kScan:
    case CoreKind::kSearchSorted:
    case CoreKind::kMaxPool2d:
    case CoreKind::kMaxPool2dIndices:
    case CoreKind::kMaxPool2dGradient:
    case CoreKind::kAvgPool2d:
    case CoreKind::kAvgPool2dGradient:
    case CoreKind::kAttentionLogSumExp:
    case CoreKind::kAttention:
    case CoreKind::kAttentionQueryGradient:
    case CoreKind::kAttentionKeyGradient:
    case CoreKind::kAttentionValueGradient:
      return 0;
  }
  throw InternalError("[vulkan] a kernel of unknown kind");
}

}  // namespace vkml::vulkan
