#include "frame.h"

#include <algorithm>

#include "check.h"
#include "dispatch_list.h"
#include "process_state.h"
#include "vk_struct.h"

namespace vkml::vulkan {

namespace {
constexpr std::size_t kMaxInFlight = 64;
}

Frame::Frame(DeviceContext& context, MemoryPool& control)
    : context_(context), control_pool_(control) {
  auto info = vk_struct<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  info.queueFamilyIndex = context_.profile().queue_family;
  check(context_.vk().CreateCommandPool(context_.device(), &info, nullptr, &commands_),
        "vkCreateCommandPool");
}

Frame::~Frame() {
  if (control_ != nullptr) MemoryPool::release(control_);
  if (!vulkan_is_usable()) return;
  const DeviceFunctions& vk = context_.vk();
  vk.DestroyCommandPool(context_.device(), commands_, nullptr);
  vk.DestroyDescriptorPool(context_.device(), descriptors_, nullptr);
  vk.DestroyQueryPool(context_.device(), queries_, nullptr);
}

void Frame::begin(std::size_t scalars, std::uint32_t sets, std::uint32_t descriptors) {
  const DeviceFunctions& vk = context_.vk();
  check(vk.ResetCommandPool(context_.device(), commands_, 0), "vkResetCommandPool");
  used_buffers_ = 0;

  const std::uint64_t control_bytes = kScalarsAt + scalars * kScalarBytes;
  if (control_ == nullptr || control_->bytes < control_bytes) {
    if (control_ != nullptr) MemoryPool::release(control_);
    control_ = nullptr;
    control_ = control_pool_.allocate(std::max<std::uint64_t>(control_bytes, 4096));
    context_.queue().wait(control_->last_use);  // the host writes it now
  }
  clear_status();

  if (sets > max_sets_ || descriptors > max_descriptors_) {
    vk.DestroyDescriptorPool(context_.device(), descriptors_, nullptr);
    descriptors_ = VK_NULL_HANDLE;
    max_sets_ = std::max(sets, 2 * max_sets_);
    max_descriptors_ = std::max(descriptors, 2 * max_descriptors_);
    VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, max_descriptors_};
    auto info =
        vk_struct<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
    info.maxSets = max_sets_;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    check(vk.CreateDescriptorPool(context_.device(), &info, nullptr, &descriptors_),
          "vkCreateDescriptorPool");
  } else if (descriptors_ != VK_NULL_HANDLE) {
    check(vk.ResetDescriptorPool(context_.device(), descriptors_, 0), "vkResetDescriptorPool");
  }
}

VkQueryPool Frame::queries(std::uint32_t count) {
  if (count <= max_queries_) return queries_;
  const DeviceFunctions& vk = context_.vk();
  vk.DestroyQueryPool(context_.device(), queries_, nullptr);
  queries_ = VK_NULL_HANDLE;
  max_queries_ = 0;
  auto info = vk_struct<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = count;
  check(vk.CreateQueryPool(context_.device(), &info, nullptr, &queries_), "vkCreateQueryPool");
  max_queries_ = count;
  return queries_;
}

VkCommandBuffer Frame::begin_commands(VkCommandBufferUsageFlags usage) {
  const DeviceFunctions& vk = context_.vk();
  if (used_buffers_ == buffers_.size()) {
    auto info =
        vk_struct<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    info.commandPool = commands_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    VkCommandBuffer made = VK_NULL_HANDLE;
    check(vk.AllocateCommandBuffers(context_.device(), &info, &made), "vkAllocateCommandBuffers");
    buffers_.push_back(made);
  }
  VkCommandBuffer commands = buffers_[used_buffers_++];
  auto info = vk_struct<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  info.flags = usage;
  check(vk.BeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
  return commands;
}

FramePool::FramePool(std::shared_ptr<DeviceContext> context, std::shared_ptr<MemoryPool> control)
    : context_(std::move(context)), control_(std::move(control)) {}

FramePool::~FramePool() {
  if (vulkan_is_usable()) context_->queue().drain(10);
}

void FramePool::collect() {
  const std::uint64_t completed = context_->queue().completed();
  while (!in_flight_.empty() && in_flight_.front()->busy_until() <= completed) {
    std::shared_ptr<Frame> frame = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (frame->submission) frame->submission->resolve();
    frame->submission.reset();
    if (frame->timing) frame->timing->report(*context_);
    frame->timing.reset();
    if (frame.use_count() == 1) idle_.push_back(std::move(frame));
  }
}

std::shared_ptr<Frame> FramePool::acquire() {
  collect();
  if (idle_.empty() && in_flight_.size() >= kMaxInFlight) {
    context_->queue().wait(in_flight_.front()->busy_until());
    collect();
  }
  if (idle_.empty()) return make();
  std::shared_ptr<Frame> frame = std::move(idle_.back());
  idle_.pop_back();
  return frame;
}

void FramePool::retire(std::shared_ptr<Frame> frame) { in_flight_.push_back(std::move(frame)); }

}  // namespace vkml::vulkan
