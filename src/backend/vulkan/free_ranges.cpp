#include "free_ranges.h"

#include <algorithm>

namespace vkml::vulkan {

void FreeRanges::erase(std::map<Place, Free>::iterator range) {
  by_size_.erase({range->second.bytes, range->first.first, range->first.second});
  by_place_.erase(range);
}

void FreeRanges::put(Range range) {
  auto next = by_place_.lower_bound({range.chunk, range.offset});
  if (next != by_place_.begin()) {
    const auto previous = std::prev(next);
    const auto& [place, free] = *previous;
    if (place.first == range.chunk && place.second + free.bytes == range.offset) {
      range.offset = place.second;
      range.bytes += free.bytes;
      range.last_use = std::max(range.last_use, free.last_use);
      erase(previous);
    }
  }
  if (next != by_place_.end() && next->first.first == range.chunk &&
      range.offset + range.bytes == next->first.second) {
    range.bytes += next->second.bytes;
    range.last_use = std::max(range.last_use, next->second.last_use);
    erase(next);
  }
  by_place_.emplace(Place{range.chunk, range.offset}, Free{range.bytes, range.last_use});
  by_size_.emplace(range.bytes, range.chunk, range.offset);
}

std::optional<Range> FreeRanges::take(std::uint64_t bytes, std::uint64_t most, bool split) {
  const auto fit = by_size_.lower_bound({bytes, 0, 0});
  if (fit == by_size_.end() || std::get<0>(*fit) > most) return std::nullopt;
  const auto [size, chunk, offset] = *fit;
  const auto found = by_place_.find({chunk, offset});
  Range range{chunk, offset, size, found->second.last_use};
  erase(found);
  if (split && size > bytes) {
    put({chunk, offset + bytes, size - bytes, range.last_use});
    range.bytes = bytes;
  }
  return range;
}

std::optional<Range> FreeRanges::take_chunk(std::uint32_t chunk, std::uint64_t chunk_bytes) {
  const auto found = by_place_.find({chunk, 0});
  if (found == by_place_.end() || found->second.bytes != chunk_bytes) return std::nullopt;
  const Range range{chunk, 0, chunk_bytes, found->second.last_use};
  erase(found);
  return range;
}

}  // namespace vkml::vulkan
