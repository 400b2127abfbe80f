// Which parts of a pool's chunks are free. Best fit, neighbours merged. Knows nothing of Vulkan.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace vkml::vulkan {

struct Range {
  std::uint32_t chunk = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t last_use = 0;  // timeline value of the last submission that touches it
};

class FreeRanges {
 public:
  /// Adds a range, merging it with free neighbours in its chunk.
  void put(Range range);
  /// The smallest free range of at least `bytes` and at most `most`; split when larger than `bytes`
  /// if `split` is set, given whole otherwise.
  std::optional<Range> take(std::uint64_t bytes, std::uint64_t most, bool split);
  /// Removes and returns the chunk's range if the whole chunk is free.
  std::optional<Range> take_chunk(std::uint32_t chunk, std::uint64_t chunk_bytes);

  std::size_t count() const { return by_place_.size(); }

 private:
  struct Free {
    std::uint64_t bytes = 0;
    std::uint64_t last_use = 0;
  };
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // chunk, offset
  void erase(std::map<Place, Free>::iterator range);

  std::map<Place, Free> by_place_;
  std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>> by_size_;
};

}  // namespace vkml::vulkan
