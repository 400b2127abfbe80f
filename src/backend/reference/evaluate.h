// Evaluates the nodes of an execution graph one by one, before fusion, from their definitions.
#pragma once

#include <vector>

#include "array.h"
#include "vkml/dispatch/backend.h"

namespace vkml::reference {

/// A value to write, and the result binding that it goes to.
struct Result {
  Array value;
  int binding = -1;
};

/// Values of the graph's results. Writes nothing. Throws IndexError.
std::vector<Result> evaluate(const dispatch::ExecutionGraph& graph,
                             const dispatch::Bindings& bindings);

}  // namespace vkml::reference
