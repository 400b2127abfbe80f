// Where a plan needs barriers: a dispatch waits for those before it only if it reads or writes
// bytes that one of them writes, or writes bytes that one of them reads. Knows nothing of Vulkan.
#pragma once

#include <cstdint>
#include <vector>

namespace vkml::vulkan {

/// Bytes [begin, end) of a memory that a dispatch touches. Different memories never overlap.
struct Access {
  int memory = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool reads = false;
  bool writes = false;
};

/// The status: whoever sets the bit of a check writes what it met, so that writers need no order.
inline constexpr int kStatusMemory = -1;

class HazardTracker {
 public:
  /// Adds a dispatch's accesses; true when it needs a barrier before it. A barrier orders it after
  /// everything added before.
  bool add(const std::vector<Access>& accesses);

 private:
  bool conflicts(const Access& access) const;
  std::vector<Access> since_barrier_;
};

}  // namespace vkml::vulkan
