// One Vulkan device behind the Backend interface.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "device_allocator.h"
#include "device_context.h"
#include "executable.h"
#include "frame.h"
#include "memory_pool.h"
#include "pipelines.h"
#include "runner.h"
#include "transfer.h"
#include "vkml/dispatch/backend.h"
#include "worker_pool.h"

namespace vkml::vulkan {

class VulkanBackend : public dispatch::Backend {
 public:
  /// Throws DeviceError when there is no such device.
  explicit VulkanBackend(int index);
  ~VulkanBackend() override;

  dispatch::DeviceInfo info() const override;
  Allocator& allocator() override { return allocator_; }
  Allocator& staging_allocator() override { return staging_allocator_; }
  bool supports(const graph::Node& node, std::string& reason) const override;
  bool has_arithmetic(DType dtype) const override;
  int max_operands() const override { return context_->profile().max_operands(); }
  std::int64_t max_block_bytes() const override { return allocator_.pool().max_block_bytes(); }
  std::int64_t scratch_bytes(const dispatch::Kernel& kernel) const override;
  std::shared_ptr<dispatch::Executable> compile(dispatch::ExecutionGraph graph) override;
  void reserve(dispatch::Executable& executable) override;
  std::shared_ptr<Submission> run(dispatch::Executable& executable,
                                  const dispatch::Bindings& bindings) override;
  void upload(Storage& target, std::int64_t offset, std::span<const std::byte> bytes) override;
  void download(const Storage& source, std::int64_t offset, std::span<std::byte> bytes) override;
  void synchronize() override;
  void trim() override;
  std::int64_t allocated_bytes() const override;

  DeviceContext& context() { return *context_; }
  Pipelines& pipelines() { return pipelines_; }

 private:
  /// For the exit handler: keeps the pipelines, lets the device finish.
  void settle() noexcept;
  static void settle_all();

  std::mutex mutex_;      // the queue, frames and staging slots serve one thread at a time
  bool has_run_ = false;  // something was submitted
  std::shared_ptr<DeviceContext> context_;
  WorkerPool workers_;
  Pipelines pipelines_;
  std::shared_ptr<MemoryPool> control_;
  DeviceAllocator allocator_;
  std::shared_ptr<MemoryPool> staging_;
  DeviceAllocator staging_allocator_;
  FramePool frames_;
  Runner runner_;
  Transfer transfer_;
};

}  // namespace vkml::vulkan
