// Memory of one kind on one device. Small blocks are cut from shared chunks, large ones have a
// chunk each; freed memory is kept for the next request of its size.
//
// A block may be freed while submissions still use it: its range is handed out again at once, since
// work on the one queue runs in order, and remembers the last submission that touches it, for those
// that reach memory outside the queue: host writes, and giving memory back to the system.
#pragma once

#include <vulkan/vulkan_core.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device_context.h"
#include "free_ranges.h"

namespace vkml::vulkan {

class MemoryPool;

/// A piece of a pool, and the record behind Storage::handle().
struct Block {
  std::shared_ptr<MemoryPool> pool;
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;     // in `buffer`
  std::uint64_t bytes = 0;      // usable, at least what was asked for
  VkDeviceAddress address = 0;  // of the block's first byte; 0 without buffer addresses
  std::byte* host = nullptr;    // null where the host cannot reach it
  std::uint32_t chunk = 0;
  std::atomic<std::uint64_t> last_use{0};  // timeline values
  std::atomic<std::uint64_t> last_write{0};
  // Which run saw the block last, and at which of its bindings first; under the device's lock.
  std::uint64_t seen_in_run = 0;
  int seen_at = 0;
};

class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  /// Bytes past a block's end that kernels may read (never write) in whole vectors.
  static constexpr std::uint64_t kTailBytes = 32;

  MemoryPool(std::shared_ptr<DeviceContext> context, MemoryKind kind);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Throws OutOfMemoryError, naming a limit where one is passed.
  Block* allocate(std::uint64_t bytes);
  /// The longest block that no limit forbids.
  std::int64_t max_block_bytes() const;
  /// From any thread. In a forked child and at exit it does nothing.
  static void release(Block* block) noexcept;

  /// Gives chunks that are wholly free, and that no submission uses any more, back to the system.
  void trim();
  std::int64_t allocated_bytes() const { return allocated_bytes_.load(); }
  /// How often memory went back to the system: until then a buffer's handle names what it named.
  std::uint64_t trims() const { return trims_.load(); }
  DeviceContext& context() { return *context_; }

 private:
  struct Chunk {
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceAddress address = 0;
    std::byte* host = nullptr;
    std::uint64_t bytes = 0;
    bool is_shared = false;
  };

  Range acquire(std::uint64_t bytes, std::uint64_t asked);
  std::uint32_t add_chunk(std::uint64_t bytes, bool is_shared, std::uint64_t asked);
  VkResult create_chunk(Chunk& chunk);
  void destroy_chunk(Chunk& chunk);
  void trim_locked(std::uint64_t completed);
  std::uint64_t max_chunk_bytes() const;
  void require_limits(std::uint64_t bytes, std::uint64_t asked) const;

  std::shared_ptr<DeviceContext> context_;
  MemoryKind kind_;
  std::uint64_t shared_chunk_bytes_;
  std::mutex mutex_;
  std::vector<Chunk> chunks_;  // by index; an empty one may be used again
  FreeRanges small_, large_;
  std::atomic<std::int64_t> allocated_bytes_{0};
  std::atomic<std::uint64_t> trims_{0};
};

}  // namespace vkml::vulkan
