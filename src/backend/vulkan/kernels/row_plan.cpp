#include "kernels/row_plan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "kernels/partial_slot.h"
namespace vkml::vulkan {

namespace {

constexpr std::int64_t kVector = kRowVector;
/// Rows shorter than this would spend too much on the incomplete vectors at their ends.
constexpr std::int64_t kShortestShifted = 64;
/// Registers that a lane may fill with elements of the row, and those of a whole workgroup: more
/// would spill, and reading the row again is faster.
constexpr std::int64_t kHeldByLane = 64;
constexpr std::int64_t kHeldByGroup = 32768;
/// More lanes would leave a compute unit idle at their barriers; fewer workgroups overlap.
constexpr std::int64_t kMostLanes = 512;
/// A part of a row shorter than this is not worth a second dispatch.
constexpr std::int64_t kShortestSplit = 4096;

/// llvmpipe ends all loops of an invocation, without an error, after 65,535 turns in total. A row
/// is passed over a few times. Of longer rows a turn takes several elements.
constexpr std::int64_t kSoftwareTurnsOfAPass = 8192;
constexpr std::int64_t kMostInATurn = 8;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::uint32_t power_of_two(std::int64_t at_least, std::int64_t at_most) {
  const std::int64_t value = std::clamp<std::int64_t>(at_least, 1, at_most);
  const std::uint64_t up = std::bit_ceil(static_cast<std::uint64_t>(value));
  return static_cast<std::uint32_t>(
      std::min(up, std::bit_floor(static_cast<std::uint64_t>(at_most))));
}

bool orders_elements(const dispatch::Kernel& kernel) {
  return std::any_of(
      kernel.program.code.begin(), kernel.program.code.end(),
      [](const ops::Instruction& instruction) {
        const auto kind = static_cast<ops::ReduceKind>(instruction.imm);
        return instruction.op == ops::Opcode::kReduce &&
               (kind == ops::ReduceKind::kArgMax || kind == ops::ReduceKind::kArgMin);
      });
}

/// Rows next to each other in memory, their elements apart: sums of columns.
bool rows_are_neighbours(const dispatch::Kernel& kernel, const RowSpaces& spaces) {
  int dense_columns = 0, dense_rows = 0;
  for (std::size_t i = 0; i < kernel.loads.size(); ++i) {
    if (!spaces.varies_along_row(i)) continue;
    const bool along_row = std::abs(spaces.columns.strides[i].back()) == 1;
    const bool across_rows = std::abs(spaces.rows.strides[i].back()) == 1;
    dense_columns += along_row;
    dense_rows += across_rows && !along_row;
  }
  return dense_rows > dense_columns;
}

bool is_dense(const RowSpaces& spaces, std::size_t operand) {
  const auto aligned = [](std::int64_t stride) { return stride % kVector == 0; };
  const auto& columns = spaces.columns.strides[operand];
  const auto& rows = spaces.rows.strides[operand];
  return columns.back() == 1 && std::all_of(columns.begin(), columns.end() - 1, aligned) &&
         std::all_of(rows.begin(), rows.end(), aligned);
}

bool may_use_vectors(const dispatch::Kernel& kernel, const RowSpaces& spaces) {
  const std::int64_t inner = spaces.columns.extents.back();
  if (inner % kVector != 0 || inner == 0) return false;
  bool any = false;
  for (std::size_t i = 0; i < spaces.operands.size(); ++i) {
    if (!spaces.varies_along_row(i)) continue;
    const bool is_store = i >= kernel.loads.size();
    if (is_store && !is_dense(spaces, i)) return false;
    any |= is_dense(spaces, i);
  }
  return any;
}

/// Whether the rows of two operands begin equally far from multiples of four.
bool rows_begin_alike(const RowSpaces& spaces, std::size_t a, std::size_t b) {
  return std::equal(
      spaces.rows.strides[a].begin(), spaces.rows.strides[a].end(), spaces.rows.strides[b].begin(),
      [](std::int64_t left, std::int64_t right) { return (left - right) % kVector == 0; });
}

/// The operand that says where the vectors of a shifted row begin, or -1: all that is stored has to
/// begin there too. See RowPlan::lead.
int lead_of(const dispatch::Kernel& kernel, const RowSpaces& spaces) {
  if (spaces.columns.rank() != 1 || spaces.columns.count() < kShortestShifted) return -1;
  int lead = -1;
  for (std::size_t i = spaces.operands.size(); i-- > 0;) {
    if (!spaces.varies_along_row(i)) continue;
    const bool is_store = i >= kernel.loads.size();
    const bool is_dense = spaces.columns.strides[i].back() == 1;
    const bool fits =
        is_dense && (lead < 0 || rows_begin_alike(spaces, static_cast<std::size_t>(lead), i));
    if (is_store && !fits) return -1;
    // A row that is the same for all is no measure: there are better ones, or it is short.
    const auto& rows = spaces.rows.strides[i];
    const bool moves = std::any_of(rows.begin(), rows.end(), [](std::int64_t s) { return s != 0; });
    if (lead < 0 && is_dense && (moves || is_store)) lead = static_cast<int>(i);
  }
  return lead;
}

/// Lanes that keep each one's share of a row within what a software driver executes.
std::int64_t software_lanes(std::int64_t columns, std::int64_t width) {
  return power_of_two(divide_up(columns, kSoftwareTurnsOfAPass * width), 1024);
}

LaneLayout choose_layout(const RowSpaces& spaces, const RowPlan& plan, bool neighbours,
                         const DeviceTraits& traits) {
  const std::int64_t columns = spaces.columns.count(), rows = spaces.rows.count();
  const std::int64_t limit = std::min<std::int64_t>(1024, traits.max_workgroup_invocations);
  const std::int64_t width = plan.vectors ? kVector : 1;
  LaneLayout layout;
  layout.rows_are_neighbours = neighbours;
  if (neighbours) {
    layout.rows = power_of_two(rows, traits.is_software ? 8 : 32);
    const std::int64_t fewest = software_lanes(columns, 1) * layout.rows;
    const std::int64_t room = std::min<std::int64_t>(
        limit, traits.is_software ? std::max<std::int64_t>(32, fewest) : 256);
    layout.lanes = power_of_two(columns / 8, room / layout.rows);
    return layout;
  }
  if (traits.is_software) {
    // Loads cost the same from any lane: few invocations with much work each.
    const std::int64_t most =
        std::min(limit, std::max<std::int64_t>(32, software_lanes(columns, width)));
    layout.lanes = columns <= 8 * width ? 1 : power_of_two(divide_up(columns, 16 * width), most);
    if (layout.lanes > 1) layout.lanes = std::max<std::uint32_t>(layout.lanes, 8);
    layout.rows = layout.lanes == 1 ? power_of_two(rows, 16) : 1;
    return layout;
  }
  layout.lanes = power_of_two(divide_up(columns, 8), std::min(limit, kMostLanes));
  if (layout.lanes < 32) layout.rows = power_of_two(rows, 128 / layout.lanes);
  return layout;
}

/// Whether one pass over the row's elements reduces them and stores what is to be stored of each.
bool is_one_pass(const dispatch::Kernel& kernel, const dispatch::ProgramLevels& levels,
                 const RowSpaces& spaces) {
  // The first reductions begin phase 1, later ones phase 2 and further.
  if (levels.phases != 2) return false;
  for (std::size_t i = 0; i < kernel.stores.size(); ++i) {
    const std::size_t reg = kernel.program.outputs[i];
    const bool is_known = levels.level[reg] == dispatch::Level::kElement && levels.phase[reg] == 0;
    if (spaces.varies_along_row(kernel.loads.size() + i) && !is_known) return false;
  }
  return true;
}

/// Places that the vectors of a row take up, those before its first element included.
std::int64_t places_of(const RowSpaces& spaces, const RowPlan& plan) {
  return spaces.columns.count() + (plan.is_shifted() ? kVector - 1 : 0);
}

/// Parts of which none takes an invocation of a software driver past its turns.
std::int64_t fewest_splits(std::int64_t columns, const LaneLayout& layout,
                           const DeviceTraits& traits) {
  return traits.is_software ? divide_up(columns, kSoftwareTurnsOfAPass * layout.lanes) : 1;
}

void choose_splits(const RowSpaces& spaces, const DeviceTraits& traits, RowPlan& plan) {
  const std::int64_t columns = spaces.columns.count();
  const std::int64_t groups = divide_up(spaces.rows.count(), plan.layout.rows);
  const std::int64_t wanted = std::int64_t{traits.compute_units} * 4;
  const std::int64_t shortest =
      plan.layout.rows_are_neighbours ? kShortestSplit / 16 : kShortestSplit;
  const std::int64_t splits = std::max(std::min(divide_up(wanted, groups), columns / shortest),
                                       fewest_splits(columns, plan.layout, traits));
  if (splits < 2) return;
  const std::int64_t places = places_of(spaces, plan);
  plan.span = divide_up(divide_up(places, splits), kVector) * kVector;
  plan.splits = static_cast<std::uint32_t>(divide_up(places, plan.span));
  // Many workgroups hide latency; each then needs few invocations, with loads in flight.
  if (!traits.is_software && !plan.layout.rows_are_neighbours) {
    plan.layout.lanes = std::min<std::uint32_t>(plan.layout.lanes, 256);
  }
}

}  // namespace

bool RowSpaces::varies_along_row(std::size_t operand) const {
  const auto& strides = columns.strides[operand];
  return std::any_of(strides.begin(), strides.end(), [](std::int64_t s) { return s != 0; });
}

bool lies_in_vectors(const RowSpaces& spaces, const RowPlan& plan, std::size_t operand) {
  if (!plan.is_shifted()) return plan.vectors && is_dense(spaces, operand);
  return spaces.columns.strides[operand].back() == 1 &&
         rows_begin_alike(spaces, static_cast<std::size_t>(plan.lead), operand);
}

RowSpaces row_spaces(const dispatch::Kernel& kernel) {
  RowSpaces spaces;
  for (const dispatch::Operand& load : kernel.loads) spaces.operands.push_back(&load);
  for (const dispatch::Operand& store : kernel.stores) spaces.operands.push_back(&store);
  dispatch::Extents rows = kernel.space, columns = kernel.space;
  for (int axis = 0; axis < kMaxDims; ++axis) {
    const bool in_row = axis >= kMaxDims - kernel.reduce_dims;
    (in_row ? rows : columns)[static_cast<std::size_t>(axis)] = 1;
  }
  const auto coordinates = coordinate_axes(kernel);
  spaces.rows = collapse(rows, spaces.operands, coordinates, true);
  spaces.columns = collapse(columns, spaces.operands, coordinates, !orders_elements(kernel));
  return spaces;
}

RowPlan plan_rows(const dispatch::Kernel& kernel, const RowSpaces& spaces,
                  const DeviceTraits& traits) {
  const dispatch::ProgramLevels levels = dispatch::analyze_levels(kernel);
  const bool neighbours = rows_are_neighbours(kernel, spaces);
  RowPlan plan;
  plan.vectors = !neighbours && may_use_vectors(kernel, spaces);
  if (!neighbours && !plan.vectors) plan.lead = lead_of(kernel, spaces);
  plan.vectors |= plan.is_shifted();
  plan.layout = choose_layout(spaces, plan, neighbours, traits);
  std::int64_t streams = 0;
  for (std::size_t i = 0; i < kernel.loads.size(); ++i) streams += spaces.varies_along_row(i);
  plan.unroll = traits.is_software ? 1 : streams > 1 ? 4 : 8;
  plan.stores_in_pass = is_one_pass(kernel, levels, spaces);
  if (plan.stores_in_pass) choose_splits(spaces, traits, plan);
  if (traits.is_software) {
    const std::int64_t columns = plan.splits > 1 ? plan.span : spaces.columns.count();
    plan.unroll =
        power_of_two(divide_up(columns, kSoftwareTurnsOfAPass * plan.layout.lanes), kMostInATurn);
  }
  if (plan.splits > 1) return plan;

  const std::int64_t width = plan.vectors ? kVector : 1;
  const std::int64_t chunks = divide_up(places_of(spaces, plan), width * plan.layout.lanes);
  const std::int64_t held = chunks * width * std::max<std::int64_t>(1, streams);
  if (chunks > 0 && held <= kHeldByLane && held * plan.layout.size() <= kHeldByGroup)
    plan.chunks = static_cast<std::uint32_t>(chunks);
  return plan;
}

std::int64_t row_scratch_bytes(const dispatch::Kernel& kernel, const DeviceTraits& traits) {
  const RowSpaces spaces = row_spaces(kernel);
  const RowPlan plan = plan_rows(kernel, spaces, traits);
  if (plan.splits < 2) return 0;
  const auto reductions =
      std::count_if(kernel.program.code.begin(), kernel.program.code.end(),
                    [](const ops::Instruction& i) { return i.op == ops::Opcode::kReduce; });
  return spaces.rows.count() * plan.splits * reductions * kPartialBytes;
}

}  // namespace vkml::vulkan
