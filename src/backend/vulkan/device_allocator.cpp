#include "device_allocator.h"

namespace vkml::vulkan {

DeviceAllocator::DeviceAllocator(std::shared_ptr<MemoryPool> pool, std::string_view name,
                                 bool shows_host)
    : pool_(std::move(pool)), name_(name), shows_host_(shows_host) {}

StoragePtr DeviceAllocator::allocate(std::size_t bytes) {
  Block* block = pool_->allocate(bytes);
  // The storage frees the block from here on, whatever throws.
  auto storage = std::make_shared<Storage>(
      device(), bytes, shows_host_ ? block->host : nullptr, reinterpret_cast<std::uint64_t>(block),
      [](Storage& dying) { MemoryPool::release(&block_of(dying)); });
  if (shows_host_) pool_->context().queue().wait(block->last_use);
  return storage;
}

Device DeviceAllocator::device() const { return pool_->context().name(); }

}  // namespace vkml::vulkan
