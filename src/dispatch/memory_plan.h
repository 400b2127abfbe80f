// Offsets of temporaries in one arena, from the kernels that write and read them.
#pragma once

#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {

/// Gives every temporary buffer an offset such that buffers that are alive at the same kernel do
/// not overlap, and sets arena_bytes. Graphs of thousands of buffers are packed less tightly, so
/// that planning stays near linear.
void plan_memory(ExecutionGraph& graph);

}  // namespace vkml::dispatch
