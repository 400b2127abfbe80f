#include "memory_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "check.h"
#include "process_state.h"
#include "vk_struct.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

constexpr std::uint64_t kGranularity = 256;
constexpr std::uint64_t kMaxSmall = 4u << 20;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Sizes a chunk may have: sixteen between neighbouring powers of two, so that tensors of nearly
/// the same size share chunks and at most a sixteenth is wasted.
std::uint64_t size_class(std::uint64_t bytes) {
  return round_up(bytes, std::max(std::bit_floor(bytes) / 16, kGranularity));
}

std::string describe(std::uint64_t bytes) {
  if (bytes >= 1u << 30) return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1u << 30));
  if (bytes >= 1u << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1u << 20));
  return fmt::format("{} bytes", bytes);
}

}  // namespace

MemoryPool::MemoryPool(std::shared_ptr<DeviceContext> context, MemoryKind kind)
    : context_(std::move(context)), kind_(kind) {
  constexpr std::uint64_t kSharedChunk = 32u << 20;
  constexpr std::uint64_t kSharedControlChunk = 1u << 20;
  shared_chunk_bytes_ = kind == MemoryKind::kControl ? kSharedControlChunk : kSharedChunk;
}

MemoryPool::~MemoryPool() {
  if (!vulkan_is_usable()) return;
  context_->queue().drain(10);
  for (Chunk& chunk : chunks_) {
    if (chunk.buffer != VK_NULL_HANDLE) destroy_chunk(chunk);
  }
}

std::uint64_t MemoryPool::max_chunk_bytes() const {
  const DeviceLimits& limits = context_->profile().limits;
  const std::uint64_t most = std::min(limits.max_allocation_bytes, limits.max_buffer_bytes);
  return most / kGranularity * kGranularity;
}

std::int64_t MemoryPool::max_block_bytes() const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  return static_cast<std::int64_t>(std::min(max_chunk_bytes() - kTailBytes, kMost));
}

void MemoryPool::require_limits(std::uint64_t bytes, std::uint64_t asked) const {
  const DeviceLimits& limits = context_->profile().limits;
  const auto require = [&](std::uint64_t limit, const char* name) {
    if (bytes <= limit) return;
    throw OutOfMemoryError(fmt::format(
        "[{}] {} were asked for in one block, but the device's {} is {}. Use smaller tensors or "
        "batches, or vkml.cpu",
        to_string(context_->name()), describe(asked), name, describe(limit)));
  };
  require(limits.max_allocation_bytes, "maxMemoryAllocationSize");
  require(limits.max_buffer_bytes, "maxBufferSize");
}

Block* MemoryPool::allocate(std::uint64_t asked) {
  require_usable();
  // Beyond any limit, and before sums could overflow.
  if (asked > std::uint64_t{1} << 62) require_limits(asked, asked);
  const std::uint64_t padded = round_up(asked + kTailBytes, kGranularity);
  const std::uint64_t bytes =
      padded <= kMaxSmall ? padded
                          : std::max(padded, std::min(size_class(padded), max_chunk_bytes()));
  require_limits(bytes, asked);

  auto block = std::make_unique<Block>();
  const std::lock_guard lock(mutex_);
  const Range range = acquire(bytes, asked);
  const Chunk& chunk = chunks_[range.chunk];
  block->pool = shared_from_this();
  block->buffer = chunk.buffer;
  block->offset = range.offset;
  block->bytes = range.bytes;
  block->address = chunk.address == 0 ? 0 : chunk.address + range.offset;
  block->host = chunk.host == nullptr ? nullptr : chunk.host + range.offset;
  block->chunk = range.chunk;
  block->last_use = range.last_use;
  return block.release();
}

Range MemoryPool::acquire(std::uint64_t bytes, std::uint64_t asked) {
  if (bytes <= kMaxSmall) {
    constexpr std::uint64_t kAny = ~std::uint64_t{0};
    if (const auto range = small_.take(bytes, kAny, true)) return *range;
    add_chunk(std::min(shared_chunk_bytes_, context_->profile().limits.max_allocation_bytes), true,
              asked);
    return small_.take(bytes, kAny, true).value();
  }
  if (const auto range = large_.take(bytes, bytes + bytes / 8, false)) return *range;
  const std::uint32_t index = add_chunk(bytes, false, asked);
  return large_.take_chunk(index, bytes).value();
}

std::uint32_t MemoryPool::add_chunk(std::uint64_t bytes, bool is_shared, std::uint64_t asked) {
  Chunk chunk;
  chunk.bytes = bytes;
  chunk.is_shared = is_shared;
  VkResult result = create_chunk(chunk);
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
    Queue& queue = context_->queue();
    queue.wait(queue.submitted());
    trim_locked(queue.completed());
    result = create_chunk(chunk);
  }
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
    throw OutOfMemoryError(fmt::format(
        "[{}] {} were asked for and the device has no room: {} of {} are taken. Free tensors, or "
        "use smaller batches",
        to_string(context_->name()), describe(asked),
        describe(static_cast<std::uint64_t>(allocated_bytes())),
        describe(context_->profile().device_memory_bytes())));
  }
  check(result, "vkAllocateMemory");

  auto place = std::find_if(chunks_.begin(), chunks_.end(),
                            [](const Chunk& other) { return other.buffer == VK_NULL_HANDLE; });
  if (place == chunks_.end()) place = chunks_.insert(chunks_.end(), Chunk{});
  *place = chunk;
  const auto index = static_cast<std::uint32_t>(place - chunks_.begin());
  (is_shared ? small_ : large_).put({index, 0, bytes, 0});
  allocated_bytes_ += static_cast<std::int64_t>(bytes);
  return index;
}

VkResult MemoryPool::create_chunk(Chunk& chunk) {
  const DeviceFunctions& vk = context_->vk();
  const VkDevice device = context_->device();
  const DeviceProfile& profile = context_->profile();
  const auto taken = static_cast<std::uint64_t>(allocated_bytes());
  // Software drivers promise more than the machine has and die when the promise is called in.
  if (profile.is_software() && taken + chunk.bytes > profile.device_memory_bytes()) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  auto buffer = vk_struct<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  buffer.size = chunk.bytes;
  buffer.usage = context_->buffer_usage();
  VkResult result = vk.CreateBuffer(device, &buffer, nullptr, &chunk.buffer);
  if (result != VK_SUCCESS) return result;

  VkMemoryRequirements requirements;
  vk.GetBufferMemoryRequirements(device, chunk.buffer, &requirements);
  auto flags = vk_struct<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  const MemoryType type = context_->memory_type(kind_);
  auto memory = vk_struct<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  memory.pNext = profile.has_addresses ? &flags : nullptr;
  memory.allocationSize = requirements.size;
  memory.memoryTypeIndex = type.index;
  result = vk.AllocateMemory(device, &memory, nullptr, &chunk.memory);
  if (result == VK_SUCCESS) {
    result = vk.BindBufferMemory(device, chunk.buffer, chunk.memory, 0);
  }
  if (result == VK_SUCCESS && type.is_mappable()) {
    void* host = nullptr;
    result = vk.MapMemory(device, chunk.memory, 0, VK_WHOLE_SIZE, 0, &host);
    chunk.host = static_cast<std::byte*>(host);
  }
  if (result != VK_SUCCESS) {
    vk.DestroyBuffer(device, chunk.buffer, nullptr);
    vk.FreeMemory(device, chunk.memory, nullptr);
    chunk.buffer = VK_NULL_HANDLE;
    chunk.memory = VK_NULL_HANDLE;
    return result;
  }
  if (profile.has_addresses) {
    auto info = vk_struct<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
    info.buffer = chunk.buffer;
    chunk.address = vk.GetBufferDeviceAddress(device, &info);
  }
  return VK_SUCCESS;
}

void MemoryPool::destroy_chunk(Chunk& chunk) {
  const DeviceFunctions& vk = context_->vk();
  ++trims_;
  vk.DestroyBuffer(context_->device(), chunk.buffer, nullptr);
  vk.FreeMemory(context_->device(), chunk.memory, nullptr);
  allocated_bytes_ -= static_cast<std::int64_t>(chunk.bytes);
  chunk = Chunk{};
}

void MemoryPool::release(Block* block) noexcept {
  // The pool may die with its last block, so it outlives the lock on its mutex.
  const std::unique_ptr<Block> owned(block);
  if (!vulkan_is_usable()) return;
  MemoryPool& pool = *owned->pool;
  const std::lock_guard lock(pool.mutex_);
  FreeRanges& ranges = pool.chunks_[owned->chunk].is_shared ? pool.small_ : pool.large_;
  ranges.put({owned->chunk, owned->offset, owned->bytes, owned->last_use.load()});
}

void MemoryPool::trim() {
  const std::uint64_t completed = context_->queue().completed();
  const std::lock_guard lock(mutex_);
  trim_locked(completed);
}

void MemoryPool::trim_locked(std::uint64_t completed) {
  for (std::uint32_t i = 0; i < chunks_.size(); ++i) {
    Chunk& chunk = chunks_[i];
    if (chunk.buffer == VK_NULL_HANDLE) continue;
    FreeRanges& ranges = chunk.is_shared ? small_ : large_;
    const auto range = ranges.take_chunk(i, chunk.bytes);
    if (!range) continue;
    if (range->last_use > completed) {
      ranges.put(*range);
    } else {
      destroy_chunk(chunk);
    }
  }
}

}  // namespace vkml::vulkan
