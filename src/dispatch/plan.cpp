#include "plan.h"

#include <algorithm>
#include <utility>

#include "realization.h"

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

/// By result: whether a kernel that checks an index has a part in it.
std::vector<bool> results_of_checks(const ExecutionGraph& graph) {
  std::vector<bool> is_affected(graph.buffers.size());
  std::vector<bool> results(at(graph.result_count));
  for (const Kernel& kernel : graph.kernels) {
    bool affected = !sites_of(kernel).empty();
    for_each_read(kernel, [&](int buffer) { affected = affected || is_affected[at(buffer)]; });
    if (!affected) continue;
    for (const Operand& store : kernel.stores) {
      is_affected[at(store.buffer)] = true;
      const Buffer& buffer = graph.buffers[at(store.buffer)];
      if (buffer.kind == BufferKind::kResult) results[at(buffer.binding)] = true;
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

}  // namespace

std::shared_ptr<Plan> make_plan(ExecutionGraph graph, Backend& backend) {
  auto plan = std::make_shared<Plan>();
  plan->donors = donors_of(graph);
  plan->reads = inputs_read(graph);
  plan->may_fail_at = results_of_checks(graph);
  plan->kernel_count = static_cast<std::int64_t>(graph.kernels.size());
  plan->has_fresh_assignment = assigns_to_fresh_block(graph);
  plan->may_fail = !graph.sites.empty();
  plan->executable = backend.compile(finish_plan(std::move(graph), backend));
  return plan;
}

}  // namespace vkml::dispatch
