#include "transfer.h"

#include <algorithm>
#include <deque>

#include "barriers.h"
#include "check.h"
#include "vkml/dispatch/profile_log.h"

namespace vkml::vulkan {

namespace {

// A copy is cut in as many pieces as there are slots, within these bounds: short pieces keep both
// sides busy, long ones make up for waking the threads.
constexpr std::size_t kMinPiece = 1u << 20;
constexpr std::size_t kMaxPiece = 16u << 20;
std::size_t piece_bytes(std::size_t bytes, std::size_t slots) {
  return std::clamp(bytes / slots, kMinPiece, kMaxPiece);
}

// One thread moves about 10 GB/s. Four reach what a card's memory takes from the host; reading
// staging memory gains up to about eight.
constexpr std::size_t kUploadThreads = 4;
constexpr std::size_t kDownloadThreads = 8;

// Larger copies into memory in use wait for it and write in place, which is faster than staging.
constexpr std::size_t kMaxStagedUpload = 32u << 20;

// The host reads a card's memory at about 30 MB/s: worth it only where a copy's 12 us are more.
constexpr std::size_t kMaxUncachedRead = 64;

}  // namespace

Transfer::Transfer(std::shared_ptr<DeviceContext> context, std::shared_ptr<MemoryPool> staging,
                   FramePool& frames, WorkerPool& workers)
    : context_(std::move(context)),
      staging_(std::move(staging)),
      frames_(frames),
      workers_(workers) {}

Transfer::~Transfer() { release_slots(); }

void Transfer::release_slots() {
  for (Slot& slot : slots_) {
    if (slot.block == nullptr) continue;
    slot.block->last_use = slot.busy_until;
    MemoryPool::release(slot.block);
    slot = {};
  }
}

Transfer::Slot& Transfer::next_slot(std::size_t bytes) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % kSlots;
  if (slot.block == nullptr || slot.block->bytes < bytes) {
    if (slot.block != nullptr) {
      slot.block->last_use = slot.busy_until;
      MemoryPool::release(slot.block);
      slot = {};
    }
    slot.block = staging_->allocate(bytes);
    slot.busy_until = slot.block->last_use;
  }
  context_->queue().wait(slot.busy_until);
  return slot;
}

std::uint64_t Transfer::submit_copy(const Block& source, std::uint64_t source_offset,
                                    const Block& target, std::uint64_t target_offset,
                                    std::uint64_t bytes) {
  const DeviceFunctions& vk = context_->vk();
  std::shared_ptr<Frame> frame = frames_.acquire();
  frame->begin(0, 0, 0);
  VkCommandBuffer commands = frame->begin_commands();
  barrier_after_everything(vk, commands);
  const VkBufferCopy copy{source.offset + source_offset, target.offset + target_offset, bytes};
  vk.CmdCopyBuffer(commands, source.buffer, target.buffer, 1, &copy);
  barrier_before_host(vk, commands);
  check(vk.EndCommandBuffer(commands), "vkEndCommandBuffer");
  frame->value = context_->queue().submit(commands);
  const std::uint64_t value = frame->value;
  frames_.retire(std::move(frame));
  return value;
}

void Transfer::upload(Block& target, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const dispatch::HostTimer timer(dispatch::HostWork::kUpload,
                                  static_cast<std::int64_t>(bytes.size()));
  Queue& queue = context_->queue();
  const bool in_place = target.host != nullptr &&
                        (bytes.size() > kMaxStagedUpload || queue.completed() >= target.last_use);
  if (!in_place) {
    upload_staged(target, offset, bytes);
    return;
  }
  queue.wait(target.last_use);
  copy_bytes(workers_, target.host + offset, bytes.data(), bytes.size(), kUploadThreads);
}

void Transfer::upload_staged(Block& target, std::uint64_t offset,
                             std::span<const std::byte> bytes) {
  const std::size_t step = piece_bytes(bytes.size(), kSlots);
  for (std::size_t begin = 0; begin < bytes.size(); begin += step) {
    const auto piece = bytes.subspan(begin, std::min(step, bytes.size() - begin));
    Slot& slot = next_slot(piece.size());
    copy_bytes(workers_, slot.block->host, piece.data(), piece.size(), kUploadThreads);
    slot.busy_until = submit_copy(*slot.block, 0, target, offset + begin, piece.size());
    target.last_use = slot.busy_until;
    target.last_write = slot.busy_until;
  }
}

void Transfer::download(Block& source, std::uint64_t offset, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  const dispatch::HostTimer timer(dispatch::HostWork::kDownload,
                                  static_cast<std::int64_t>(bytes.size()));
  const bool is_cached = context_->memory_type(MemoryKind::kDevice).is_cached();
  if (source.host != nullptr && (is_cached || bytes.size() <= kMaxUncachedRead)) {
    context_->queue().wait(source.last_write);
    copy_bytes(workers_, bytes.data(), source.host + offset, bytes.size(), kDownloadThreads);
    return;
  }
  download_staged(source, offset, bytes);
}

void Transfer::download_staged(Block& source, std::uint64_t offset, std::span<std::byte> bytes) {
  struct Piece {
    Slot* slot;
    std::size_t begin, size;
  };
  std::deque<Piece> in_flight;
  const auto finish_oldest = [&] {
    const Piece piece = in_flight.front();
    in_flight.pop_front();
    context_->queue().wait(piece.slot->busy_until);
    copy_bytes(workers_, bytes.data() + piece.begin, piece.slot->block->host, piece.size,
               kDownloadThreads);
  };
  const std::size_t step = piece_bytes(bytes.size(), kSlots);
  for (std::size_t begin = 0; begin < bytes.size(); begin += step) {
    if (in_flight.size() == kSlots) finish_oldest();
    const std::size_t size = std::min(step, bytes.size() - begin);
    Slot& slot = next_slot(size);
    slot.busy_until = submit_copy(source, offset + begin, *slot.block, 0, size);
    source.last_use = slot.busy_until;
    in_flight.push_back({&slot, begin, size});
  }
  while (!in_flight.empty()) finish_oldest();
}

}  // namespace vkml::vulkan
