// Runs whose commands are kept, to be submitted again as they are while the memory that they name
// holds. What changes from run to run, scalars and status, lies in the frame's control memory; so a
// recording is in flight once at a time, and an executable has several.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dispatch_list.h"
#include "frame.h"
#include "memory_pool.h"

namespace vkml::vulkan {

/// Bytes of a buffer: `origin` is the binding's (or the temporary's) first byte, counted from the
/// block's; kernels count from there.
struct Place {
  Block* block = nullptr;
  std::int64_t origin = 0;
};

/// Which bindings share memory: for each input, then each result, the first of them with the same
/// storage. Plans are keyed by it, so it rarely changes between runs.
using AliasPattern = std::vector<int>;

/// What recorded commands depend on.
struct RunLayout {
  std::vector<Place> places;          // by buffer of the plan
  AliasPattern pattern;               // with the offsets: where barriers go
  std::vector<std::int64_t> offsets;  // of the bindings whose storage is written, 0 for the others
  std::uint64_t trims = 0;            // how often memory went back to the system
};

class Recording {
 public:
  Recording(const RunLayout& layout, std::shared_ptr<Frame> frame,
            std::vector<VkCommandBuffer> commands);

  bool is_idle() const { return frame_->submission == nullptr; }
  bool matches(const RunLayout& layout) const;
  const std::shared_ptr<Frame>& frame() const { return frame_; }
  /// To be submitted one after the other.
  std::span<const VkCommandBuffer> commands() const { return commands_; }

 private:
  /// A place by what commands and descriptors name; blocks themselves come and go.
  using Named = std::array<std::uint64_t, 4>;
  static Named name(const Place& place);

  std::vector<Named> places_;
  AliasPattern pattern_;
  std::vector<std::int64_t> offsets_;
  std::uint64_t trims_;
  std::shared_ptr<Frame> frame_;
  std::vector<VkCommandBuffer> commands_;
};

/// The recordings of one executable, the last used first.
class Recordings {
 public:
  /// Whether an executable that runs now has run so often that its commands are worth keeping.
  bool is_due() { return ++runs_ > kRunsBefore; }
  /// One that stands for a run, and is not in flight; null if there is none.
  Recording* find(const RunLayout& layout);
  /// Whether there is room for another, or one that can make room.
  bool has_room() const;
  Recording& insert(Recording recording);

 private:
  static constexpr int kRunsBefore = 2;
  // Two places for a result that a loop replaces while it still holds the last one, and four steps
  // that the host runs ahead.
  static constexpr std::size_t kMost = 8;
  std::vector<Recording> recordings_;
  int runs_ = 0;
};

}  // namespace vkml::vulkan
