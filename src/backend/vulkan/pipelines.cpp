#include "pipelines.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <utility>

#include "check.h"
#include "process_state.h"
#include "vk_struct.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

std::size_t Pipelines::Hash::operator()(const Key& key) const {
  return XXH3_64bits_withSeed(key.words.data(), key.words.size() * sizeof(std::uint32_t),
                              key.layout->descriptors);
}

Pipelines::Pipelines(std::shared_ptr<DeviceContext> context, WorkerPool& workers)
    : context_(std::move(context)), workers_(workers), file_(context_->profile()) {
  open_cache();
}

Pipelines::~Pipelines() {
  if (!vulkan_is_usable()) return;
  save();
  context_->queue().drain(10);
  const DeviceFunctions& vk = context_->vk();
  const VkDevice device = context_->device();
  for (const auto& [key, pipeline] : pipelines_) {
    vk.DestroyPipeline(device, pipeline->handle, nullptr);
  }
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
    throw UnsupportedError(fmt::format(
        "[{}] a kernel needs {} buffers, but the device's maxPerStageDescriptorStorageBuffers is "
        "{}. Evaluate intermediate results with realize(), or use vkml.cpu",
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

std::vector<const Pipeline*> Pipelines::get(std::span<const Request> requests) {
  struct Missing {
    const ShaderCode* code;
    Pipeline* pipeline;
    const Key* key;
  };
  std::vector<Missing> missing;
  std::vector<const Pipeline*> result;
  for (const Request& request : requests) {
    const PipelineLayout* layout = layout_for(request.code->buffer_count, request.use_addresses);
    const auto [place, is_new] = pipelines_.try_emplace(Key{request.code->words, layout});
    if (is_new) {
      place->second = std::make_unique<Pipeline>(Pipeline{VK_NULL_HANDLE, layout});
      missing.push_back({request.code, place->second.get(), &place->first});
    }
    result.push_back(place->second.get());
  }
  if (missing.empty()) return result;
  try {
    workers_.for_each(missing.size(), WorkerPool::hardware_threads(), [&](std::size_t i) {
      missing[i].pipeline->handle = create(*missing[i].code, *missing[i].pipeline->layout);
    });
  } catch (...) {
    for (const Missing& entry : missing) {
      if (entry.pipeline->handle == VK_NULL_HANDLE) pipelines_.erase(pipelines_.find(*entry.key));
    }
    throw;
  }
  constexpr std::chrono::seconds kBetweenSaves{10};
  has_news_ = true;
  if (std::chrono::steady_clock::now() - last_save_ > kBetweenSaves) save();
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
} catch (const std::exception&) {
  // Memory or disk ran out: the cache is lost, nothing else.
}

}  // namespace vkml::vulkan
