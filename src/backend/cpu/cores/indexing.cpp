#include "cores/indexing.h"

#include <cstring>
#include <optional>

#include "cores/core_result.h"
#include "cores/dense_copy.h"
#include "cores/index_check.h"
#include "scratch.h"
#include "threads.h"
#include "tile/aliasing.h"
#include "tile/transfer.h"
#include "vkml/core/error.h"
#include "vkml/ops/core_kind.h"

namespace vkml::cpu {
namespace {

using dispatch::Extents;
using dispatch::Kernel;
using dispatch::Operand;

std::int64_t bytes_of(const Operand& operand) {
  return static_cast<std::int64_t>(size_of(operand.dtype));
}

// The position of row `row` (of the axes before the last) in an operand, without axis `skipped`.
std::int64_t row_position(const Operand& operand, const Extents& extents, std::int64_t row,
                          std::size_t skipped) {
  std::int64_t position = 0;
  for (std::size_t axis = 3; axis-- > 0;) {
    if (axis != skipped) position += row % extents[axis] * operand.strides[axis];
    row /= extents[axis];
  }
  return position;
}

std::int64_t read_index(const Operand& index, const std::byte* data, std::int64_t position) {
  return index.dtype == DType::kI64 ? reinterpret_cast<const std::int64_t*>(data)[position]
                                    : reinterpret_cast<const std::int32_t*>(data)[position];
}

constexpr std::size_t kNoAxis = 4;

// Moves elements as they are, without converting them. Bound: memory.
class Gather final : public CompiledKernel {
 public:
  Gather(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : check_(index_check_of(kernel)),
        axis_(static_cast<std::size_t>(kernel.attributes[0])),
        space_(kernel.space),
        x_(kernel.core_inputs[0]),
        index_(kernel.core_inputs[1]) {
    if (moves_bits(kernel)) {
      target_ = kernel.stores[0];
    } else {
      result_.emplace(kernel, graph.buffers, TargetLayout::kAnyStrides);
      target_ = result_->target();
    }
  }

  /// Whether the result has the source's own type, so that its bits can be moved.
  static bool moves_bits(const Kernel& kernel) {
    return is_identity(kernel) && kernel.stores[0].dtype == kernel.core_inputs[0].dtype;
  }

  void run(const RunContext& run) override {
    if (!check_.run(run)) return;
    const std::int64_t rows = space_[0] * space_[1] * space_[2];
    if (rows * space_[3] > 0) {
      constexpr double kNanosecondsPerElement = 0.5;
      const bool parallel =
          worth_threads(kNanosecondsPerElement * static_cast<double>(rows * space_[3]));
      parallel_shares(rows, parallel, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) move_row(run, row);
      });
    }
    if (result_) result_->finish(run);
  }

 private:
  void move_row(const RunContext& run, std::int64_t row) const {
    const std::byte* indices = address_of(index_, run);
    const std::int64_t index_at = row_position(index_, space_, row, kNoAxis);
    const std::byte* x = address_of(x_, run) + row_position(x_, space_, row, axis_) * bytes_of(x_);
    std::byte* target =
        address_of(target_, run) + row_position(target_, space_, row, kNoAxis) * bytes_of(target_);
    if (axis_ != 3 && index_.strides[3] == 0) {
      const std::int64_t index = read_index(index_, indices, index_at);
      move(target, target_.strides[3], x + index * x_.strides[axis_] * bytes_of(x_), x_.strides[3],
           space_[3]);
      return;
    }
    for (std::int64_t i = 0; i < space_[3]; ++i) {
      const std::int64_t index = read_index(index_, indices, index_at + i * index_.strides[3]);
      const std::int64_t at = index * x_.strides[axis_] + (axis_ == 3 ? 0 : i * x_.strides[3]);
      move(target + i * target_.strides[3] * bytes_of(target_), 1, x + at * bytes_of(x_), 1, 1);
    }
  }

  void move(std::byte* target, std::int64_t target_stride, const std::byte* source,
            std::int64_t source_stride, std::int64_t n) const {
    if (target_stride == 1 && x_.dtype != target_.dtype) {
      load_elements(target, source, x_.dtype, n, source_stride);
      return;
    }
    if (target_stride == 1 && source_stride == 1) {
      std::memcpy(target, source, static_cast<std::size_t>(n * bytes_of(x_)));
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      move(target + i * target_stride * bytes_of(target_), 1,
           source + i * source_stride * bytes_of(x_), 1, 1);
    }
  }

  IndexCheck check_;
  std::size_t axis_;
  Extents space_;
  Operand x_;
  Operand index_;
  Operand target_;
  std::optional<CoreResult> result_;
};

// Combines rows of the source in their order; threads divide the axes that are not indexed, so that
// the order of operations on an element never changes. Bound: memory.
class Scatter final : public CompiledKernel {
 public:
  Scatter(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : check_(index_check_of(kernel)),
        axis_(static_cast<std::size_t>(kernel.attributes[0])),
        kind_(static_cast<ops::ScatterKind>(kernel.attributes[1])),
        index_(kernel.core_inputs[1]),
        source_(kernel.core_inputs[2]),
        result_(kernel, graph.buffers, TargetLayout::kAnyStrides) {
    const Operand& base = kernel.core_inputs[0];
    const Operand& target = result_.target();
    const bool in_place = may_overlap(graph.buffers, base.buffer, target.buffer) &&
                          base.strides == target.strides && base.dtype == target.dtype;
    if (!in_place) copy_base_.emplace(copy_region(base, target, graph.buffers));
  }

  void run(const RunContext& run) override {
    if (!check_.run(run)) return;
    if (copy_base_) copy_base_->run(run);
    if (dispatch::numel(index_.extents) > 0) {
      switch (result_.target().dtype) {
        case DType::kF32:
          combine_all<float>(run);
          break;
        case DType::kF64:
          combine_all<double>(run);
          break;
        case DType::kI32:
          combine_all<std::int32_t>(run);
          break;
        case DType::kI64:
          combine_all<std::int64_t>(run);
          break;
        default:
          throw UnsupportedError("[scatter] the CPU combines numbers, not booleans");
      }
    }
    result_.finish(run);
  }

 private:
  // The axis that threads divide: the outermost that is not indexed and has enough elements.
  std::size_t divided_axis() const {
    std::size_t best = kNoAxis;
    for (std::size_t axis = 0; axis < index_.extents.size(); ++axis) {
      if (axis == axis_ || index_.extents[axis] < 2) continue;
      if (best == kNoAxis || index_.extents[axis] > index_.extents[best]) best = axis;
    }
    return best;
  }

  template <typename T>
  void combine_all(const RunContext& run) const {
    using ops::ScatterKind;
    switch (kind_) {
      case ScatterKind::kAdd:
        return combine_all<T, ScatterKind::kAdd>(run);
      case ScatterKind::kReplace:
        return combine_all<T, ScatterKind::kReplace>(run);
      case ScatterKind::kMultiply:
        return combine_all<T, ScatterKind::kMultiply>(run);
      case ScatterKind::kMax:
        return combine_all<T, ScatterKind::kMax>(run);
      case ScatterKind::kMin:
        return combine_all<T, ScatterKind::kMin>(run);
    }
  }

  template <typename T, ops::ScatterKind kKind>
  void combine_all(const RunContext& run) const {
    constexpr double kNanosecondsPerElement = 1;
    const std::size_t divided = divided_axis();
    const bool parallel =
        divided != kNoAxis && worth_threads(kNanosecondsPerElement *
                                            static_cast<double>(dispatch::numel(index_.extents)));
    const std::int64_t count = divided == kNoAxis ? 1 : index_.extents[divided];
    parallel_shares(count, parallel, [&](std::int64_t begin, std::int64_t end) {
      Extents first{};
      Extents last = index_.extents;
      if (divided != kNoAxis) {
        first[divided] = begin;
        last[divided] = end;
      }
      combine_window<T, kKind>(run, first, last);
    });
  }

  template <typename T, ops::ScatterKind kKind>
  void combine_window(const RunContext& run, const Extents& first, const Extents& last) const {
    Extents at = first;
    for (at[0] = first[0]; at[0] < last[0]; ++at[0]) {
      for (at[1] = first[1]; at[1] < last[1]; ++at[1]) {
        for (at[2] = first[2]; at[2] < last[2]; ++at[2]) {
          at[3] = first[3];
          combine_row<T, kKind>(run, at, last[3] - first[3]);
        }
      }
    }
  }

  static std::int64_t position(const Operand& operand, const Extents& at, std::size_t skipped) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
      sum += i == skipped ? 0 : at[i] * operand.strides[i];
    return sum;
  }

  template <typename T, ops::ScatterKind kKind>
  void combine_row(const RunContext& run, const Extents& at, std::int64_t n) const {
    const Operand& target = result_.target();
    const T* values = source_row<T>(run, at, n);
    const std::int64_t value_stride = is_converted<T>() ? 1 : source_.strides[3];
    T* sums = reinterpret_cast<T*>(address_of(target, run)) + position(target, at, axis_);
    const std::byte* indices = address_of(index_, run);
    const std::int64_t index_at = position(index_, at, kNoAxis);
    const std::int64_t step = axis_ == 3 ? 0 : target.strides[3];
    if (index_.strides[3] == 0 && axis_ != 3) {
      T* row = sums + read_index(index_, indices, index_at) * target.strides[axis_];
      for (std::int64_t i = 0; i < n; ++i) combine<kKind>(row[i * step], values[i * value_stride]);
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t index = read_index(index_, indices, index_at + i * index_.strides[3]);
      combine<kKind>(sums[index * target.strides[axis_] + i * step], values[i * value_stride]);
    }
  }

  template <ops::ScatterKind kKind, typename T>
  static void combine(T& held, T value) {
    using ops::ScatterKind;
    if constexpr (kKind == ScatterKind::kReplace) {
      held = value;
    } else if constexpr (kKind == ScatterKind::kMax || kKind == ScatterKind::kMin) {
      // A NaN comes in and stays: it is the value that does not equal itself.
      const bool wins = kKind == ScatterKind::kMax ? value > held : value < held;
      if (wins || value != value) held = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      held = kKind == ScatterKind::kAdd ? held + value : held * value;
    } else {
      using U = std::make_unsigned_t<T>;
      const auto a = static_cast<U>(held);
      const auto b = static_cast<U>(value);
      held = static_cast<T>(kKind == ScatterKind::kAdd ? a + b : a * b);
    }
  }

  template <typename T>
  bool is_converted() const {
    return source_.dtype != result_.target().dtype;
  }

  template <typename T>
  const T* source_row(const RunContext& run, const Extents& at, std::int64_t n) const {
    const std::byte* row =
        address_of(source_, run) + position(source_, at, kNoAxis) * bytes_of(source_);
    if (!is_converted<T>()) return reinterpret_cast<const T*>(row);
    auto* converted = reinterpret_cast<T*>(
        thread_scratch(ScratchPurpose::kPlane, static_cast<std::size_t>(n) * sizeof(T)));
    load_elements(converted, row, source_.dtype, n, source_.strides[3]);
    return converted;
  }

  IndexCheck check_;
  std::size_t axis_;
  ops::ScatterKind kind_;
  Operand index_;
  Operand source_;
  CoreResult result_;
  std::optional<Region> copy_base_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_gather(const Kernel& kernel,
                                               const dispatch::ExecutionGraph& graph) {
  return std::make_unique<Gather>(kernel, graph);
}

std::unique_ptr<CompiledKernel> compile_scatter(const Kernel& kernel,
                                                const dispatch::ExecutionGraph& graph) {
  return std::make_unique<Scatter>(kernel, graph);
}

std::int64_t gather_scratch_bytes(const Kernel& kernel) {
  return Gather::moves_bits(kernel) ? 0 : core_scratch_bytes(kernel, TargetLayout::kAnyStrides);
}

}  // namespace vkml::cpu
