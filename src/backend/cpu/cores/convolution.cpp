// The plain convolution, for every type: the patches of some output rows are laid out as a matrix
// (im2col) small enough for the second-level cache, and multiplied. Bound: arithmetic of the
// product.
#include "cores/convolution.h"

#include <algorithm>
#include <type_traits>

#include "cores/core_result.h"
#include "cores/gemm.h"
#include "scratch.h"
#include "threads.h"
#include "tile/transfer.h"
#include "vkml/core/error.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using dispatch::Operand;
using ops::CoreKind;

struct Geometry {
  std::int64_t n = 0, groups = 1;
  std::int64_t in_channels = 0, out_channels = 0;  // of one group
  std::int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, kernel_h = 0, kernel_w = 0;
  std::int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;

  std::int64_t taps() const { return in_channels * kernel_h * kernel_w; }
};

Geometry geometry_of(const Kernel& kernel) {
  const auto& a = kernel.attributes;
  Geometry g;
  g.stride_h = a[0], g.stride_w = a[1];
  g.padding_h = a[2], g.padding_w = a[3];
  g.dilation_h = a[4], g.dilation_w = a[5];
  g.groups = a[6];
  dispatch::Extents input{}, weight{}, output{};
  switch (kernel.kind) {
    case CoreKind::kConv2d:
      input = kernel.core_inputs[0].extents;
      weight = kernel.core_inputs[1].extents;
      output = kernel.space;
      break;
    case CoreKind::kConv2dInputGradient:
      output = kernel.core_inputs[0].extents;
      weight = kernel.core_inputs[1].extents;
      input = kernel.space;
      break;
    default:
      input = kernel.core_inputs[0].extents;
      output = kernel.core_inputs[1].extents;
      weight = kernel.space;
      break;
  }
  g.n = input[0];
  g.in_h = input[2], g.in_w = input[3];
  g.out_h = output[2], g.out_w = output[3];
  g.kernel_h = weight[2], g.kernel_w = weight[3];
  g.in_channels = weight[1];
  g.out_channels = g.groups > 0 ? weight[0] / g.groups : 0;
  return g;
}

// Output rows whose patches fill about half of a second-level cache.
std::int64_t rows_at_once(const Geometry& g, std::size_t element_bytes) {
  constexpr std::int64_t kPatchBytes = 512 << 10;
  const std::int64_t row_bytes =
      std::max<std::int64_t>(g.taps() * g.out_w * static_cast<std::int64_t>(element_bytes), 1);
  return std::clamp<std::int64_t>(kPatchBytes / row_bytes, 1, std::max<std::int64_t>(g.out_h, 1));
}

// Output columns [begin, end) for which a tap reads inside the image.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Span columns_inside(const Geometry& g, std::int64_t tap_w) {
  const std::int64_t first = g.padding_w - tap_w * g.dilation_w;  // of a tap at column 0
  const std::int64_t begin = first <= 0 ? 0 : (first + g.stride_w - 1) / g.stride_w;
  const std::int64_t end = (g.in_w + first + g.stride_w - 1) / g.stride_w;
  const std::int64_t clamped = std::clamp<std::int64_t>(begin, 0, g.out_w);
  return {clamped, std::clamp<std::int64_t>(end, clamped, g.out_w)};
}

std::byte* element_at(const Operand& operand, const RunContext& run, std::int64_t n,
                      std::int64_t channel) {
  return run.buffers[operand.buffer] +
         (operand.offset + n * operand.strides[0] + channel * operand.strides[1]) *
             static_cast<std::int64_t>(size_of(operand.dtype));
}

// patches[(c, y, x)][(oh - begin, ow)] of one image and group.
template <typename T>
void gather_patches(const Geometry& g, const Operand& input, const std::byte* image, T* patches,
                    std::int64_t begin, std::int64_t end) {
  const auto bytes = static_cast<std::int64_t>(size_of(input.dtype));
  T* row = patches;
  for (std::int64_t c = 0; c < g.in_channels; ++c) {
    for (std::int64_t y = 0; y < g.kernel_h; ++y) {
      for (std::int64_t x = 0; x < g.kernel_w; ++x) {
        const Span inside = columns_inside(g, x);
        for (std::int64_t oh = begin; oh < end; ++oh, row += g.out_w) {
          const std::int64_t h = oh * g.stride_h - g.padding_h + y * g.dilation_h;
          if (h < 0 || h >= g.in_h || inside.begin == inside.end) {
            std::fill_n(row, g.out_w, T{0});
            continue;
          }
          std::fill_n(row, inside.begin, T{0});
          std::fill(row + inside.end, row + g.out_w, T{0});
          const std::int64_t w = inside.begin * g.stride_w - g.padding_w + x * g.dilation_w;
          load_elements(
              row + inside.begin,
              image + (c * input.strides[1] + h * input.strides[2] + w * input.strides[3]) * bytes,
              input.dtype, inside.end - inside.begin, g.stride_w * input.strides[3]);
        }
      }
    }
  }
}

// Adds patches back to the dense image they were gathered from.
template <typename T>
void scatter_patches(const Geometry& g, const T* patches, T* image, std::int64_t begin,
                     std::int64_t end) {
  const T* row = patches;
  for (std::int64_t c = 0; c < g.in_channels; ++c) {
    for (std::int64_t y = 0; y < g.kernel_h; ++y) {
      for (std::int64_t x = 0; x < g.kernel_w; ++x) {
        const Span inside = columns_inside(g, x);
        for (std::int64_t oh = begin; oh < end; ++oh, row += g.out_w) {
          const std::int64_t h = oh * g.stride_h - g.padding_h + y * g.dilation_h;
          if (h < 0 || h >= g.in_h) continue;
          T* target = image + (c * g.in_h + h) * g.in_w - g.padding_w + x * g.dilation_w;
          for (std::int64_t ow = inside.begin; ow < inside.end; ++ow) {
            target[ow * g.stride_w] = static_cast<T>(target[ow * g.stride_w] + row[ow]);
          }
        }
      }
    }
  }
}

class PatchConvolution final : public CompiledKernel {
 public:
  PatchConvolution(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : kind_(kernel.kind),
        geometry_(geometry_of(kernel)),
        first_(kernel.core_inputs[0]),
        second_(kernel.core_inputs[1]),
        space_(kernel.space),
        result_(kernel, graph.buffers, TargetLayout::kDense) {}

  void run(const RunContext& run) override {
    if (dispatch::numel(space_) > 0) {
      switch (result_.target().dtype) {
        case DType::kF32:
          convolve<float>(run);
          break;
        case DType::kF64:
          convolve<double>(run);
          break;
        case DType::kI32:
          convolve<std::int32_t>(run);
          break;
        case DType::kI64:
          convolve<std::int64_t>(run);
          break;
        default:
          throw UnsupportedError("[conv2d] the CPU convolves numbers, not booleans");
      }
    }
    result_.finish(run);
  }

 private:
  template <typename T>
  T* patches() const {
    const Geometry& g = geometry_;
    const std::int64_t elements = g.taps() * rows_at_once(g, sizeof(T)) * g.out_w;
    return reinterpret_cast<T*>(
        thread_scratch(ScratchPurpose::kPatches, static_cast<std::size_t>(elements) * sizeof(T)));
  }

  // Weights of one group as a (channels out, taps) matrix; taps are dense or the plane is copied.
  template <typename T>
  MatrixView weight_matrix(const RunContext& run, std::int64_t group) const {
    const Geometry& g = geometry_;
    auto* copy = reinterpret_cast<T*>(thread_scratch(
        ScratchPurpose::kPlane, static_cast<std::size_t>(g.out_channels * g.taps()) * sizeof(T)));
    const auto bytes = static_cast<std::int64_t>(size_of(second_.dtype));
    T* row = copy;
    for (std::int64_t o = 0; o < g.out_channels; ++o) {
      for (std::int64_t c = 0; c < g.in_channels; ++c) {
        const std::byte* plane = element_at(second_, run, group * g.out_channels + o, c);
        for (std::int64_t y = 0; y < g.kernel_h; ++y, row += g.kernel_w) {
          load_elements(row, plane + y * second_.strides[2] * bytes, second_.dtype, g.kernel_w,
                        second_.strides[3]);
        }
      }
    }
    return {reinterpret_cast<const std::byte*>(copy), result_.target().dtype, g.taps(), 1};
  }

  // Rows [begin, end) of an output gradient as a (channels out, pixels) matrix, which needs the
  // pixels to be evenly spaced: else they are copied.
  template <typename T>
  MatrixView gradient_matrix(const RunContext& run, const Operand& gradient, std::int64_t n,
                             std::int64_t group, std::int64_t begin, std::int64_t end) const {
    const Geometry& g = geometry_;
    const auto bytes = static_cast<std::int64_t>(size_of(gradient.dtype));
    const std::byte* data = element_at(gradient, run, n, group * g.out_channels);
    if (gradient.strides[2] == gradient.strides[3] * g.out_w) {
      return {data + begin * gradient.strides[2] * bytes, gradient.dtype, gradient.strides[1],
              gradient.strides[3]};
    }
    const std::int64_t pixels = (end - begin) * g.out_w;
    auto* copy = reinterpret_cast<T*>(thread_scratch(
        ScratchPurpose::kWorker, static_cast<std::size_t>(g.out_channels * pixels) * sizeof(T)));
    for (std::int64_t o = 0; o < g.out_channels; ++o) {
      for (std::int64_t oh = begin; oh < end; ++oh) {
        load_elements(copy + o * pixels + (oh - begin) * g.out_w,
                      data + (o * gradient.strides[1] + oh * gradient.strides[2]) * bytes,
                      gradient.dtype, g.out_w, gradient.strides[3]);
      }
    }
    return {reinterpret_cast<const std::byte*>(copy), result_.target().dtype, pixels, 1};
  }

  template <typename T>
  void convolve(const RunContext& run) const {
    if (kind_ == CoreKind::kConv2dWeightGradient) {
      weight_gradient<T>(run);
      return;
    }
    const Geometry& g = geometry_;
    constexpr double kNanosecondsPerProduct = 0.05;
    const double products =
        static_cast<double>(dispatch::numel(space_)) * static_cast<double>(g.taps());
    const std::int64_t images = g.n * g.groups;
    const bool by_image = images >= thread_count();
    parallel_shares(images, by_image && worth_threads(kNanosecondsPerProduct * products),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        if (kind_ == CoreKind::kConv2d) {
                          forward<T>(run, i / g.groups, i % g.groups, !by_image);
                        } else {
                          input_gradient<T>(run, i / g.groups, i % g.groups, !by_image);
                        }
                      }
                    });
  }

  template <typename T>
  void forward(const RunContext& run, std::int64_t n, std::int64_t group, bool parallel) const {
    const Geometry& g = geometry_;
    const std::byte* image = element_at(first_, run, n, group * g.in_channels);
    const MatrixView weight = weight_matrix<T>(run, group);
    T* matrix = patches<T>();
    T* out = reinterpret_cast<T*>(result_.address(run)) +
             (n * g.groups + group) * g.out_channels * g.out_h * g.out_w;
    const std::int64_t step = rows_at_once(g, sizeof(T));
    for (std::int64_t begin = 0; begin < g.out_h; begin += step) {
      const std::int64_t end = std::min(begin + step, g.out_h);
      const std::int64_t pixels = (end - begin) * g.out_w;
      gather_patches(g, first_, image, matrix, begin, end);
      const GemmTarget target{reinterpret_cast<std::byte*>(out + begin * g.out_w), weight.dtype,
                              g.out_h * g.out_w, 1};
      gemm(weight, {reinterpret_cast<const std::byte*>(matrix), weight.dtype, pixels, 1}, target,
           g.out_channels, pixels, g.taps(), parallel);
    }
  }

  template <typename T>
  void input_gradient(const RunContext& run, std::int64_t n, std::int64_t group,
                      bool parallel) const {
    const Geometry& g = geometry_;
    MatrixView weight = weight_matrix<T>(run, group);
    std::swap(weight.row_stride, weight.column_stride);
    T* matrix = patches<T>();
    const std::int64_t plane = g.in_channels * g.in_h * g.in_w;
    T* image = reinterpret_cast<T*>(result_.address(run)) + (n * g.groups + group) * plane;
    std::fill_n(image, plane, T{0});
    const std::int64_t step = rows_at_once(g, sizeof(T));
    for (std::int64_t begin = 0; begin < g.out_h; begin += step) {
      const std::int64_t end = std::min(begin + step, g.out_h);
      const std::int64_t pixels = (end - begin) * g.out_w;
      const GemmTarget target{reinterpret_cast<std::byte*>(matrix), weight.dtype, pixels, 1};
      gemm(weight, gradient_matrix<T>(run, first_, n, group, begin, end), target, g.taps(), pixels,
           g.out_channels, parallel);
      scatter_patches(g, matrix, image, begin, end);
    }
  }

  // Images one after the other, so that sums do not depend on threads; each product uses them all.
  template <typename T>
  void weight_gradient(const RunContext& run) const {
    const Geometry& g = geometry_;
    T* out = reinterpret_cast<T*>(result_.address(run));
    std::fill_n(out, dispatch::numel(space_), T{0});
    T* matrix = patches<T>();
    const DType dtype = result_.target().dtype;
    const std::int64_t step = rows_at_once(g, sizeof(T));
    for (std::int64_t i = 0; i < g.n * g.groups; ++i) {
      const std::int64_t n = i / g.groups;
      const std::int64_t group = i % g.groups;
      const std::byte* image = element_at(first_, run, n, group * g.in_channels);
      const GemmTarget target{reinterpret_cast<std::byte*>(out + group * g.out_channels * g.taps()),
                              dtype, g.taps(), 1, true};
      for (std::int64_t begin = 0; begin < g.out_h; begin += step) {
        const std::int64_t end = std::min(begin + step, g.out_h);
        const std::int64_t pixels = (end - begin) * g.out_w;
        gather_patches(g, first_, image, matrix, begin, end);
        gemm(gradient_matrix<T>(run, second_, n, group, begin, end),
             {reinterpret_cast<const std::byte*>(matrix), dtype, 1, pixels}, target, g.out_channels,
             g.taps(), pixels, true);
      }
    }
  }

  CoreKind kind_;
  Geometry geometry_;
  Operand first_;
  Operand second_;
  dispatch::Extents space_;
  CoreResult result_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_convolution(const Kernel& kernel,
                                                    const dispatch::ExecutionGraph& graph) {
  return std::make_unique<PatchConvolution>(kernel, graph);
}

}  // namespace vkml::cpu
