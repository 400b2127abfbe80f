#include "roof.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "vkml/api/context.h"
#include "vkml/api/functions.h"
#include "vkml/api/jit.h"
#include "vkml/core/error.h"
#include "vkml/dispatch/backend.h"
#include "vkml/dispatch/profile_log.h"

namespace vkml {
namespace {

struct Work {
  std::int64_t copy_elements;  // of f32
  std::int64_t product;        // rows and columns
};

/// More than the last-level caches hold, and less than the device does.
Work work_for(Device device) {
  if (device.kind == DeviceKind::kCpu) return {std::int64_t{1} << 24, 1024};
  if (dispatch::backend_for(device).info().is_software) return {std::int64_t{1} << 23, 384};
  return {std::int64_t{1} << 26, 4096};
}

/// Seconds of the fastest of some runs, several of which are under way at once.
double fastest(Device device, const std::function<Tensor()>& run) {
  constexpr int kBatches = 4;
  constexpr int kRuns = 4;
  run().realize();
  double best = std::numeric_limits<double>::max();
  for (int batch = 0; batch < kBatches; ++batch) {
    synchronize(device);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRuns; ++i) run().realize();
    synchronize(device);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / kRuns);
  }
  return best;
}

double measure_copy(Device device) {
  const std::int64_t elements = work_for(device).copy_elements;
  const Tensor x = ones({elements}, DType::kF32, device).realize();
  return 2.0 * sizeof(float) * static_cast<double>(elements) / fastest(device, [&] { return -x; });
}

double measure_product(Device device, DType dtype) {
  const std::int64_t size = work_for(device).product;
  const Tensor a = full({size, size}, 0.5, dtype, device).realize();
  const Tensor b = full({size, size}, 0.25, dtype, device).realize();
  const auto n = static_cast<double>(size);
  return 2.0 * n * n * n / fastest(device, [&] { return matmul(a, b); });
}

/// What was measured, by device and, of products, dtype.
using Key = std::pair<int, std::optional<DType>>;

class Roofs {
 public:
  std::optional<double> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  }
  void add(const Key& key, double roof) {
    const std::lock_guard lock(mutex_);
    known_.emplace(key, roof);
  }

 private:
  std::mutex mutex_;
  std::map<Key, double> known_;
};

/// What was measured before, else what `measure` finds. What fails now may succeed later. Measured
/// without a lock: two threads may do so at once.
template <typename Measure>
std::optional<double> known_or(const Key& key, Measure measure) {
  static auto* roofs = new Roofs;
  if (const auto known = roofs->find(key)) return known;
  if (dispatch::profile_is_open() || is_recording()) return std::nullopt;
  const NoGrad scope;
  try {
    roofs->add(key, measure());
  } catch (const Error&) {
    return std::nullopt;
  }
  return roofs->find(key);
}

}  // namespace

std::optional<double> copy_roof(Device device) {
  return known_or({key_of(device), std::nullopt}, [&] { return measure_copy(device); });
}

std::optional<double> product_roof(Device device, DType dtype) {
  return known_or({key_of(device), dtype}, [&] { return measure_product(device, dtype); });
}

}  // namespace vkml
