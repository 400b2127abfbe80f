// Values as planned graphs, for tests of what plans hold.
#pragma once

#include <cstdint>
#include <span>

#include "dispatch/fuse.h"
#include "dispatch/lower.h"
#include "dispatch/memory_plan.h"
#include "dispatch/schedule.h"
#include "graph_values.h"

namespace vkml::values {

inline dispatch::ExecutionGraph plan_of(std::span<const graph::NodePtr> roots,
                                        const dispatch::FusionOptions& options = {},
                                        std::int64_t max_block_bytes = dispatch::kAnyBlock) {
  const dispatch::Schedule schedule = dispatch::make_schedule(roots, false);
  dispatch::ExecutionGraph graph =
      dispatch::lower(schedule, dispatch::fuse(schedule, options)).graph;
  dispatch::plan_memory(graph, max_block_bytes);
  return graph;
}

inline dispatch::ExecutionGraph plan_of(const Value& value,
                                        std::int64_t max_block_bytes = dispatch::kAnyBlock) {
  return plan_of({&value.node(), 1}, {}, max_block_bytes);
}

}  // namespace vkml::values
