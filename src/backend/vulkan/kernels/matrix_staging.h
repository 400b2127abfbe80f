// One operand's way from memory into shared memory, where the matrix engine's subgroups read it.
//
// A step's tile lies there as rows of 16-byte vectors, eight 16-bit elements each, in the direction
// in which memory is dense; each row is padded by one vector, so that the rows of a matrix fall
// into different banks. What memory holds in whole vectors is read so, the rest (images under the
// windows of a convolution) element by element. f32 is cut on its way into parts: bf16 values that
// add up to it. Each part has a tile of its own.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/contraction.h"
#include "kernels/matrix_parts.h"

namespace vkml::vulkan {

class MatrixStaging {
 public:
  /// The tile has `tile` outer positions and `depth` of k. Where `extent` or the sum are no
  /// multiples of those, `whole_tiles` or `whole_steps` is false.
  struct Shape {
    std::uint32_t tile, depth, threads;
    spirv::Value extent;
    bool whole_tiles, whole_steps;
  };

  MatrixStaging(Shader& shader, ContractionOperand& operand, spirv::MatrixUse use,
                const MatrixFormat& format, const Shape& shape);

  /// 16-byte vectors of shared memory that all parts take.
  std::uint32_t shared_vectors() const { return part_vectors() * format_.parts; }
  /// They begin at `first`. `found_special` is set to 1 where an element is not finite.
  void set_memory(const spirv::SharedArray& memory, std::uint32_t first,
                  const spirv::SharedArray& found_special);
  /// `local` is the invocation's number in its workgroup.
  void set_place(spirv::Value local, spirv::Value first_outer);
  /// Whether load() may be used: the operand is read one by one, or starts at a vector of memory.
  spirv::Value is_aligned() const { return is_gathered_ ? b_.boolean(true) : lines_.is_aligned; }

  /// Reads the step at k into registers; elements from `end` on are 0.
  void load(spirv::Value k, spirv::Value end);
  /// Writes what was loaded to shared memory. Elements of f32 that are not finite become 0 there.
  void store();
  /// Does both, element by element, whatever the alignment.
  void stage_elements(spirv::Value k, spirv::Value end);
  /// Stages what store() left out, for products of bf16 that follow IEEE 754: in one part the
  /// elements that are not finite, in the other the signs (-1, 0, 1) of all.
  void stage_special(spirv::Value k, spirv::Value end);

  /// The 16 x 16 matrix of a part at `outer` of the tile, a multiple of 8, and `k` of the step.
  spirv::Matrix read(std::uint32_t part, spirv::Value outer, std::uint32_t k) const;

 private:
  using Group = EightFloats;
  using Words = MatrixWords;
  using Cut = std::function<Words(const Group&)>;

  std::uint32_t row_vectors() const { return (is_inner_ ? shape_.depth : shape_.tile) / 8; }
  std::uint32_t row_stride() const { return row_vectors() + 1; }
  std::uint32_t rows() const { return is_inner_ ? shape_.tile : shape_.depth; }
  std::uint32_t part_vectors() const { return rows() * row_stride(); }
  std::uint32_t rows_a_pass() const { return shape_.threads / row_vectors(); }
  std::uint32_t passes() const { return std::max(rows() / rows_a_pass(), 1u); }
  std::uint32_t vectors_a_group() const { return format_.dtype == DType::kF32 ? 2 : 1; }

  /// Positions past the end repeat the last one, or vector of them: what they make is never used.
  spirv::Value clamped(spirv::Value outer) const;
  spirv::Value clamped_vector(spirv::Value outer) const;
  spirv::Value outer_offset(std::uint32_t pass) const;
  void load_whole(spirv::Value k);
  void gather(spirv::Value k, spirv::Value end);
  void load_masked(spirv::Value k, spirv::Value end);
  void load_group(std::uint32_t pass, spirv::Value element);
  spirv::Value place_of(std::uint32_t part, spirv::Value pass) const;
  void write(spirv::Value pass, const Words& words);
  Group group_in_memory(spirv::Value pass, spirv::Value k, spirv::Value end) const;
  Words pack(const Group& group) const;
  void stage(spirv::Value k, spirv::Value end, const Cut& cut);

  spirv::Builder& b_;
  ContractionOperand& operand_;
  spirv::MatrixUse use_;
  MatrixFormat format_;
  Shape shape_;
  bool is_gathered_;  // read element by element
  bool is_inner_;     // rows of shared memory go along k
  ContractionOperand::Lines lines_;
  spirv::SharedArray memory_, found_special_;
  std::uint32_t first_ = 0;
  std::vector<spirv::Variable> loaded_;  // by pass, then vector
  spirv::Value row_, column_;            // of the invocation's first vector in the tile
  spirv::Value first_outer_;
  std::vector<Position> gathered_outers_;  // those of its elements, which no step changes
  spirv::Value start_;  // of the element that the invocation loads first, but for its k
};

}  // namespace vkml::vulkan
