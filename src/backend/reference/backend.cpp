// The reference as a backend: synchronous, one element at a time, no scratch and no arena. Slow by
// intention; bound by the definitions it follows.

#include <unistd.h>

#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

#include "evaluate.h"
#include "host_allocator.h"
#include "vkml/backend/reference/register.h"
#include "vkml/core/error.h"

namespace vkml::reference {
namespace {

using dispatch::Bindings;
using dispatch::ExecutionGraph;

class ReferenceExecutable final : public dispatch::Executable {
 public:
  explicit ReferenceExecutable(ExecutionGraph graph) : graph_(std::move(graph)) {}
  const ExecutionGraph& graph() const { return graph_; }

 private:
  ExecutionGraph graph_;
};

class ReferenceBackend final : public dispatch::Backend {
 public:
  dispatch::DeviceInfo info() const override {
    dispatch::DeviceInfo info;
    info.device = kCpu;
    info.name = "reference";
    info.driver = "double precision, from definitions";
    info.memory_bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return info;
  }
  Allocator& allocator() override { return allocator_; }
  Allocator& staging_allocator() override { return allocator_; }
  bool supports(const graph::Node&, std::string&) const override { return true; }
  int max_operands() const override { return std::numeric_limits<int>::max(); }
  std::int64_t scratch_bytes(const dispatch::Kernel&) const override { return 0; }

  std::shared_ptr<dispatch::Executable> compile(ExecutionGraph graph) override {
    return std::make_shared<ReferenceExecutable>(std::move(graph));
  }

  void reserve(dispatch::Executable&) override {}
  /// Everything is evaluated before anything is written: a failure leaves every storage as it was.
  std::shared_ptr<Submission> run(dispatch::Executable& executable,
                                  const Bindings& bindings) override {
    const ExecutionGraph& graph = static_cast<ReferenceExecutable&>(executable).graph();
    try {
      for (const Result& result : evaluate(graph, bindings)) {
        const dispatch::Binding& binding =
            bindings.results[static_cast<std::size_t>(result.binding)];
        store(result.value, static_cast<std::byte*>(binding.storage->host()) + binding.offset);
      }
    } catch (const std::bad_alloc&) {
      throw OutOfMemoryError("[realize] the reference ran out of memory for its values");
    } catch (const std::length_error&) {
      throw OutOfMemoryError("[realize] a value is larger than the reference can hold");
    }
    return nullptr;
  }

  void upload(Storage& target, std::int64_t offset, std::span<const std::byte> bytes) override {
    target.wait();
    if (bytes.empty()) return;
    std::memcpy(static_cast<std::byte*>(target.host()) + offset, bytes.data(), bytes.size());
  }
  void download(const Storage& source, std::int64_t offset, std::span<std::byte> bytes) override {
    source.wait();
    if (bytes.empty()) return;
    std::memcpy(bytes.data(), static_cast<const std::byte*>(source.host()) + offset, bytes.size());
  }
  void synchronize() override {}
  void trim() override {}
  std::int64_t allocated_bytes() const override { return allocator_.allocated_bytes(); }

 private:
  HostAllocator allocator_;
};

}  // namespace

std::unique_ptr<dispatch::Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

void register_reference_backend() {
  dispatch::register_backend(
      DeviceKind::kCpu, [](int) { return make_reference_backend(); }, [] { return 1; });
}

}  // namespace vkml::reference
