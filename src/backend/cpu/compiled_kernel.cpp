#include "compiled_kernel.h"

#include <fmt/format.h>

#include "cores/attention.h"
#include "cores/convolution.h"
#include "cores/core_result.h"
#include "cores/indexing.h"
#include "cores/matmul.h"
#include "cores/ordering.h"
#include "cores/pooling.h"
#include "onednn/convolution.h"
#include "onednn/matmul.h"
#include "tile/region.h"
#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using ops::CoreKind;

class RegionKernel final : public CompiledKernel {
 public:
  RegionKernel(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : region_(kernel, graph.buffers) {}
  void run(const RunContext& run) override { region_.run(run); }

 private:
  Region region_;
};

// The kernel by oneDNN; null where it is missing or has nothing fast for it.
std::unique_ptr<CompiledKernel> compile_with_library(
    [[maybe_unused]] const Kernel& kernel, [[maybe_unused]] const dispatch::ExecutionGraph& graph) {
#ifdef VKML_HAVE_ONEDNN
  if (kernel.kind == CoreKind::kMatmul) return onednn::compile_matmul(kernel, graph);
  if (ops::is_convolution(kernel.kind)) return onednn::compile_convolution(kernel, graph);
#endif
  return nullptr;
}

std::int64_t library_scratch_bytes([[maybe_unused]] const Kernel& kernel) {
#ifdef VKML_HAVE_ONEDNN
  if (kernel.kind == CoreKind::kMatmul) return onednn::matmul_scratch_bytes(kernel);
  if (ops::is_convolution(kernel.kind)) return onednn::convolution_scratch_bytes(kernel);
#endif
  return -1;
}

}  // namespace

std::unique_ptr<CompiledKernel> compile_kernel(const dispatch::ExecutionGraph& graph,
                                               std::size_t index) {
  const Kernel& kernel = graph.kernels[index];
  if (auto compiled = compile_with_library(kernel, graph)) return compiled;
  switch (kernel.kind) {
    case CoreKind::kNone:
      return std::make_unique<RegionKernel>(kernel, graph);
    case CoreKind::kMatmul:
      return compile_matmul(kernel, graph);
    case CoreKind::kConv2d:
    case CoreKind::kConv2dInputGradient:
    case CoreKind::kConv2dWeightGradient:
      return compile_convolution(kernel, graph);
    case CoreKind::kMaxPool2d:
    case CoreKind::kMaxPool2dIndices:
    case CoreKind::kMaxPool2dGradient:
    case CoreKind::kAvgPool2d:
    case CoreKind::kAvgPool2dGradient:
      return compile_pooling(kernel, graph);
    case CoreKind::kGather:
      return compile_gather(kernel, graph);
    case CoreKind::kScatter:
      return compile_scatter(kernel, graph);
    case CoreKind::kScan:
      return compile_scan(kernel, graph);
    case CoreKind::kArgSort:
      return compile_argsort(kernel, graph);
    case CoreKind::kSearchSorted:
      return compile_search_sorted(kernel, graph);
    case CoreKind::kAttentionLogSumExp:
    case CoreKind::kAttention:
    case CoreKind::kAttentionQueryGradient:
    case CoreKind::kAttentionKeyGradient:
    case CoreKind::kAttentionValueGradient:
      return compile_attention(kernel, graph);
  }
  throw InternalError(fmt::format("[cpu] no kernel for {}", name_of(kernel.kind)));
}

std::int64_t scratch_bytes_of(const Kernel& kernel) {
  const std::int64_t library = library_scratch_bytes(kernel);
  if (library >= 0) return library;
  switch (kernel.kind) {
    case CoreKind::kNone:
      return 0;
    case CoreKind::kGather:
      return gather_scratch_bytes(kernel);
    case CoreKind::kAttentionLogSumExp:
    case CoreKind::kAttention:
    case CoreKind::kAttentionQueryGradient:
    case CoreKind::kAttentionKeyGradient:
    case CoreKind::kAttentionValueGradient:
      return attention_scratch_bytes(kernel);
    case CoreKind::kMatmul:
    case CoreKind::kScatter:
    case CoreKind::kScan:
    case CoreKind::kArgSort:
    case CoreKind::kSearchSorted:
      return core_scratch_bytes(kernel, TargetLayout::kAnyStrides);
    case CoreKind::kConv2d:
    case CoreKind::kConv2dInputGradient:
    case CoreKind::kConv2dWeightGradient:
    case CoreKind::kMaxPool2d:
    case CoreKind::kMaxPool2dIndices:
    case CoreKind::kMaxPool2dGradient:
    case CoreKind::kAvgPool2d:
    case CoreKind::kAvgPool2dGradient:
      return core_scratch_bytes(kernel, TargetLayout::kDense);
  }
  throw InternalError(fmt::format("[cpu] no kernel for {}", name_of(kernel.kind)));
}

}  // namespace vkml::cpu
