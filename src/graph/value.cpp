#include "vkml/graph/value.h"

#include <algorithm>

namespace vkml::graph {
namespace {
thread_local bool recording_gradients = true;
}

bool grad_enabled() { return recording_gradients; }
bool set_grad_enabled(bool enabled) { return std::exchange(recording_gradients, enabled); }

bool any_requires_grad(const SourceList& sources) {
  return recording_gradients && std::ranges::any_of(sources.span(), [](const NodePtr& node) {
           return node->requires_grad();
         });
}

}  // namespace vkml::graph
