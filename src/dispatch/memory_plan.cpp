#include "memory_plan.h"

#include <algorithm>
#include <numeric>

namespace vkml::dispatch {
namespace {

constexpr std::int64_t kAlignment = 256;

struct Interval {
  int buffer = -1;
  std::int64_t bytes = 0;
  int first = -1;  // kernels, inclusive
  int last = -1;
  std::int64_t offset = 0;
};

std::vector<Interval> live_intervals(const ExecutionGraph& graph) {
  std::vector<Interval> intervals(graph.buffers.size());
  const auto touch = [&](int buffer, int kernel) {
    if (buffer < 0) return;
    Interval& interval = intervals[static_cast<std::size_t>(buffer)];
    if (interval.first < 0) interval.first = kernel;
    interval.last = kernel;
  };
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    const int index = static_cast<int>(k);
    for (const Operand& operand : kernel.core_inputs) touch(operand.buffer, index);
    for (const Operand& operand : kernel.loads) touch(operand.buffer, index);
    for (const Operand& operand : kernel.stores) touch(operand.buffer, index);
    touch(kernel.scratch, index);
  }
  std::vector<Interval> temporaries;
  for (std::size_t b = 0; b < graph.buffers.size(); ++b) {
    if (graph.buffers[b].kind != BufferKind::kTemporary || intervals[b].first < 0) continue;
    Interval interval = intervals[b];
    interval.buffer = static_cast<int>(b);
    interval.bytes = (graph.buffers[b].bytes + kAlignment - 1) / kAlignment * kAlignment;
    temporaries.push_back(interval);
  }
  return temporaries;
}

}  // namespace

void plan_memory(ExecutionGraph& graph) {
  std::vector<Interval> intervals = live_intervals(graph);
  std::ranges::stable_sort(intervals, std::greater<>(), &Interval::bytes);
  std::vector<const Interval*> placed;  // by offset
  for (Interval& interval : intervals) {
    std::int64_t offset = 0;
    for (const Interval* other : placed) {
      if (other->last < interval.first || other->first > interval.last) continue;
      if (other->offset - offset >= interval.bytes) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    interval.offset = offset;
    const auto spot = std::ranges::upper_bound(placed, offset, {}, &Interval::offset);
    placed.insert(spot, &interval);
    graph.buffers[static_cast<std::size_t>(interval.buffer)].arena_offset = offset;
    graph.arena_bytes = std::max(graph.arena_bytes, offset + interval.bytes);
  }
}

}  // namespace vkml::dispatch
