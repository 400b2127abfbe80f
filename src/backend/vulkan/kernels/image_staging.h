// The image under a tile of a convolution's windows, on its way from memory into shared memory,
// where the matrix units read it once for each tap of the kernel.
//
// The tile's pixels lie there with their rim, each as a row of channels: 16-byte vectors of eight
// 16-bit elements, padded by one vector, so that the rows of a matrix fall into different banks.
// Neighbours in memory mostly lie along image rows, so that blocks of a few pixels and eight
// channels are turned in registers. Pixels outside the image are 0. f32 is cut into parts as in
// matrix_parts.h; each part has a tile of its own.
#pragma once

#include <functional>
#include <vector>

#include "kernels/elements.h"
#include "kernels/matrix_parts.h"

namespace vkml::vulkan {

/// Where the windows of output pixels lie in the image. Padding may be negative.
struct ImageWindow {
  std::uint32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::uint32_t kernel_h = 1, kernel_w = 1;
  std::int32_t padding_h = 0, padding_w = 0;
};

/// Output pixels, a multiple of 16 in a row, and channels, a multiple of 16.
struct ImageTile {
  std::uint32_t rows = 1, columns = 16, channels = 16;
};

class ImageStaging {
 public:
  /// 16-byte vectors of shared memory that all parts take.
  static std::uint32_t shared_vectors(const ImageWindow& window, const ImageTile& tile,
                                      std::uint32_t parts);

  /// Channels of the image belong to `groups`, whose windows see their own alone.
  ImageStaging(Shader& shader, const dispatch::Operand& image, std::int64_t groups,
               const ImageWindow& window, const ImageTile& tile, const MatrixFormat& format,
               std::uint32_t threads);

  /// The tile begins at vector `first`. `found_special` is set to 1 where an element is not finite.
  void set_memory(const spirv::SharedArray& memory, std::uint32_t first,
                  const spirv::SharedArray& found_special);
  /// `local` is the invocation's number in its workgroup.
  void set_local(spirv::Value local) { local_ = local; }
  /// The output pixel with which the tile begins.
  void set_place(spirv::Value number, spirv::Value group, spirv::Value row, spirv::Value column);

  /// Reads the tile's channels from `channel` of the group on, and writes them to shared memory.
  /// Elements of f32 that are not finite become 0 there.
  void stage(spirv::Value channel);
  /// The same for what stage() left out, as special_parts() has it.
  void stage_special(spirv::Value channel);

  /// Where the channels of a pixel of the tile lie that a tap sees, in vectors.
  spirv::Value place_of_pixel(spirv::Value row, spirv::Value column) const;
  spirv::Value place_of_tap(spirv::Value y, spirv::Value x) const;
  /// 16 pixels of a row and 16 channels, from a place on: as a right operand whose rows are
  /// channels, or pixels.
  spirv::Matrix read_channels_by_pixels(std::uint32_t part, spirv::Value place) const;
  spirv::Matrix read_pixels_by_channels(std::uint32_t part, spirv::Value place) const;

 private:
  /// Eight channels of a pixel, as words of 16-bit elements or as floats.
  struct Pixel {
    spirv::Value words;
    EightFloats floats;
  };
  /// A few pixels of a row that one invocation moves at once.
  struct Block {
    spirv::Value row, column;  // in the tile; columns before it wrap to large ones
    spirv::Value is_inside;    // of the dispatch
    spirv::Value vector;       // of the channels
    std::vector<Pixel> pixels;
  };
  using Store = std::function<void(const std::vector<Block>& blocks)>;

  bool is_f32() const { return format_.dtype == DType::kF32; }
  std::uint32_t vectors() const { return tile_.channels / 8; }
  std::uint32_t pixel_stride() const { return vectors() + 1; }
  std::uint32_t rim_rows() const;
  std::uint32_t rim_columns() const;
  std::uint32_t part_vectors() const { return rim_rows() * rim_columns() * pixel_stride(); }
  std::uint32_t lead(std::uint32_t run) const;
  std::uint32_t runs_in_row(std::uint32_t run) const;

  void move(spirv::Value channel, const Store& store);
  void move_runs(std::uint32_t run, bool by_channels, spirv::Value channel, const Store& store);
  Block load(spirv::Value item, std::uint32_t run, bool by_channels, spirv::Value channel) const;
  std::vector<Pixel> load_runs(std::uint32_t run, spirv::Value index, spirv::Value is_inside,
                               spirv::Value channel) const;
  Pixel load_channels(spirv::Value index, spirv::Value is_inside) const;
  void write(const Block& block, std::size_t pixel, const MatrixWords& parts) const;
  void write_all(const std::vector<Block>& blocks,
                 const std::function<MatrixWords(const Pixel& pixel)>& parts_of) const;
  void store_cut(const std::vector<Block>& blocks) const;
  spirv::Matrix read(std::uint32_t part, spirv::Value place, spirv::MatrixLayout layout) const;

  spirv::Builder& b_;
  Elements elements_;
  ImageWindow window_;
  ImageTile tile_;
  MatrixFormat format_;
  std::uint32_t threads_;
  std::uint32_t run_ = 1;                     // neighbours along a row that are loaded at once
  bool by_channels_ = false;                  // eight channels are neighbours in memory
  bool has_whole_vectors_, has_whole_tiles_;  // of channels
  spirv::Value height_, width_, channels_;
  spirv::Value number_stride_, group_stride_, channel_stride_, row_stride_, column_stride_;
  spirv::SharedArray memory_, found_special_;
  std::uint32_t first_ = 0;
  spirv::Value local_;
  spirv::Value start_, first_row_, first_column_;  // of the rim, in the image
};

}  // namespace vkml::vulkan
