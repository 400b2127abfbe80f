#include "hazards.h"

#include <algorithm>

namespace vkml::vulkan {

bool HazardTracker::conflicts(const Access& access) const {
  return std::any_of(since_barrier_.begin(), since_barrier_.end(), [&](const Access& earlier) {
    if (earlier.memory != access.memory) return false;
    if (earlier.end <= access.begin || access.end <= earlier.begin) return false;
    if (access.memory == kStatusMemory) return earlier.writes && access.reads;
    return earlier.writes || (earlier.reads && access.writes);
  });
}

bool HazardTracker::add(const std::vector<Access>& accesses) {
  const bool barrier = std::any_of(accesses.begin(), accesses.end(),
                                   [&](const Access& access) { return conflicts(access); });
  if (barrier) since_barrier_.clear();
  since_barrier_.insert(since_barrier_.end(), accesses.begin(), accesses.end());
  return barrier;
}

}  // namespace vkml::vulkan
