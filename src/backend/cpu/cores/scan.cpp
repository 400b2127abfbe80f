// Scans: what is carried along an axis, element by element. Lines are independent and divided among
// threads; where the axis is not the last, a panel of neighbouring lines advances together, so that
// memory is read in rows. Sums and products of f32 are carried in double, which costs nothing here.
// Bound: memory where there are many lines, the latency of one operation where there are few.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cores/core_result.h"
#include "cores/line_walk.h"
#include "cores/ordering.h"
#include "scratch.h"
#include "threads.h"
#include "tile/transfer.h"
#include "vkml/core/error.h"
#include "vkml/ops/core_kind.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using dispatch::Operand;
using ops::ScanKind;

constexpr std::int64_t kPanel = 256;   // lines that advance together
constexpr std::int64_t kChunk = 4096;  // elements of one line that are converted together

template <typename T>
auto wrapping(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

/// What one line carries.
template <typename T, ScanKind kKind>
struct Carried {
  using Result = T;
  decltype(wrapping(T{})) value = wrapping(kKind == ScanKind::kProduct ? T{1} : T{0});

  T step(T a, T b, std::int64_t) {
    if constexpr (kKind == ScanKind::kSum) value += wrapping(a);
    if constexpr (kKind == ScanKind::kProduct) value *= wrapping(a);
    if constexpr (kKind == ScanKind::kLinear) value = wrapping(a) * value + wrapping(b);
    return static_cast<T>(value);
  }
};

template <typename T, bool kLargest>
struct CarriedPosition {
  using Result = std::int32_t;
  T best{};
  std::int32_t position = 0;

  std::int32_t step(T a, T, std::int64_t i) {
    const bool reaches = kLargest ? a >= best : a <= best;
    if (i == 0 || is_nan(a) || (!is_nan(best) && reaches)) {
      best = a;
      position = static_cast<std::int32_t>(i);
    }
    return position;
  }
};
template <typename T>
struct Carried<T, ScanKind::kArgMax> : CarriedPosition<T, true> {};
template <typename T>
struct Carried<T, ScanKind::kArgMin> : CarriedPosition<T, false> {};

template <typename T>
T* scratch_for(ScratchPurpose purpose, std::int64_t count) {
  return reinterpret_cast<T*>(thread_scratch(purpose, static_cast<std::size_t>(count) * sizeof(T)));
}

class Scan final : public CompiledKernel {
 public:
  Scan(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : axis_(static_cast<std::size_t>(kernel.attributes[0])),
        kind_(static_cast<ScanKind>(kernel.attributes[1])),
        space_(kernel.space),
        a_(kernel.core_inputs[0]),
        b_(kernel.core_inputs.back()),
        result_(kernel, graph.buffers, TargetLayout::kAnyStrides) {}

  void run(const RunContext& run) override {
    if (dispatch::numel(space_) > 0) {
      switch (ops::compute_type(a_.dtype)) {
        case ops::ScalarType::kF32:
          run_type<float>(run);
          break;
        case ops::ScalarType::kF64:
          run_type<double>(run);
          break;
        case ops::ScalarType::kI32:
          run_type<std::int32_t>(run);
          break;
        case ops::ScalarType::kI64:
          run_type<std::int64_t>(run);
          break;
        case ops::ScalarType::kBool:
          throw UnsupportedError("[scan] the CPU scans numbers, not booleans");
      }
    }
    result_.finish(run);
  }

 private:
  template <typename T>
  void run_type(const RunContext& run) const {
    switch (kind_) {
      case ScanKind::kSum:
        return run_kind<T, ScanKind::kSum>(run);
      case ScanKind::kProduct:
        return run_kind<T, ScanKind::kProduct>(run);
      case ScanKind::kLinear:
        return run_kind<T, ScanKind::kLinear>(run);
      case ScanKind::kArgMax:
        return run_kind<T, ScanKind::kArgMax>(run);
      case ScanKind::kArgMin:
        return run_kind<T, ScanKind::kArgMin>(run);
    }
  }

  template <typename T, ScanKind kKind>
  void run_kind(const RunContext& run) const {
    constexpr double kNanosecondsPerElement = 1;
    const bool parallel =
        worth_threads(kNanosecondsPerElement * static_cast<double>(dispatch::numel(space_)));
    if (axis_ == 3) {
      const Lines lines(space_, axis_);
      parallel_shares(lines.count(), parallel, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t line = begin; line < end; ++line) scan_line<T, kKind>(run, lines, line);
      });
      return;
    }
    // Rows of the last axis take the place of single lines.
    dispatch::Extents outer = space_;
    outer[3] = (space_[3] + kPanel - 1) / kPanel;
    const Lines panels(outer, axis_);
    parallel_shares(panels.count(), parallel, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t panel = begin; panel < end; ++panel) {
        scan_panel<T, kKind>(run, panels, panel);
      }
    });
  }

  template <typename T, ScanKind kKind>
  void scan_line(const RunContext& run, const Lines& lines, std::int64_t line) const {
    using Line = Carried<T, kKind>;
    const Operand& target = result_.target();
    auto* out = reinterpret_cast<typename Line::Result*>(
        element_at(target, run, lines.start(target, line)));
    T* a = scratch_for<T>(ScratchPurpose::kPlane, kChunk);
    T* b = kKind == ScanKind::kLinear ? scratch_for<T>(ScratchPurpose::kPatches, kChunk) : a;
    Line carried;
    for (std::int64_t begin = 0; begin < lines.length(); begin += kChunk) {
      const std::int64_t count = std::min(kChunk, lines.length() - begin);
      read(a_, run, lines.start(a_, line) + begin * a_.strides[3], a_.strides[3], count, a);
      if (kKind == ScanKind::kLinear) {
        read(b_, run, lines.start(b_, line) + begin * b_.strides[3], b_.strides[3], count, b);
      }
      for (std::int64_t i = 0; i < count; ++i) {
        out[(begin + i) * target.strides[3]] = carried.step(a[i], b[i], begin + i);
      }
    }
  }

  template <typename T, ScanKind kKind>
  void scan_panel(const RunContext& run, const Lines& panels, std::int64_t panel) const {
    using Line = Carried<T, kKind>;
    const Operand& target = result_.target();
    const std::int64_t blocks = (space_[3] + kPanel - 1) / kPanel;
    const std::int64_t column = panel % blocks * kPanel;
    const std::int64_t count = std::min(kPanel, space_[3] - column);
    // The last axis counts panels in `panels`, elements in the operands.
    const auto start = [&](const Operand& operand) {
      const std::int64_t first = panels.start(operand, panel);
      return first + (column - column / kPanel) * operand.strides[3];
    };
    auto* out = reinterpret_cast<typename Line::Result*>(element_at(target, run, start(target)));
    T* a = scratch_for<T>(ScratchPurpose::kPlane, kPanel);
    T* b = kKind == ScanKind::kLinear ? scratch_for<T>(ScratchPurpose::kPatches, kPanel) : a;
    Line carried[kPanel];
    for (std::int64_t i = 0; i < panels.length(); ++i) {
      read(a_, run, start(a_) + i * a_.strides[axis_], a_.strides[3], count, a);
      if (kKind == ScanKind::kLinear) {
        read(b_, run, start(b_) + i * b_.strides[axis_], b_.strides[3], count, b);
      }
      auto* row = out + i * target.strides[axis_];
      for (std::int64_t k = 0; k < count; ++k) {
        row[k * target.strides[3]] = carried[k].step(a[k], b[k], i);
      }
    }
  }

  static void read(const Operand& operand, const RunContext& run, std::int64_t position,
                   std::int64_t stride, std::int64_t count, void* values) {
    load_elements(values, element_at(operand, run, position), operand.dtype, count, stride);
  }

  std::size_t axis_;
  ScanKind kind_;
  dispatch::Extents space_;
  Operand a_, b_;
  CoreResult result_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_scan(const Kernel& kernel,
                                             const dispatch::ExecutionGraph& graph) {
  return std::make_unique<Scan>(kernel, graph);
}

}  // namespace vkml::cpu
