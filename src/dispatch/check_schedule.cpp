#include "check_schedule.h"

#include <fmt/format.h>

#include <string>

#include "vkml/core/error.h"
#include "vkml/ops/batching.h"

namespace vkml::dispatch {
namespace {

using graph::Node;
using graph::NodePtr;

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

Device common_device(std::span<const NodePtr> roots) {
  for (const NodePtr& root : roots) {
    if (root->device() == roots[0]->device()) continue;
    throw DeviceError(fmt::format("[realize] tensors on {} and {} cannot be computed in one graph",
                                  to_string(roots[0]->device()), to_string(root->device())));
  }
  return roots[0]->device();
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

}  // namespace vkml::dispatch
