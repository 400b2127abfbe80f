#include "realize.h"

#include <algorithm>
#include <vector>

#include "vkml/core/error.h"

namespace vkml {
namespace {

bool realize_without_error(std::span<const graph::NodePtr> roots) {
  try {
    dispatch::realize(roots, {.restore_after_failure = false});
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Calls visit(roots of one device) for each device.
template <typename Visit>
void for_each_device(std::span<const graph::NodePtr> roots, Visit visit) {
  std::vector<graph::NodePtr> waiting(roots.begin(), roots.end());
  while (!waiting.empty()) {
    const Device device = waiting[0]->device();
    const auto others =
        std::stable_partition(waiting.begin(), waiting.end(),
                              [&](const graph::NodePtr& node) { return node->device() == device; });
    visit(std::span<const graph::NodePtr>(waiting.begin(), others));
    waiting.erase(waiting.begin(), others);
  }
}

}  // namespace

void realize_by_device(std::span<const graph::NodePtr> roots,
                       const dispatch::RealizeOptions& options) {
  for_each_device(roots,
                  [&](std::span<const graph::NodePtr> here) { dispatch::realize(here, options); });
}

void realize_quietly(std::span<const graph::NodePtr> roots) {
  for_each_device(roots, [](std::span<const graph::NodePtr> here) {
    if (realize_without_error(here)) return;
    for (const graph::NodePtr& node : here) realize_without_error(std::span(&node, 1));
  });
}

}  // namespace vkml
