// Modes and devices: what holds for a thread or for the process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vkml/core/device.h"
#include "vkml/ops/autocast_mode.h"
#include "vkml/ops/matmul_precision.h"

namespace vkml {

/// Turns recording of gradients off in this thread while it lives.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
bool is_grad_enabled();
/// Sets it for this thread; returns what it was.
bool set_grad_enabled(bool enabled);

/// Eager mode realises after every operator, so that a failure surfaces where it was caused. Off by
/// default; VKML_EAGER=1 starts with it on.
void set_eager(bool eager);
/// Whether this thread's operators do.
bool is_eager();
/// Sets whether this thread's operators record in eager mode too, and compute nothing before it is
/// observed; returns what it was. For functions whose record is wanted, not their values.
bool set_recording_only(bool enabled);

/// Chains longer than this that nobody has read and that need no gradient are computed as they are
/// recorded, so that a loop that never reads its result runs in bounded memory. 0: never.
void set_depth_limit(std::uint32_t limit);
std::uint32_t depth_limit();

/// How f32 matrix products that are recorded from now on may be rounded: kHighest, the default,
/// keeps f32's precision, kHigh about 16 bits where that is faster (matrix units; elsewhere no
/// change).
using graph::matmul_precision;
using graph::MatmulPrecision;
using graph::set_matmul_precision;

/// Mixed precision in this thread: what matrix products, convolutions and attention take float32
/// operands as, kF16 or kBF16; kF32 while it is off. Sums, norms, exponentials and losses of
/// half-precision operands are float32 while it is on.
using graph::autocast_dtype;
using graph::set_autocast_dtype;

struct DeviceDescription {
  Device device;
  std::string name, driver;
  std::int64_t memory_bytes = 0;
  bool is_software = false;
  std::vector<std::string> features;
};
/// Every device here. A driver that fails is left out; the CPU is always first.
std::vector<DeviceDescription> devices();
/// What devices() leaves out, with the reason and the remedy: under its name a device whose driver
/// fails ("vulkan:1"), under the name of its kind ("vulkan") a kind of which there is none.
std::map<std::string, std::string> missing_devices();
/// Where tensors are made when no device is given: the CPU unless set. Throws DeviceError.
void set_default_device(Device device);
Device default_device();
/// Waits for everything submitted to a device (to every device in use).
void synchronize(Device device);
void synchronize();
/// Recorded operations alive now, for tests of memory.
std::int64_t live_node_count();
/// Bytes that a device's backend holds.
std::int64_t allocated_bytes(Device device);

struct CacheInfo {
  std::int64_t hits = 0, misses = 0, plans = 0, kernels = 0;
};
CacheInfo cache_info(Device device);
void clear_cache(Device device);

/// How often each operator ran on each device since set_coverage(true).
void set_coverage(bool enabled);
std::map<std::string, std::map<std::string, std::int64_t>> coverage();
void clear_coverage();

/// The seed of every random draw that follows; draws are numbered from it, so the order of reading
/// changes none of them.
void manual_seed(std::uint64_t seed);
std::uint64_t initial_seed();

}  // namespace vkml
