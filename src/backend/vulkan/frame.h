// What one submission needs while it is in flight: command buffers, descriptors, and a block of
// control memory with its status word and scalars. Used again when the submission is done.
#pragma once

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "device_context.h"
#include "dispatch_list.h"
#include "kernel_timing.h"
#include "memory_pool.h"
#include "submission.h"

namespace vkml::vulkan {

class Frame {
 public:
  Frame(DeviceContext& context, MemoryPool& control);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Makes the frame ready for a new submission.
  void begin(std::size_t scalars, std::uint32_t sets, std::uint32_t descriptors);
  /// The same for a submission of the commands that the frame holds already.
  void begin_again() { clear_status(); }
  /// A command buffer that has begun recording. `usage`: how it will be submitted.
  VkCommandBuffer begin_commands(
      VkCommandBufferUsageFlags usage = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);

  /// Zeroed by begin().
  VkBuffer control_buffer() const { return control_->buffer; }
  std::uint64_t status_offset() const { return control_->offset; }
  std::uint64_t scalars_bytes() const { return control_->bytes - kScalarsAt; }
  std::uint64_t scalars_offset() const { return control_->offset + kScalarsAt; }
  VkDeviceAddress status_address() const { return control_->address; }
  VkDeviceAddress scalars_address() const { return control_->address + kScalarsAt; }
  volatile std::uint32_t* status() const {
    return reinterpret_cast<volatile std::uint32_t*>(control_->host);
  }
  std::byte* scalars() const { return control_->host + kScalarsAt; }
  VkDescriptorPool descriptors() const { return descriptors_; }
  /// A pool of so many timestamps at least.
  VkQueryPool queries(std::uint32_t count);

  /// The submission that uses the frame; null for transfers.
  VulkanSubmission::Pointer submission;
  /// Told when the submission is done; null: nobody asks.
  std::unique_ptr<KernelTiming> timing;
  std::uint64_t value = 0;
  std::uint64_t busy_until() const { return submission ? submission->busy_until() : value; }

 private:
  // A multiple of every device's minStorageBufferOffsetAlignment.
  static constexpr std::uint64_t kScalarsAt = 512;
  static_assert(kStatusBytes <= kScalarsAt);

  void clear_status() { *status() = 0; }

  DeviceContext& context_;
  MemoryPool& control_pool_;
  Block* control_ = nullptr;
  VkCommandPool commands_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> buffers_;
  std::size_t used_buffers_ = 0;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  std::uint32_t max_sets_ = 0, max_descriptors_ = 0;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  std::uint32_t max_queries_ = 0;
};

/// Frames in flight and frames to use again. One that a recording holds is not given to others.
/// Used under the device's lock.
class FramePool {
 public:
  FramePool(std::shared_ptr<DeviceContext> context, std::shared_ptr<MemoryPool> control);
  ~FramePool();

  /// A frame that nothing uses. Waits when very many are in flight, which bounds how far the host
  /// runs ahead.
  std::shared_ptr<Frame> acquire();
  /// A frame of one's own.
  std::shared_ptr<Frame> make() { return std::make_shared<Frame>(*context_, *control_); }
  /// The frame's commands were submitted; its value is set.
  void retire(std::shared_ptr<Frame> frame);
  /// Settles every submission that is done.
  void collect();

 private:
  std::shared_ptr<DeviceContext> context_;
  std::shared_ptr<MemoryPool> control_;
  std::deque<std::shared_ptr<Frame>> in_flight_;
  std::vector<std::shared_ptr<Frame>> idle_;
};

}  // namespace vkml::vulkan
