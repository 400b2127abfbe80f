// Convolutions, and gradients of their input where windows step by one pixel, on matrix units:
//   out(o, pixel) = sum over taps of weight(o, tap) * image(tap, pixel)
// A workgroup computes a tile of output channels and pixels in steps of a few input channels. The
// image under the tile goes to shared memory once a step, with the rim that windows reach
// (image_staging.h), and serves all taps there: the 16 pixels of a matrix are neighbours in a row,
// a tap shifts where they begin. Weights are laid out tap by tap in a dispatch before, and staged
// for one or several taps at a time. The gradient of the input is the convolution of the output's
// gradient with the taps in reverse order.
//
// Sizes: 64 channels x 256 pixels by four subgroups of 64 x 64 in steps of 16 channels, with the
// weights of nine taps at once, for 16-bit elements; 64 x 128 by four of 16 x 128, one tap at once,
// for f32, which is cut into parts as in contraction_matrix.cpp; others for images and channels
// that those do not fit. Bound: matrix units, and shared memory that feeds them.
#include <algorithm>
#include <limits>
#include <span>

#include "kernels/contraction.h"
#include "kernels/conv2d.h"
#include "kernels/epilogue.h"
#include "kernels/matrix_copy.h"
#include "kernels/matrix_staging.h"
#include "kernels/matrix_strip.h"

namespace vkml::vulkan {

using dispatch::Operand;
using ops::CoreKind;
using spirv::Matrix;
using spirv::MatrixUse;
using spirv::MatrixVariable;
using spirv::Value;

namespace {

constexpr std::uint32_t kEdge = kMatrixEdge;
constexpr std::uint32_t kVector = 4;  // f32 in 16 bytes
constexpr std::uint32_t kParts = 3;   // of f32
/// Taps up to which the loop over them is written out.
constexpr std::uint32_t kUnrolledTaps = 9;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::uint32_t narrow(std::int64_t value) { return static_cast<std::uint32_t>(value); }

/// The convolution that a kernel is, or that its gradient is.
struct Problem {
  bool is_forward;
  ConvolutionGeometry geometry;
  ImageWindow window;
  std::int64_t inputs, outputs;  // channels of a group that are summed over, and that result

  explicit Problem(const dispatch::Kernel& kernel)
      : is_forward(kernel.kind == CoreKind::kConv2d), geometry(convolution_geometry(kernel)) {
    const ConvolutionGeometry& g = geometry;
    inputs = is_forward ? g.group_inputs : g.group_outputs;
    outputs = is_forward ? g.group_outputs : g.group_inputs;
    window.stride_h = g.stride_h;
    window.stride_w = g.stride_w;
    window.dilation_h = g.dilation_h;
    window.dilation_w = g.dilation_w;
    window.kernel_h = narrow(g.kernel_h);
    window.kernel_w = narrow(g.kernel_w);
    const auto padding = [&](std::uint32_t given, std::int64_t kernel_extent,
                             std::uint32_t dilation) {
      const std::int64_t reach = (kernel_extent - 1) * dilation;
      return static_cast<std::int32_t>(is_forward ? given : reach - given);
    };
    window.padding_h = padding(g.padding_h, g.kernel_h, g.dilation_h);
    window.padding_w = padding(g.padding_w, g.kernel_w, g.dilation_w);
  }
};

MatrixFormat format_of(const dispatch::Kernel& kernel) {
  return matrix_format(kernel.core_inputs[0].dtype, kParts);
}

// Weights, as the matrix units read them: (tap, summed channel, resulting channel), the last padded
// to whole vectors; where groups of results would not start at vectors, (result, tap, summed
// channel) with that one padded. The nearest axis is the copy's last.

constexpr std::size_t kNearest = 3;

bool has_results_nearest(const Problem& problem) {
  return !problem.is_forward || problem.geometry.groups == 1 ||
         problem.outputs % kVectorElements == 0;
}

/// The same weights with their axes in that order.
Operand ordered_weights(const Operand& weight, const Problem& problem) {
  constexpr std::array<std::size_t, 4> kForward{2, 3, 1, 0}, kGradient{2, 3, 0, 1};
  constexpr std::array<std::size_t, 4> kResultsFirst{0, 2, 3, 1};
  const std::array<std::size_t, 4>& order = !problem.is_forward            ? kGradient
                                            : has_results_nearest(problem) ? kForward
                                                                           : kResultsFirst;
  Operand ordered = weight;
  for (std::size_t axis = 0; axis < order.size(); ++axis) {
    ordered.extents[axis] = weight.extents[order[axis]];
    ordered.strides[axis] = weight.strides[order[axis]];
  }
  return ordered;
}

/// Distance of two taps along the sum.
std::int64_t tap_length(const Operand& copy, const Problem& problem) {
  return copy.extents[has_results_nearest(problem) ? 2 : kNearest];
}

StridedOperandLayout layout_of(const Operand& copy, const Problem& problem) {
  const std::int64_t row = copy.extents[kNearest], groups = problem.geometry.groups;
  const std::int64_t sum = problem.geometry.taps() * tap_length(copy, problem);
  if (!has_results_nearest(problem)) {
    return {{{groups, problem.outputs * sum}}, {{problem.outputs, sum}}, {{sum, 1}}};
  }
  // Groups lie side by side: of the convolution along a row, of the gradient along the sum.
  const std::int64_t step = problem.is_forward ? problem.outputs : problem.inputs * row;
  const std::int64_t results = problem.is_forward && groups > 1 ? problem.outputs : row;
  return {{{groups, step}}, {{results, 1}}, {{sum, row}}};
}

class ConvolutionMatrix {
 public:
  /// The weights of `context` are the copy.
  ConvolutionMatrix(const Context& context, const Problem& problem, const ConvolutionTile& tile);
  Dispatch generate();

 private:
  std::uint32_t subgroups() const { return tile_.subgroups_m * tile_.subgroups_n; }
  std::uint32_t matrices_m() const { return tile_.outputs / tile_.subgroups_m / kEdge; }
  std::uint32_t matrices_n() const { return pixels() / tile_.subgroups_n / kEdge; }
  std::uint32_t pixels() const { return tile_.image.rows * tile_.image.columns; }
  std::uint32_t depth() const { return tile_.image.channels; }
  std::uint32_t taps() const { return narrow(problem_.geometry.taps()); }
  bool cuts() const { return format_.parts > 1; }

  void open();
  std::int64_t count_tiles();
  void place_tile(Value number);
  /// Runs `body` for the first of each group of taps whose weights are staged at once.
  void for_each_group(const std::function<void(Value first)>& body);
  Value place_of_tap(Value tap) const;
  Value sum_index(Value channel, Value tap) const;
  Value sum_end(Value tap) const;
  void load_weights(Value channel, Value first_tap);
  void store_weights();
  void multiply(Value first_tap);
  void multiply_parts(std::uint32_t number, std::uint32_t k, Value place);
  void multiply_plain(std::uint32_t number, std::uint32_t k, Value place, std::uint32_t part);
  void step(Value channel);
  void add_special();
  void sum();
  void write_strip(std::uint32_t row);

  /// Of a tap by its number among those that are staged at once.
  Matrix read_weights(std::uint32_t number, std::uint32_t part, std::uint32_t row,
                      std::uint32_t k) const {
    return weights_[number]->read(part, subgroup_row_ + row * kEdge, k);
  }
  Matrix read_image(std::uint32_t part, std::uint32_t column, std::uint32_t k, Value place) const {
    return image_->read_channels_by_pixels(part, pixel_places_[column] + place + k / 8);
  }
  MatrixVariable& sum_at(std::uint32_t row, std::uint32_t column) {
    return sums_[row * matrices_n() + column];
  }

  const dispatch::Kernel& kernel_;
  const Problem& problem_;
  ConvolutionTile tile_;
  MatrixFormat format_;
  Shader shader_;
  spirv::Builder& b_;
  std::unique_ptr<ContractionOperand> weight_operand_;
  std::vector<std::unique_ptr<MatrixStaging>> weights_;  // one for each tap of a group
  std::unique_ptr<ImageStaging> image_;
  std::unique_ptr<Epilogue> epilogue_;
  std::unique_ptr<MatrixStrip> strip_;
  spirv::SharedArray memory_, found_special_;
  std::vector<MatrixVariable> sums_;
  std::vector<Value> pixel_places_;
  Value inputs_, outputs_, tap_length_, height_, width_;
  Value tiles_m_, tiles_x_, tiles_y_, images_;
  Value group_, image_number_, first_output_, first_row_, first_column_;
  Value subgroup_row_, subgroup_column_;
};

std::uint32_t threads_of(const ConvolutionTile& tile, const DeviceTraits& traits) {
  return tile.subgroups_m * tile.subgroups_n * traits.subgroup_size;
}

Touches touches_of(const dispatch::Kernel& kernel) {
  Touches touches;
  touches.reads_scratch = true;
  touches.scratch_element_bytes =
      narrow(static_cast<std::int64_t>(size_of(kernel.core_inputs[1].dtype)));
  return touches;
}

ConvolutionMatrix::ConvolutionMatrix(const Context& context, const Problem& problem,
                                     const ConvolutionTile& tile)
    : kernel_(context.kernel),
      problem_(problem),
      tile_(tile),
      format_(format_of(context.kernel)),
      shader_(context, "convolution_matrix", {threads_of(tile, context.traits), 1, 1},
              touches_of(context.kernel)),
      b_(shader_.builder()) {
  b_.module().use_vulkan_memory_model();
}

void ConvolutionMatrix::open() {
  const Operand& image = kernel_.core_inputs[0];
  const Operand& weight = kernel_.core_inputs[1];
  inputs_ = shader_.parameter(problem_.inputs);
  outputs_ = shader_.parameter(problem_.outputs);
  const std::int64_t tap = tap_length(weight, problem_);
  tap_length_ = tap == problem_.inputs ? inputs_ : shader_.parameter(tap);
  height_ = shader_.parameter(kernel_.space[2]);
  width_ = shader_.parameter(kernel_.space[3]);
  weight_operand_ = strided_operand(shader_, weight, layout_of(weight, problem_));
  const std::uint32_t threads = threads_of(tile_, shader_.traits());
  const std::int64_t summed = has_results_nearest(problem_) ? problem_.inputs : tap;
  for (std::uint32_t i = 0; i < tile_.taps; ++i) {
    weights_.push_back(std::make_unique<MatrixStaging>(
        shader_, *weight_operand_, MatrixUse::kA, format_,
        MatrixStaging::Shape{tile_.outputs, depth(), threads, outputs_,
                             problem_.outputs % tile_.outputs == 0, summed % depth() == 0}));
  }
  image_ = std::make_unique<ImageStaging>(shader_, image, problem_.geometry.groups, problem_.window,
                                          tile_.image, format_, threads);
  epilogue_ = std::make_unique<Epilogue>(shader_);
  strip_ = std::make_unique<MatrixStrip>(shader_, matrices_n());

  const std::uint32_t tap_vectors = weights_[0]->shared_vectors();
  const std::uint32_t staged =
      tap_vectors * tile_.taps +
      ImageStaging::shared_vectors(problem_.window, tile_.image, format_.parts);
  memory_ =
      spirv::SharedArray(b_, kWord4, std::max(staged, subgroups() * strip_->shared_vectors()));
  if (cuts()) found_special_ = spirv::SharedArray(b_, kWord, 1);
  for (std::uint32_t i = 0; i < tile_.taps; ++i) {
    weights_[i]->set_memory(memory_, i * tap_vectors, found_special_);
  }
  image_->set_memory(memory_, tile_.taps * tap_vectors, found_special_);
}

std::int64_t ConvolutionMatrix::count_tiles() {
  const std::int64_t m = divide_up(problem_.outputs, tile_.outputs);
  const std::int64_t x = divide_up(kernel_.space[3], tile_.image.columns);
  const std::int64_t y = divide_up(kernel_.space[2], tile_.image.rows);
  tiles_m_ = shader_.stride_parameter(m);
  tiles_x_ = shader_.stride_parameter(x);
  tiles_y_ = shader_.stride_parameter(y);
  images_ = shader_.stride_parameter(kernel_.space[0]);
  return m * x * y * kernel_.space[0] * problem_.geometry.groups;
}

/// Neighbours share their pixels, then their image.
void ConvolutionMatrix::place_tile(Value number) {
  Value rest = number;
  const auto next = [&](Value extent) {
    if (extent.is(1)) return b_.u32(0);
    const Value outer = rest / extent;
    const Value own = rest - outer * extent;
    rest = outer;
    return own;
  };
  first_output_ = next(tiles_m_) * tile_.outputs;
  first_column_ = next(tiles_x_) * tile_.image.columns;
  first_row_ = next(tiles_y_) * tile_.image.rows;
  if (problem_.geometry.groups == 1) {
    image_number_ = rest;
    group_ = b_.u32(0);
  } else {
    image_number_ = next(images_);
    group_ = rest;
  }
  const Value local = b_.local_index();
  weight_operand_->set_batch(group_);
  for (const auto& weights : weights_) weights->set_place(local, first_output_);
  image_->set_local(local);
  image_->set_place(image_number_, group_, first_row_, first_column_);
  const Value subgroup = b_.subgroup_id();
  subgroup_row_ = subgroup / tile_.subgroups_n * (matrices_m() * kEdge);
  subgroup_column_ = subgroup % tile_.subgroups_n * (matrices_n() * kEdge);
  strip_->set_memory(memory_, subgroup * strip_->shared_vectors());
  for (std::uint32_t i = 0; i < matrices_n(); ++i) {
    const Value pixel = subgroup_column_ + i * kEdge;
    pixel_places_.push_back(
        image_->place_of_pixel(pixel / tile_.image.columns, pixel % tile_.image.columns));
  }
}

void ConvolutionMatrix::for_each_group(const std::function<void(Value first)>& body) {
  if (taps() <= kUnrolledTaps) {
    for (std::uint32_t tap = 0; tap < taps(); tap += tile_.taps) body(b_.u32(tap));
  } else {
    b_.for_range(b_.u32(0), b_.u32(taps()), b_.u32(tile_.taps), body);
  }
}

/// Where in shared memory the pixels that a tap sees begin.
Value ConvolutionMatrix::place_of_tap(Value tap) const {
  const Value y = tap / problem_.window.kernel_w;
  return image_->place_of_tap(y, tap - y * problem_.window.kernel_w);
}

Value ConvolutionMatrix::sum_index(Value channel, Value tap) const {
  const Value own = problem_.is_forward ? tap : b_.u32(taps() - 1) - tap;
  return own * tap_length_ + channel;
}
/// Of the weights of a tap. Summed channels that are nearest are padded with zeros.
Value ConvolutionMatrix::sum_end(Value tap) const {
  return sum_index(has_results_nearest(problem_) ? inputs_ : tap_length_, tap);
}

void ConvolutionMatrix::load_weights(Value channel, Value first_tap) {
  for (std::uint32_t i = 0; i < tile_.taps; ++i) {
    weights_[i]->load(sum_index(channel, first_tap + i), sum_end(first_tap + i));
  }
}
void ConvolutionMatrix::store_weights() {
  for (const auto& weights : weights_) weights->store();
}

void ConvolutionMatrix::multiply_plain(std::uint32_t number, std::uint32_t k, Value place,
                                       std::uint32_t part) {
  std::vector<Matrix> rows;
  for (std::uint32_t row = 0; row < matrices_m(); ++row) {
    rows.push_back(read_weights(number, part, row, k));
  }
  for (std::uint32_t column = 0; column < matrices_n(); ++column) {
    const Matrix image = read_image(part, column, k, place);
    for (std::uint32_t row = 0; row < matrices_m(); ++row) {
      const MatrixVariable& sum = sum_at(row, column);
      sum.store(multiply_add(rows[row], image, sum.load()));
    }
  }
}

void ConvolutionMatrix::multiply_parts(std::uint32_t number, std::uint32_t k, Value place) {
  std::vector<std::vector<Matrix>> weights(kParts);
  for (std::uint32_t part = 0; part < kParts; ++part) {
    for (std::uint32_t row = 0; row < matrices_m(); ++row) {
      weights[part].push_back(read_weights(number, part, row, k));
    }
  }
  for (std::uint32_t column = 0; column < matrices_n(); ++column) {
    std::vector<Matrix> image;
    for (std::uint32_t part = 0; part < kParts; ++part) {
      image.push_back(read_image(part, column, k, place));
    }
    const std::vector<Matrix> products = products_of_parts(weights, image);
    for (std::uint32_t row = 0; row < matrices_m(); ++row) {
      const MatrixVariable& sum = sum_at(row, column);
      sum.store(sum.load() + products[row]);
    }
  }
}

void ConvolutionMatrix::multiply(Value first_tap) {
  for (std::uint32_t i = 0; i < tile_.taps; ++i) {
    const Value place = place_of_tap(first_tap + i);
    for (std::uint32_t k = 0; k < depth(); k += kEdge) {
      if (cuts()) {
        multiply_parts(i, k, place);
      } else {
        multiply_plain(i, k, place, 0);
      }
    }
  }
}

/// The channels from `channel` on: all taps. The weights of the next ones are on their way while
/// those of some are multiplied.
void ConvolutionMatrix::step(Value channel) {
  load_weights(channel, b_.u32(0));
  image_->stage(channel);
  store_weights();
  b_.workgroup_barrier();
  for_each_group([&](Value tap) {
    const Value next = tap + tile_.taps;
    const Value has_next = less(next, taps());
    b_.if_then(has_next, [&] { load_weights(channel, next); });
    multiply(tap);
    b_.workgroup_barrier();
    b_.if_then(has_next, [&] {
      store_weights();
      b_.workgroup_barrier();
    });
  });
}

void ConvolutionMatrix::add_special() {
  b_.if_then(not_equal(found_special_.load(b_.u32(0)), 0), [&] {
    b_.for_range(b_.u32(0), inputs_, b_.u32(depth()), [&](Value channel) {
      image_->stage_special(channel);
      b_.for_range(b_.u32(0), b_.u32(taps()), b_.u32(1), [&](Value tap) {
        weights_[0]->stage_special(sum_index(channel, tap), sum_end(tap));
        b_.workgroup_barrier();
        const Value place = place_of_tap(tap);
        for (std::uint32_t k = 0; k < depth(); k += kEdge) {
          multiply_plain(0, k, place, 0);
          multiply_plain(0, k, place, 1);
        }
        b_.workgroup_barrier();
      });
    });
  });
}

void ConvolutionMatrix::sum() {
  for (std::uint32_t i = 0; i < matrices_m() * matrices_n(); ++i) {
    sums_.emplace_back(b_, kMatrixSums);
    sums_.back().store(zero_matrix(b_, kMatrixSums));
  }
  if (cuts()) {
    b_.if_then(equal(b_.local_index(), 0), [&] { found_special_.store(b_.u32(0), b_.u32(0)); });
    b_.workgroup_barrier();
  }
  if (problem_.inputs <= depth()) {
    step(b_.u32(0));
  } else {
    b_.for_range(b_.u32(0), inputs_, b_.u32(depth()), [&](Value channel) { step(channel); });
  }
  if (cuts()) add_special();
}

void ConvolutionMatrix::write_strip(std::uint32_t row) {
  std::vector<Matrix> sums;
  for (std::uint32_t column = 0; column < matrices_n(); ++column) {
    sums.push_back(sum_at(row, column).load());
  }
  const std::uint32_t neighbours = kernel_.space[3] % kVector == 0 ? kVector : 1;
  strip_->write(sums, neighbours, [&](Value own_row, Value own_column, Value own_sums) {
    const Value output = first_output_ + subgroup_row_ + row * kEdge + own_row;
    const Value pixel = subgroup_column_ + own_column;
    const Value in_rows = pixel / tile_.image.columns;
    const Value y = first_row_ + in_rows;
    const Value x = first_column_ + (pixel - in_rows * tile_.image.columns);
    const Value is_inside =
        logical_and(less(output, outputs_), logical_and(less(y, height_), less(x, width_)));
    b_.if_then(is_inside, [&] {
      const Coordinates at{image_number_, group_ * outputs_ + output, y, x};
      if (neighbours == 1) {
        epilogue_->run(at, own_sums);
      } else {
        epilogue_->run4(at, own_sums);
      }
    });
  });
}

Dispatch ConvolutionMatrix::generate() {
  open();
  const std::int64_t count = count_tiles();
  const std::array<std::uint32_t, 3> groups = shader_.groups_for(count);
  const Value limit = groups[1] > 1 ? shader_.parameter(count) : Value{};
  const Value number = b_.workgroup_id(1) * b_.workgroup_count(0) + b_.workgroup_id(0);
  const auto body = [&] {
    place_tile(number);
    sum();
    for (std::uint32_t row = 0; row < matrices_m(); ++row) write_strip(row);
  };
  if (limit) {
    b_.if_then(less(number, limit), body);
  } else {
    body();
  }
  return shader_.finish(groups);
}

/// Bytes that a workgroup stages.
std::uint32_t shared_bytes(const Problem& problem, const ConvolutionTile& tile,
                           std::uint32_t parts) {
  constexpr std::uint32_t kRun = 8;
  const std::uint32_t depth = tile.image.channels;
  const std::uint32_t weights = has_results_nearest(problem) ? depth * (tile.outputs / kRun + 1)
                                                             : tile.outputs * (depth / kRun + 1);
  return 16 * (weights * parts * tile.taps +
               ImageStaging::shared_vectors(problem.window, tile.image, parts));
}

/// The longest steps that fit shared memory and do not compute much more than the sum.
std::uint32_t step_channels(const Problem& problem, ConvolutionTile tile, std::uint32_t parts) {
  constexpr double kWaste = 1.15;
  const auto padded = [&](std::int64_t depth) {
    return static_cast<double>(divide_up(problem.inputs, depth) * depth);
  };
  for (const std::uint32_t depth : {64u, 32u, 16u}) {
    tile.image.channels = depth;
    if (parts > 1 && depth > kEdge) continue;
    if (padded(depth) > kWaste * padded(kEdge)) continue;
    if (shared_bytes(problem, tile, parts) <= kConvolutionSharedBytes) return depth;
  }
  return 0;
}

/// Tiles, with what a compute unit does of them in relation to others.
struct Candidate {
  ConvolutionTile tile;
  double rate;
};
constexpr Candidate kCandidates16[] = {
    {{{8, 32, 0}, 64, 1, 4, 9}, 1.25}, {{{16, 16, 0}, 64, 1, 4, 9}, 1.24},
    {{{8, 32, 0}, 64, 1, 4, 3}, 1.2},  {{{16, 16, 0}, 64, 1, 4, 3}, 1.19},
    {{{8, 32, 0}, 64, 1, 4, 1}, 1.1},  {{{16, 16, 0}, 64, 1, 4, 1}, 1.09},
    {{{4, 32, 0}, 64, 2, 2, 1}, 1},    {{{8, 16, 0}, 64, 2, 2, 1}, 1},
    {{{7, 16, 0}, 128, 4, 1, 1}, 1},   {{{8, 16, 0}, 32, 1, 4, 1}, 0.8},
    {{{2, 32, 0}, 64, 2, 2, 1}, 0.7},  {{{4, 16, 0}, 64, 2, 2, 1}, 0.7},
};
constexpr Candidate kCandidatesF32[] = {
    {{{8, 32, 0}, 64, 1, 4, 1}, 1.1}, {{{16, 16, 0}, 64, 1, 4, 1}, 1.1},  // 1 x 1
    {{{4, 32, 0}, 64, 4, 1, 1}, 1},   {{{8, 16, 0}, 64, 4, 1, 1}, 1},
    {{{7, 16, 0}, 64, 4, 1, 1}, 1},   {{{8, 16, 0}, 32, 2, 2, 1}, 0.8},
    {{{2, 32, 0}, 64, 2, 2, 1}, 0.7}, {{{4, 16, 0}, 64, 2, 2, 1}, 0.7},
};

}  // namespace

std::optional<ConvolutionTile> convolution_tile(const dispatch::Kernel& kernel,
                                                const DeviceTraits& traits) {
  /// Less of what is computed than that is no gain over gathering the image for each tap.
  constexpr double kLeastUse = 0.35;
  /// Few tiles are better split along the sum.
  constexpr double kLeastUnits = 0.5;
  constexpr std::int64_t kLeastInputs = 8;
  if (!may_convolve_on_matrix_units(kernel, traits)) return std::nullopt;
  const Problem problem(kernel);
  const bool has_steps =
      problem.is_forward || (problem.window.stride_h == 1 && problem.window.stride_w == 1);
  const Operand& weight = kernel.core_inputs[1];
  bool is_whole = true;
  for (std::size_t axis = 0; axis < weight.extents.size(); ++axis) {
    is_whole &= weight.strides[axis] != 0 || weight.extents[axis] == 1;
  }
  if (!has_steps || !is_whole || problem.inputs < kLeastInputs) {
    return std::nullopt;
  }
  const std::uint32_t parts = format_of(kernel).parts;
  const double units = traits.compute_units;
  std::optional<ConvolutionTile> best;
  double best_time = std::numeric_limits<double>::infinity();
  const std::span<const Candidate> candidates =
      parts > 1 ? std::span<const Candidate>(kCandidatesF32) : kCandidates16;
  for (const Candidate& candidate : candidates) {
    ConvolutionTile tile = candidate.tile;
    if (problem.geometry.taps() % tile.taps != 0) continue;
    tile.image.channels = step_channels(problem, tile, parts);
    if (tile.image.channels == 0) continue;
    const std::int64_t tiles = divide_up(problem.outputs, tile.outputs) *
                               divide_up(kernel.space[2], tile.image.rows) *
                               divide_up(kernel.space[3], tile.image.columns);
    const auto work = static_cast<double>(tile.outputs) * tile.image.rows * tile.image.columns;
    const auto useful = static_cast<double>(problem.outputs * kernel.space[2] * kernel.space[3]) *
                        static_cast<double>(problem.inputs) /
                        static_cast<double>(divide_up(problem.inputs, kEdge) * kEdge);
    const double groups = static_cast<double>(tiles * kernel.space[0] * problem.geometry.groups);
    if (useful < kLeastUse * work * static_cast<double>(tiles) || groups < kLeastUnits * units) {
      continue;
    }
    const double time = std::max(groups / units, 1.0) * work / candidate.rate;
    if (time < best_time) {
      best_time = time;
      best = tile;
    }
  }
  return best;
}

std::int64_t convolution_matrix_scratch_bytes(const dispatch::Kernel& kernel) {
  const Problem problem(kernel);
  return matrix_copy_bytes(ordered_weights(kernel.core_inputs[1], problem), kNearest);
}

std::vector<Dispatch> generate_convolution_matrix(const Context& context,
                                                  const ConvolutionTile& tile) {
  const Problem problem(context.kernel);
  const Operand weights = ordered_weights(context.kernel.core_inputs[1], problem);
  const Operand copy = matrix_copy_of(weights, kNearest, context.kernel.scratch, 0);
  std::vector<Dispatch> dispatches{generate_matrix_copy(context, weights, kNearest, copy)};
  dispatch::Kernel kernel = context.kernel;
  kernel.core_inputs[1] = copy;
  const Context changed{kernel, context.graph, context.traits};
  dispatches.push_back(ConvolutionMatrix(changed, problem, tile).generate());
  return dispatches;
}

}  // namespace vkml::vulkan
