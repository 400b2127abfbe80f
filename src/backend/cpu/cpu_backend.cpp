// The backend behind vkml::kCpu: compiles a plan into loops over tiles and calls of matrix and
// convolution libraries, and runs it to the end before it returns.
#include "cpu_backend.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <limits>
#include <mutex>

#include "caching_allocator.h"
#include "compiled_kernel.h"
#include "machine.h"
#include "onednn/library.h"
#include "run_context.h"
#include "threads.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/profile_log.h"

namespace vkml::cpu {
namespace {

using dispatch::Binding;
using dispatch::Bindings;
using dispatch::Buffer;
using dispatch::BufferKind;
using dispatch::Executable;
using dispatch::ExecutionGraph;
using dispatch::HostTimer;
using dispatch::HostWork;

class CpuExecutable final : public Executable {
 public:
  explicit CpuExecutable(ExecutionGraph plan) : graph(std::move(plan)) {
    for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
      kernels.push_back(compile_kernel(graph, i));
    }
  }

  ExecutionGraph graph;
  std::vector<std::unique_ptr<CompiledKernel>> kernels;
};

class CpuBackend final : public dispatch::Backend {
 public:
  dispatch::DeviceInfo info() const override {
    dispatch::DeviceInfo info;
    info.device = kCpu;
    info.name = processor_name();
    info.driver = instruction_set();
    info.memory_bytes = memory_bytes();
    info.features = {fmt::format("{} threads", thread_count()), matrix_library_name()};
    return info;
  }

  Allocator& allocator() override { return CachingAllocator::instance(); }
  Allocator& staging_allocator() override { return CachingAllocator::instance(); }

  bool supports(const graph::Node&, std::string&) const override { return true; }

  int max_operands() const override { return std::numeric_limits<int>::max(); }

  std::int64_t scratch_bytes(const dispatch::Kernel& kernel) const override {
    return scratch_bytes_of(kernel);
  }

  std::shared_ptr<Executable> compile(ExecutionGraph graph) override {
    return std::make_shared<CpuExecutable>(std::move(graph));
  }

  void reserve(Executable& executable) override {
    const std::lock_guard lock(mutex_);
    ensure_arena(static_cast<CpuExecutable&>(executable).graph.arena_bytes);
  }

  std::shared_ptr<Submission> run(Executable& executable, const Bindings& bindings) override {
    const auto& plan = static_cast<const CpuExecutable&>(executable);
    const std::lock_guard lock(mutex_);
    place_buffers(plan.graph, bindings);
    Status status;
    const RunContext context{addresses_.data(), bindings.scalars.data(), &status};
    const bool is_timed = bindings.timer != nullptr;
    std::vector<dispatch::KernelTime> times;
    try {
      for (const auto& kernel : plan.kernels) {
        if (is_timed) times.push_back({dispatch::steady_now(), 0});
        kernel->run(context);
        if (is_timed) times.back().end = dispatch::steady_now();
        if (status.failed()) break;
      }
    } catch (...) {
      throw dispatch::PartialRun{std::current_exception()};
    }
    if (is_timed) bindings.timer->finished(times, dispatch::TimeSource::kDevice);
    if (status.failed()) throw_failure(plan.graph, status.first());
    return nullptr;
  }

  void upload(Storage& target, std::int64_t offset, std::span<const std::byte> bytes) override {
    target.wait();
    if (bytes.empty()) return;
    const HostTimer timer(HostWork::kUpload, static_cast<std::int64_t>(bytes.size()));
    std::memcpy(static_cast<std::byte*>(target.host()) + offset, bytes.data(), bytes.size());
  }
  void download(const Storage& source, std::int64_t offset, std::span<std::byte> bytes) override {
    source.wait();
    if (bytes.empty()) return;
    const HostTimer timer(HostWork::kDownload, static_cast<std::int64_t>(bytes.size()));
    std::memcpy(bytes.data(), static_cast<const std::byte*>(source.host()) + offset, bytes.size());
  }

  void synchronize() override {}

  void trim() override {
    {
      const std::lock_guard lock(mutex_);
      arena_.reset();
    }
    CachingAllocator::instance().trim();
  }
  std::int64_t allocated_bytes() const override {
    return CachingAllocator::instance().allocated_bytes();
  }

 private:
  void ensure_arena(std::int64_t bytes) {
    const auto wanted = static_cast<std::size_t>(bytes);
    if (wanted == 0 || (arena_ && arena_->bytes() >= wanted)) return;
    arena_.reset();
    arena_ = allocator().allocate(wanted);
  }

  void place_buffers(const ExecutionGraph& graph, const Bindings& bindings) {
    ensure_arena(graph.arena_bytes);
    addresses_.clear();
    for (const Buffer& buffer : graph.buffers) addresses_.push_back(address_of(buffer, bindings));
  }

  std::byte* address_of(const Buffer& buffer, const Bindings& bindings) const {
    if (buffer.kind == BufferKind::kTemporary) {
      // A plan may name temporaries of no bytes without an arena.
      return arena_ ? static_cast<std::byte*>(arena_->host()) + buffer.arena_offset : nullptr;
    }
    const auto& list = buffer.kind == BufferKind::kInput ? bindings.inputs : bindings.results;
    const Binding& binding = list[static_cast<std::size_t>(buffer.binding)];
    return static_cast<std::byte*>(binding.storage->host()) + binding.offset;
  }

  [[noreturn]] static void throw_failure(const ExecutionGraph& graph,
                                         const Status::Failure& failure) {
    const dispatch::Site& site = graph.sites[static_cast<std::size_t>(failure.site)];
    std::rethrow_exception(dispatch::failure_at(site, failure.index));
  }

  std::mutex mutex_;  // one run at a time: of the arena, the addresses and the kernels
  StoragePtr arena_;
  std::vector<std::byte*> addresses_;  // by buffer, of the run in progress
};

}  // namespace

std::unique_ptr<dispatch::Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace vkml::cpu
