#include "realization.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "memory_plan.h"
#include "vkml/core/environment.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/verify.h"
#include "vkml/ops/batching.h"

namespace vkml::dispatch {

using graph::Node;
using graph::NodePtr;

namespace {

bool verification_enabled() {
  static const bool enabled = environment_switch("VKML_VERIFY", false);
  return enabled;
}

/// What users call the operator: a number that was broadcast and copied is full() and its kin.
const char* name_of(const Node& node) {
  const Node* source = &node;
  while (source->family() == graph::Family::kCopy || source->family() == graph::Family::kView)
    source = source->source(0).get();
  return source->family() == graph::Family::kScalar ? "full" : node.op().name;
}

/// What to do about a node that a device cannot evaluate.
std::string remedy_for(const Node& node, const Backend& backend) {
  if (backend.has_arithmetic(node.dtype()))
    return "Compute it on the CPU: vkml.tensor(t.numpy(), device=vkml.cpu)";
  return fmt::format("Use {}, or make the tensors on the CPU: device=vkml.cpu",
                     name_of(is_floating(node.dtype()) ? DType::kF32 : DType::kI32));
}

}  // namespace

FusionOptions fusion_options(const Backend& backend) {
  static const bool is_enabled = environment_switch("VKML_FUSE", true);
  return {is_enabled, std::min(kMaxOperands, backend.max_operands())};
}

Device common_device(std::span<const NodePtr> roots) {
  for (const NodePtr& root : roots) {
    if (root->device() == roots[0]->device()) continue;
    throw DeviceError(fmt::format("[realize] tensors on {} and {} cannot be computed in one graph",
                                  to_string(roots[0]->device()), to_string(root->device())));
  }
  return roots[0]->device();
}

const Node& storage_owner(const Node& node) { return node.is_computed() ? node : *node.view_src(); }

std::int64_t offset_of(const Node& node) {
  return node.is_computed() ? node.storage_offset()
                            : node.view_src()->storage_offset() + node.view_offset();
}

void finish_node(Node& node, StoragePtr storage, std::int64_t offset) {
  const std::shared_ptr<Submission> writer = storage->writer();
  const bool may_fail = writer && writer->may_fail();
  node.bind(std::move(storage), offset);
  node.mark_computed(may_fail);
  if (!node.requires_grad() || node.is_gradient_stop() || node.is_released())
    node.release_sources();
}

std::vector<NodePtr> bind_ready_views(std::span<const NodePtr> roots) {
  std::vector<NodePtr> pending;
  for (const NodePtr& root : roots) {
    if (root->is_computed()) continue;
    if (root->is_view() && root->view_src()->is_computed()) {
      const NodePtr owner = root->view_src();
      finish_node(*root, owner->storage(), owner->storage_offset() + root->view_offset());
    } else {
      pending.push_back(root);
    }
  }
  return pending;
}

void finish_results(const Schedule& schedule, std::span<const int> results,
                    std::span<const Location> places) {
  std::vector<NodePtr> nodes;
  std::vector<NodePtr> views;
  for (const int position : results) nodes.push_back(schedule[position].node->shared_from_this());
  for (const Step& step : schedule.steps) {
    if (step.role == Role::kAlias && step.kept) views.push_back(step.node->shared_from_this());
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    finish_node(*nodes[i], places[i].storage, places[i].offset);
  }
  for (const NodePtr& view : views) {
    const NodePtr root = view->view_src();
    finish_node(*view, root->storage(), root->storage_offset() + view->view_offset());
  }
}

void check_schedule(const Schedule& schedule, Device device, const Backend& backend) {
  std::string reason;
  for (const Step& step : schedule.steps) {
    const Node& node = *step.node;
    if (node.device() != device) {
      throw DeviceError(fmt::format("[{}] is on {} in a graph on {}", node.op().name,
                                    to_string(node.device()), to_string(device)));
    }
    if (step.role != Role::kCompute) continue;
    if (graph::is_placeholder(node)) {
      throw UnsupportedError(
          "[vmap] the function reads the value of its argument, which stands for every example of "
          "the batch. Use tensor operators (vkml.where for a condition), or call the function once "
          "for each example");
    }
    if (backend.supports(node, reason)) continue;
    throw UnsupportedError(fmt::format("[{}] is not available on {}{}{}. {}", name_of(node),
                                       to_string(device), reason.empty() ? "" : ": ", reason,
                                       remedy_for(node, backend)));
  }
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

}  // namespace vkml::dispatch
