// From a schedule and its grouping to an ExecutionGraph: programs, operands, buffers. Pure.
#pragma once

#include <vector>

#include "fuse.h"
#include "schedule.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {

/// The graph, and which step each of its bindings stands for.
struct Lowered {
  ExecutionGraph graph;
  std::vector<int> inputs;   // positions, by input binding
  std::vector<int> results;  // positions, by result binding
  std::vector<int> scalars;  // positions, by scalar
};

Lowered lower(const Schedule& schedule, const Fusion& fusion);

}  // namespace vkml::dispatch
