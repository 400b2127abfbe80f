#include "executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel_traits.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

constexpr int kArenaMemory = 0;
constexpr int kFirstBindingMemory = 1;

std::size_t index(int value) { return static_cast<std::size_t>(value); }

Step make_step(const Dispatch& dispatch, const ByteHulls& hulls,
               const std::vector<dispatch::Buffer>& buffers, bool use_addresses) {
  Step step;
  step.groups = dispatch.groups;
  for (const BufferUse& use : dispatch.buffers) {
    StepBuffer buffer{use, 0, 0};
    switch (use.kind) {
      case BufferUse::Kind::kPlanBuffer:
        if (const auto hull = hulls.find(use.buffer); hull != hulls.end()) {
          buffer.begin = hull->second.begin;
          buffer.end = hull->second.end;
        } else {
          buffer.end = buffers[index(use.buffer)].bytes;
        }
        break;
      case BufferUse::Kind::kScalars:
        break;
      case BufferUse::Kind::kStatus:
        buffer.end = kStatusBytes;
        break;
    }
    step.buffers.push_back(buffer);
  }
  const std::size_t address_words =
      use_addresses ? 2 * dispatch.buffers.size() : (dispatch.buffers.size() + 1) / 2 * 2;
  step.push.resize(address_words);
  step.push.insert(step.push.end(), dispatch.constants.begin(), dispatch.constants.end());
  return step;
}

}  // namespace

VulkanExecutable::VulkanExecutable(const dispatch::ExecutionGraph& graph, DeviceContext& context,
                                   Pipelines& pipelines)
    : buffers_(graph.buffers),
      sites_(std::make_shared<const std::vector<dispatch::Site>>(graph.sites)),
      scalar_count_(graph.scalars.size()),
      kernel_count_(graph.kernels.size()),
      arena_segment_bytes_(graph.arena_segment_bytes),
      input_count_(graph.input_count),
      result_count_(graph.result_count) {
  std::int64_t begin = 0;
  do {  // temporaries of no bytes want a block too
    arena_blocks_.push_back(std::min(graph.arena_bytes - begin, arena_segment_bytes_));
    begin += arena_segment_bytes_;
  } while (begin < graph.arena_bytes);
  const DeviceProfile& profile = context.profile();
  std::vector<Pipelines::Request> requests;
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const dispatch::Kernel& kernel = graph.kernels[i];
    const ByteHulls hulls = byte_hulls(kernel, graph);
    const DeviceTraits traits = traits_for(hulls, profile, context.name());
    const double seconds = estimate_seconds(kernel, hulls, profile.is_software());
    std::vector<Dispatch> parts = generate(kernel, graph, traits);
    for (Dispatch& part : parts) {
      Step step = make_step(part, hulls, graph.buffers, traits.use_addresses);
      step.seconds = seconds / static_cast<double>(parts.size());
      step.kernel = static_cast<int>(i);
      if (step.push.size() * sizeof(std::uint32_t) != part.code->push_bytes ||
          part.code->push_bytes > traits.max_push_bytes ||
          part.buffers.size() != part.code->buffer_count) {
        throw InternalError(fmt::format(
            "[vulkan] kernel {}: {} bytes of push constants and {} buffers do not match the "
            "shader's {} and {}",
            part.code->name, step.push.size() * sizeof(std::uint32_t), part.buffers.size(),
            part.code->push_bytes, part.code->buffer_count));
      }
      steps_.push_back(std::move(step));
      requests.push_back({std::move(part.code), traits.use_addresses});
    }
  }
  std::vector<PipelinePointer> made = pipelines.get(requests);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].pipeline = std::move(made[i]);
    const PipelineLayout& layout = *steps_[i].pipeline->layout;
    if (layout.descriptors == 0 || layout.pushes_descriptors) continue;
    ++pooled_sets_;
    pooled_descriptors_ += layout.descriptors;
  }
}

const std::vector<bool>& VulkanExecutable::barriers(const AliasPattern& pattern,
                                                    const std::vector<std::int64_t>& offsets) {
  if (has_barriers_ && pattern == pattern_ && offsets == offsets_) return barriers_;
  pattern_ = pattern;
  offsets_ = offsets;
  has_barriers_ = true;
  barriers_.clear();
  HazardTracker tracker;
  std::vector<Access> accesses;
  for (const Step& step : steps_) {
    accesses.clear();
    for (const StepBuffer& used : step.buffers) {
      if (used.use.kind == BufferUse::Kind::kScalars) continue;
      Access access{kStatusMemory, used.begin, used.end, used.use.reads, used.use.writes};
      if (used.use.kind == BufferUse::Kind::kPlanBuffer) {
        const dispatch::Buffer& buffer = buffers_[index(used.use.buffer)];
        std::int64_t base = buffer.arena_offset;
        access.memory = kArenaMemory;
        if (buffer.kind != dispatch::BufferKind::kTemporary) {
          const bool is_result = buffer.kind == dispatch::BufferKind::kResult;
          const std::size_t slot = index(buffer.binding + (is_result ? input_count_ : 0));
          access.memory = kFirstBindingMemory + pattern[slot];
          base = offsets[slot];
        }
        access.begin += base;
        access.end += base;
      }
      accesses.push_back(access);
    }
    barriers_.push_back(tracker.add(accesses));
  }
  return barriers_;
}

}  // namespace vkml::vulkan
