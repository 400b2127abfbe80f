// One kernel of a plan, ready to run on any addresses.
#pragma once

#include <memory>

#include "run_context.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;
  /// Runs the kernel; reports bad indices to run.status. Not called from two threads at once.
  virtual void run(const RunContext& run) = 0;
};

/// Compiles kernel `index` of the graph. Throws UnsupportedError.
std::unique_ptr<CompiledKernel> compile_kernel(const dispatch::ExecutionGraph& graph,
                                               std::size_t index);

/// Scratch that the kernel needs beside its operands.
std::int64_t scratch_bytes_of(const dispatch::Kernel& kernel);

}  // namespace vkml::cpu
