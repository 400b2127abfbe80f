// A plan compiled for one device: its dispatches with their pipelines, the byte ranges they touch,
// and where barriers go. Holds no addresses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "device_context.h"
#include "dispatch_list.h"
#include "hazards.h"
#include "pipelines.h"
#include "recording.h"
#include "vkml/dispatch/backend.h"

namespace vkml::vulkan {

/// A buffer of a dispatch, and the bytes of it that may be touched, from the binding's first byte.
struct StepBuffer {
  BufferUse use;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct Step {
  PipelinePointer pipeline;
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::vector<StepBuffer> buffers;
  std::vector<std::uint32_t> push;  // the whole block; the words for buffers are filled in by run()
  double seconds = 0;               // a rough estimate
  int kernel = 0;                   // of the plan, all of whose steps follow one another
};

class VulkanExecutable : public dispatch::Executable {
 public:
  VulkanExecutable(const dispatch::ExecutionGraph& graph, DeviceContext& context,
                   Pipelines& pipelines);

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<dispatch::Buffer>& buffers() const { return buffers_; }
  const std::shared_ptr<const std::vector<dispatch::Site>>& sites() const { return sites_; }
  std::size_t scalar_count() const { return scalar_count_; }
  std::size_t kernel_count() const { return kernel_count_; }
  /// Bytes of each block of the arena, and the length of all but the last.
  const std::vector<std::int64_t>& arena_blocks() const { return arena_blocks_; }
  std::int64_t arena_segment_bytes() const { return arena_segment_bytes_; }
  int input_count() const { return input_count_; }
  int result_count() const { return result_count_; }
  /// Descriptors and sets that a run takes from a descriptor pool.
  std::uint32_t pooled_sets() const { return pooled_sets_; }
  std::uint32_t pooled_descriptors() const { return pooled_descriptors_; }

  /// For each step, whether a barrier goes before it. `offsets` are those of the bindings, inputs
  /// then results; those of storages that the plan only reads do not matter and may be 0. Valid
  /// until the next call.
  const std::vector<bool>& barriers(const AliasPattern& pattern,
                                    const std::vector<std::int64_t>& offsets);
  Recordings& recordings() { return recordings_; }

 private:
  std::vector<Step> steps_;
  std::vector<dispatch::Buffer> buffers_;
  std::shared_ptr<const std::vector<dispatch::Site>> sites_;
  std::size_t scalar_count_ = 0;
  std::size_t kernel_count_ = 0;
  std::vector<std::int64_t> arena_blocks_;
  std::int64_t arena_segment_bytes_ = 0;
  int input_count_ = 0;
  int result_count_ = 0;
  std::uint32_t pooled_sets_ = 0;
  std::uint32_t pooled_descriptors_ = 0;

  Recordings recordings_;
  bool has_barriers_ = false;
  AliasPattern pattern_;
  std::vector<std::int64_t> offsets_;
  std::vector<bool> barriers_;
};

}  // namespace vkml::vulkan
