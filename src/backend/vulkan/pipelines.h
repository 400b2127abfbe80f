// Compute pipelines of one device: one for each distinct shader of the executables that live, made
// on worker threads. The driver's cache keeps what it compiled from one process to the next.
#pragma once

#include <vulkan/vulkan_core.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
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

/// Pipelines that nothing will run again. They are destroyed when the device has run all that was
/// submitted by then.
class RetiredPipelines {
 public:
  explicit RetiredPipelines(std::shared_ptr<DeviceContext> context)
      : context_(std::move(context)) {}
  ~RetiredPipelines();
  RetiredPipelines(const RetiredPipelines&) = delete;
  RetiredPipelines& operator=(const RetiredPipelines&) = delete;

  void add(VkPipeline handle);
  /// Destroys those that the device is done with.
  void collect();

 private:
  struct Retired {
    VkPipeline handle;
    std::uint64_t last_use;
  };
  std::shared_ptr<DeviceContext> context_;
  std::mutex mutex_;  // executables die on any thread
  std::deque<Retired> waiting_;
};

struct Pipeline {
  Pipeline(std::shared_ptr<const ShaderCode> shader, const PipelineLayout* shared,
           std::shared_ptr<RetiredPipelines> afterwards)
      : code(std::move(shader)), layout(shared), retired(std::move(afterwards)) {}
  ~Pipeline() { retired->add(handle); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  std::shared_ptr<const ShaderCode> code;
  const PipelineLayout* layout;
  std::shared_ptr<RetiredPipelines> retired;
  VkPipeline handle = VK_NULL_HANDLE;
};
using PipelinePointer = std::shared_ptr<const Pipeline>;

class Pipelines {
 public:
  Pipelines(std::shared_ptr<DeviceContext> context, WorkerPool& workers);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  struct Request {
    std::shared_ptr<const ShaderCode> code;
    bool use_addresses = false;
  };
  /// The pipelines of the shaders, in order; those that are missing are compiled in parallel.
  std::vector<PipelinePointer> get(std::span<const Request> requests);

  /// Writes the driver's cache to disk if it holds anything new.
  void save() noexcept;
  /// How many are in use.
  std::size_t count() const;

 private:
  const PipelineLayout* layout_for(std::uint32_t buffers, bool use_addresses);
  PipelinePointer find(std::uint64_t hash, const ShaderCode& code,
                       const PipelineLayout* layout) const;
  VkPipeline create(const ShaderCode& code, const PipelineLayout& layout);
  void open_cache();

  std::shared_ptr<DeviceContext> context_;
  WorkerPool& workers_;
  PipelineCacheFile file_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::map<std::uint32_t, std::unique_ptr<PipelineLayout>> layouts_;  // by descriptor count
  std::shared_ptr<RetiredPipelines> retired_;
  std::unordered_multimap<std::uint64_t, std::weak_ptr<const Pipeline>> by_hash_;
  std::mutex save_mutex_;
  bool has_news_ = false;
  std::chrono::steady_clock::time_point last_save_{};
  std::chrono::seconds between_saves_{10};  // doubles, so that a long run writes seldom
};

}  // namespace vkml::vulkan
