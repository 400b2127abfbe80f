// The structural operators, from their definitions (beside ops::CoreKind).
#pragma once

#include <span>

#include "array.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::reference {

/// The node's value from those of its sources. Throws IndexError.
Array evaluate_core(const dispatch::PlanNode& node, std::span<const Array* const> sources);

/// Throws IndexError "[op] index 12 is out of bounds for an axis of extent 10".
void check_index(const char* op, std::int64_t index, std::int64_t extent);

}  // namespace vkml::reference
