// A memory pool as the allocator that the layers above see.
#pragma once

#include <memory>

#include "memory_pool.h"
#include "vkml/core/allocator.h"

namespace vkml::vulkan {

/// The block behind a storage of this backend.
inline Block& block_of(const Storage& storage) {
  return *reinterpret_cast<Block*>(storage.handle());
}

class DeviceAllocator : public Allocator {
 public:
  /// Storages show their memory to the host only if `shows_host`: then the host may write it as
  /// soon as it is allocated, so that a block still in use is waited for.
  DeviceAllocator(std::shared_ptr<MemoryPool> pool, std::string_view name, bool shows_host);

  StoragePtr allocate(std::size_t bytes) override;
  std::string_view name() const override { return name_; }
  Device device() const override;
  MemoryPool& pool() const { return *pool_; }

 private:
  std::shared_ptr<MemoryPool> pool_;
  std::string_view name_;
  bool shows_host_;
};

}  // namespace vkml::vulkan
