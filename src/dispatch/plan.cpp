#include "plan.h"

#include <algorithm>
#include <utility>

#include "memory_plan.h"
#include "vkml/core/environment.h"
#include "vkml/dispatch/checked_submission.h"
#include "vkml/dispatch/verify.h"

namespace vkml::dispatch {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

template <typename Visit>
void for_each_read(const Kernel& kernel, Visit visit) {
  for (const Operand& operand : kernel.core_inputs) visit(operand.buffer);
  for (const Operand& operand : kernel.loads) visit(operand.buffer);
}

/// By result: the input whose block it overwrites.
std::vector<int> donors_of(const ExecutionGraph& graph) {
  std::vector<int> donors(at(graph.result_count), -1);
  for (const Buffer& buffer : graph.buffers) {
    if (buffer.kind == BufferKind::kResult) donors[at(buffer.binding)] = buffer.donor;
  }
  return donors;
}

/// By input: whether a kernel reads it.
std::vector<bool> inputs_read(const ExecutionGraph& graph) {
  std::vector<bool> reads(at(graph.input_count));
  for (const Kernel& kernel : graph.kernels) {
    for_each_read(kernel, [&](int index) {
      const Buffer& buffer = graph.buffers[at(index)];
      if (buffer.kind == BufferKind::kInput) reads[at(buffer.binding)] = true;
    });
  }
  return reads;
}

/// By result: the checks of kernels that have a part in it.
std::vector<std::uint32_t> checks_of_results(const ExecutionGraph& graph) {
  std::vector<std::uint32_t> of_buffers(graph.buffers.size());
  std::vector<std::uint32_t> results(at(graph.result_count));
  for (const Kernel& kernel : graph.kernels) {
    std::uint32_t checks = 0;
    for (const int site : sites_of(kernel)) checks |= check_of(site);
    for_each_read(kernel, [&](int buffer) { checks |= of_buffers[at(buffer)]; });
    for (const auto* stores : {&kernel.stores, &kernel.core_stores}) {
      for (const Operand& store : *stores) {
        of_buffers[at(store.buffer)] |= checks;
        const Buffer& buffer = graph.buffers[at(store.buffer)];
        if (buffer.kind == BufferKind::kResult) results[at(buffer.binding)] |= checks;
      }
    }
  }
  return results;
}

bool assigns_to_fresh_block(const ExecutionGraph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const PlanNode& node) {
    return node.op->family == graph::Family::kAssign && node.result >= 0 &&
           graph.buffers[at(node.result)].donor < 0;
  });
}

bool verification_enabled() {
  static const bool enabled = environment_switch("VKML_VERIFY", false);
  return enabled;
}

std::shared_ptr<const KernelCosts> costs_of(const ExecutionGraph& graph) {
  auto costs = std::make_shared<KernelCosts>();
  costs->reserve(graph.kernels.size());
  for (const Kernel& kernel : graph.kernels) costs->push_back(cost_of(kernel, graph));
  return costs;
}

}  // namespace

FusionOptions fusion_options(const Backend& backend) {
  static const bool is_enabled = environment_switch("VKML_FUSE", true);
  return {is_enabled, std::min(kMaxOperands, backend.max_operands())};
}

ExecutionGraph finish_plan(ExecutionGraph graph, const Backend& backend) {
  for (Kernel& kernel : graph.kernels) {
    kernel.scratch_bytes = backend.scratch_bytes(kernel);
    if (kernel.scratch_bytes == 0) continue;
    kernel.scratch = static_cast<int>(graph.buffers.size());
    Buffer scratch;
    scratch.bytes = kernel.scratch_bytes;
    graph.buffers.push_back(scratch);
  }
  plan_memory(graph, backend.max_block_bytes());
  if (verification_enabled()) verify_plan(graph);
  return graph;
}

std::shared_ptr<Plan> make_plan(ExecutionGraph lowered, Backend& backend) {
  ExecutionGraph graph = finish_plan(std::move(lowered), backend);
  auto plan = std::make_shared<Plan>();
  plan->donors = donors_of(graph);
  plan->reads = inputs_read(graph);
  plan->checks_at = checks_of_results(graph);
  for (std::size_t site = 0; site < graph.sites.size(); ++site)
    plan->checks |= check_of(static_cast<int>(site));
  plan->kernel_count = static_cast<std::int64_t>(graph.kernels.size());
  plan->costs = costs_of(graph);
  plan->has_fresh_assignment = assigns_to_fresh_block(graph);
  plan->may_fail = !graph.sites.empty();
  const HostTimer timer(HostWork::kCompile);
  plan->executable = backend.compile(std::move(graph));
  return plan;
}

}  // namespace vkml::dispatch
