#include "backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "instance.h"
#include "process_state.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

std::shared_ptr<DeviceContext> open_device(int index) {
  require_usable();
  const Instance& instance = Instance::get();
  const auto& devices = instance.devices();
  if (index < 0 || static_cast<std::size_t>(index) >= devices.size()) {
    if (devices.empty()) throw DeviceError("[vulkan] " + instance.reason());
    throw DeviceError(fmt::format("[vulkan] there is no vulkan:{}: {} device(s) were found", index,
                                  devices.size()));
  }
  return std::make_shared<DeviceContext>(
      instance.functions(), devices[static_cast<std::size_t>(index)], vulkan_device(index));
}

// Never destroyed: the exit handler reads it.
struct Backends {
  std::mutex mutex;
  std::vector<VulkanBackend*> live;
};
Backends& backends() {
  static auto* all = new Backends;
  return *all;
}

/// The feature that a dtype needs and the device lacks; null when it has all.
const char* missing_feature(DType dtype, const DeviceTraits& traits) {
  switch (dtype) {
    case DType::kF64:
      return traits.has_float64 ? nullptr : "shaderFloat64";
    case DType::kI64:
      return traits.has_int64 ? nullptr : "shaderInt64";
    default:
      return nullptr;  // narrow types live in whole words where they must
  }
}

}  // namespace

VulkanBackend::VulkanBackend(int index)
    : context_(open_device(index)),
      pipelines_(context_, workers_),
      control_(std::make_shared<MemoryPool>(context_, MemoryKind::kControl)),
      allocator_(std::make_shared<MemoryPool>(context_, MemoryKind::kDevice), "vulkan device",
                 false),
      staging_(std::make_shared<MemoryPool>(context_, MemoryKind::kStaging)),
      staging_allocator_(staging_, "vulkan staging", true),
      frames_(context_, control_),
      runner_(context_, allocator_.pool().shared_from_this(), frames_),
      transfer_(context_, staging_, frames_, workers_) {
  settle_at_exit(&VulkanBackend::settle_all);
  const std::lock_guard lock(backends().mutex);
  backends().live.push_back(this);
}

VulkanBackend::~VulkanBackend() {
  const std::lock_guard lock(backends().mutex);
  std::erase(backends().live, this);
}

void VulkanBackend::settle() noexcept {
  pipelines_.save();
  context_->queue().drain(10);
}

void VulkanBackend::settle_all() {
  const std::lock_guard lock(backends().mutex);
  for (VulkanBackend* backend : backends().live) backend->settle();
}

dispatch::DeviceInfo VulkanBackend::info() const {
  const DeviceProfile& profile = context_->profile();
  dispatch::DeviceInfo info;
  info.device = context_->name();
  info.name = profile.name;
  info.driver = profile.driver;
  info.memory_bytes = static_cast<std::int64_t>(profile.device_memory_bytes());
  info.is_software = profile.is_software();
  info.features = profile.features;
  return info;
}

bool VulkanBackend::supports(const graph::Node& node, std::string& reason) const {
  const DeviceTraits& traits = context_->profile().traits;
  const auto check_dtype = [&](DType dtype) {
    const char* feature = missing_feature(dtype, traits);
    if (feature == nullptr) return true;
    reason = fmt::format("{} needs {}, which {} ({}) does not offer", name_of(dtype), feature,
                         to_string(context_->name()), context_->profile().name);
    return false;
  };
  if (!check_dtype(node.dtype())) return false;
  return std::all_of(node.sources().begin(), node.sources().end(),
                     [&](const graph::NodePtr& source) { return check_dtype(source->dtype()); });
}

bool VulkanBackend::has_arithmetic(DType dtype) const {
  return missing_feature(dtype, context_->profile().traits) == nullptr;
}

std::int64_t VulkanBackend::scratch_bytes(const dispatch::Kernel& kernel) const {
  return vulkan::scratch_bytes(kernel, context_->profile().traits);
}

std::shared_ptr<dispatch::Executable> VulkanBackend::compile(dispatch::ExecutionGraph graph) {
  require_usable();
  const std::lock_guard lock(mutex_);
  const bool is_first = pipelines_.count() == 0;
  auto executable = std::make_shared<VulkanExecutable>(graph, *context_, pipelines_);
  if (is_first) settle_at_exit(&VulkanBackend::settle_all);
  return executable;
}

void VulkanBackend::reserve(dispatch::Executable& executable) {
  require_usable();
  const std::lock_guard lock(mutex_);
  runner_.reserve(static_cast<VulkanExecutable&>(executable));
}

std::shared_ptr<Submission> VulkanBackend::run(dispatch::Executable& executable,
                                               const dispatch::Bindings& bindings) {
  require_usable();
  const std::lock_guard lock(mutex_);
  const bool is_first = !std::exchange(has_run_, true);
  auto submission = runner_.run(static_cast<VulkanExecutable&>(executable), bindings);
  if (is_first) {
    // A software driver compiles when it first executes, in a thread of its own, and what it loads
    // for that would be gone before the exit hook runs, had the hook been placed earlier.
    if (context_->profile().is_software()) context_->queue().wait(context_->queue().submitted());
    settle_at_exit(&VulkanBackend::settle_all);
  }
  return submission;
}

void VulkanBackend::upload(Storage& target, std::int64_t offset, std::span<const std::byte> bytes) {
  require_usable();
  target.wait();
  const std::lock_guard lock(mutex_);
  transfer_.upload(block_of(target), static_cast<std::uint64_t>(offset), bytes);
}

void VulkanBackend::download(const Storage& source, std::int64_t offset,
                             std::span<std::byte> bytes) {
  require_usable();
  source.wait();
  const std::lock_guard lock(mutex_);
  transfer_.download(block_of(source), static_cast<std::uint64_t>(offset), bytes);
}

void VulkanBackend::synchronize() {
  require_usable();
  Queue& queue = context_->queue();
  queue.wait(queue.submitted());
  const std::lock_guard lock(mutex_);
  frames_.collect();
}

void VulkanBackend::trim() {
  synchronize();
  const std::lock_guard lock(mutex_);
  runner_.release_arena();
  transfer_.release_slots();
  allocator_.pool().trim();
  staging_allocator_.pool().trim();
  control_->trim();
}

std::int64_t VulkanBackend::allocated_bytes() const { return allocator_.pool().allocated_bytes(); }

}  // namespace vkml::vulkan
