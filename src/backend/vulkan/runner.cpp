#include "runner.h"

#include <algorithm>
#include <cstring>

#include "barriers.h"
#include "check.h"
#include "device_allocator.h"
#include "process_state.h"
#include "vk_struct.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/profile_log.h"

namespace vkml::vulkan {

namespace {

// A desktop's watchdog ends work after two seconds or so; the estimates are rough.
constexpr double kMaxSeconds = 0.1;
// The device starts on the first dispatches while the host records the rest.
constexpr std::size_t kMaxSteps = 256;

std::size_t index(int value) { return static_cast<std::size_t>(value); }

void set_address(std::vector<std::uint32_t>& push, std::size_t buffer, VkDeviceAddress address) {
  push[2 * buffer] = static_cast<std::uint32_t>(address);
  push[2 * buffer + 1] = static_cast<std::uint32_t>(address >> 32);
}

/// Offsets of the bindings whose storage the plan writes; 0 for the others, so that a sliding
/// window on an input changes nothing.
std::vector<std::int64_t> hazard_offsets(const dispatch::Bindings& bindings,
                                         const AliasPattern& pattern) {
  const std::size_t inputs = bindings.inputs.size();
  std::vector<bool> is_written(pattern.size());
  for (std::size_t i = inputs; i < pattern.size(); ++i) is_written[index(pattern[i])] = true;
  std::vector<std::int64_t> offsets(pattern.size());
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (!is_written[index(pattern[i])]) continue;
    offsets[i] = i < inputs ? bindings.inputs[i].offset : bindings.results[i - inputs].offset;
  }
  return offsets;
}

}  // namespace

Runner::Runner(std::shared_ptr<DeviceContext> context, std::shared_ptr<MemoryPool> memory,
               FramePool& frames)
    : context_(std::move(context)),
      memory_(std::move(memory)),
      frames_(frames),
      clock_(std::make_shared<DeviceClock>(*context_)) {}

Runner::~Runner() { release_arena(); }

void Runner::release_arena() {
  for (Block* block : arena_) MemoryPool::release(block);
  arena_.clear();
}

void Runner::reserve(const VulkanExecutable& executable) {
  const std::vector<std::int64_t>& needed = executable.arena_blocks();
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const auto bytes = static_cast<std::uint64_t>(needed[i]);
    if (i < arena_.size() && arena_[i]->bytes >= bytes) continue;
    // What lies behind is given back too: one block too short means that a larger arena is wanted.
    while (arena_.size() > i) {
      MemoryPool::release(arena_.back());
      arena_.pop_back();
    }
    arena_.push_back(memory_->allocate(bytes));
  }
}

Place Runner::arena_place(const VulkanExecutable& executable,
                          const dispatch::Buffer& buffer) const {
  if (buffer.bytes == 0) return {arena_[0], 0};  // it may lie at the arena's end
  const std::int64_t segment = executable.arena_segment_bytes();
  return {arena_[static_cast<std::size_t>(buffer.arena_offset / segment)],
          buffer.arena_offset % segment};
}

std::vector<Place> Runner::places(const VulkanExecutable& executable,
                                  const dispatch::Bindings& bindings) const {
  std::vector<Place> places;
  places.reserve(executable.buffers().size());
  for (const dispatch::Buffer& buffer : executable.buffers()) {
    switch (buffer.kind) {
      case dispatch::BufferKind::kTemporary:
        places.push_back(arena_place(executable, buffer));
        break;
      case dispatch::BufferKind::kInput:
      case dispatch::BufferKind::kResult: {
        const auto& list =
            buffer.kind == dispatch::BufferKind::kInput ? bindings.inputs : bindings.results;
        const dispatch::Binding& binding = list[index(buffer.binding)];
        places.push_back({&block_of(*binding.storage), binding.offset});
        break;
      }
    }
  }
  return places;
}

AliasPattern Runner::alias_pattern(const dispatch::Bindings& bindings) {
  ++run_;
  AliasPattern pattern;
  pattern.reserve(bindings.inputs.size() + bindings.results.size());
  const auto add = [&](const dispatch::Binding& binding) {
    Block& block = block_of(*binding.storage);
    if (block.seen_in_run != run_) {
      block.seen_in_run = run_;
      block.seen_at = static_cast<int>(pattern.size());
    }
    pattern.push_back(block.seen_at);
  };
  std::for_each(bindings.inputs.begin(), bindings.inputs.end(), add);
  std::for_each(bindings.results.begin(), bindings.results.end(), add);
  return pattern;
}

namespace {

/// The submission whose failure may be that of a block with this writer; null when there is none.
VulkanSubmission::Pointer submission_of(const std::shared_ptr<Submission>& writer) {
  const auto part = std::dynamic_pointer_cast<dispatch::CheckedBlockWriter>(writer);
  return std::dynamic_pointer_cast<VulkanSubmission>(part ? part->whole() : writer);
}

}  // namespace

std::vector<VulkanSubmission::Pointer> Runner::dependencies(
    const dispatch::Bindings& bindings) const {
  std::vector<VulkanSubmission::Pointer> found;
  const Submission* previous = nullptr;  // most inputs come from few submissions
  for (const dispatch::Binding& input : bindings.inputs) {
    if (!input.is_read || input.storage->writer().get() == previous) continue;
    const std::shared_ptr<Submission> writer = input.storage->writer();
    previous = writer.get();
    const VulkanSubmission::Pointer submission = submission_of(writer);
    if (!submission) continue;
    switch (submission->outlook()) {
      case VulkanSubmission::Outlook::kSucceeded:
        break;
      case VulkanSubmission::Outlook::kFailed:
        writer->wait();
        break;  // throws its failure, if it is the input's
      case VulkanSubmission::Outlook::kMayFail:
        if (std::find(found.begin(), found.end(), submission) == found.end())
          found.push_back(submission);
        break;
    }
  }
  // The device inherits one status; the rare further ones are settled here.
  while (found.size() > 1) {
    found.back()->wait();
    found.pop_back();
  }
  return found;
}

StatusReport Runner::inherited_status(std::vector<VulkanSubmission::Pointer>& dependencies) const {
  if (dependencies.empty()) return {};
  const StatusReport report = dependencies.front()->report();
  if (report.buffer == VK_NULL_HANDLE) {
    // Somebody has settled it meanwhile.
    dependencies.front()->wait();
    dependencies.clear();
  }
  return report;
}

void Runner::copy_status(VkCommandBuffer commands, const StatusReport& from, const Frame& to) {
  const DeviceFunctions& vk = context_->vk();
  const VkBufferCopy copy{from.offset, to.status_offset(), kStatusBytes};
  vk.CmdCopyBuffer(commands, from.buffer, to.control_buffer(), 1, &copy);
  barrier_after_everything(vk, commands);
}

void Runner::bind_addresses(const Step& step, const Frame& frame,
                            const std::vector<Place>& places) {
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    const BufferUse& use = step.buffers[i].use;
    switch (use.kind) {
      case BufferUse::Kind::kPlanBuffer: {
        const Place& place = places[index(use.buffer)];
        set_address(push_, i, place.block->address + static_cast<std::uint64_t>(place.origin));
        break;
      }
      case BufferUse::Kind::kScalars:
        set_address(push_, i, frame.scalars_address());
        break;
      case BufferUse::Kind::kStatus:
        set_address(push_, i, frame.status_address());
        break;
    }
  }
}

void Runner::bind_descriptors(VkCommandBuffer commands, const Step& step, const Frame& frame,
                              const std::vector<Place>& places) {
  const DeviceLimits& limits = context_->profile().limits;
  const auto max_range = static_cast<std::int64_t>(limits.max_storage_range);
  const auto alignment = static_cast<std::int64_t>(limits.storage_offset_alignment);
  const std::size_t count = step.buffers.size();
  infos_.resize(count);
  writes_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const StepBuffer& buffer = step.buffers[i];
    switch (buffer.use.kind) {
      case BufferUse::Kind::kPlanBuffer: {
        const auto& [block, origin] = places[index(buffer.use.buffer)];
        const std::int64_t first = origin + buffer.begin;
        const std::int64_t last = origin + buffer.end;
        // The descriptor begins at the block if it can, else before the first byte touched. What
        // the kernel adds to reach the binding's origin may then be negative, and wraps.
        std::int64_t base = 0;
        if (last > max_range) base = std::min(origin, first) / alignment * alignment;
        if (last - base > max_range) base = first / alignment * alignment;
        const std::int64_t rest = static_cast<std::int64_t>(block->bytes) - base;
        infos_[i] = {block->buffer, block->offset + static_cast<std::uint64_t>(base),
                     static_cast<std::uint64_t>(std::min(rest, max_range))};
        push_[i] = static_cast<std::uint32_t>((origin - base) /
                                              static_cast<std::int64_t>(buffer.use.element_bytes));
        break;
      }
      case BufferUse::Kind::kScalars:
        infos_[i] = {frame.control_buffer(), frame.scalars_offset(), frame.scalars_bytes()};
        push_[i] = 0;
        break;
      case BufferUse::Kind::kStatus:
        infos_[i] = {frame.control_buffer(), frame.status_offset(), kStatusBytes};
        push_[i] = 0;
        break;
    }
    writes_[i] = vk_struct<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    writes_[i].dstBinding = static_cast<std::uint32_t>(i);
    writes_[i].descriptorCount = 1;
    writes_[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes_[i].pBufferInfo = &infos_[i];
  }

  const DeviceFunctions& vk = context_->vk();
  const PipelineLayout& layout = *step.pipeline->layout;
  if (layout.pushes_descriptors) {
    vk.CmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout.layout, 0,
                               static_cast<std::uint32_t>(count), writes_.data());
    return;
  }
  auto info =
      vk_struct<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  info.descriptorPool = frame.descriptors();
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout.set;
  VkDescriptorSet set = VK_NULL_HANDLE;
  check(vk.AllocateDescriptorSets(context_->device(), &info, &set), "vkAllocateDescriptorSets");
  for (VkWriteDescriptorSet& write : writes_) write.dstSet = set;
  vk.UpdateDescriptorSets(context_->device(), static_cast<std::uint32_t>(count), writes_.data(), 0,
                          nullptr);
  vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout.layout, 0, 1, &set, 0,
                           nullptr);
}

void Runner::record_step(VkCommandBuffer commands, const Step& step, const Frame& frame,
                         const std::vector<Place>& places) {
  const DeviceFunctions& vk = context_->vk();
  const PipelineLayout& layout = *step.pipeline->layout;
  if (bound_ != step.pipeline.get()) {
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, step.pipeline->handle);
    bound_ = step.pipeline.get();
  }
  push_ = step.push;
  if (layout.descriptors == 0) {
    bind_addresses(step, frame, places);
  } else {
    bind_descriptors(commands, step, frame, places);
  }
  if (!push_.empty()) {
    vk.CmdPushConstants(commands, layout.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        static_cast<std::uint32_t>(push_.size() * sizeof(std::uint32_t)),
                        push_.data());
  }
  vk.CmdDispatch(commands, step.groups[0], step.groups[1], step.groups[2]);
}

RunLayout Runner::layout(const VulkanExecutable& executable, const dispatch::Bindings& bindings) {
  RunLayout layout;
  layout.places = places(executable, bindings);
  layout.pattern = alias_pattern(bindings);
  layout.offsets = hazard_offsets(bindings, layout.pattern);
  layout.trims = memory_->trims();
  return layout;
}

template <typename Finish>
void Runner::record(VulkanExecutable& executable, const RunLayout& layout, Frame& frame,
                    const StatusReport& inherited, VkCommandBufferUsageFlags usage, Finish finish) {
  const DeviceFunctions& vk = context_->vk();
  const std::vector<bool>& barriers = executable.barriers(layout.pattern, layout.offsets);
  KernelTiming* const timing = frame.timing.get();
  VkCommandBuffer commands = frame.begin_commands(usage);
  bound_ = nullptr;
  barrier_after_everything(vk, commands);
  if (inherited.buffer != VK_NULL_HANDLE) copy_status(commands, inherited, frame);
  if (timing != nullptr) timing->begin(vk, commands);
  double seconds = 0;
  std::size_t recorded = 0;
  const std::vector<Step>& steps = executable.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool is_first = i == 0 || steps[i - 1].kernel != step.kernel;
    const bool is_last = i + 1 == steps.size() || steps[i + 1].kernel != step.kernel;
    const bool is_submitted_alone = is_first && timing != nullptr && timing->uses_host_clock();
    if (recorded > 0 &&
        (recorded >= kMaxSteps || seconds + step.seconds > kMaxSeconds || is_submitted_alone)) {
      check(vk.EndCommandBuffer(commands), "vkEndCommandBuffer");
      finish(commands);
      commands = frame.begin_commands(usage);
      bound_ = nullptr;
      seconds = 0;
      recorded = 0;
    }
    // A barrier reaches back across command buffers: it orders all that was submitted before.
    if (barriers[i]) barrier_between_dispatches(vk, commands);
    if (timing != nullptr && is_first) timing->begin_kernel(vk, commands, step.kernel);
    record_step(commands, step, frame, layout.places);
    if (timing != nullptr && is_last) timing->end_kernel(vk, commands);
    seconds += step.seconds;
    ++recorded;
  }
  barrier_before_host(vk, commands);
  check(vk.EndCommandBuffer(commands), "vkEndCommandBuffer");
  finish(commands);
}

std::uint64_t Runner::record_and_submit(VulkanExecutable& executable, const RunLayout& layout,
                                        Frame& frame, const StatusReport& inherited) {
  const dispatch::HostTimer timer(dispatch::HostWork::kCommands);
  Queue& queue = context_->queue();
  std::uint64_t value = 0;
  const bool is_timed_here = frame.timing && frame.timing->uses_host_clock();
  record(executable, layout, frame, inherited, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
         [&](VkCommandBuffer commands) {
           if (!is_timed_here) {
             value = queue.submit(commands);
             return;
           }
           frame.timing->run_alone([&] {
             value = queue.submit(commands);
             queue.wait(value);
           });
         });
  return value;
}

std::unique_ptr<KernelTiming> Runner::make_timing(
    const VulkanExecutable& executable, Frame& frame,
    std::shared_ptr<dispatch::KernelTimer> timer) const {
  const std::size_t kernels = executable.kernel_count();
  VkQueryPool queries = VK_NULL_HANDLE;
  if (clock_->has_timestamps()) queries = frame.queries(2 * static_cast<std::uint32_t>(kernels));
  return std::make_unique<KernelTiming>(clock_, queries, std::move(timer), kernels);
}

Recording* Runner::recording_for(VulkanExecutable& executable, const RunLayout& layout) {
  Recordings& recordings = executable.recordings();
  if (!recordings.is_due()) return nullptr;
  if (Recording* found = recordings.find(layout)) return found;
  if (!recordings.has_room()) return nullptr;  // the host is far ahead of the device as it is
  std::shared_ptr<Frame> frame = frames_.make();
  frame->begin(executable.scalar_count(), executable.pooled_sets(),
               executable.pooled_descriptors());
  const dispatch::HostTimer timer(dispatch::HostWork::kCommands);
  std::vector<VkCommandBuffer> kept;
  record(executable, layout, *frame, {}, 0,
         [&](VkCommandBuffer commands) { kept.push_back(commands); });
  return &recordings.insert(Recording(layout, std::move(frame), std::move(kept)));
}

std::uint64_t Runner::submit(const Recording& recording, const StatusReport& inherited,
                             std::shared_ptr<Frame>& inheriting) {
  std::vector<VkCommandBuffer> first{recording.commands()[0]};
  if (inherited.buffer != VK_NULL_HANDLE) {
    inheriting = frames_.acquire();
    inheriting->begin(0, 0, 0);
    VkCommandBuffer commands = inheriting->begin_commands();
    barrier_after_everything(context_->vk(), commands);
    copy_status(commands, inherited, *recording.frame());
    check(context_->vk().EndCommandBuffer(commands), "vkEndCommandBuffer");
    first.insert(first.begin(), commands);
  }
  std::uint64_t value = context_->queue().submit(first);
  for (const VkCommandBuffer commands : recording.commands().subspan(1)) {
    value = context_->queue().submit(commands);
  }
  return value;
}

VulkanSubmission::Pointer Runner::run(VulkanExecutable& executable,
                                      const dispatch::Bindings& bindings) {
  if (executable.steps().empty()) return nullptr;
  reserve(executable);
  if (bindings.timer) clock_->calibrate(frames_);
  frames_.collect();  // so that failures of what is done are known below
  std::vector<VulkanSubmission::Pointer> before = dependencies(bindings);
  const StatusReport inherited = inherited_status(before);
  const RunLayout needed = layout(executable, bindings);
  // Kept commands write no timestamps.
  const Recording* recording = bindings.timer ? nullptr : recording_for(executable, needed);
  std::shared_ptr<Frame> frame;
  std::shared_ptr<Frame> inheriting;
  if (recording != nullptr) {
    frame = recording->frame();
    frame->begin_again();
  } else {
    frame = frames_.acquire();
    frame->begin(bindings.scalars.size(), executable.pooled_sets(),
                 executable.pooled_descriptors());
    if (bindings.timer) frame->timing = make_timing(executable, *frame, bindings.timer);
  }
  if (!bindings.scalars.empty()) {
    std::memcpy(frame->scalars(), bindings.scalars.data(),
                bindings.scalars.size() * sizeof(std::uint64_t));
  }
  const std::uint64_t submitted_before = context_->queue().submitted();
  std::uint64_t value = 0;
  try {
    value = recording != nullptr ? submit(*recording, inherited, inheriting)
                                 : record_and_submit(executable, needed, *frame, inherited);
  } catch (...) {
    if (context_->queue().submitted() == submitted_before) throw;
    // Parts may be running: the frame must outlive them.
    context_->queue().drain(10);
    throw dispatch::PartialRun{std::current_exception()};
  }

  for (const dispatch::Binding& input : bindings.inputs) block_of(*input.storage).last_use = value;
  for (const dispatch::Binding& result : bindings.results) {
    block_of(*result.storage).last_use = value;
    block_of(*result.storage).last_write = value;
  }
  for (Block* block : arena_) block->last_use = value;
  for (const auto& dependency : before) dependency->keep_until(value);
  const StatusReport report{frame->control_buffer(), frame->status_offset(), frame->status(),
                            executable.sites()};
  auto submission = std::make_shared<VulkanSubmission>(context_, report, std::move(before));
  submission->set_value(value);
  frame->submission = submission;
  frames_.retire(std::move(frame));
  if (inheriting) {
    inheriting->value = value;
    frames_.retire(std::move(inheriting));
  }
  return submission;
}

}  // namespace vkml::vulkan
