// Undoes what a failed plan wrote over inputs: a bad index leaves every tensor as it was.
//
// Most plans check their indices before they overwrite anything and need none of this. Where a
// kernel that may fail comes later, the blocks that earlier kernels overwrite are copied first.
#pragma once

#include <vector>

#include "vkml/core/allocator.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

class Rollback {
 public:
  /// Finds the results that must be kept.
  explicit Rollback(const dispatch::ExecutionGraph& graph);

  /// Copies them, before the plan runs. `addresses` are by buffer.
  void save(const std::vector<std::byte*>& addresses, Allocator& allocator);
  void restore(const std::vector<std::byte*>& addresses) const;
  /// Gives the copies back.
  void discard();

 private:
  struct Block {
    std::size_t buffer = 0;
    std::size_t bytes = 0;
    StoragePtr copy;
  };
  std::vector<Block> blocks_;
};

}  // namespace vkml::cpu
