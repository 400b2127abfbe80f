// Attention and its gradients, from the definitions beside ops::CoreKind.
#pragma once

#include <span>

#include "array.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::reference {

/// The node's value from those of its sources. `out` is of its shape and dtype.
void attend(const dispatch::PlanNode& node, std::span<const Array* const> sources, Array& out);

}  // namespace vkml::reference
