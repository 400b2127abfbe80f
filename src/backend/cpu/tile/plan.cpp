#include "tile/plan.h"

#include <algorithm>
#include <cstdlib>

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using ops::Opcode;

// Side of the square blocks in which transposed operands are read: a few cache lines of f32.
constexpr std::int64_t kBlockSide = 32;
// Fewer neighbouring rows than this do not fill vectors.
constexpr std::int64_t kVerticalRows = 8;
constexpr std::int64_t kLanes = static_cast<std::int64_t>(kLaneMultiple);

// One or several merged axes of the kernel's space, with each operand's stride along them.
struct Axis {
  std::int64_t extent = 1;
  int original = -1;
  bool pinned = false;  // a kIota names it
  std::vector<std::int64_t> strides;
};
using AxisList = std::vector<Axis>;

std::int64_t product(const AxisList& axes) {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

bool has_argument_reduction(const Kernel& kernel) {
  return std::any_of(kernel.program.code.begin(), kernel.program.code.end(), [](const auto& i) {
    return i.op == Opcode::kReduce && (i.imm == static_cast<int>(ops::ReduceKind::kArgMax) ||
                                       i.imm == static_cast<int>(ops::ReduceKind::kArgMin));
  });
}

bool names_axis(const Kernel& kernel, int axis) {
  return std::any_of(kernel.program.code.begin(), kernel.program.code.end(),
                     [&](const auto& i) { return i.op == Opcode::kIota && i.imm == axis; });
}

AxisList axes_of(const Kernel& kernel, int begin, int end) {
  AxisList axes;
  for (int k = begin; k < end; ++k) {
    const auto i = static_cast<std::size_t>(k);
    if (kernel.space[i] == 1) continue;
    Axis axis{kernel.space[i], k, names_axis(kernel, k), {}};
    for (const auto& operand : kernel.loads) axis.strides.push_back(operand.strides[i]);
    for (const auto& operand : kernel.stores) axis.strides.push_back(operand.strides[i]);
    axes.push_back(std::move(axis));
  }
  return axes;
}

// Largest strides of one operand first; axes along which it does not move stay where they are.
void order_by(AxisList& axes, std::size_t operand) {
  const auto stride = [&](const Axis& axis) { return std::abs(axis.strides[operand]); };
  for (std::size_t i = 1; i < axes.size(); ++i) {
    for (std::size_t j = i; j > 0 && stride(axes[j - 1]) != 0 && stride(axes[j]) != 0 &&
                            stride(axes[j - 1]) < stride(axes[j]);
         --j) {
      std::swap(axes[j - 1], axes[j]);
    }
  }
}

bool merges(const Axis& outer, const Axis& inner) {
  if (outer.pinned || inner.pinned) return false;
  for (std::size_t k = 0; k < outer.strides.size(); ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  }
  return true;
}

AxisList merge(const AxisList& axes) {
  AxisList merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merges(merged.back(), axis)) {
      const std::int64_t outer = merged.back().extent;
      merged.back() = axis;
      merged.back().extent *= outer;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

// Operands that run along `axis` in memory less those that run along the innermost row axis.
int vertical_votes(const Axis& axis, const Axis& innermost_row) {
  int votes = 0;
  for (std::size_t k = 0; k < axis.strides.size(); ++k) {
    const bool along_row = std::abs(innermost_row.strides[k]) == 1;
    const bool across = std::abs(axis.strides[k]) == 1 && innermost_row.strides[k] != 0;
    votes += static_cast<int>(across) - static_cast<int>(along_row);
  }
  return votes;
}

// Moves the axis along which vertical tiles would lie to the end of `outer`; whether there is one.
bool choose_vertical(AxisList& outer, const AxisList& row) {
  if (outer.empty() || row.empty()) return false;
  std::size_t best = outer.size();
  int best_votes = 0;
  for (std::size_t i = 0; i < outer.size(); ++i) {
    const int votes = vertical_votes(outer[i], row.back());
    if (votes > best_votes && outer[i].extent >= kVerticalRows) {
      best = i;
      best_votes = votes;
    }
  }
  if (best == outer.size()) return false;
  std::rotate(outer.begin() + static_cast<std::ptrdiff_t>(best),
              outer.begin() + static_cast<std::ptrdiff_t>(best) + 1, outer.end());
  return true;
}

// Pieces of nearly equal size, whole vectors where possible, of at most `limit`.
std::int64_t even_piece(std::int64_t extent, std::int64_t limit) {
  limit = std::max<std::int64_t>(limit, 1);
  if (extent <= limit) return std::max<std::int64_t>(extent, 1);
  const std::int64_t pieces = (extent + limit - 1) / limit;
  const std::int64_t piece = (extent + pieces - 1) / pieces;
  return std::min(limit, (piece + kLanes - 1) / kLanes * kLanes);
}

// Tiles hold the innermost of the axes [begin, end) whole, as many as fit, and a piece of the next.
void cut(RegionPlan& plan, std::size_t begin, std::size_t end, std::int64_t capacity) {
  std::int64_t inner = 1;
  for (std::size_t i = end; i-- > begin;) {
    if (inner * plan.extent[i] <= capacity) {
      plan.tile[i] = std::max<std::int64_t>(plan.extent[i], 1);
      inner *= plan.tile[i];
      continue;
    }
    plan.tile[i] = even_piece(plan.extent[i], capacity / inner);
    return;
  }
}

// A load that runs along another axis than the innermost: both then need whole cache lines.
std::size_t transposed_axis(const RegionPlan& plan, std::size_t rank) {
  if (rank < 2 || plan.extent[rank - 1] < kVerticalRows) return rank;
  for (const PlannedOperand& load : plan.loads) {
    if (std::abs(load.strides[rank - 1]) <= 1) continue;
    for (std::size_t i = 0; i + 1 < rank; ++i) {
      if (std::abs(load.strides[i]) == 1 && plan.extent[i] >= kVerticalRows) return i;
    }
  }
  return rank;
}

void cut_map(RegionPlan& plan, std::size_t rank, std::int64_t capacity) {
  const std::size_t transposed = transposed_axis(plan, rank);
  if (transposed == rank) {
    cut(plan, 0, rank, capacity);
    return;
  }
  plan.tile[transposed] = even_piece(plan.extent[transposed], kBlockSide);
  plan.tile[rank - 1] = even_piece(plan.extent[rank - 1], capacity / plan.tile[transposed]);
}

void cut_rows(RegionPlan& plan, std::size_t outer, std::size_t rank, std::int64_t capacity) {
  if (plan.vertical) {
    // Few enough lanes that a useful piece of each row fits, enough to read memory in long runs.
    plan.tile[rank - 1] =
        even_piece(plan.extent[rank - 1], std::max<std::int64_t>(capacity / 4, 16));
    cut(plan, outer - 1, rank - 1, capacity / plan.tile[rank - 1]);
    return;
  }
  cut(plan, outer, rank, capacity);
  if (plan.row_length > 0 && plan.row_length <= capacity && outer > 0) {
    plan.tile[outer - 1] = even_piece(plan.extent[outer - 1], capacity / plan.row_length);
  }
}

std::size_t first_moving_load(const AxisList& row, std::size_t loads) {
  for (std::size_t k = 0; k < loads; ++k) {
    if (std::all_of(row.begin(), row.end(), [&](const Axis& a) { return a.strides[k] != 0; })) {
      return k;
    }
  }
  return loads;
}

PlannedOperand planned(const dispatch::Operand& operand, const AxisList& axes, std::size_t index) {
  PlannedOperand result{operand.buffer, operand.dtype, operand.offset, {}};
  for (std::size_t i = 0; i < axes.size(); ++i) result.strides[i] = axes[i].strides[index];
  return result;
}

}  // namespace

std::int64_t RegionPlan::tile_count(bool of_rows) const {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < tile.size(); ++i) {
    if (is_row[i] == of_rows) count *= (extent[i] + tile[i] - 1) / tile[i];
  }
  return count;
}

bool RegionPlan::is_in_parts() const {
  constexpr std::int64_t kManyBlocks = 8;
  constexpr std::int64_t kLongBlock = 128 << 10;
  return reduces && tile_count(false) < kManyBlocks && row_length * tile_rows() >= kLongBlock;
}

std::int64_t RegionPlan::tile_elements() const { return tile[0] * tile[1] * tile[2] * tile[3]; }

std::int64_t RegionPlan::tile_rows() const {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < tile.size(); ++i) count *= is_row[i] ? 1 : tile[i];
  return count;
}

bool RegionPlan::is_dense(const PlannedOperand& operand) const {
  std::int64_t expected = 1;
  bool inner_is_whole = true;  // tiles at the edge hold less of an axis that is cut
  for (std::size_t i = tile.size(); i-- > 0;) {
    if (tile[i] != 1 && (operand.strides[i] != expected || !inner_is_whole)) return false;
    inner_is_whole = inner_is_whole && tile[i] == extent[i];
    expected *= tile[i];
  }
  return true;
}

bool RegionPlan::is_uniform(const PlannedOperand& operand) const {
  for (std::size_t i = 0; i < extent.size(); ++i) {
    if (extent[i] != 1 && operand.strides[i] != 0) return false;
  }
  return true;
}

RegionPlan plan_region(const Kernel& kernel, std::int64_t capacity) {
  RegionPlan plan;
  plan.reduces = kernel.reduce_dims > 0;
  AxisList outer = axes_of(kernel, 0, kMaxDims - kernel.reduce_dims);
  AxisList row = axes_of(kernel, kMaxDims - kernel.reduce_dims, kMaxDims);
  if (!kernel.stores.empty()) order_by(outer, kernel.loads.size());
  const std::size_t lead = first_moving_load(row, kernel.loads.size());
  if (lead < kernel.loads.size() && !has_argument_reduction(kernel)) order_by(row, lead);
  outer = merge(outer);
  row = merge(row);
  plan.rows = product(outer);
  plan.row_length = product(row);
  plan.vertical = choose_vertical(outer, row);

  AxisList axes = outer;
  axes.insert(plan.vertical ? axes.end() - 1 : axes.end(), row.begin(), row.end());
  const std::size_t row_begin = outer.size() - (plan.vertical ? 1 : 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    plan.extent[i] = axes[i].extent;
    plan.original[i] = axes[i].pinned ? axes[i].original : -1;
    plan.is_row[i] = i >= row_begin && i < row_begin + row.size();
  }
  std::size_t index = 0;
  for (const auto& operand : kernel.loads) plan.loads.push_back(planned(operand, axes, index++));
  for (const auto& operand : kernel.stores) plan.stores.push_back(planned(operand, axes, index++));

  if (plan.reduces) {
    cut_rows(plan, outer.size(), axes.size(), capacity);
  } else {
    cut_map(plan, axes.size(), capacity);
  }
  return plan;
}

}  // namespace vkml::cpu
