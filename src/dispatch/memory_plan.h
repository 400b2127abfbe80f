// Offsets of temporaries in one arena, from the kernels that write and read them.
#pragma once

#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {

/// Gives every temporary buffer an offset such that buffers that are alive at the same kernel do
/// not overlap, and sets arena_bytes and arena_segment_bytes: devices limit how long one block may
/// be, and no buffer crosses from one segment into the next (one that is longer than a segment
/// begins one, and the device will refuse it). Graphs of thousands of buffers are packed less
/// tightly, so that planning stays near linear.
void plan_memory(ExecutionGraph& graph, std::int64_t max_block_bytes = kAnyBlock);

}  // namespace vkml::dispatch
