// Gradients of a convolution's weight on matrix units:
//   out(o, tap, c) = sum over pixels of gradient(o, pixel) * image(c, pixel under the tap)
// A workgroup computes 64 output channels x up to 9 taps x 32 input channels, all in registers, and
// walks over tiles of pixels: the gradient of a tile and the image under it, with the rim that
// windows reach (image_staging.h), go to shared memory once and serve all taps there. Pixels are
// dealt out to as many workgroups as the device runs at once; their sums go to scratch, channels
// nearest, and a second dispatch adds them in a fixed order and runs the epilogue.
//
// f32 is cut into parts as in contraction_matrix.cpp. Bound: matrix units, and shared memory that
// feeds them: 9 matrices of the image for 18 products.
#include <algorithm>

#include "kernels/contraction.h"
#include "kernels/conv2d.h"
#include "kernels/epilogue.h"
#include "kernels/matrix_staging.h"
#include "kernels/matrix_strip.h"

namespace vkml::vulkan {

using dispatch::Operand;
using spirv::Matrix;
using spirv::MatrixUse;
using spirv::MatrixVariable;
using spirv::Value;

namespace {

constexpr std::uint32_t kEdge = kMatrixEdge;
constexpr std::uint32_t kParts = 3;  // of f32
constexpr std::uint32_t kSubgroups = 4;
/// Taps that a workgroup has registers for.
constexpr std::uint32_t kMostTaps = 9;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }
std::uint32_t narrow(std::int64_t value) { return static_cast<std::uint32_t>(value); }

ImageWindow window_of(const ConvolutionGeometry& g) {
  ImageWindow window;
  window.stride_h = g.stride_h;
  window.stride_w = g.stride_w;
  window.dilation_h = g.dilation_h;
  window.dilation_w = g.dilation_w;
  window.kernel_h = narrow(g.kernel_h);
  window.kernel_w = narrow(g.kernel_w);
  window.padding_h = static_cast<std::int32_t>(g.padding_h);
  window.padding_w = static_cast<std::int32_t>(g.padding_w);
  return window;
}

MatrixFormat format_of(const dispatch::Kernel& kernel) {
  return matrix_format(kernel.core_inputs[0].dtype, kParts);
}

/// gradient(o, pixel of an image); images and groups are the batch.
StridedOperandLayout gradients_of_image(const Operand& gradient, const ConvolutionGeometry& g) {
  const dispatch::Extents& extents = gradient.extents;
  const dispatch::Extents& strides = gradient.strides;
  return {{{extents[0], strides[0]}, {g.groups, strides[1] * g.group_outputs}},
          {{g.group_outputs, strides[1]}},
          {{extents[2], strides[2]}, {extents[3], strides[3]}}};
}

/// How partial sums lie in scratch: (split, group, tap, output, input), channels padded to whole
/// tiles.
struct PartialLayout {
  std::int64_t groups, taps, outputs, inputs;

  PartialLayout(const ConvolutionGeometry& g, const WeightGradientPlan& plan)
      : groups(g.groups),
        taps(g.taps()),
        outputs(round_up(g.group_outputs, plan.outputs)),
        inputs(round_up(g.group_inputs, plan.image.channels)) {}

  std::int64_t elements() const { return groups * taps * outputs * inputs; }
};

Operand partial_operand(const dispatch::Kernel& kernel) {
  Operand operand;
  operand.buffer = kernel.scratch;
  operand.dtype = DType::kF32;
  return operand;
}

Touches touches_of(bool is_sum) {
  Touches touches;
  touches.core_inputs = !is_sum;
  touches.loads = touches.stores = is_sum;
  touches.reads_scratch = is_sum;
  touches.writes_scratch = !is_sum;
  return touches;
}

class WeightGradient {
 public:
  WeightGradient(const Context& context, const WeightGradientPlan& plan);
  Dispatch generate();

 private:
  std::uint32_t threads() const { return kSubgroups * shader_.traits().subgroup_size; }
  std::uint32_t subgroups_n() const { return plan_.image.channels / kEdge; }
  std::uint32_t subgroups_m() const { return kSubgroups / subgroups_n(); }
  std::uint32_t matrices_m() const { return plan_.outputs / subgroups_m() / kEdge; }
  std::uint32_t taps() const { return std::min(narrow(geometry_.taps()), kMostTaps); }
  bool has_all_taps() const { return geometry_.taps() <= kMostTaps; }
  bool cuts() const { return format_.parts > 1; }

  void open();
  void place_workgroup(Value number);
  void place_tile(Value tile);
  Value first_of_row(std::uint32_t row) const;
  void for_each_tile(const spirv::Body& stage, const spirv::Body& multiply);
  void stage();
  void multiply(const std::function<void(std::uint32_t row, std::uint32_t k)>& step);
  Matrix read_image(std::uint32_t part, std::uint32_t row, std::uint32_t k,
                    std::uint32_t tap) const;
  void multiply_plain(std::uint32_t row, std::uint32_t k, std::uint32_t part);
  void multiply_parts(std::uint32_t row, std::uint32_t k);
  void sum();
  void write();

  MatrixVariable& sum_at(std::uint32_t row, std::uint32_t tap) { return sums_[row * taps() + tap]; }

  const dispatch::Kernel& kernel_;
  const WeightGradientPlan& plan_;
  ConvolutionGeometry geometry_;
  PartialLayout layout_;
  MatrixFormat format_;
  Shader shader_;
  spirv::Builder& b_;
  std::unique_ptr<ContractionOperand> gradient_operand_;
  std::vector<std::unique_ptr<MatrixStaging>> gradients_;  // one for each row of the tile
  std::unique_ptr<ImageStaging> image_;
  std::unique_ptr<MatrixStrip> strip_;
  std::unique_ptr<Elements> partials_;
  spirv::SharedArray memory_, found_special_;
  std::vector<MatrixVariable> sums_;
  std::vector<Value> tap_places_;
  Value is_aligned_, groups_, outputs_, plane_, width_, tile_count_, span_;
  Value tiles_x_, tiles_in_image_, tiles_m_, tiles_n_, padded_outputs_, padded_inputs_;
  Value group_, split_, first_output_, first_input_, first_tap_;
  Value first_row_, first_column_;
  Value subgroup_row_, subgroup_column_;
};

WeightGradient::WeightGradient(const Context& context, const WeightGradientPlan& plan)
    : kernel_(context.kernel),
      plan_(plan),
      geometry_(convolution_geometry(context.kernel)),
      layout_(geometry_, plan),
      format_(format_of(context.kernel)),
      shader_(context, "convolution_weight_gradient",
              {kSubgroups * context.traits.subgroup_size, 1, 1}, touches_of(false)),
      b_(shader_.builder()) {
  b_.module().use_vulkan_memory_model();
}

void WeightGradient::open() {
  const Operand& image = kernel_.core_inputs[0];
  const Operand& gradient = kernel_.core_inputs[1];
  const dispatch::Extents& pixels = gradient.extents;
  const std::int64_t tiles_x = pixels[3] / plan_.image.columns;
  const std::int64_t tiles_in_image = tiles_x * (pixels[2] / plan_.image.rows);
  groups_ = shader_.stride_parameter(geometry_.groups);
  outputs_ = shader_.parameter(geometry_.group_outputs);
  width_ = shader_.parameter(pixels[3]);
  plane_ = shader_.parameter(pixels[2] * pixels[3]);
  tiles_x_ = shader_.stride_parameter(tiles_x);
  tiles_in_image_ = shader_.stride_parameter(tiles_in_image);
  tile_count_ = shader_.parameter(tiles_in_image * pixels[0]);
  span_ = shader_.parameter(plan_.span);
  tiles_m_ = shader_.stride_parameter(layout_.outputs / plan_.outputs);
  tiles_n_ = shader_.stride_parameter(layout_.inputs / plan_.image.channels);
  padded_outputs_ = shader_.parameter(layout_.outputs);
  padded_inputs_ = shader_.parameter(layout_.inputs);

  gradient_operand_ = strided_operand(shader_, gradient, gradients_of_image(gradient, geometry_));
  for (std::uint32_t row = 0; row < plan_.image.rows; ++row) {
    gradients_.push_back(std::make_unique<MatrixStaging>(
        shader_, *gradient_operand_, MatrixUse::kA, format_,
        MatrixStaging::Shape{plan_.outputs, plan_.image.columns, threads(), outputs_,
                             geometry_.group_outputs % plan_.outputs == 0, true}));
  }
  is_aligned_ = gradients_[0]->is_aligned();
  const ImageWindow window = window_of(geometry_);
  image_ = std::make_unique<ImageStaging>(shader_, image, geometry_.groups, window, plan_.image,
                                          format_, threads());
  partials_ = std::make_unique<Elements>(shader_, partial_operand(kernel_));
  strip_ = std::make_unique<MatrixStrip>(shader_, 1);

  const std::uint32_t row_vectors = gradients_[0]->shared_vectors();
  const std::uint32_t staged = row_vectors * plan_.image.rows +
                               ImageStaging::shared_vectors(window, plan_.image, format_.parts);
  memory_ = spirv::SharedArray(b_, kWord4, std::max(staged, kSubgroups * strip_->shared_vectors()));
  if (cuts()) found_special_ = spirv::SharedArray(b_, kWord, 1);
  for (std::uint32_t row = 0; row < plan_.image.rows; ++row) {
    gradients_[row]->set_memory(memory_, row * row_vectors, found_special_);
  }
  image_->set_memory(memory_, plan_.image.rows * row_vectors, found_special_);
}

/// Neighbours share their pixels.
void WeightGradient::place_workgroup(Value number) {
  Value rest = number;
  const auto next = [&](Value extent) {
    if (extent.is(1)) return b_.u32(0);
    const Value outer = rest / extent;
    const Value own = rest - outer * extent;
    rest = outer;
    return own;
  };
  first_output_ = next(tiles_m_) * plan_.outputs;
  first_input_ = next(tiles_n_) * plan_.image.channels;
  first_tap_ = next(b_.u32(narrow(divide_up(geometry_.taps(), kMostTaps)))) * kMostTaps;
  group_ = next(groups_);
  split_ = rest;
  image_->set_local(b_.local_index());
  const Value subgroup = b_.subgroup_id();
  subgroup_row_ = subgroup / subgroups_n() * (matrices_m() * kEdge);
  subgroup_column_ = subgroup % subgroups_n() * kEdge;
  strip_->set_memory(memory_, subgroup * strip_->shared_vectors());
  const std::uint32_t width = narrow(geometry_.kernel_w), last = narrow(geometry_.taps()) - 1;
  for (std::uint32_t i = 0; i < taps(); ++i) {
    Value tap = first_tap_ + i;
    if (!has_all_taps()) tap = b_.select(less(b_.u32(last), tap), b_.u32(last), tap);
    const Value y = tap / width;
    tap_places_.push_back(image_->place_of_tap(y, tap - y * width));
  }
}

void WeightGradient::place_tile(Value tile) {
  const Value number = tiles_in_image_.is(1) ? tile : tile / tiles_in_image_;
  const Value in_image = tile - number * tiles_in_image_;
  const Value y = in_image / tiles_x_;
  first_row_ = y * plan_.image.rows;
  first_column_ = (in_image - y * tiles_x_) * plan_.image.columns;
  image_->set_place(number, group_, first_row_, first_column_);
  gradient_operand_->set_batch(number * groups_ + group_);
  for (const auto& row : gradients_) row->set_place(b_.local_index(), first_output_);
}

/// The first pixel of a row of the tile.
Value WeightGradient::first_of_row(std::uint32_t row) const {
  return (first_row_ + row) * width_ + first_column_;
}

void WeightGradient::for_each_tile(const spirv::Body& stage_tile,
                                   const spirv::Body& multiply_tile) {
  const Value begin = split_ * span_;
  const Value past = begin + span_;
  const Value end = b_.select(less(past, tile_count_), past, tile_count_);
  b_.for_range(begin, end, b_.u32(1), [&](Value tile) {
    place_tile(tile);
    stage_tile();
    b_.workgroup_barrier();
    multiply_tile();
    b_.workgroup_barrier();
  });
}

void WeightGradient::stage() {
  b_.if_then(is_aligned_, [&] {
    for (std::uint32_t row = 0; row < plan_.image.rows; ++row) {
      gradients_[row]->load(first_of_row(row), plane_);
    }
  });
  image_->stage(first_input_);
  b_.if_else(
      is_aligned_,
      [&] {
        for (const auto& row : gradients_) row->store();
      },
      [&] {
        for (std::uint32_t row = 0; row < plan_.image.rows; ++row) {
          gradients_[row]->stage_elements(first_of_row(row), plane_);
        }
      });
}

void WeightGradient::multiply(const std::function<void(std::uint32_t row, std::uint32_t k)>& step) {
  for (std::uint32_t row = 0; row < plan_.image.rows; ++row) {
    for (std::uint32_t k = 0; k < plan_.image.columns; k += kEdge) step(row, k);
  }
}

Matrix WeightGradient::read_image(std::uint32_t part, std::uint32_t row, std::uint32_t k,
                                  std::uint32_t tap) const {
  const Value pixel = image_->place_of_pixel(b_.u32(row), b_.u32(k));
  return image_->read_pixels_by_channels(part, pixel + tap_places_[tap] + subgroup_column_ / 8);
}

void WeightGradient::multiply_plain(std::uint32_t row, std::uint32_t k, std::uint32_t part) {
  std::vector<Matrix> gradient;
  for (std::uint32_t i = 0; i < matrices_m(); ++i) {
    gradient.push_back(gradients_[row]->read(part, subgroup_row_ + i * kEdge, k));
  }
  for (std::uint32_t tap = 0; tap < taps(); ++tap) {
    const Matrix image = read_image(part, row, k, tap);
    for (std::uint32_t i = 0; i < matrices_m(); ++i) {
      const MatrixVariable& sum = sum_at(i, tap);
      sum.store(multiply_add(gradient[i], image, sum.load()));
    }
  }
}

void WeightGradient::multiply_parts(std::uint32_t row, std::uint32_t k) {
  std::vector<std::vector<Matrix>> gradient(kParts);
  for (std::uint32_t part = 0; part < kParts; ++part) {
    for (std::uint32_t i = 0; i < matrices_m(); ++i) {
      gradient[part].push_back(gradients_[row]->read(part, subgroup_row_ + i * kEdge, k));
    }
  }
  for (std::uint32_t tap = 0; tap < taps(); ++tap) {
    std::vector<Matrix> image;
    for (std::uint32_t part = 0; part < kParts; ++part) {
      image.push_back(read_image(part, row, k, tap));
    }
    const std::vector<Matrix> products = products_of_parts(gradient, image);
    for (std::uint32_t i = 0; i < matrices_m(); ++i) {
      const MatrixVariable& sum = sum_at(i, tap);
      sum.store(sum.load() + products[i]);
    }
  }
}

void WeightGradient::sum() {
  for (std::uint32_t i = 0; i < matrices_m() * taps(); ++i) {
    sums_.emplace_back(b_, kMatrixSums);
    sums_.back().store(zero_matrix(b_, kMatrixSums));
  }
  if (!cuts()) {
    for_each_tile(
        [&] { stage(); },
        [&] { multiply([&](std::uint32_t row, std::uint32_t k) { multiply_plain(row, k, 0); }); });
    return;
  }
  b_.if_then(equal(b_.local_index(), 0), [&] { found_special_.store(b_.u32(0), b_.u32(0)); });
  b_.workgroup_barrier();
  for_each_tile(
      [&] { stage(); },
      [&] { multiply([&](std::uint32_t row, std::uint32_t k) { multiply_parts(row, k); }); });
  const auto stage_special = [&] {
    image_->stage_special(first_input_);
    for (std::uint32_t row = 0; row < plan_.image.rows; ++row) {
      gradients_[row]->stage_special(first_of_row(row), plane_);
    }
  };
  b_.if_then(not_equal(found_special_.load(b_.u32(0)), 0), [&] {
    for_each_tile(stage_special, [&] {
      multiply([&](std::uint32_t row, std::uint32_t k) {
        multiply_plain(row, k, 0);
        multiply_plain(row, k, 1);
      });
    });
  });
}

void WeightGradient::write() {
  const std::uint32_t all_taps = narrow(geometry_.taps());
  const Value outer = (split_ * groups_ + group_) * all_taps + first_tap_;
  for (std::uint32_t tap = 0; tap < taps(); ++tap) {
    const auto write_tap = [&] {
      for (std::uint32_t i = 0; i < matrices_m(); ++i) {
        const std::array<Matrix, 1> sums{sum_at(i, tap).load()};
        const Value first_row =
            (outer + tap) * padded_outputs_ + first_output_ + subgroup_row_ + i * kEdge;
        const Value first_column = first_input_ + subgroup_column_;
        strip_->write(sums, 4, [&](Value row, Value column, Value values) {
          partials_->store4((first_row + row) * padded_inputs_ + first_column + column, values);
        });
      }
    };
    if (has_all_taps()) {
      write_tap();
    } else {
      b_.if_then(less(first_tap_ + tap, all_taps), write_tap);
    }
  }
}

Dispatch WeightGradient::generate() {
  open();
  const std::int64_t count =
      layout_.outputs / plan_.outputs * (layout_.inputs / plan_.image.channels) *
      divide_up(geometry_.taps(), kMostTaps) * geometry_.groups * plan_.splits;
  const std::array<std::uint32_t, 3> groups = shader_.groups_for(count);
  const Value limit = groups[1] > 1 ? shader_.parameter(count) : b_.u32(1);
  const Value number = b_.workgroup_id(1) * b_.workgroup_count(0) + b_.workgroup_id(0);
  b_.if_then(groups[1] > 1 ? less(number, limit) : b_.boolean(true), [&] {
    place_workgroup(number);
    sum();
    write();
  });
  return shader_.finish(groups);
}

/// Adds the partial sums: a few invocations share an element, each a run of the parts, which it
/// reads several at a time.
Dispatch generate_sum(const Context& context, const WeightGradientPlan& plan) {
  constexpr std::uint32_t kElements = 32, kRuns = 4, kAtOnce = 4;
  Shader shader(context, "convolution_weight_sum", {kElements * kRuns, 1, 1}, touches_of(true));
  spirv::Builder& b = shader.builder();
  const ConvolutionGeometry g = convolution_geometry(context.kernel);
  const PartialLayout layout(g, plan);
  const std::int64_t span = divide_up(plan.splits, kRuns);
  const Value count = shader.parameter(layout.elements());
  const Value splits = shader.parameter(plan.splits), run_length = shader.parameter(span);
  const Value padded_outputs = shader.parameter(layout.outputs);
  const Value padded_inputs = shader.parameter(layout.inputs);
  const Value outputs = shader.parameter(g.group_outputs);
  const Value inputs = shader.parameter(g.group_inputs);
  Epilogue epilogue(shader);
  const Elements partials(shader, partial_operand(context.kernel));
  const spirv::SharedArray memory(b, spirv::kFloat32, kElements * kRuns);

  const Value local = b.local_index();
  const Value group = b.workgroup_id(1) * b.workgroup_count(0) + b.workgroup_id(0);
  const Value run = local / kElements;
  const Value element = group * kElements + (local - run * kElements);
  const Value is_element = less(element, count);
  const spirv::Variable sum(b, spirv::kFloat32);
  sum.store(b.f32(0));
  const Value begin = run * run_length, past = begin + run_length;
  const Value end = b.select(less(past, splits), past, splits);
  b.for_range(begin, end, b.u32(kAtOnce), [&](Value first) {
    std::array<Value, kAtOnce> values;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const Value is_inside = logical_and(is_element, less(first + i, end));
      const Value place = b.select(is_inside, (first + i) * count + element, b.u32(0));
      values[i] = b.select(is_inside, partials.load(place), b.f32(0));
    }
    for (const Value value : values) sum.store(sum.load() + value);
  });
  memory.store(local, sum.load());
  b.workgroup_barrier();
  b.if_then(logical_and(equal(run, 0), is_element), [&] {
    Value total = memory.load(local);
    for (std::uint32_t i = 1; i < kRuns; ++i) total = total + memory.load(local + i * kElements);
    const Value row = element / padded_inputs, input = element - row * padded_inputs;
    const Value matrix = row / padded_outputs, output = row - matrix * padded_outputs;
    const Value own_group = matrix / narrow(g.taps()), tap = matrix - own_group * narrow(g.taps());
    const Value y = tap / narrow(g.kernel_w), x = tap - y * narrow(g.kernel_w);
    b.if_then(logical_and(less(output, outputs), less(input, inputs)), [&] {
      epilogue.run({own_group * outputs + output, input, y, x}, total);
    });
  });
  return shader.finish(shader.groups_for(divide_up(layout.elements(), kElements)));
}

std::uint32_t shared_bytes(const ImageWindow& window, const WeightGradientPlan& plan,
                           std::uint32_t parts) {
  const std::uint32_t gradient = plan.image.rows * plan.outputs * (plan.image.columns / 8 + 1);
  return 16 * (gradient * parts + ImageStaging::shared_vectors(window, plan.image, parts));
}

/// Tiles of pixels, the largest first.
constexpr ImageTile kTiles[] = {{8, 16, 0}, {4, 32, 0}, {4, 16, 0}, {2, 32, 0},
                                {1, 32, 0}, {2, 16, 0}, {1, 16, 0}};

}  // namespace

std::optional<WeightGradientPlan> weight_gradient_plan(const dispatch::Kernel& kernel,
                                                       const DeviceTraits& traits) {
  /// Less of what is computed than that is no gain over gathering the image for each tap.
  constexpr double kLeastUse = 0.35;
  /// Workgroups that a compute unit runs at once.
  constexpr std::int64_t kResident = 2;
  constexpr std::uint32_t kInputs = 32;
  if (!may_convolve_on_matrix_units(kernel, traits)) return std::nullopt;
  const ConvolutionGeometry g = convolution_geometry(kernel);
  const Operand& gradient = kernel.core_inputs[1];
  if (vector_direction(gradients_of_image(gradient, g)) != ContractionOperand::Dense::kInner) {
    return std::nullopt;
  }
  const std::uint32_t parts = format_of(kernel).parts;
  WeightGradientPlan plan;
  plan.image.rows = 0;
  const std::uint32_t channels = g.group_inputs <= kEdge ? kEdge : kInputs;
  // Tiles that stick out would multiply elements under their pixels outside with zeros, which is
  // NaN where those are not finite.
  for (const ImageTile& tile : kTiles) {
    WeightGradientPlan trial;
    trial.image = {tile.rows, tile.columns, channels};
    if (gradient.extents[2] % tile.rows != 0 || gradient.extents[3] % tile.columns != 0) continue;
    if (shared_bytes(window_of(g), trial, parts) > kConvolutionSharedBytes) continue;
    plan = trial;
    break;
  }
  if (plan.image.rows == 0) return std::nullopt;
  const PartialLayout layout(g, plan);
  const std::int64_t useful = g.groups * g.taps() * g.group_outputs * g.group_inputs;
  if (static_cast<double>(useful) < kLeastUse * static_cast<double>(layout.elements())) {
    return std::nullopt;
  }
  const std::int64_t tiles = gradient.extents[0] * (gradient.extents[2] / plan.image.rows) *
                             (gradient.extents[3] / plan.image.columns);
  const std::int64_t together = layout.outputs / plan.outputs *
                                (layout.inputs / plan.image.channels) * g.groups *
                                divide_up(g.taps(), kMostTaps);
  const std::int64_t wanted = kResident * traits.compute_units;
  if (tiles * together < wanted / 4) return std::nullopt;
  plan.span = divide_up(tiles, std::clamp<std::int64_t>(wanted / together, 1, tiles));
  plan.splits = divide_up(tiles, plan.span);
  return plan;
}

std::int64_t weight_gradient_scratch_bytes(const dispatch::Kernel& kernel,
                                           const WeightGradientPlan& plan) {
  return plan.splits * PartialLayout(convolution_geometry(kernel), plan).elements() * 4;
}

std::vector<Dispatch> generate_weight_gradient(const Context& context,
                                               const WeightGradientPlan& plan) {
  return {WeightGradient(context, plan).generate(), generate_sum(context, plan)};
}

}  // namespace vkml::vulkan
