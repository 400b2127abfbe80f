// A compiled region: a map or a row reduction, run tile by tile, over several threads.
#pragma once

#include <memory>
#include <vector>

#include "run_context.h"
#include "tile/region_program.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

class Region {
 public:
  /// `kernel` has no core, or an epilogue made one by with_core_as_load.
  Region(const dispatch::Kernel& kernel, const std::vector<dispatch::Buffer>& buffers);
  void run(const RunContext& run) const;

 private:
  std::unique_ptr<RegionProgram> program_;
};

/// The kernel's program as a region of its own, with `core` (the core's result, over kernel.space)
/// as one more load where the program reads kCore.
dispatch::Kernel with_core_as_load(const dispatch::Kernel& kernel, const dispatch::Operand& core);

}  // namespace vkml::cpu
