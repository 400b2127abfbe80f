#include "host_allocator.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "vkml/core/error.h"

namespace vkml::reference {

StoragePtr HostAllocator::allocate(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  constexpr auto kLargest = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  void* block = nullptr;
  if (bytes <= kLargest - kAlignment) {
    // At least one unit, so that an empty block has an address too.
    const std::size_t rounded =
        bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment;
    block = std::aligned_alloc(kAlignment, rounded);
  }
  if (block == nullptr) {
    throw OutOfMemoryError(fmt::format("[allocate] the system has no {} bytes for cpu", bytes));
  }
  const auto count = static_cast<std::int64_t>(bytes);
  counter_->fetch_add(count, std::memory_order_relaxed);
  return std::make_shared<Storage>(kCpu, bytes, block, reinterpret_cast<std::uint64_t>(block),
                                   [counter = counter_, count](Storage& storage) {
                                     std::free(storage.host());
                                     counter->fetch_sub(count, std::memory_order_relaxed);
                                   });
}

}  // namespace vkml::reference
