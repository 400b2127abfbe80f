#include "realize.h"

#include <algorithm>
#include <vector>

namespace vkml {

void realize_by_device(std::span<const graph::NodePtr> roots,
                       const dispatch::RealizeOptions& options) {
  std::vector<graph::NodePtr> waiting(roots.begin(), roots.end());
  while (!waiting.empty()) {
    const Device device = waiting[0]->device();
    const auto others =
        std::stable_partition(waiting.begin(), waiting.end(),
                              [&](const graph::NodePtr& node) { return node->device() == device; });
    dispatch::realize(std::span(waiting.begin(), others), options);
    waiting.erase(waiting.begin(), others);
  }
}

}  // namespace vkml
