// Compute pipelines of one device: one for each distinct shader, made on worker threads, kept by
// the driver's cache from one process to the next.
#pragma once

#include <vulkan/vulkan_core.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "device_context.h"
#include "pipeline_cache_file.h"
#include "worker_pool.h"

namespace vkml::vulkan {

/// What all shaders with as many buffers share.
struct PipelineLayout {
  VkDescriptorSetLayout set = VK_NULL_HANDLE;  // null when buffers go by address
  VkPipelineLayout layout = VK_NULL_HANDLE;
  std::uint32_t descriptors = 0;  // 0 when buffers go by address
  bool pushes_descriptors = false;
};

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  const PipelineLayout* layout = nullptr;
};

class Pipelines {
 public:
  Pipelines(std::shared_ptr<DeviceContext> context, WorkerPool& workers);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  struct Request {
    const ShaderCode* code = nullptr;
    bool use_addresses = false;
  };
  /// The pipelines of the shaders, in order; those that are missing are compiled in parallel. They
  /// live as long as this object.
  std::vector<const Pipeline*> get(std::span<const Request> requests);

  /// Writes the driver's cache to disk if it holds anything new.
  void save() noexcept;
  std::size_t count() const { return pipelines_.size(); }

 private:
  struct Key {
    std::vector<std::uint32_t> words;
    const PipelineLayout* layout;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  const PipelineLayout* layout_for(std::uint32_t buffers, bool use_addresses);
  VkPipeline create(const ShaderCode& code, const PipelineLayout& layout);
  void open_cache();

  std::shared_ptr<DeviceContext> context_;
  WorkerPool& workers_;
  PipelineCacheFile file_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::map<std::uint32_t, std::unique_ptr<PipelineLayout>> layouts_;  // by descriptor count
  std::unordered_map<Key, std::unique_ptr<Pipeline>, Hash> pipelines_;
  std::mutex save_mutex_;
  bool has_news_ = false;
  std::chrono::steady_clock::time_point last_save_{};
};

}  // namespace vkml::vulkan
