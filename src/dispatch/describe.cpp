// A description has no effect: it schedules and lowers as realize() does, and forgets the result.

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "check_schedule.h"
#include "device_state.h"
#include "fuse.h"
#include "lower.h"
#include "plan.h"
#include "plan_key.h"
#include "vkml/dispatch/plan_description.h"

namespace vkml::dispatch {
namespace {

using graph::Family;
using graph::Node;
using graph::NodeIndex;
using graph::NodePtr;

NodeDescription description_of(const Node& node) {
  const auto extents = node.shape().extents();
  NodeDescription description;
  description.op = node.op().name;
  description.dtype = node.dtype();
  description.extents.assign(extents.begin(), extents.end());
  // A view of a computed value has its memory already.
  description.is_computed =
      node.is_computed() || (node.is_view() && node.view_src()->is_computed());
  description.is_view = node.is_view();
  description.is_number = node.family() == Family::kScalar;
  description.requires_grad = node.requires_grad();
  return description;
}

/// Everything that the roots still refer to, computed or not.
NodeIndex walk(std::span<const NodePtr> roots, std::vector<NodeDescription>& nodes) {
  struct Frame {
    const Node* node;
    std::size_t next = 0;
  };
  constexpr int kOpen = -2;
  NodeIndex index;
  std::vector<Frame> stack;
  const auto visit = [&](const Node* node) {
    if (index.find(node) != -1) return;
    index.insert(node, kOpen);
    stack.push_back({node});
  };
  for (const NodePtr& root : roots) {
    visit(root.get());
    while (!stack.empty()) {
      const std::size_t top = stack.size() - 1;
      const Node& node = *stack[top].node;
      const auto sources = node.sources();
      if (stack[top].next < sources.size()) {
        visit(sources[stack[top].next++].get());
        continue;
      }
      NodeDescription description = description_of(node);
      for (const NodePtr& source : sources) description.sources.push_back(index.find(source.get()));
      index.update(&node, static_cast<int>(nodes.size()));
      nodes.push_back(std::move(description));
      stack.pop_back();
    }
    nodes[static_cast<std::size_t>(index.find(root.get()))].is_root = true;
  }
  return index;
}

}  // namespace

PlanDescription describe(std::span<const NodePtr> roots) {
  PlanDescription description;
  if (roots.empty()) return description;
  description.device = common_device(roots);
  DeviceState& state = state_of(description.device);
  const std::scoped_lock lock(state.mutex);
  const NodeIndex index = walk(roots, description.nodes);
  std::vector<NodePtr> pending;
  for (const NodePtr& root : roots) {
    if (!description.nodes[static_cast<std::size_t>(index.find(root.get()))].is_computed)
      pending.push_back(root);
  }
  description.is_pending = !pending.empty();
  if (pending.empty()) return description;

  const Backend& backend = backend_for(description.device);
  const Schedule schedule = make_schedule(pending, true);
  check_schedule(schedule, description.device, backend);
  description.is_cached = state.cache.contains(make_key(schedule));
  Lowered lowered = lower(schedule, fuse(schedule, fusion_options(backend)));
  description.plan = finish_plan(std::move(lowered.graph), backend);
  const auto of_step = [&](int position) -> NodeDescription& {
    return description.nodes[static_cast<std::size_t>(index.find(schedule[position].node))];
  };
  for (int position = 0; position < schedule.size(); ++position)
    of_step(position).is_kept = schedule[position].kept;
  std::vector<int> times(static_cast<std::size_t>(schedule.size()));
  for (std::size_t kernel = 0; kernel < description.plan.kernels.size(); ++kernel) {
    for (const int position : description.plan.kernels[kernel].nodes) {
      const bool is_first = times[static_cast<std::size_t>(position)]++ == 0;
      of_step(position).kernel = is_first ? static_cast<int>(kernel) : -1;
    }
  }
  return description;
}

std::string explain(std::span<const NodePtr> roots) {
  if (roots.empty()) return "nothing to compute\n";
  const PlanDescription description = describe(roots);
  if (!description.is_pending) return "already computed\n";
  std::int64_t results = 0;
  for (const Buffer& buffer : description.plan.buffers) {
    if (buffer.kind == BufferKind::kResult && buffer.donor < 0) results += buffer.bytes;
  }
  return fmt::format("plan on {}, cache {}, {} bytes of new results\n{}",
                     to_string(description.device), description.is_cached ? "hit" : "miss", results,
                     to_string(description.plan));
}

}  // namespace vkml::dispatch
