// Where a kernel's core writes its result, and the program that runs on it afterwards.
//
// A core whose program only passes the result on writes straight into the destination. Otherwise it
// writes a dense array over kernel.space: the destination itself where that has the same type and
// is dense too (the program then runs in place), else the kernel's scratch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "run_context.h"
#include "tile/region.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

/// Whether the kernel's only output is its core, unchanged.
bool is_identity(const dispatch::Kernel& kernel);

/// Which destinations a core can write straight into.
enum class TargetLayout : std::uint8_t { kDense, kAnyStrides };

/// Bytes of scratch for the core's result; 0 when it goes to the destination.
std::int64_t core_scratch_bytes(const dispatch::Kernel& kernel, TargetLayout layout);

class CoreResult {
 public:
  CoreResult(const dispatch::Kernel& kernel, const std::vector<dispatch::Buffer>& buffers,
             TargetLayout layout);

  /// What the core writes: dtype, offset and strides of the array over kernel.space.
  const dispatch::Operand& target() const { return target_; }
  std::byte* address(const RunContext& run) const;
  /// Runs the kernel's program on the finished array.
  void finish(const RunContext& run) const;

 private:
  dispatch::Operand target_;
  std::optional<Region> epilogue_;
};

}  // namespace vkml::cpu
