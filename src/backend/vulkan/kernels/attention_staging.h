// Rows of one head on their way from memory into shared memory, where matrix units read them.
//
// Rows lie there as 16-byte vectors, eight elements each, every row padded by one vector, so that
// the rows of a matrix fall into different banks. Rows past the last one are zeros.
#pragma once

#include <vector>

#include "kernels/elements.h"
#include "spirv/matrix.h"

namespace vkml::vulkan {

class AttentionStaging {
 public:
  /// Whether rows are whole vectors, at multiples of vectors from the operand's first element.
  static bool takes(const dispatch::Operand& operand);

  /// A tile of `rows` rows, staged by `threads` invocations.
  AttentionStaging(Shader& shader, const dispatch::Operand& operand, std::uint32_t rows,
                   std::uint32_t threads);

  std::uint32_t shared_vectors() const { return rows_ * row_stride(); }
  /// They begin at `first`.
  void set_memory(const spirv::SharedArray& memory, std::uint32_t first);
  /// `local` is the invocation's number in its workgroup.
  void set_place(spirv::Value local);
  void set_head(spirv::Value batch, spirv::Value head);

  /// Whether load() may be used: whether the operand starts at a vector of memory.
  spirv::Value is_aligned() const { return elements_.is_vector_aligned(); }
  /// Reads the tile from row `first` on into registers; the operand has `extent` rows.
  void load(spirv::Value first, spirv::Value extent);
  /// Writes what was loaded to shared memory.
  void store();
  /// Does both, element by element, whatever the alignment.
  void stage_elements(spirv::Value first, spirv::Value extent);
  /// Both, in a loop: for what is staged once.
  void stage(spirv::Value first, spirv::Value extent);

  /// Rows row .. row + 15 of the tile, columns 16 * column .. 16 * column + 15, as a left operand.
  spirv::Matrix read_left(spirv::Value row, std::uint32_t column) const;
  /// As a right operand, and as one that is transposed.
  spirv::Matrix read_right(std::uint32_t row, std::uint32_t column) const;
  spirv::Matrix read_transposed(std::uint32_t row, std::uint32_t column) const;

 private:
  std::uint32_t row_vectors() const { return width_ / 8; }
  std::uint32_t row_stride() const { return row_vectors() + 1; }
  std::uint32_t count() const { return rows_ * row_vectors(); }
  std::uint32_t passes() const { return (count() + threads_ - 1) / threads_; }
  bool has_whole_passes() const { return count() % threads_ == 0; }
  /// Whether an invocation keeps to its column, so that a pass is a step along rows.
  bool keeps_column() const { return has_whole_passes() && threads_ % row_vectors() == 0; }
  std::uint32_t pass_rows() const { return threads_ / row_vectors(); }
  spirv::MatrixType type(spirv::MatrixUse use) const;
  spirv::Value place_of(spirv::Value item) const;
  spirv::Value element_of(spirv::Value item, spirv::Value first, spirv::Value extent) const;
  /// Item `item` of the tile, by one access or, where memory is not aligned, by eight.
  spirv::Value vector(spirv::Value item, spirv::Value first, spirv::Value extent) const;
  spirv::Value gathered(spirv::Value item, spirv::Value first, spirv::Value extent) const;
  void load_inside(spirv::Value first);
  void load_bounded(spirv::Value first, spirv::Value extent);
  spirv::Value or_zero(spirv::Value item, spirv::Value first, spirv::Value extent,
                       spirv::Value words) const;

  Shader& shader_;
  spirv::Builder& b_;
  Elements elements_;
  DType dtype_;
  std::uint32_t width_, rows_, threads_;
  bool has_whole_tiles_;  // the operand's rows are a multiple of the tile's
  std::array<spirv::Value, 3> strides_;
  spirv::SharedArray memory_;
  std::uint32_t first_vector_ = 0;
  spirv::Value local_, head_;
  spirv::Value own_start_, own_place_;  // of the first pass: element of a head, vector of the tile
  std::vector<spirv::Variable> loaded_;
};

}  // namespace vkml::vulkan
