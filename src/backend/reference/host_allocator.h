// Blocks of host memory from the system, aligned to 64 bytes, counted while they live.
#pragma once

#include <atomic>
#include <memory>

#include "vkml/core/allocator.h"

namespace vkml::reference {

class HostAllocator final : public Allocator {
 public:
  StoragePtr allocate(std::size_t bytes) override;
  std::string_view name() const override { return "reference"; }
  Device device() const override { return kCpu; }
  std::int64_t allocated_bytes() const { return counter_->load(std::memory_order_relaxed); }

 private:
  /// Shared with every block: a storage may outlive its allocator.
  std::shared_ptr<std::atomic<std::int64_t>> counter_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace vkml::reference
