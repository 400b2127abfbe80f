// Copies between host memory and blocks of the device.
//
// Memory that the host can reach is written and read in place, by several threads when the copy is
// large: no staging memory, no submission. Elsewhere copies go through a ring of staging slots, so
// that the host and the device work on different pieces at once. Bound by the link to the device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "device_context.h"
#include "frame.h"
#include "memory_pool.h"
#include "worker_pool.h"

namespace vkml::vulkan {

class Transfer {
 public:
  Transfer(std::shared_ptr<DeviceContext> context, std::shared_ptr<MemoryPool> staging,
           FramePool& frames, WorkerPool& workers);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Returns when `bytes` may be changed; the copy is in the block for all later work on the queue.
  void upload(Block& target, std::uint64_t offset, std::span<const std::byte> bytes);
  /// Returns when `bytes` holds what all work submitted so far leaves in the block.
  void download(Block& source, std::uint64_t offset, std::span<std::byte> bytes);
  /// Gives the staging slots back.
  void release_slots();

 private:
  struct Slot {
    Block* block = nullptr;
    std::uint64_t busy_until = 0;
  };

  static constexpr std::size_t kSlots = 4;

  /// The slot used longest ago, once the device is done with it.
  Slot& next_slot(std::size_t bytes);
  std::uint64_t submit_copy(const Block& source, std::uint64_t source_offset, const Block& target,
                            std::uint64_t target_offset, std::uint64_t bytes);
  void upload_staged(Block& target, std::uint64_t offset, std::span<const std::byte> bytes);
  void download_staged(Block& source, std::uint64_t offset, std::span<std::byte> bytes);

  std::shared_ptr<DeviceContext> context_;
  std::shared_ptr<MemoryPool> staging_;
  FramePool& frames_;
  WorkerPool& workers_;
  std::array<Slot, kSlots> slots_;
  std::size_t next_ = 0;
};

}  // namespace vkml::vulkan
