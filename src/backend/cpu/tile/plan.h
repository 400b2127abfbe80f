// How a kernel's iteration space is cut into tiles.
//
// Axes of extent 1 are dropped, axes that lie densely one behind the other for every operand are
// merged, and the rest are ordered so that stores run along memory. What remains is a grid of
// tiles:
//   maps        a run of whole inner rows, or a piece of one; a square block where an operand is
//               transposed, so that both sides use whole cache lines;
//   rows        horizontal: several whole rows, or a piece of one long row;
//               vertical (the row axes are not the contiguous ones): a piece of several
//               neighbouring rows, which are then the vector lanes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tile/program.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::cpu {

using Axes = std::array<std::int64_t, kMaxDims>;

/// An operand with its strides along the plan's axes, in elements.
struct PlannedOperand {
  int buffer = -1;
  DType dtype = DType::kF32;
  std::int64_t offset = 0;
  Axes strides{};

  std::int64_t position(const Axes& at) const {
    std::int64_t sum = offset;
    for (std::size_t i = 0; i < at.size(); ++i) sum += at[i] * strides[i];
    return sum;
  }
};

struct RegionPlan {
  Axes extent{1, 1, 1, 1};
  Axes tile{1, 1, 1, 1};
  std::array<bool, kMaxDims> is_row{};
  std::array<int, kMaxDims> original{-1, -1, -1, -1};  // axis of the kernel's space
  std::vector<PlannedOperand> loads;
  std::vector<PlannedOperand> stores;
  bool reduces = false;
  bool vertical = false;
  std::int64_t row_length = 1;  // product of the row extents
  std::int64_t rows = 1;        // product of the others

  /// Tiles along the axes that are rows' own (`of_rows`), or along the others.
  std::int64_t tile_count(bool of_rows) const;
  /// Few long rows: each is divided into parts that threads share. Depends on the shape alone, so
  /// that results do not depend on the number of threads.
  bool is_in_parts() const;
  /// Elements of a full tile.
  std::int64_t tile_elements() const;
  /// Rows that a full tile touches.
  std::int64_t tile_rows() const;
  /// Whether a tile holds its rows whole.
  bool holds_whole_rows() const { return tile_elements() == tile_rows() * row_length; }
  /// Whether the operand's elements lie in memory as in every tile.
  bool is_dense(const PlannedOperand& operand) const;
  /// Whether the operand is one element for all of the space.
  bool is_uniform(const PlannedOperand& operand) const;
};

/// `capacity`: elements that a register may hold.
RegionPlan plan_region(const dispatch::Kernel& kernel, std::int64_t capacity);

}  // namespace vkml::cpu
