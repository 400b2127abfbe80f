// Runs executables: resolves buffers to memory, records a command buffer, submits it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device_context.h"
#include "executable.h"
#include "frame.h"
#include "memory_pool.h"
#include "submission.h"

namespace vkml::vulkan {

class Runner {
 public:
  Runner(std::shared_ptr<DeviceContext> context, std::shared_ptr<MemoryPool> memory,
         FramePool& frames);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Takes the arena that the executable needs.
  void reserve(const VulkanExecutable& executable);
  VulkanSubmission::Pointer run(VulkanExecutable& executable, const dispatch::Bindings& bindings);
  /// Gives the arena back; the next run makes a new one.
  void release_arena();

 private:
  Place arena_place(const VulkanExecutable& executable, const dispatch::Buffer& buffer) const;
  std::vector<Place> places(const VulkanExecutable& executable,
                            const dispatch::Bindings& bindings) const;
  AliasPattern alias_pattern(const dispatch::Bindings& bindings);
  std::vector<VulkanSubmission::Pointer> dependencies(const dispatch::Bindings& bindings) const;
  /// Where the status is that this run starts from. Clears what turns out to have succeeded, throws
  /// what turns out to have failed.
  StatusReport inherited_status(std::vector<VulkanSubmission::Pointer>& dependencies) const;
  void copy_status(VkCommandBuffer commands, const StatusReport& from, const Frame& to);
  RunLayout layout(const VulkanExecutable& executable, const dispatch::Bindings& bindings);
  /// The kept commands for a run, null where they are not worth keeping.
  Recording* recording_for(VulkanExecutable& executable, const RunLayout& layout);
  std::uint64_t submit(const Recording& recording, const StatusReport& inherited,
                       std::shared_ptr<Frame>& inheriting);
  std::uint64_t record_and_submit(VulkanExecutable& executable, const RunLayout& layout,
                                  Frame& frame, const StatusReport& inherited);
  /// Hands each command buffer, recorded and ended, to `finish`.
  template <typename Finish>
  void record(VulkanExecutable& executable, const RunLayout& layout, Frame& frame,
              const StatusReport& inherited, VkCommandBufferUsageFlags usage, Finish finish);
  std::unique_ptr<KernelTiming> make_timing(const VulkanExecutable& executable, Frame& frame,
                                            std::shared_ptr<dispatch::KernelTimer> timer) const;
  void record_step(VkCommandBuffer commands, const Step& step, const Frame& frame,
                   const std::vector<Place>& places);
  void bind_addresses(const Step& step, const Frame& frame, const std::vector<Place>& places);
  void bind_descriptors(VkCommandBuffer commands, const Step& step, const Frame& frame,
                        const std::vector<Place>& places);

  std::shared_ptr<DeviceContext> context_;
  std::shared_ptr<MemoryPool> memory_;
  FramePool& frames_;
  std::shared_ptr<DeviceClock> clock_;
  std::vector<Block*> arena_;
  std::uint64_t run_ = 0;
  const Pipeline* bound_ = nullptr;  // in the command buffer being recorded
  // Kept from step to step, so that recording allocates nothing.
  std::vector<std::uint32_t> push_;
  std::vector<VkDescriptorBufferInfo> infos_;
  std::vector<VkWriteDescriptorSet> writes_;
};

}  // namespace vkml::vulkan
