// Checks the indices of a gather or scatter, before anything is written.
#pragma once

#include "run_context.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

/// An operand of i32 or i64 indices, each of which must lie in [0, extent).
struct IndexCheck {
  dispatch::Operand index;
  std::int64_t extent = 0;
  std::int64_t site = 0;

  /// Reports the first bad index, in row-major order, to run.status; whether all are good.
  bool run(const RunContext& run) const;
};

/// The check of a kGather or kScatter kernel.
IndexCheck index_check_of(const dispatch::Kernel& kernel);

}  // namespace vkml::cpu
