#include "recording.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace vkml::vulkan {

Recording::Named Recording::name(const Place& place) {
  // Non-dispatchable handles are pointers or 64-bit numbers, by platform.
  return {std::bit_cast<std::uint64_t>(place.block->buffer), place.block->offset,
          place.block->bytes, static_cast<std::uint64_t>(place.origin)};
}

Recording::Recording(const RunLayout& layout, std::shared_ptr<Frame> frame,
                     std::vector<VkCommandBuffer> commands)
    : pattern_(layout.pattern),
      offsets_(layout.offsets),
      trims_(layout.trims),
      frame_(std::move(frame)),
      commands_(std::move(commands)) {
  places_.reserve(layout.places.size());
  for (const Place& place : layout.places) places_.push_back(name(place));
}

bool Recording::matches(const RunLayout& layout) const {
  return trims_ == layout.trims && pattern_ == layout.pattern && offsets_ == layout.offsets &&
         std::equal(places_.begin(), places_.end(), layout.places.begin(), layout.places.end(),
                    [](const Named& known, const Place& place) { return known == name(place); });
}

Recording* Recordings::find(const RunLayout& layout) {
  const auto found = std::find_if(
      recordings_.begin(), recordings_.end(),
      [&](const Recording& recording) { return recording.is_idle() && recording.matches(layout); });
  if (found == recordings_.end()) return nullptr;
  std::rotate(recordings_.begin(), found, found + 1);
  return &recordings_.front();
}

bool Recordings::has_room() const {
  return recordings_.size() < kMost ||
         std::any_of(recordings_.begin(), recordings_.end(),
                     [](const Recording& recording) { return recording.is_idle(); });
}

Recording& Recordings::insert(Recording recording) {
  if (recordings_.size() == kMost) {
    const auto oldest =
        std::find_if(recordings_.rbegin(), recordings_.rend(),
                     [](const Recording& candidate) { return candidate.is_idle(); });
    recordings_.erase(std::next(oldest).base());
  }
  return *recordings_.insert(recordings_.begin(), std::move(recording));
}

}  // namespace vkml::vulkan
