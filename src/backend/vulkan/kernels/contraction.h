// A contraction: out(m, n) = sum over k of a(m, k) * b(k, n), for each batch. Matrix products are
// one; so are the three convolutions, whose operands compute where an element lies (implicit GEMM).
//
// Operands say how to load an element; three engines do the rest: contraction_direct.cpp keeps a
// tile of the result in registers and reads operands from memory, contraction_tiled.cpp stages them
// in shared memory, contraction_matrix.cpp multiplies what is staged there on matrix units.
// contraction_plan.cpp chooses among them. Long sums over few results are split: parts go to
// scratch, a second dispatch adds them in order.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/epilogue.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

struct ContractionSize {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

/// How the matrix engine, which takes eight neighbours at a time, gets at an operand.
struct MatrixAccess {
  enum class Kind : std::uint8_t {
    kNone,        // not at all
    kVectors,     // as it lies: the eight are whole vectors of 16 bytes
    kElements,    // as it lies, one by one
    kThroughCopy  // from a copy in scratch, whose rows start at vectors
  };
  Kind kind = Kind::kNone;
  std::int64_t copy_bytes = 0;
};

/// What a plan depends on.
struct ContractionProblem {
  ContractionSize size;
  ops::ScalarType type = ops::ScalarType::kF32;  // of the sums
  DType dtype = DType::kF32;                     // of the operands
  MatrixAccess a, b;
  /// Parts of bf16 that f32 operands are cut into for matrix units: three hold all bits.
  std::uint32_t parts = 3;
};

/// What is known of an operand along one of its two directions: offsets, coordinates.
using Position = std::vector<spirv::Value>;

/// Neighbours that one invocation stages for the matrix engine.
inline constexpr std::uint32_t kMatrixRun = 8;
using PositionRun = std::array<Position, kMatrixRun>;

/// One operand. "Outer" is its m or n, "inner" is k.
class ContractionOperand {
 public:
  virtual ~ContractionOperand() = default;

  /// The direction in which four neighbours, from a multiple of 4 on, are one aligned vector.
  enum class Dense : std::uint8_t { kNone, kOuter, kInner };
  virtual Dense dense() const { return Dense::kNone; }
  virtual spirv::Value is_aligned() const = 0;
  /// Whether neighbours in memory are neighbours along k.
  virtual bool inner_is_nearest() const { return false; }

  /// Called once, before positions are asked for.
  virtual void set_batch(spirv::Value batch) = 0;
  virtual Position outer(spirv::Value index) = 0;
  virtual Position inner(spirv::Value index) = 0;
  /// Four neighbours along k, from a multiple of 4 on.
  virtual std::array<Position, 4> inner4(spirv::Value index) {
    return {inner(index), inner(index + 1), inner(index + 2), inner(index + 3)};
  }
  /// The element at two positions.
  virtual spirv::Value load(const Position& outer, const Position& inner) = 0;
  /// Four neighbours in the dense direction.
  virtual spirv::Value load4(const Position& outer, const Position& inner) = 0;

  /// For the matrix engine: the positions of eight neighbours from `first`, a multiple of 8, on;
  /// what lies past `last` repeats others.
  virtual PositionRun outer_run(spirv::Value first, spirv::Value last) {
    return run_of(first, last, [this](spirv::Value index) { return outer(index); });
  }
  virtual PositionRun inner_run(spirv::Value first, spirv::Value last) {
    return run_of(first, last, [this](spirv::Value index) { return inner(index); });
  }

  /// For the matrix engine: the direction in which eight neighbours, from a multiple of 8 on, are
  /// whole vectors of 16 bytes; where elements lie, from the operand's first one; the 16 bytes from
  /// one on.
  virtual Dense vectors() const { return Dense::kNone; }
  struct Lines {
    spirv::Value first, outer_stride, inner_stride;
    spirv::Value is_aligned;  // whether the operand starts at a vector
  };
  virtual Lines lines() const { throw InternalError("[vulkan] an operand without vectors"); }
  virtual spirv::Value load_vector(spirv::Value) const {
    throw InternalError("[vulkan] an operand without vectors");
  }

 protected:
  /// The run whose positions are computed one by one.
  static PositionRun run_of(spirv::Value first, spirv::Value last,
                            const std::function<Position(spirv::Value)>& position_of);
};

struct ContractionOperands {
  std::unique_ptr<ContractionOperand> a, b;
};

/// Where the element (batch, m, n) of the result lies in the kernel's space.
using Place = std::function<Coordinates(spirv::Value batch, spirv::Value m, spirv::Value n)>;

/// A contraction as its family describes it. The functions open what a shader needs, and are called
/// once for each dispatch that needs it.
struct Contraction {
  ContractionProblem problem;
  std::function<ContractionOperands(Shader& shader)> open_operands;
  std::function<Place(Shader& shader)> open_place;
  /// Four values of n, from a multiple of 4 on, are neighbours along the space's last axis.
  bool four_in_row = false;

  const ContractionSize& size() const { return problem.size; }
};

/// A tile of the result that one invocation keeps in registers.
struct RegisterTile {
  std::uint32_t m = 4, n = 4;
};

/// A workgroup's tile of the matrix engine: how it is dealt out to subgroups, and how long a step
/// along k is.
struct MatrixTile {
  std::uint32_t m = 128, n = 128, depth = 16;
  std::uint32_t subgroups_m = 2, subgroups_n = 2;
};

enum class ContractionEngine : std::uint8_t { kDirect, kTiled, kMatrix };

struct ContractionPlan {
  ContractionEngine engine = ContractionEngine::kDirect;
  RegisterTile tile;
  std::uint32_t threads_m = 1, threads_n = 1;  // tiled: invocations of a workgroup
  MatrixTile matrix;                           // matrix: `tile` has the same m and n
  std::uint32_t splits = 1;
  std::int64_t span = 0;  // of k, for one split
  /// Sums go to scratch, and a second dispatch runs the epilogue: when the sum is split, and for
  /// tiles so large that the program, written out for each element, would take long to compile.
  bool uses_scratch = false;
  // Where in scratch copies of the operands and the sums begin, in bytes.
  std::int64_t copy_a = 0, copy_b = 0, partials = 0;
  std::int64_t scratch_bytes = 0;
};

/// Steps along k of the tiled engine.
inline constexpr std::uint32_t kTiledDepth = 16;

/// How many tiles of an invocation (direct) or a workgroup (tiled) cover the result.
struct TileCounts {
  std::int64_t m = 1, n = 1;
};
TileCounts tile_counts(const ContractionSize& size, const ContractionPlan& plan);

/// The plan that promises the shortest time. Without scratch neither splits nor copies.
ContractionPlan plan_contraction(const ContractionProblem& problem, const DeviceTraits& traits,
                                 bool has_scratch = true);

std::vector<Dispatch> generate_contraction(const Context& context, const Contraction& contraction,
                                           const ContractionPlan& plan);

/// An axis that an index is made of.
struct IndexAxis {
  std::int64_t extent = 1, stride = 0;
};

/// An operand whose elements lie at a sum of strides. Axes are outermost first; each list has at
/// least one.
struct StridedOperandLayout {
  std::vector<IndexAxis> batch, outer, inner;
};
std::unique_ptr<ContractionOperand> strided_operand(Shader& shader,
                                                    const dispatch::Operand& operand,
                                                    const StridedOperandLayout& layout);
/// Whether the kernel does without the atomics that those of matrix units cannot use: narrow stores
/// without the device's help, and index checks.
bool may_use_matrix_units(const dispatch::Kernel& kernel, const DeviceTraits& traits);

/// The direction in which eight neighbours, from a multiple of 8 on, are whole vectors of 16 bytes,
/// where the operand starts at one.
ContractionOperand::Dense vector_direction(const StridedOperandLayout& layout);

// What the engines share.

/// Where the workgroup, or the invocation, stands: batch, part of the sum, tile of the result.
struct TilePosition {
  spirv::Value batch, split, m, n;  // m and n: of the first element
};

/// The part of the sum over k that falls to a workgroup, or an invocation.
class SumRange {
 public:
  SumRange(Shader& shader, const ContractionSize& size, const ContractionPlan& plan);

  /// Fills in batch and split of the tile whose number over both is `outer`.
  void place(spirv::Value outer, TilePosition& tile);
  spirv::Value begin() const { return begin_; }
  spirv::Value end() const { return end_; }

 private:
  spirv::Builder& b_;
  bool is_split_;
  spirv::Value k_extent_, split_count_, span_, begin_, end_;
};

/// The accumulators of a register tile, four along n in each.
class Accumulators {
 public:
  Accumulators(Shader& shader, const RegisterTile& tile);

  std::uint32_t rows() const { return tile_.m; }
  std::uint32_t groups() const { return tile_.n / 4; }
  /// Adds a[m] * b[n] for every pair; `b` holds four values of n in each.
  void multiply_add(const std::vector<spirv::Value>& a, const std::vector<spirv::Value>& b);
  spirv::Value load(std::uint32_t row, std::uint32_t group) const;

 private:
  Shader& shader_;
  RegisterTile tile_;
  std::vector<spirv::Variable> values_;
};

/// Sums in scratch: matrices of whole tiles, one after the other by split and batch.
class PartialSums {
 public:
  PartialSums(Shader& shader, const ContractionSize& size, const ContractionPlan& plan);

  /// Four neighbours from `n`, a multiple of 4, on.
  void store4(const TilePosition& tile, spirv::Value m, spirv::Value n, spirv::Value sums) const;
  spirv::Value load(const TilePosition& tile, spirv::Value m, spirv::Value n) const;

 private:
  spirv::Value place(const TilePosition& tile, spirv::Value m, spirv::Value n) const;

  Elements elements_;
  spirv::Value batch_extent_, rows_, columns_;
};

/// Hands finished sums on: to the epilogue, or to scratch.
class ContractionOutput {
 public:
  ContractionOutput(Shader& shader, const Contraction& contraction, const ContractionPlan& plan);

  spirv::Value m_extent() const { return m_extent_; }
  spirv::Value n_extent() const { return n_extent_; }

  /// Four neighbours along n, from `n` on; what lies past the result is left out.
  void write4(const TilePosition& tile, spirv::Value m, spirv::Value n, spirv::Value sums);
  /// One sum. Neighbouring invocations with neighbouring n do better with this one where rows of
  /// the result do not start at a multiple of 4.
  void write(const TilePosition& tile, spirv::Value m, spirv::Value n, spirv::Value sum);
  bool prefers_four() const { return uses_scratch_ || (four_in_row_ && rows_are_fours_); }

 private:
  spirv::Builder& b_;
  bool uses_scratch_;
  bool four_in_row_, rows_are_fours_;
  Place place_;
  std::unique_ptr<Epilogue> epilogue_;
  std::unique_ptr<PartialSums> partials_;
  spirv::Value m_extent_, n_extent_;
};

/// What a dispatch of an engine touches under such a plan.
Touches contraction_touches(const ContractionPlan& plan, ops::ScalarType type);

Dispatch generate_direct_contraction(const Context& context, const Contraction& contraction,
                                     const ContractionPlan& plan);
Dispatch generate_tiled_contraction(const Context& context, const Contraction& contraction,
                                    const ContractionPlan& plan);
Dispatch generate_matrix_contraction(const Context& context, const Contraction& contraction,
                                     const ContractionPlan& plan);

}  // namespace vkml::vulkan
