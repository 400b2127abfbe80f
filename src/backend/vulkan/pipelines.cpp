#include "pipelines.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "check.h"
#include "process_state.h"
#include "vk_struct.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

RetiredPipelines::~RetiredPipelines() {
  if (!vulkan_is_usable()) return;
  context_->queue().drain(10);
  for (const Retired& retired : waiting_) {
    context_->vk().DestroyPipeline(context_->device(), retired.handle, nullptr);
  }
}

void RetiredPipelines::add(VkPipeline handle) {
  if (handle == VK_NULL_HANDLE) return;
  const std::lock_guard lock(mutex_);
  waiting_.push_back({handle, context_->queue().submitted()});
}

void RetiredPipelines::collect() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return;
  const std::uint64_t completed = context_->queue().completed();
  while (!waiting_.empty() && waiting_.front().last_use <= completed) {
    context_->vk().DestroyPipeline(context_->device(), waiting_.front().handle, nullptr);
    waiting_.pop_front();
  }
}

Pipelines::Pipelines(std::shared_ptr<DeviceContext> context, WorkerPool& workers)
    : context_(std::move(context)),
      workers_(workers),
      file_(context_->profile()),
      retired_(std::make_shared<RetiredPipelines>(context_)) {
  open_cache();
}

Pipelines::~Pipelines() {
  if (!vulkan_is_usable()) return;
  save();
  context_->queue().drain(10);
  const DeviceFunctions& vk = context_->vk();
  const VkDevice device = context_->device();
  for (const auto& [descriptors, layout] : layouts_) {
    vk.DestroyPipelineLayout(device, layout->layout, nullptr);
    vk.DestroyDescriptorSetLayout(device, layout->set, nullptr);
  }
  vk.DestroyPipelineCache(device, cache_, nullptr);
}

void Pipelines::open_cache() {
  const auto data = file_.read();
  auto info = vk_struct<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  if (data) {
    info.initialDataSize = data->size();
    info.pInitialData = data->data();
  }
  const DeviceFunctions& vk = context_->vk();
  if (vk.CreatePipelineCache(context_->device(), &info, nullptr, &cache_) == VK_SUCCESS) return;
  info.initialDataSize = 0;
  info.pInitialData = nullptr;
  check(vk.CreatePipelineCache(context_->device(), &info, nullptr, &cache_),
        "vkCreatePipelineCache");
}

const PipelineLayout* Pipelines::layout_for(std::uint32_t buffers, bool use_addresses) {
  const std::uint32_t descriptors = use_addresses ? 0 : buffers;
  auto& layout = layouts_[descriptors];
  if (layout) return layout.get();

  const DeviceFunctions& vk = context_->vk();
  const DeviceLimits& limits = context_->profile().limits;
  if (descriptors > limits.max_stage_buffers) {
    throw InternalError(
        fmt::format("[{}] a kernel has {} buffers, the device's "
                    "maxPerStageDescriptorStorageBuffers is {}",
                    to_string(context_->name()), descriptors, limits.max_stage_buffers));
  }
  auto made = std::make_unique<PipelineLayout>();
  made->descriptors = descriptors;
  made->pushes_descriptors = descriptors > 0 && descriptors <= limits.max_push_descriptors;
  if (descriptors > 0) {
    std::vector<VkDescriptorSetLayoutBinding> bindings(descriptors);
    for (std::uint32_t i = 0; i < descriptors; ++i) {
      bindings[i].binding = i;
      bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      bindings[i].descriptorCount = 1;
      bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    auto info = vk_struct<VkDescriptorSetLayoutCreateInfo>(
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
    if (made->pushes_descriptors) {
      info.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
    }
    info.bindingCount = descriptors;
    info.pBindings = bindings.data();
    check(vk.CreateDescriptorSetLayout(context_->device(), &info, nullptr, &made->set),
          "vkCreateDescriptorSetLayout");
  }
  VkPushConstantRange range{};
  range.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  range.size = context_->profile().traits.max_push_bytes;
  auto info = vk_struct<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.setLayoutCount = descriptors > 0 ? 1 : 0;
  info.pSetLayouts = &made->set;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  check(vk.CreatePipelineLayout(context_->device(), &info, nullptr, &made->layout),
        "vkCreatePipelineLayout");
  layout = std::move(made);
  return layout.get();
}

VkPipeline Pipelines::create(const ShaderCode& code, const PipelineLayout& layout) {
  const DeviceFunctions& vk = context_->vk();
  const VkDevice device = context_->device();
  auto module_info =
      vk_struct<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  module_info.codeSize = code.words.size() * sizeof(std::uint32_t);
  module_info.pCode = code.words.data();
  auto info =
      vk_struct<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  info.layout = layout.layout;
  check(vk.CreateShaderModule(device, &module_info, nullptr, &info.stage.module),
        "vkCreateShaderModule");
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vk.CreateComputePipelines(device, cache_, 1, &info, nullptr, &pipeline);
  vk.DestroyShaderModule(device, info.stage.module, nullptr);
  check(result, fmt::format("vkCreateComputePipelines of {}", code.name).c_str());
  return pipeline;
}

PipelinePointer Pipelines::find(std::uint64_t hash, const ShaderCode& code,
                                const PipelineLayout* layout) const {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry) {
    PipelinePointer pipeline = entry->second.lock();
    if (pipeline && pipeline->layout == layout && pipeline->code->words == code.words)
      return pipeline;
  }
  return nullptr;
}

std::size_t Pipelines::count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(by_hash_, [](const auto& entry) { return !entry.second.expired(); }));
}

/// Those that are not compiled in the end die with this call: the table forgets them.
std::vector<PipelinePointer> Pipelines::get(std::span<const Request> requests) {
  retired_->collect();
  std::vector<PipelinePointer> result;
  std::vector<std::shared_ptr<Pipeline>> missing;
  for (const Request& request : requests) {
    const ShaderCode& code = *request.code;
    const PipelineLayout* layout = layout_for(code.buffer_count, request.use_addresses);
    const std::uint64_t hash = XXH3_64bits_withSeed(
        code.words.data(), code.words.size() * sizeof(std::uint32_t), layout->descriptors);
    result.push_back(find(hash, code, layout));
    if (result.back()) continue;
    missing.push_back(std::make_shared<Pipeline>(request.code, layout, retired_));
    result.back() = missing.back();
    by_hash_.emplace(hash, missing.back());
  }
  if (missing.empty()) return result;
  std::erase_if(by_hash_, [](const auto& entry) { return entry.second.expired(); });
  workers_.for_each(missing.size(), WorkerPool::hardware_threads(), [&](std::size_t i) {
    missing[i]->handle = create(*missing[i]->code, *missing[i]->layout);
  });
  has_news_ = true;
  if (std::chrono::steady_clock::now() - last_save_ > between_saves_) {
    save();
    between_saves_ *= 2;
  }
  return result;
}

void Pipelines::save() noexcept try {
  const std::lock_guard lock(save_mutex_);
  if (!has_news_ || file_.path().empty()) return;
  has_news_ = false;
  last_save_ = std::chrono::steady_clock::now();
  const DeviceFunctions& vk = context_->vk();
  const VkDevice device = context_->device();
  // Another process may have written meanwhile; what it compiled is kept.
  if (const auto data = file_.read()) {
    auto info = vk_struct<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
    info.initialDataSize = data->size();
    info.pInitialData = data->data();
    VkPipelineCache other = VK_NULL_HANDLE;
    if (vk.CreatePipelineCache(device, &info, nullptr, &other) == VK_SUCCESS) {
      vk.MergePipelineCaches(device, cache_, 1, &other);
      vk.DestroyPipelineCache(device, other, nullptr);
    }
  }
  std::size_t bytes = 0;
  if (vk.GetPipelineCacheData(device, cache_, &bytes, nullptr) != VK_SUCCESS) return;
  std::vector<std::byte> data(bytes);
  if (vk.GetPipelineCacheData(device, cache_, &bytes, data.data()) != VK_SUCCESS) return;
  data.resize(bytes);
  file_.write(data);
} catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  // Memory or disk ran out: the cache is lost, nothing else.
}

}  // namespace vkml::vulkan
