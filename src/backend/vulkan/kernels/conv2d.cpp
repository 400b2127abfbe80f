// Convolution and its two gradients as contractions whose image operand computes where each element
// lies (implicit GEMM: no patches are written to memory):
//   forward          out(o, pixel) = weight(o, tap) * image(tap, pixel)
//   input gradient   out(c, pixel) = weight(c, tap) * gradient(tap, pixel)
//   weight gradient  out(o, tap) = gradient(o, pixel) * image(pixel, tap)
// where a pixel is (n, h, w) of the output or input, and a tap is (channel, kh, kw). Groups are the
// batch. Bound: arithmetic, or loads where few channels reuse them. Large ones on matrix units go
// another way, which stages the image (conv2d.h).
#include "kernels/conv2d.h"
#include "kernels/contraction.h"
#include "kernels/conversions.h"
#include "kernels/kernels.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using dispatch::Operand;
using ops::CoreKind;
using spirv::Value;

namespace {

/// A pixel (n, h, w) or a tap (channel, kh, kw) from its number.
struct Triple {
  Value first, y, x;
};

class TripleIndex {
 public:
  TripleIndex(Value height, Value width) : plane_(height * width), width_(width) {}

  Triple operator()(Value index) const {
    const Value first = index / plane_;
    const Value in_plane = index - first * plane_;
    const Value y = in_plane / width_;
    return {first, y, in_plane - y * width_};
  }

 private:
  Value plane_, width_;
};

/// The image under a window. Positions are {offset, row, column}; where a pixel and a tap meet
/// outside the image, or between strides, the element is 0.
class ImageOperand : public ContractionOperand {
 public:
  enum class Role : std::uint8_t {
    kPixelsOutside,  // forward: outer is the output pixel, inner the tap
    kTapsOutside,    // weight gradient: outer is the tap, inner the output pixel
    kTransposed      // input gradient: outer is the input pixel, inner the tap
  };

  ImageOperand(Shader& shader, const Operand& image, const ConvolutionGeometry& geometry, Role role,
               const dispatch::Extents& pixels)
      : b_(shader.builder()),
        elements_(shader, image),
        geometry_(geometry),
        role_(role),
        pixels_(shader.parameter(pixels[2]), shader.parameter(pixels[3])),
        four_in_row_(pixels[3] % 4 == 0),
        eight_in_row_(pixels[3] % kMatrixRun == 0),
        taps_(b_.u32(static_cast<std::uint32_t>(geometry.kernel_h)),
              b_.u32(static_cast<std::uint32_t>(geometry.kernel_w))),
        height_(shader.parameter(image.extents[2])),
        width_(shader.parameter(image.extents[3])),
        channel_stride_(shader.stride_parameter(image.strides[1])),
        group_stride_(shader.parameter(image.strides[1] * (image.extents[1] / geometry.groups))),
        batch_offset_(b_.u32(0)) {
    image_stride_ = shader.stride_parameter(image.extents[0] == 1 ? 0 : image.strides[0]);
    row_stride_ = shader.stride_parameter(image.strides[2]);
    column_stride_ = shader.stride_parameter(image.strides[3]);
    zero_ = b_.constant(value_type_of(image.dtype), 0);
  }

  Value is_aligned() const override { return elements_.is_aligned(); }
  bool inner_is_nearest() const override { return role_ == Role::kTapsOutside; }
  void set_batch(Value batch) override { batch_offset_ = batch * group_stride_; }
  Position outer(Value index) override {
    return role_ == Role::kTapsOutside ? tap(index) : pixel(index);
  }
  Position inner(Value index) override {
    return role_ == Role::kTapsOutside ? pixel(index) : tap(index);
  }

  std::array<Position, 4> inner4(Value index) override {
    if (role_ != Role::kTapsOutside || !four_in_row_) return ContractionOperand::inner4(index);
    return in_row<4>(pixel(index));
  }
  PositionRun outer_run(Value first, Value last) override {
    if (role_ == Role::kTapsOutside || !eight_in_row_) {
      return ContractionOperand::outer_run(first, last);
    }
    return pixel_run(first, last);
  }
  PositionRun inner_run(Value first, Value last) override {
    if (role_ != Role::kTapsOutside || !eight_in_row_) {
      return ContractionOperand::inner_run(first, last);
    }
    return pixel_run(first, last);
  }

  Value load(const Position& outer, const Position& inner) override {
    const bool is_transposed = role_ == Role::kTransposed;
    Value row, column, is_inside = b_.boolean(true);
    if (is_transposed) {
      row = divided(outer[1] - inner[1], geometry_.stride_h, is_inside);
      column = divided(outer[2] - inner[2], geometry_.stride_w, is_inside);
    } else {
      row = outer[1] + inner[1];
      column = outer[2] + inner[2];
    }
    // Rows before the image wrap to large ones: one comparison tells both sides.
    is_inside = logical_and(is_inside, logical_and(less(row, height_), less(column, width_)));
    const Value index = outer[0] + inner[0] + row * row_stride_ + column * column_stride_;
    const Value value = elements_.load(b_.select(is_inside, index, b_.u32(0)));
    return b_.select(is_inside, value, zero_);
  }
  Value load4(const Position&, const Position&) override {
    throw InternalError("[conv2d] windows have no dense direction");
  }

 private:
  static spirv::Type value_type_of(DType dtype) { return value_type(ops::compute_type(dtype)); }

  Position pixel(Value index) const {
    const Triple at = pixels_(index);
    const Value offset = batch_offset_ + at.first * image_stride_;
    if (role_ == Role::kTransposed) {
      return {offset, at.y + geometry_.padding_h, at.x + geometry_.padding_w};
    }
    return {offset, at.y * geometry_.stride_h - geometry_.padding_h,
            at.x * geometry_.stride_w - geometry_.padding_w};
  }

  /// Neighbouring pixels of a row, from its first one's position: one division for all.
  template <std::size_t kCount>
  std::array<Position, kCount> in_row(const Position& first) const {
    const std::uint32_t step = role_ == Role::kTransposed ? 1 : geometry_.stride_w;
    std::array<Position, kCount> positions;
    positions.fill(first);
    for (std::uint32_t i = 1; i < kCount; ++i) positions[i][2] = first[2] + i * step;
    return positions;
  }

  PositionRun pixel_run(Value first, Value last) const {
    const Value last_run = last & ~(kMatrixRun - 1);
    return in_row<kMatrixRun>(pixel(b_.select(less(last, first), last_run, first)));
  }

  Position tap(Value index) const {
    const Triple at = taps_(index);
    return {at.first * channel_stride_, at.y * geometry_.dilation_h, at.x * geometry_.dilation_w};
  }

  /// The output position whose window starts here, if one does.
  Value divided(Value position, std::uint32_t stride, Value& is_inside) const {
    if (stride == 1) return position;
    const Value quotient = position / stride;
    is_inside = logical_and(is_inside, equal(quotient * stride, position));
    return quotient;
  }

  spirv::Builder& b_;
  Elements elements_;
  ConvolutionGeometry geometry_;
  Role role_;
  TripleIndex pixels_;
  bool four_in_row_, eight_in_row_;
  TripleIndex taps_;
  Value height_, width_, image_stride_, channel_stride_, row_stride_, column_stride_;
  Value group_stride_, batch_offset_, zero_;
};

IndexAxis axis_of(const Operand& operand, std::size_t axis) {
  return {operand.extents[axis], operand.strides[axis]};
}

/// weight(o, tap), batch = group.
StridedOperandLayout weights_by_output(const Operand& weight, const ConvolutionGeometry& geometry) {
  const std::int64_t stride = weight.strides[0];
  return {{{geometry.groups, stride * geometry.group_outputs}},
          {{geometry.group_outputs, stride}},
          {axis_of(weight, 1), axis_of(weight, 2), axis_of(weight, 3)}};
}

/// weight(c, tap of the group's outputs).
StridedOperandLayout weights_by_input(const Operand& weight, const ConvolutionGeometry& geometry) {
  const std::int64_t stride = weight.strides[0];
  return {{{geometry.groups, stride * geometry.group_outputs}},
          {axis_of(weight, 1)},
          {{geometry.group_outputs, stride}, axis_of(weight, 2), axis_of(weight, 3)}};
}

/// gradient(o, pixel).
StridedOperandLayout gradients_by_output(const Operand& gradient,
                                         const ConvolutionGeometry& geometry) {
  const std::int64_t stride = gradient.strides[1];
  return {{{geometry.groups, stride * geometry.group_outputs}},
          {{geometry.group_outputs, stride}},
          {axis_of(gradient, 0), axis_of(gradient, 2), axis_of(gradient, 3)}};
}

/// image(channel, pixel) of a 1 x 1 convolution that moves nothing.
StridedOperandLayout image_by_pixel(const Operand& image, const ConvolutionGeometry& geometry) {
  const std::int64_t channels = image.extents[1] / geometry.groups;
  return {{{geometry.groups, image.strides[1] * channels}},
          {axis_of(image, 0), axis_of(image, 2), axis_of(image, 3)},
          {{channels, image.strides[1]}}};
}

bool is_pointwise(const ConvolutionGeometry& g) {
  return g.kernel_h == 1 && g.kernel_w == 1 && g.stride_h == 1 && g.stride_w == 1 &&
         g.padding_h == 0 && g.padding_w == 0;
}

ContractionSize size_of(const dispatch::Kernel& kernel) {
  const ConvolutionGeometry g = convolution_geometry(kernel);
  const std::int64_t taps = g.kernel_h * g.kernel_w;
  const dispatch::Extents& space = kernel.space;
  const std::int64_t pixels = space[0] * space[2] * space[3];
  switch (kernel.kind) {
    case CoreKind::kConv2d:
      return {g.groups, g.group_outputs, pixels, g.group_inputs * taps};
    case CoreKind::kConv2dInputGradient:
      return {g.groups, g.group_inputs, pixels, g.group_outputs * taps};
    default: {
      const dispatch::Extents& gradient = kernel.core_inputs[1].extents;
      return {g.groups, g.group_outputs, g.group_inputs * taps,
              gradient[0] * gradient[2] * gradient[3]};
    }
  }
}

ContractionProblem problem_of(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  ContractionProblem problem{
      size_of(kernel), kernel.core_type, kernel.core_inputs[0].dtype, {}, {}, 3};
  if (may_use_matrix_units(kernel, traits)) {
    problem.a.kind = problem.b.kind = MatrixAccess::Kind::kElements;
  }
  return problem;
}

ContractionOperands open_operands(Shader& shader, const dispatch::Kernel& kernel) {
  using Role = ImageOperand::Role;
  const ConvolutionGeometry g = convolution_geometry(kernel);
  const Operand& first = kernel.core_inputs[0];
  const Operand& second = kernel.core_inputs[1];
  const auto image = [&](const Operand& operand, Role role, const dispatch::Extents& pixels) {
    return std::make_unique<ImageOperand>(shader, operand, g, role, pixels);
  };
  if (kernel.kind == CoreKind::kConv2dWeightGradient) {
    return {strided_operand(shader, second, gradients_by_output(second, g)),
            image(first, Role::kTapsOutside, second.extents)};
  }
  const bool is_forward = kernel.kind == CoreKind::kConv2d;
  auto weights = strided_operand(
      shader, second, is_forward ? weights_by_output(second, g) : weights_by_input(second, g));
  if (is_pointwise(g)) {
    return {std::move(weights), strided_operand(shader, first, image_by_pixel(first, g))};
  }
  return {std::move(weights),
          image(first, is_forward ? Role::kPixelsOutside : Role::kTransposed, kernel.space)};
}

Place open_place(Shader& shader, const dispatch::Kernel& kernel) {
  const ConvolutionGeometry g = convolution_geometry(kernel);
  if (kernel.kind == CoreKind::kConv2dWeightGradient) {
    spirv::Builder& b = shader.builder();
    const Value outputs = shader.parameter(g.group_outputs);
    const TripleIndex taps(b.u32(static_cast<std::uint32_t>(g.kernel_h)),
                           b.u32(static_cast<std::uint32_t>(g.kernel_w)));
    return [outputs, taps](Value group, Value m, Value n) {
      const Triple tap = taps(n);
      return Coordinates{group * outputs + m, tap.first, tap.y, tap.x};
    };
  }
  const bool is_forward = kernel.kind == CoreKind::kConv2d;
  const Value channels = shader.parameter(is_forward ? g.group_outputs : g.group_inputs);
  const TripleIndex pixels(shader.parameter(kernel.space[2]), shader.parameter(kernel.space[3]));
  return [channels, pixels](Value group, Value m, Value n) {
    const Triple pixel = pixels(n);
    return Coordinates{pixel.first, group * channels + m, pixel.y, pixel.x};
  };
}

std::vector<Dispatch> generate_gathering(const Context& context) {
  const dispatch::Kernel& kernel = context.kernel;
  Contraction contraction;
  contraction.problem = problem_of(kernel, context.traits);
  contraction.four_in_row =
      kernel.kind != CoreKind::kConv2dWeightGradient && kernel.space[3] % 4 == 0;
  contraction.open_operands = [&](Shader& shader) { return open_operands(shader, kernel); };
  contraction.open_place = [&](Shader& shader) { return open_place(shader, kernel); };
  const ContractionPlan plan =
      plan_contraction(contraction.problem, context.traits, kernel.scratch >= 0);
  return generate_contraction(context, contraction, plan);
}

}  // namespace

ConvolutionGeometry convolution_geometry(const dispatch::Kernel& kernel) {
  const auto attribute = [&](int i) { return static_cast<std::uint32_t>(kernel.attributes[i]); };
  const dispatch::Extents& weight =
      kernel.kind == CoreKind::kConv2dWeightGradient ? kernel.space : kernel.core_inputs[1].extents;
  const std::int64_t groups = kernel.attributes[6];
  return {attribute(0), attribute(1), attribute(2), attribute(3), attribute(4),      attribute(5),
          groups,       weight[2],    weight[3],    weight[1],    weight[0] / groups};
}

bool may_convolve_on_matrix_units(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  const DType dtype = kernel.core_inputs[0].dtype;
  const bool has_units = dtype == DType::kF16 ? traits.has_matrix_f16
                                              : (dtype == DType::kBF16 || dtype == DType::kF32) &&
                                                    traits.has_matrix_bf16;
  return has_units && may_use_matrix_units(kernel, traits) &&
         traits.max_shared_bytes >= kConvolutionSharedBytes;
}

std::vector<Dispatch> generate_conv2d(const Context& context) {
  const dispatch::Kernel& kernel = context.kernel;
  if (kernel.scratch < 0) return generate_gathering(context);
  if (kernel.kind == CoreKind::kConv2dWeightGradient) {
    const auto plan = weight_gradient_plan(kernel, context.traits);
    if (plan) return generate_weight_gradient(context, *plan);
  } else if (const auto tile = convolution_tile(kernel, context.traits)) {
    return generate_convolution_matrix(context, *tile);
  }
  return generate_gathering(context);
}

std::int64_t conv2d_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  if (kernel.kind == CoreKind::kConv2dWeightGradient) {
    const auto plan = weight_gradient_plan(kernel, traits);
    if (plan) return weight_gradient_scratch_bytes(kernel, *plan);
  } else if (convolution_tile(kernel, traits)) {
    return convolution_matrix_scratch_bytes(kernel);
  }
  return plan_contraction(problem_of(kernel, traits), traits).scratch_bytes;
}

}  // namespace vkml::vulkan
