// Blocks whose old values a failure would need. Pure.
#pragma once

#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {

/// What kernels overwrite before the last one that checks an index goes to a block of its own,
/// which starts as a copy if need be: whoever may fail finds the old values there.
void keep_blocks_that_a_failure_would_need(ExecutionGraph& graph);

}  // namespace vkml::dispatch
