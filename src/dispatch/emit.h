// Writes the program of one group: links the programs of its members, turns reads of other values
// into loads, and results that need memory into stores.
#pragma once

#include <functional>

#include "fuse.h"
#include "schedule.h"
#include "vkml/dispatch/execution_graph.h"
#include "vkml/ops/expr.h"

namespace vkml::dispatch {

/// Where a value lies: elements from the start of a buffer, and strides over its padded shape.
struct Location {
  int buffer = -1;
  std::int64_t offset = 0;
  Extents strides{0, 0, 0, 0};
};

/// What a group needs to know of the plan around it.
struct PlanContext {
  const Schedule& schedule;
  const Fusion& fusion;
  /// Where a value lies: an input, or a step that is stored. All but what a concat alone reads is
  /// dense.
  std::function<Location(int position)> locate;
  /// Index of a scalar step among the run-time scalars.
  std::function<int(int position)> scalar_of;
  /// A new place that can fail at run time.
  std::function<int(const graph::OpInfo& op, std::int64_t extent)> add_site;
};

/// The kernel of a group whose members are programs, with or without a core.
Kernel emit_group(const PlanContext& context, const Group& group);

/// A kernel that copies `source`, as a reader of shape `reader` sees it, into a strided window of a
/// buffer: `offset` and `strides` in elements.
Kernel emit_copy(const PlanContext& context, int source, const Shape& reader, int target_buffer,
                 DType dtype, std::int64_t offset, const Extents& strides);

/// A kernel that copies between two windows of the same extents and dtype.
Kernel copy_kernel(const Operand& from, const Operand& to);

}  // namespace vkml::dispatch
