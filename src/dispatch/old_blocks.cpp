#include "old_blocks.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "emit.h"

namespace vkml::dispatch {
namespace {

bool writes_all(const Operand& store, const Buffer& buffer) {
  for (std::size_t axis = 0; axis < kMaxDims; ++axis) {
    if (store.extents[axis] > 1 && store.strides[axis] == 0) return false;
  }
  return numel(store.extents) * static_cast<std::int64_t>(size_of(store.dtype)) == buffer.bytes;
}

Kernel copy_of_donor(const ExecutionGraph& graph, const Operand& store) {
  const Buffer& buffer = graph.buffers[static_cast<std::size_t>(store.buffer)];
  const auto donor = std::ranges::find_if(graph.buffers, [&](const Buffer& other) {
    return other.kind == BufferKind::kInput && other.binding == buffer.donor;
  });
  Operand whole;
  whole.buffer = store.buffer;
  whole.dtype = store.dtype;
  whole.extents[kMaxDims - 1] = buffer.bytes / static_cast<std::int64_t>(size_of(store.dtype));
  whole.strides[kMaxDims - 1] = 1;
  Operand old = whole;
  old.buffer = static_cast<int>(donor - graph.buffers.begin());
  return copy_kernel(old, whole);
}

}  // namespace

void keep_blocks_that_a_failure_would_need(ExecutionGraph& graph) {
  const auto last = std::find_if(graph.kernels.rbegin(), graph.kernels.rend(),
                                 [](const Kernel& kernel) { return !sites_of(kernel).empty(); });
  std::vector<Kernel> copies;
  for (auto kernel = graph.kernels.begin(); kernel != last.base(); ++kernel) {
    for (const Operand& store : kernel->stores) {
      Buffer& buffer = graph.buffers[static_cast<std::size_t>(store.buffer)];
      if (buffer.donor < 0 || buffer.donor_is_dead) continue;
      if (!writes_all(store, buffer)) copies.push_back(copy_of_donor(graph, store));
      buffer.donor = -1;
    }
  }
  graph.kernels.insert(graph.kernels.begin(), std::make_move_iterator(copies.begin()),
                       std::make_move_iterator(copies.end()));
}

}  // namespace vkml::dispatch
