// Proof that a plan's memory is sound, by simulating its kernels' reads and writes. Slow; for tests
// and VKML_VERIFY=1.
#pragma once

#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {

/// Throws InternalError naming kernel and buffer when a kernel reads a byte that nothing wrote, or
/// that another value has overwritten since, or writes outside its buffer, and when one that checks
/// indices comes after, or is, one that overwrites a donated block.
void verify_plan(const ExecutionGraph& graph);

}  // namespace vkml::dispatch
