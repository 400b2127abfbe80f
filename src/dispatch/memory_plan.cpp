#include "memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace vkml::dispatch {
namespace {

constexpr std::int64_t kAlignment = 256;
// Packing by size compares each buffer with all that are placed.
constexpr std::size_t kMaxPackedBySize = 4096;

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
    for (const Operand& operand : kernel.core_stores) touch(operand.buffer, index);
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

/// The first offset from `offset` on where `bytes` do not cross into another segment.
std::int64_t within_segment(std::int64_t offset, std::int64_t bytes, std::int64_t segment) {
  const std::int64_t left = segment - offset % segment;
  return bytes <= left || left == segment ? offset : offset + left;
}

/// The largest first, each at the lowest offset that is free during its life: tight, quadratic.
void pack_by_size(std::vector<Interval>& intervals, std::int64_t segment) {
  std::ranges::stable_sort(intervals, std::greater<>(), &Interval::bytes);
  std::vector<const Interval*> placed;  // by offset
  for (Interval& interval : intervals) {
    std::int64_t offset = 0;
    for (const Interval* other : placed) {
      if (other->last < interval.first || other->first > interval.last) continue;
      offset = within_segment(offset, interval.bytes, segment);
      if (other->offset - offset >= interval.bytes) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    offset = within_segment(offset, interval.bytes, segment);
    interval.offset = offset;
    const auto spot = std::ranges::upper_bound(placed, offset, {}, &Interval::offset);
    placed.insert(spot, &interval);
  }
}

/// The gaps of an arena that grows when none fits.
class Arena {
 public:
  explicit Arena(std::int64_t segment) : segment_(segment) {}

  /// The smallest gap that holds the bytes, the lowest among equals.
  std::int64_t take(std::int64_t bytes) {
    for (auto gap = by_size_.lower_bound({bytes, 0}); gap != by_size_.end(); ++gap) {
      const auto [size, begin] = *gap;
      const std::int64_t offset = within_segment(begin, bytes, segment_);
      if (offset + bytes > begin + size) continue;
      remove(begin, size);
      if (offset > begin) insert(begin, offset - begin);
      if (begin + size > offset + bytes) insert(offset + bytes, begin + size - offset - bytes);
      return offset;
    }
    return extend(bytes);
  }

  void give_back(std::int64_t offset, std::int64_t bytes) {
    const auto after = gaps_.lower_bound(offset);
    if (after != gaps_.end() && after->first == offset + bytes) {
      const std::int64_t more = after->second;
      remove(offset + bytes, more);
      bytes += more;
    }
    const auto next = gaps_.lower_bound(offset);
    if (next != gaps_.begin()) {
      const auto [start, size] = *std::prev(next);
      if (start + size == offset) {
        remove(start, size);
        offset = start;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }

 private:
  std::int64_t extend(std::int64_t bytes) {
    std::int64_t offset = end_;
    if (!gaps_.empty()) {
      const auto [start, size] = *gaps_.rbegin();
      if (start + size == end_) {
        remove(start, size);
        offset = start;
      }
    }
    const std::int64_t begin = offset;
    offset = within_segment(begin, bytes, segment_);
    if (offset > begin) insert(begin, offset - begin);
    end_ = offset + bytes;
    return offset;
  }
  void insert(std::int64_t offset, std::int64_t bytes) {
    gaps_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::int64_t offset, std::int64_t bytes) {
    gaps_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::int64_t, std::int64_t> gaps_;                // offset to bytes, never adjacent
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // the same as (bytes, offset)
  std::int64_t end_ = 0;
  std::int64_t segment_;
};

/// As an allocator would, in the order of the kernels: best fit, n log n.
void pack_by_time(std::vector<Interval>& intervals, std::int64_t segment) {
  std::vector<std::size_t> ends(intervals.size());
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = i;
  std::ranges::stable_sort(ends, {}, [&](std::size_t i) { return intervals[i].last; });
  std::vector<std::size_t> starts = ends;
  std::ranges::stable_sort(starts, {}, [&](std::size_t i) {
    return std::pair(intervals[i].first, -intervals[i].bytes);
  });
  Arena arena(segment);
  auto ended = ends.begin();
  for (const std::size_t i : starts) {
    for (; intervals[*ended].last < intervals[i].first; ++ended) {
      arena.give_back(intervals[*ended].offset, intervals[*ended].bytes);
    }
    intervals[i].offset = arena.take(intervals[i].bytes);
  }
}

}  // namespace

void plan_memory(ExecutionGraph& graph, std::int64_t max_block_bytes) {
  const std::int64_t segment = max_block_bytes / kAlignment * kAlignment;
  graph.arena_segment_bytes = segment;
  std::vector<Interval> intervals = live_intervals(graph);
  if (intervals.size() <= kMaxPackedBySize) {
    pack_by_size(intervals, segment);
  } else {
    pack_by_time(intervals, segment);
  }
  for (const Interval& interval : intervals) {
    graph.buffers[static_cast<std::size_t>(interval.buffer)].arena_offset = interval.offset;
    graph.arena_bytes = std::max(graph.arena_bytes, interval.offset + interval.bytes);
  }
}

}  // namespace vkml::dispatch
