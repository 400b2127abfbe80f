// One plane (image, channel) at a time: it is brought into its compute type where it is not there
// already, and threads divide the planes. Maxima are found for a whole row of windows at a time,
// one tap after the other, which compilers turn into vectors; windows that padding cuts have loops
// of their own. Gradients add in window order, so results do not depend on threads. Bound: memory
// for small windows.
#include "cores/pooling.h"

#include <algorithm>
#include <limits>

#include "cores/core_result.h"
#include "scratch.h"
#include "threads.h"
#include "tile/transfer.h"
#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using dispatch::Operand;
using ops::CoreKind;

struct Window2d {
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t padding_h = 0, padding_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;
  bool counts_padding = false;
};

Window2d window_of(const Kernel& kernel) {
  const graph::Attributes& a = kernel.attributes;
  Window2d window{a[0], a[1], a[2], a[3], a[4], a[5]};
  const bool averages =
      kernel.kind == CoreKind::kAvgPool2d || kernel.kind == CoreKind::kAvgPool2dGradient;
  if (averages) {
    window.counts_padding = a[6] != 0;
  } else {
    window.dilation_h = a[6];
    window.dilation_w = a[7];
  }
  return window;
}

struct Plane {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// Taps [begin, end) of a window that lie inside an axis: start + tap * dilation in [0, extent).
struct Taps {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Taps taps_inside(std::int64_t start, std::int64_t taps, std::int64_t dilation,
                 std::int64_t extent) {
  const std::int64_t begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  const std::int64_t end = start >= extent ? 0 : (extent - start + dilation - 1) / dilation;
  return {std::min(begin, taps), std::clamp<std::int64_t>(end, std::min(begin, taps), taps)};
}

template <typename T>
struct Best {
  T value{};
  std::int64_t index = 0;
};

template <typename T>
Best<T> best_of(const T* image, const Plane& in, const Window2d& w, std::int64_t oh,
                std::int64_t ow) {
  const std::int64_t top = oh * w.stride_h - w.padding_h;
  const std::int64_t left = ow * w.stride_w - w.padding_w;
  const Taps rows = taps_inside(top, w.kernel_h, w.dilation_h, in.height);
  const Taps columns = taps_inside(left, w.kernel_w, w.dilation_w, in.width);
  Best<T> best;
  if (rows.begin == rows.end || columns.begin == columns.end) return best;
  best.index = (top + rows.begin * w.dilation_h) * in.width + left + columns.begin * w.dilation_w;
  best.value = image[best.index];
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    const std::int64_t row = (top + y * w.dilation_h) * in.width + left;
    for (std::int64_t x = columns.begin; x < columns.end; ++x) {
      const std::int64_t at = row + x * w.dilation_w;
      const T value = image[at];
      // NaN wins and stays; the first of equals stays.
      const bool wins = (value > best.value) | ((value != value) & (best.value == best.value));
      best.value = wins ? value : best.value;
      best.index = wins ? at : best.index;
    }
  }
  return best;
}

// Output columns [begin, end) whose windows lie inside the axis whole.
Taps whole_windows(const Window2d& w, const Plane& in, std::int64_t columns) {
  const std::int64_t reach = (w.kernel_w - 1) * w.dilation_w;
  const std::int64_t begin = (w.padding_w + w.stride_w - 1) / w.stride_w;
  const std::int64_t last = in.width - 1 - reach + w.padding_w;
  const std::int64_t end = last < 0 ? 0 : last / w.stride_w + 1;
  return {std::min(begin, columns), std::clamp(end, std::min(begin, columns), columns)};
}

// `best` and `index` against the elements first, first + step and so on, whose number is `at` and
// on. The stride is a constant where that is worth code of its own.
template <std::int64_t kStep, bool kIndices, typename T>
void take_best(const T* first, std::int64_t step, std::int32_t at, std::int64_t count, T* best,
               std::int32_t* index) {
  const std::int64_t stride = kStep > 0 ? kStep : step;
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = first[i * stride];
    // NaN wins and stays; the first of equals stays.
    const bool wins = (value > best[i]) | ((value != value) & (best[i] == best[i]));
    best[i] = wins ? value : best[i];
    if constexpr (kIndices) {
      index[i] = wins ? at + static_cast<std::int32_t>(i * stride) : index[i];
    }
  }
}

template <bool kIndices, typename T>
void take_best(const T* first, std::int64_t step, std::int32_t at, std::int64_t count, T* best,
               std::int32_t* index) {
  if (step == 1) return take_best<1, kIndices>(first, step, at, count, best, index);
  if (step == 2) return take_best<2, kIndices>(first, step, at, count, best, index);
  take_best<0, kIndices>(first, step, at, count, best, index);
}

// A row of whole windows, whose inputs begin `left` elements into a row; no row of taps is cut.
template <bool kIndices, typename T>
void best_of_row(const T* image, const Plane& in, const Window2d& w, Taps rows, std::int64_t top,
                 std::int64_t left, std::int64_t count, T* best, std::int32_t* index) {
  bool is_first = true;
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    for (std::int64_t x = 0; x < w.kernel_w; ++x) {
      const std::int64_t at = (top + y * w.dilation_h) * in.width + left + x * w.dilation_w;
      if (is_first) {
        for (std::int64_t i = 0; i < count; ++i) {
          best[i] = image[at + i * w.stride_w];
          if constexpr (kIndices) index[i] = static_cast<std::int32_t>(at + i * w.stride_w);
        }
        is_first = false;
        continue;
      }
      take_best<kIndices>(image + at, w.stride_w, static_cast<std::int32_t>(at), count, best,
                          index);
    }
  }
}

// Elements that an average divides by.
std::int64_t divisor(const Window2d& w, const Plane& in, std::int64_t oh, std::int64_t ow) {
  const std::int64_t top = oh * w.stride_h - w.padding_h;
  const std::int64_t left = ow * w.stride_w - w.padding_w;
  if (w.counts_padding) {
    return std::min(w.kernel_h, in.height + w.padding_h - top) *
           std::min(w.kernel_w, in.width + w.padding_w - left);
  }
  const Taps rows = taps_inside(top, w.kernel_h, 1, in.height);
  const Taps columns = taps_inside(left, w.kernel_w, 1, in.width);
  return (rows.end - rows.begin) * (columns.end - columns.begin);
}

// Calls body(input position) for the taps of an average's window.
template <typename Body>
void for_each_tap(const Window2d& w, const Plane& in, std::int64_t oh, std::int64_t ow,
                  Body&& body) {
  const std::int64_t top = oh * w.stride_h - w.padding_h;
  const std::int64_t left = ow * w.stride_w - w.padding_w;
  const Taps rows = taps_inside(top, w.kernel_h, 1, in.height);
  const Taps columns = taps_inside(left, w.kernel_w, 1, in.width);
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    for (std::int64_t x = columns.begin; x < columns.end; ++x) {
      body((top + y) * in.width + left + x);
    }
  }
}

class Pooling final : public CompiledKernel {
 public:
  Pooling(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : kind_(kernel.kind),
        window_(window_of(kernel)),
        inputs_(kernel.core_inputs),
        space_(kernel.space),
        result_(kernel, graph.buffers, TargetLayout::kDense) {}

  void run(const RunContext& run) override {
    if (dispatch::numel(space_) > 0) {
      // The inputs' type: of kMaxPool2dIndices, the result's is i32 whatever they are.
      switch (ops::compute_type(inputs_[0].dtype)) {
        case ops::ScalarType::kF32:
          run_planes<float>(run);
          break;
        case ops::ScalarType::kF64:
          run_planes<double>(run);
          break;
        case ops::ScalarType::kI32:
          run_planes<std::int32_t>(run);
          break;
        case ops::ScalarType::kI64:
          run_planes<std::int64_t>(run);
          break;
        default:
          throw UnsupportedError("[pooling] the CPU pools numbers, not booleans");
      }
    }
    result_.finish(run);
  }

 private:
  template <typename T>
  void run_planes(const RunContext& run) const {
    const Plane in{inputs_[0].extents[2], inputs_[0].extents[3]};
    const Plane out{space_[2], space_[3]};
    const std::int64_t planes = space_[0] * space_[1];
    const double taps =
        static_cast<double>(planes * std::max(in.height * in.width, out.height * out.width));
    constexpr double kNanosecondsPerElement = 1;
    parallel_shares(planes, worth_threads(kNanosecondsPerElement * taps),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t plane = begin; plane < end; ++plane) {
                        run_plane<T>(run, plane, in, out);
                      }
                    });
  }

  template <typename T>
  void run_plane(const RunContext& run, std::int64_t plane, const Plane& in,
                 const Plane& out) const {
    const std::int64_t size = out.height * out.width;
    const T* x = plane_of<T>(run, inputs_[0], plane, ScratchPurpose::kPlane);
    if (kind_ == CoreKind::kMaxPool2dIndices) {
      auto* target = reinterpret_cast<std::int32_t*>(result_.address(run)) + plane * size;
      auto* best = reinterpret_cast<T*>(thread_scratch(
          ScratchPurpose::kPatches, static_cast<std::size_t>(out.width) * sizeof(T)));
      for (std::int64_t oh = 0; oh < out.height; ++oh, target += out.width) {
        best_row<true>(x, in, oh, out.width, best, target);
      }
      return;
    }
    T* target = reinterpret_cast<T*>(result_.address(run)) + plane * size;
    switch (kind_) {
      case CoreKind::kMaxPool2d:
        for (std::int64_t oh = 0; oh < out.height; ++oh, target += out.width) {
          best_row<false, T>(x, in, oh, out.width, target, nullptr);
        }
        return;
      case CoreKind::kMaxPool2dGradient: {
        const auto* index =
            plane_of<std::int32_t>(run, inputs_[1], plane, ScratchPurpose::kPatches);
        std::fill_n(target, size, T{0});
        for (std::int64_t i = 0; i < in.height * in.width; ++i) {
          if (index[i] >= 0 && index[i] < size) target[index[i]] += x[i];
        }
        return;
      }
      case CoreKind::kAvgPool2d:
        for_each_output(out, [&](std::int64_t oh, std::int64_t ow) {
          T sum{0};
          for_each_tap(window_, in, oh, ow, [&](std::int64_t at) { sum += x[at]; });
          *target++ = sum / static_cast<T>(divisor(window_, in, oh, ow));
        });
        return;
      default:
        break;
    }
    // kAvgPool2dGradient: the windows are the input's elements, the taps the result's.
    std::fill_n(target, size, T{0});
    for_each_output(in, [&](std::int64_t oh, std::int64_t ow) {
      const T share = x[oh * in.width + ow] / static_cast<T>(divisor(window_, out, oh, ow));
      for_each_tap(window_, out, oh, ow, [&](std::int64_t at) { target[at] += share; });
    });
  }

  // The maxima of one row of windows, and where they are.
  template <bool kIndices, typename T>
  void best_row(const T* x, const Plane& in, std::int64_t oh, std::int64_t columns, T* best,
                std::int32_t* index) const {
    const std::int64_t top = oh * window_.stride_h - window_.padding_h;
    const Taps rows = taps_inside(top, window_.kernel_h, window_.dilation_h, in.height);
    Taps whole = whole_windows(window_, in, columns);
    if (rows.begin == rows.end) whole = {};
    for (std::int64_t ow = 0; ow < columns; ++ow) {
      if (ow == whole.begin && whole.begin < whole.end) {
        best_of_row<kIndices>(x, in, window_, rows, top, ow * window_.stride_w - window_.padding_w,
                              whole.end - whole.begin, best + ow, kIndices ? index + ow : nullptr);
        ow = whole.end - 1;
        continue;
      }
      const Best<T> found = best_of(x, in, window_, oh, ow);
      best[ow] = found.value;
      if constexpr (kIndices) index[ow] = static_cast<std::int32_t>(found.index);
    }
  }

  template <typename Body>
  static void for_each_output(const Plane& plane, Body&& body) {
    for (std::int64_t h = 0; h < plane.height; ++h) {
      for (std::int64_t w = 0; w < plane.width; ++w) body(h, w);
    }
  }

  // A plane of an operand, dense and in its compute type.
  template <typename T>
  const T* plane_of(const RunContext& run, const Operand& operand, std::int64_t plane,
                    ScratchPurpose purpose) const {
    const auto bytes = static_cast<std::int64_t>(size_of(operand.dtype));
    const std::int64_t height = operand.extents[2];
    const std::int64_t width = operand.extents[3];
    const std::byte* source = run.buffers[operand.buffer] +
                              (operand.offset + plane / operand.extents[1] * operand.strides[0] +
                               plane % operand.extents[1] * operand.strides[1]) *
                                  bytes;
    const bool is_dense = operand.strides[3] == 1 && operand.strides[2] == width;
    if (is_dense && ops::storage_type(ops::compute_type(operand.dtype)) == operand.dtype &&
        sizeof(T) == size_of(operand.dtype)) {
      return reinterpret_cast<const T*>(source);
    }
    auto* copy = reinterpret_cast<T*>(
        thread_scratch(purpose, static_cast<std::size_t>(height * width) * sizeof(T)));
    for (std::int64_t h = 0; h < height; ++h) {
      load_elements(copy + h * width, source + h * operand.strides[2] * bytes, operand.dtype, width,
                    operand.strides[3]);
    }
    return copy;
  }

  CoreKind kind_;
  Window2d window_;
  std::vector<Operand> inputs_;
  dispatch::Extents space_;
  CoreResult result_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_pooling(const Kernel& kernel,
                                                const dispatch::ExecutionGraph& graph) {
  return std::make_unique<Pooling>(kernel, graph);
}

}  // namespace vkml::cpu
