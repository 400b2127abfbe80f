// How a row reduction is laid over invocations: decided from the kernel and the device's traits
// alone, so that the scratch it needs is known before anything is compiled.
#pragma once

#include <vector>

#include "kernels/collapse.h"
#include "kernels/reduction.h"

namespace vkml::vulkan {

/// The two halves of a row kernel's space. Operands are the loads, then the stores.
struct RowSpaces {
  std::vector<const dispatch::Operand*> operands;
  CollapsedSpace rows;     // which row
  CollapsedSpace columns;  // where in the row

  bool varies_along_row(std::size_t operand) const;
};

struct RowPlan {
  LaneLayout layout;
  bool vectors = false;  // a lane takes four neighbours of a row at once
  /// Where vectors are used and rows begin anywhere: an operand whose rows say where. The vectors
  /// of a row begin at the multiple of four before its first element, and their elements that
  /// belong to the neighbours take no part. -1: rows begin at multiples of four.
  int lead = -1;
  std::uint32_t chunks = 0;  // a lane's share of a row held in registers; 0: read in each phase
  std::uint32_t unroll = 1;  // loads in flight in a loop
  std::uint32_t splits = 1;  // parts of a row that workgroups reduce separately
  std::int64_t span = 0;     // elements of one part
  /// Everything that is stored at each element is known before the reductions end: the pass that
  /// reduces a row that is not held stores it too.
  bool stores_in_pass = false;

  bool is_shifted() const { return lead >= 0; }
};

/// Elements of a vector.
inline constexpr std::int64_t kRowVector = 4;
/// Whether four neighbours of the operand lie in one aligned vector, as the plan lays vectors out.
bool lies_in_vectors(const RowSpaces& spaces, const RowPlan& plan, std::size_t operand);

RowSpaces row_spaces(const dispatch::Kernel& kernel);
RowPlan plan_rows(const dispatch::Kernel& kernel, const RowSpaces& spaces,
                  const DeviceTraits& traits);

std::int64_t row_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits);

}  // namespace vkml::vulkan
