// What the kernels of convolutions share.
#pragma once

#include <optional>

#include "kernels/image_staging.h"
#include "kernels/shader.h"

namespace vkml::vulkan {

struct ConvolutionGeometry {
  std::uint32_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  std::int64_t groups;
  std::int64_t kernel_h, kernel_w;
  std::int64_t group_inputs, group_outputs;  // channels

  std::int64_t taps() const { return kernel_h * kernel_w; }
};
ConvolutionGeometry convolution_geometry(const dispatch::Kernel& kernel);

/// Whether matrix units take the kernel's type, and code of such a size in shared memory.
bool may_convolve_on_matrix_units(const dispatch::Kernel& kernel, const DeviceTraits& traits);
/// Shared memory that a workgroup may take, so that two fit a compute unit.
inline constexpr std::uint32_t kConvolutionSharedBytes = 48 << 10;

/// Convolutions, and gradients of their input, whose image is staged with its rim: which tile a
/// workgroup computes, if that way is worth while.
struct ConvolutionTile {
  ImageTile image;             // its channels are those of a step
  std::uint32_t outputs = 64;  // channels of the result
  std::uint32_t subgroups_m = 2, subgroups_n = 2;
  std::uint32_t taps = 1;  // whose weights are staged at once
};
std::optional<ConvolutionTile> convolution_tile(const dispatch::Kernel& kernel,
                                                const DeviceTraits& traits);
std::int64_t convolution_matrix_scratch_bytes(const dispatch::Kernel& kernel);
std::vector<Dispatch> generate_convolution_matrix(const Context& context,
                                                  const ConvolutionTile& tile);

/// The same for gradients of the weight.
struct WeightGradientPlan {
  ImageTile image;                    // its channels are columns of the result
  std::uint32_t outputs = 64;         // rows of the result
  std::int64_t splits = 1, span = 1;  // parts of the sum, and the tiles of pixels of one
};
std::optional<WeightGradientPlan> weight_gradient_plan(const dispatch::Kernel& kernel,
                                                       const DeviceTraits& traits);
std::int64_t weight_gradient_scratch_bytes(const dispatch::Kernel& kernel,
                                           const WeightGradientPlan& plan);
std::vector<Dispatch> generate_weight_gradient(const Context& context,
                                               const WeightGradientPlan& plan);

}  // namespace vkml::vulkan
