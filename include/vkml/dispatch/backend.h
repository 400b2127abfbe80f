// What a device must offer. Nothing above this interface knows which device it talks to.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vkml/core/allocator.h"
#include "vkml/dispatch/execution_graph.h"
#include "vkml/dispatch/kernel_timer.h"
#include "vkml/graph/node.h"

namespace vkml::dispatch {

/// A compiled plan: no addresses, no leaves, reusable with any bindings of the same structure.
class Executable {
 public:
  virtual ~Executable() = default;
};

struct Binding {
  Storage* storage = nullptr;
  std::int64_t offset = 0;  // bytes
  bool is_read = true;      // inputs: false where the old value is overwritten unread
};

struct Bindings {
  std::vector<Binding> inputs;
  std::vector<Binding> results;
  std::vector<std::uint64_t> scalars;  // bits, of the types in ExecutionGraph::scalars
  std::shared_ptr<KernelTimer> timer;  // told when the kernels ran; null: nobody asks
};

struct DeviceInfo {
  Device device;
  std::string name;    // "AMD EPYC", "NVIDIA H200"
  std::string driver;  // driver or instruction set
  std::int64_t memory_bytes = 0;
  bool is_software = false;  // a Vulkan driver that runs on the CPU
  std::vector<std::string> features;
};

/// Operands that every device has room for in a kernel, beside numbers, status and scratch. One
/// operator has more: the gradients of masked attention have eight, and none of those.
inline constexpr int kLeastOperands = 5;

/// Thrown by Backend::run() when it fails with part of the plan done: a block that the plan writes
/// in place holds neither its old nor its new value.
struct PartialRun {
  std::exception_ptr cause;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual DeviceInfo info() const = 0;
  virtual Allocator& allocator() = 0;
  /// Host-visible memory for transfers, on the same device.
  virtual Allocator& staging_allocator() = 0;

  /// Whether the node can be evaluated; if not, `reason` says why, for people.
  virtual bool supports(const graph::Node& node, std::string& reason) const = 0;

  /// Whether the device computes with a dtype. Values of others can lie there, no more.
  virtual bool has_arithmetic(DType) const { return true; }

  /// The most operands of one kernel, kLeastOperands or more: plans share kernels within it.
  virtual int max_operands() const = 0;

  /// Bytes of scratch that a kernel wants beside its operands (0: none).
  virtual std::int64_t scratch_bytes(const Kernel& kernel) const = 0;

  /// The longest block that the arena may be made of.
  virtual std::int64_t max_block_bytes() const { return kAnyBlock; }

  /// Pure: depends on the graph alone.
  virtual std::shared_ptr<Executable> compile(ExecutionGraph graph) = 0;

  /// Takes the memory that running needs beside its bindings. Throws OutOfMemoryError.
  virtual void reserve(Executable& executable) = 0;

  /// Runs the whole plan. Returns the submission that writes the results, or null when they are
  /// written already. A kernel that meets a set status word writes no storage that outlives the
  /// graph. Throws IndexError (synchronous devices), with every block that outlives the graph as it
  /// was; OutOfMemoryError and DeviceError before it wrote anything; PartialRun around them
  /// afterwards. With a timer in the bindings, kernels run one after the other, and the timer is
  /// told of them; a backend that evaluates no kernels ignores it.
  virtual std::shared_ptr<Submission> run(Executable& executable, const Bindings& bindings) = 0;

  /// Blocking copies between host memory and a storage; they wait for what writes the storage.
  virtual void upload(Storage& target, std::int64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void download(const Storage& source, std::int64_t offset, std::span<std::byte> bytes) = 0;

  /// Waits for everything submitted.
  virtual void synchronize() = 0;
  /// Gives cached memory back to the system.
  virtual void trim() = 0;
  /// Bytes taken from the system, for storages and the arena.
  virtual std::int64_t allocated_bytes() const = 0;
};

/// The backend of a device, made on first use. Throws DeviceError when there is none.
Backend& backend_for(Device device);

/// Called once by each backend's folder, before first use (api/runtime.cpp does it for all).
using BackendFactory = std::unique_ptr<Backend> (*)(int index);
void register_backend(DeviceKind kind, BackendFactory factory, int (*count)());
/// Devices whose backend has been made.
std::vector<Device> devices_in_use();
/// How many devices of a kind there are; 0 when the driver is missing.
int device_count(DeviceKind kind);

}  // namespace vkml::dispatch
