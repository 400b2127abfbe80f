#include "kernels/image_staging.h"

#include <algorithm>

namespace vkml::vulkan {

using spirv::MatrixLayout;
using spirv::MatrixUse;
using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 8;  // channels
/// Blocks that an invocation loads before it stores the first.
constexpr std::uint32_t kBlocksAtOnce = 2;

std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

std::uint32_t extent_of_rim(std::uint32_t pixels, std::uint32_t stride, std::uint32_t kernel,
                            std::uint32_t dilation) {
  return (pixels - 1) * stride + (kernel - 1) * dilation + 1;
}

/// Whether whole groups of neighbours along `axis` lie at multiples of their length.
bool steps_by(const dispatch::Operand& image, std::size_t axis, std::int64_t count) {
  bool all = image.strides[axis] == 1 && image.extents[axis] % count == 0;
  for (std::size_t i = 0; i < image.strides.size(); ++i) {
    all &= i == axis || image.extents[i] == 1 || image.strides[i] % count == 0;
  }
  return all;
}

}  // namespace

std::uint32_t ImageStaging::rim_rows() const {
  return extent_of_rim(tile_.rows, window_.stride_h, window_.kernel_h, window_.dilation_h);
}
std::uint32_t ImageStaging::rim_columns() const {
  return extent_of_rim(tile_.columns, window_.stride_w, window_.kernel_w, window_.dilation_w);
}

std::uint32_t ImageStaging::shared_vectors(const ImageWindow& window, const ImageTile& tile,
                                           std::uint32_t parts) {
  return extent_of_rim(tile.rows, window.stride_h, window.kernel_h, window.dilation_h) *
         extent_of_rim(tile.columns, window.stride_w, window.kernel_w, window.dilation_w) *
         (tile.channels / kVector + 1) * parts;
}

ImageStaging::ImageStaging(Shader& shader, const dispatch::Operand& image, std::int64_t groups,
                           const ImageWindow& window, const ImageTile& tile,
                           const MatrixFormat& format, std::uint32_t threads)
    : b_(shader.builder()),
      elements_(shader, image),
      window_(window),
      tile_(tile),
      format_(format),
      threads_(threads) {
  const std::int64_t channels = image.extents[1] / groups;
  has_whole_vectors_ = channels % kVector == 0;
  has_whole_tiles_ = channels % tile.channels == 0;
  by_channels_ = steps_by(image, 1, kVector) && has_whole_vectors_;
  for (const std::uint32_t run : {4u, 2u}) {
    if (run_ == 1 && steps_by(image, 3, run)) run_ = run;
  }
  height_ = shader.parameter(image.extents[2]);
  width_ = shader.parameter(image.extents[3]);
  channels_ = shader.parameter(channels);
  const auto stride = [&](std::size_t axis) {
    return shader.stride_parameter(image.extents[axis] == 1 ? 0 : image.strides[axis]);
  };
  number_stride_ = stride(0);
  channel_stride_ = stride(1);
  row_stride_ = stride(2);
  column_stride_ = stride(3);
  group_stride_ = groups == 1 ? b_.u32(0) : channels_ * channel_stride_;
}

void ImageStaging::set_memory(const spirv::SharedArray& memory, std::uint32_t first,
                              const spirv::SharedArray& found_special) {
  memory_ = memory;
  first_ = first;
  found_special_ = found_special;
}

void ImageStaging::set_place(Value number, Value group, Value row, Value column) {
  start_ = number * number_stride_ + group * group_stride_;
  first_row_ = row * window_.stride_h - static_cast<std::uint32_t>(window_.padding_h);
  first_column_ = column * window_.stride_w - static_cast<std::uint32_t>(window_.padding_w);
}

/// Tiles begin at multiples of 16 pixels, so that the padding alone says where in a run of
/// neighbours the rim begins.
std::uint32_t ImageStaging::lead(std::uint32_t run) const {
  return (0u - static_cast<std::uint32_t>(window_.padding_w)) % run;
}
std::uint32_t ImageStaging::runs_in_row(std::uint32_t run) const {
  return divide_up(lead(run) + rim_columns(), run);
}

void ImageStaging::move(Value channel, const Store& store) {
  const auto one_by_one = [&] { move_runs(1, false, channel, store); };
  if (by_channels_) {
    b_.if_else(
        elements_.is_vector_aligned(), [&] { move_runs(1, true, channel, store); }, one_by_one);
  } else if (run_ > 1) {
    b_.if_else(
        elements_.is_aligned(), [&] { move_runs(run_, false, channel, store); }, one_by_one);
  } else {
    one_by_one();
  }
}

void ImageStaging::move_runs(std::uint32_t run, bool by_channels, Value channel,
                             const Store& store) {
  const std::uint32_t count = rim_rows() * runs_in_row(run) * vectors();
  const std::uint32_t step = threads_ * kBlocksAtOnce;
  b_.for_range(b_.u32(0), b_.u32(divide_up(count, step) * step), b_.u32(step), [&](Value first) {
    std::vector<Block> blocks;
    for (std::uint32_t i = 0; i < kBlocksAtOnce; ++i) {
      const Value item = first + local_ + i * threads_;
      blocks.push_back(load(item, run, by_channels, channel));
    }
    store(blocks);
  });
}

ImageStaging::Block ImageStaging::load(Value item, std::uint32_t run, bool by_channels,
                                       Value channel) const {
  Block block;
  const Value place = item / vectors();
  block.vector = item - place * vectors();
  block.row = place / runs_in_row(run);
  block.column = (place - block.row * runs_in_row(run)) * run - lead(run);
  block.is_inside = less(block.row, rim_rows());
  const Value y = first_row_ + block.row, x = first_column_ + block.column;
  const Value first_channel = channel + block.vector * kVector;
  // Rows and columns before the image wrap to large ones: one comparison tells both sides.
  Value is_inside = logical_and(less(y, height_), less(x, width_));
  is_inside = logical_and(is_inside, block.is_inside);
  if (!has_whole_tiles_) is_inside = logical_and(is_inside, less(first_channel, channels_));
  const Value index =
      start_ + first_channel * channel_stride_ + y * row_stride_ + x * column_stride_;
  if (by_channels) {
    block.pixels = {load_channels(index, is_inside)};
  } else {
    block.pixels = load_runs(run, index, is_inside, first_channel);
  }
  return block;
}

ImageStaging::Pixel ImageStaging::load_channels(Value index, Value is_inside) const {
  const Value zero = b_.constant(kWord4, 0);
  const Value safe = b_.select(is_inside, index, b_.u32(0));
  const Value low = b_.select(is_inside, elements_.load_vector(safe), zero);
  if (!is_f32()) return {low, {}};
  const Value high = b_.select(is_inside, elements_.load_vector(safe + kVector / 2), zero);
  return {{}, {b_.bitcast(low, kFloat4), b_.bitcast(high, kFloat4)}};
}

std::vector<ImageStaging::Pixel> ImageStaging::load_runs(std::uint32_t run, Value index,
                                                         Value is_inside, Value channel) const {
  std::array<Value, kVector> lines;  // one channel each
  for (std::uint32_t i = 0; i < kVector; ++i) {
    Value is_own = is_inside;
    if (!has_whole_vectors_ && i > 0) is_own = logical_and(is_own, less(channel + i, channels_));
    const Value safe = b_.select(is_own, index + channel_stride_ * i, b_.u32(0));
    const Value bits = elements_.load_bits(safe, run);
    lines[i] = b_.select(is_own, bits, b_.constant(bits.type, 0));
  }
  const auto word = [&](std::uint32_t line, std::uint32_t number) {
    const Value bits = lines[line];
    return bits.type.components == 1 ? bits : b_.component(bits, static_cast<int>(number));
  };
  std::vector<Pixel> pixels;
  for (std::uint32_t i = 0; i < run; ++i) {
    if (is_f32()) {
      const auto four = [&](std::uint32_t first) {
        const std::array<Value, 4> words{word(first, i), word(first + 1, i), word(first + 2, i),
                                         word(first + 3, i)};
        return b_.bitcast(b_.compose(words), kFloat4);
      };
      pixels.push_back({{}, {four(0), four(4)}});
      continue;
    }
    const auto pair = [&](std::uint32_t first) {
      const Value low = word(first, i / 2), high = word(first + 1, i / 2);
      if (run == 1) return low | (high << 16);
      return i % 2 == 0 ? (low & 0xffffu) | (high << 16) : (low >> 16) | (high & 0xffff0000u);
    };
    const std::array<Value, 4> pairs{pair(0), pair(2), pair(4), pair(6)};
    pixels.push_back({b_.compose(pairs), {}});
  }
  return pixels;
}

void ImageStaging::write(const Block& block, std::size_t pixel, const MatrixWords& parts) const {
  const Value column = block.column + static_cast<std::uint32_t>(pixel);
  b_.if_then(logical_and(block.is_inside, less(column, rim_columns())), [&] {
    const Value place = (block.row * rim_columns() + column) * pixel_stride() + block.vector;
    for (std::uint32_t part = 0; part < parts.size(); ++part) {
      memory_.store(place + (first_ + part * part_vectors()), parts[part]);
    }
  });
}

void ImageStaging::write_all(const std::vector<Block>& blocks,
                             const std::function<MatrixWords(const Pixel&)>& parts_of) const {
  for (const Block& block : blocks) {
    for (std::size_t i = 0; i < block.pixels.size(); ++i) {
      write(block, i, parts_of(block.pixels[i]));
    }
  }
}

/// One test for all that an invocation holds, since hardly any is not finite.
void ImageStaging::store_cut(const std::vector<Block>& blocks) const {
  EightFloats rests{b_.constant(kFloat4, 0), b_.constant(kFloat4, 0)};
  std::vector<MatrixWords> parts;
  for (const Block& block : blocks) {
    for (const Pixel& pixel : block.pixels) {
      EightFloats rest = pixel.floats;
      parts.push_back(cut(rest, format_.parts));
      rests = {rests[0] + rest[0], rests[1] + rest[1]};
    }
  }
  b_.if_else(
      is_special(rests),
      [&] {
        found_special_.store(b_.u32(0), b_.u32(1));
        write_all(blocks,
                  [&](const Pixel& pixel) { return cut_finite(pixel.floats, format_.parts); });
      },
      [&] {
        std::size_t next = 0;
        write_all(blocks, [&](const Pixel&) { return parts[next++]; });
      });
}

void ImageStaging::stage(Value channel) {
  move(channel, [&](const std::vector<Block>& blocks) {
    if (is_f32()) {
      store_cut(blocks);
    } else {
      write_all(blocks, [](const Pixel& pixel) { return MatrixWords{pixel.words}; });
    }
  });
}

void ImageStaging::stage_special(Value channel) {
  move_runs(1, false, channel, [&](const std::vector<Block>& blocks) {
    write_all(blocks,
              [](const Pixel& pixel) { return special_parts(MatrixUse::kB, pixel.floats); });
  });
}

Value ImageStaging::place_of_pixel(Value row, Value column) const {
  return (row * (window_.stride_h * rim_columns()) + column * window_.stride_w) * pixel_stride();
}
Value ImageStaging::place_of_tap(Value y, Value x) const {
  return (y * (window_.dilation_h * rim_columns()) + x * window_.dilation_w) * pixel_stride();
}

spirv::Matrix ImageStaging::read(std::uint32_t part, Value place, MatrixLayout layout) const {
  const spirv::MatrixType type{format_.scalar, MatrixUse::kB, kMatrixEdge, kMatrixEdge};
  return load_matrix(memory_, type, place + (first_ + part * part_vectors()),
                     window_.stride_w * pixel_stride(), layout);
}
spirv::Matrix ImageStaging::read_channels_by_pixels(std::uint32_t part, Value place) const {
  return read(part, place, MatrixLayout::kColumnMajor);
}
spirv::Matrix ImageStaging::read_pixels_by_channels(std::uint32_t part, Value place) const {
  return read(part, place, MatrixLayout::kRowMajor);
}

}  // namespace vkml::vulkan
