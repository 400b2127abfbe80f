#include "kernels/contraction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/conversions.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 4;
/// Parts of a sum are multiples of this, and no shorter than the second.
constexpr std::int64_t kSpanUnit = 16;
constexpr std::int64_t kShortestSpan = 64;

/// Vectors of sums in a tile up to which the program is written out for each on a software driver.
constexpr std::uint32_t kUnrolledEpilogues = 4;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t tiles_of(const ContractionSize& size, const ContractionPlan& plan) {
  const TileCounts tiles = tile_counts(size, plan);
  return size.batch * tiles.m * tiles.n;
}

std::uint32_t sum_bytes(ops::ScalarType type) {
  return static_cast<std::uint32_t>(vkml::size_of(ops::storage_type(type)));
}

void split_into(const ContractionSize& size, std::int64_t splits, ContractionPlan& plan) {
  if (splits < 2) return;
  plan.span = divide_up(divide_up(size.k, splits), kSpanUnit) * kSpanUnit;
  plan.splits = static_cast<std::uint32_t>(divide_up(size.k, plan.span));
}

/// Splits k so that about `wanted` tiles have work, while the parts stay long.
void split_sum(const ContractionSize& size, std::int64_t wanted, ContractionPlan& plan) {
  split_into(size, std::min(divide_up(wanted, tiles_of(size, plan)), size.k / kShortestSpan), plan);
}

/// Adds the partial sums of each element in order, and runs the epilogue.
Dispatch generate_epilogue(const Context& context, const Contraction& contraction,
                           const ContractionPlan& plan) {
  const std::uint32_t group = std::min<std::uint32_t>(context.traits.is_software ? 32 : 128,
                                                      context.traits.max_workgroup_invocations);
  Touches touches;
  touches.core_inputs = false;
  touches.reads_scratch = true;
  touches.scratch_element_bytes = sum_bytes(context.kernel.core_type);
  Shader shader(context, "contraction_epilogue", {group, 1, 1}, touches);
  spirv::Builder& b = shader.builder();
  const ContractionSize& size = contraction.size;
  const std::int64_t total = size.batch * size.m * size.n;
  const Value count = shader.parameter(total);
  const Value m_extent = shader.parameter(size.m), n_extent = shader.parameter(size.n);
  const Value splits = plan.splits > 1 ? shader.parameter(plan.splits) : b.u32(1);
  const Place place = contraction.open_place(shader);
  Epilogue epilogue(shader);
  const PartialSums partials(shader, size, plan);

  const Value element = shader.global_index();
  b.if_then(less(element, count), [&] {
    const Value row = element / n_extent;
    const Value n = element - row * n_extent;
    TilePosition tile;
    tile.batch = row / m_extent;
    const Value m = row - tile.batch * m_extent;
    tile.split = b.u32(0);
    Value sum = partials.load(tile, m, n);
    if (plan.splits > 1) {
      const spirv::Variable total_sum(b, sum.type);
      total_sum.store(sum);
      b.for_range(b.u32(1), splits, b.u32(1), [&](Value split) {
        tile.split = split;
        total_sum.store(total_sum.load() + partials.load(tile, m, n));
      });
      sum = total_sum.load();
    }
    epilogue.run(place(tile.batch, m, n), sum);
  });
  return shader.finish(shader.groups_for(divide_up(total, group)));
}

}  // namespace

TileCounts tile_counts(const ContractionSize& size, const ContractionPlan& plan) {
  return {divide_up(size.m, std::int64_t{plan.tile.m} * plan.threads_m),
          divide_up(size.n, std::int64_t{plan.tile.n} * plan.threads_n)};
}

namespace {

/// Tiles of a workgroup in shared memory, and the share of a compute unit's arithmetic that a full
/// one reaches with them.
struct WorkgroupTile {
  RegisterTile tile;
  std::uint32_t threads_m, threads_n;
  double efficiency;

  std::uint32_t m() const { return tile.m * threads_m; }
  std::uint32_t n() const { return tile.n * threads_n; }
  std::uint32_t threads() const { return threads_m * threads_n; }
};
constexpr WorkgroupTile kWorkgroupTiles[] = {
    {{8, 16}, 16, 8, 1.0},
    {{8, 8}, 8, 16, 0.95},
    {{8, 8}, 8, 8, 0.9},
    {{4, 4}, 8, 8, 0.45},
};

bool fits(const WorkgroupTile& candidate, const DeviceTraits& traits) {
  const std::uint32_t shared = 2 * kTiledDepth * (candidate.m() + candidate.n()) * 4;
  return candidate.threads() <= traits.max_workgroup_invocations &&
         shared <= traits.max_shared_bytes;
}

/// Microseconds on a current GPU, of which only the order among candidates matters. One workgroup
/// alone reaches a part of its compute unit's speed, and never less than a step's latency.
double estimate(const ContractionSize& size, const WorkgroupTile& candidate,
                const ContractionPlan& plan, const DeviceTraits& traits) {
  constexpr double kMultiplyAdds = 178e3;  // of a compute unit in a microsecond
  constexpr double kFullThreads = 256;
  constexpr double kStepLatency = 0.6;
  constexpr double kSecondDispatch = 4;
  constexpr double kScratchBytes = 2e6;  // written and read in a microsecond
  const double span = static_cast<double>(plan.splits > 1 ? plan.span : size.k);
  const auto groups = static_cast<double>(tiles_of(size, plan) * plan.splits);
  const double resident = std::ceil(groups / traits.compute_units);
  const double alone = kFullThreads / candidate.threads();
  const double area = candidate.m() * candidate.n();
  const double work = span * area / (kMultiplyAdds * candidate.efficiency);
  const double steps = span / kTiledDepth * kStepLatency;
  double time = std::max(std::max(resident, alone) * work, steps);
  if (plan.splits > 1) {
    const auto partials = static_cast<double>(size.batch * size.m * size.n * plan.splits);
    time += kSecondDispatch + partials * 8 / kScratchBytes;
  }
  return time;
}

/// The tile and the number of parts of the sum that promise the shortest time.
void choose_workgroup_tile(const ContractionSize& size, const DeviceTraits& traits,
                           ContractionPlan& plan) {
  double best = std::numeric_limits<double>::infinity();
  for (const WorkgroupTile& candidate : kWorkgroupTiles) {
    if (!fits(candidate, traits)) continue;
    for (std::int64_t splits = 1; splits <= 256; splits *= 2) {
      ContractionPlan trial;
      trial.is_tiled = true;
      trial.tile = candidate.tile;
      trial.threads_m = candidate.threads_m;
      trial.threads_n = candidate.threads_n;
      if (splits > 1 && size.k / splits < kShortestSpan) break;
      split_into(size, splits, trial);
      const double time = estimate(size, candidate, trial, traits);
      if (time < best) {
        best = time;
        plan = trial;
      }
    }
  }
}

void choose_software_tile(const ContractionSize& size, const DeviceTraits& traits,
                          std::uint32_t rows, ContractionPlan& plan) {
  // Eight lanes a thread, and some workgroups for each. Larger tiles reuse what they load.
  const std::int64_t wanted = std::int64_t{traits.compute_units} * 16;
  for (const std::uint32_t edge : {16u, 8u, 4u}) {
    plan.tile = {std::min(rows, edge), edge};
    if (tiles_of(size, plan) >= wanted) break;
  }
  split_sum(size, wanted, plan);
  plan.uses_scratch = plan.tile.m * plan.tile.n / kVector > kUnrolledEpilogues;
}

}  // namespace

ContractionPlan plan_contraction(const ContractionSize& size, ops::ScalarType type,
                                 const DeviceTraits& traits) {
  ContractionPlan plan;
  const std::uint32_t rows = size.m >= 16 ? 16 : std::bit_ceil(static_cast<std::uint32_t>(size.m));
  const bool is_large = size.m >= 8 && size.n >= 8;
  if (traits.is_software) {
    choose_software_tile(size, traits, rows, plan);
  } else if (type == ops::ScalarType::kF32 && is_large && fits(kWorkgroupTiles[3], traits)) {
    choose_workgroup_tile(size, traits, plan);
  } else {
    plan.tile = {std::min(rows, 4u), 4};
    split_sum(size, std::int64_t{traits.compute_units} * 128, plan);
  }
  plan.uses_scratch |= plan.splits > 1;
  return plan;
}

std::int64_t contraction_scratch_bytes(const ContractionSize& size, ops::ScalarType type,
                                       const DeviceTraits& traits) {
  const ContractionPlan plan = plan_contraction(size, type, traits);
  if (!plan.uses_scratch) return 0;
  const TileCounts tiles = tile_counts(size, plan);
  const std::int64_t rows = tiles.m * plan.tile.m * plan.threads_m;
  const std::int64_t columns = tiles.n * plan.tile.n * plan.threads_n;
  return size.batch * rows * columns * plan.splits * sum_bytes(type);
}

Touches contraction_touches(const ContractionPlan& plan, ops::ScalarType type) {
  Touches touches;
  touches.loads = touches.stores = !plan.uses_scratch;
  touches.writes_scratch = plan.uses_scratch;
  touches.scratch_element_bytes = sum_bytes(type);
  return touches;
}

Accumulators::Accumulators(Shader& shader, const RegisterTile& tile)
    : shader_(shader), tile_(tile) {
  spirv::Builder& b = shader.builder();
  const spirv::Type type = value_type(shader.context().kernel.core_type, kVector);
  for (std::uint32_t i = 0; i < rows() * groups(); ++i) {
    values_.emplace_back(b, type);
    values_.back().store(b.constant(type, 0));
  }
}

void Accumulators::multiply_add(const std::vector<Value>& a, const std::vector<Value>& b) {
  spirv::Builder& builder = shader_.builder();
  for (std::uint32_t row = 0; row < rows(); ++row) {
    const Value left = builder.splat(a[row], kVector);
    for (std::uint32_t group = 0; group < groups(); ++group) {
      const spirv::Variable& sum = values_[row * groups() + group];
      const bool fuses = spirv::is_float(left.type) && !shader_.traits().is_software;
      sum.store(fuses ? builder.fma(left, b[group], sum.load()) : left * b[group] + sum.load());
    }
  }
}

Value Accumulators::load(std::uint32_t row, std::uint32_t group) const {
  return values_[row * groups() + group].load();
}

namespace {

dispatch::Operand scratch_operand(const dispatch::Kernel& kernel) {
  dispatch::Operand operand;
  operand.buffer = kernel.scratch;
  operand.dtype = ops::storage_type(kernel.core_type);
  return operand;
}

}  // namespace

PartialSums::PartialSums(Shader& shader, const ContractionSize& size, const ContractionPlan& plan)
    : elements_(shader, scratch_operand(shader.context().kernel)) {
  const TileCounts tiles = tile_counts(size, plan);
  batch_extent_ = size.batch == 1 ? shader.builder().u32(1) : shader.parameter(size.batch);
  rows_ = shader.parameter(tiles.m * plan.tile.m * plan.threads_m);
  columns_ = shader.parameter(tiles.n * plan.tile.n * plan.threads_n);
}

Value PartialSums::place(const TilePosition& tile, Value m, Value n) const {
  const Value matrix = tile.split * batch_extent_ + tile.batch;
  return (matrix * rows_ + m) * columns_ + n;
}

void PartialSums::store4(const TilePosition& tile, Value m, Value n, Value sums) const {
  elements_.store4(place(tile, m, n), sums);
}

Value PartialSums::load(const TilePosition& tile, Value m, Value n) const {
  return elements_.load(place(tile, m, n));
}

ContractionOutput::ContractionOutput(Shader& shader, const Contraction& contraction,
                                     const ContractionPlan& plan)
    : b_(shader.builder()),
      uses_scratch_(plan.uses_scratch),
      four_in_row_(contraction.four_in_row) {
  m_extent_ = shader.parameter(contraction.size.m);
  n_extent_ = shader.parameter(contraction.size.n);
  if (uses_scratch_) {
    partials_ = std::make_unique<PartialSums>(shader, contraction.size, plan);
  } else {
    place_ = contraction.open_place(shader);
    epilogue_ = std::make_unique<Epilogue>(shader);
  }
}

void ContractionOutput::write4(const TilePosition& tile, Value m, Value n, Value sums) {
  if (uses_scratch_) {
    partials_->store4(tile, m, n, sums);
    return;
  }
  b_.if_then(logical_and(less(m, m_extent_), less(n, n_extent_)), [&] {
    if (four_in_row_) {
      epilogue_->run4(place_(tile.batch, m, n), sums);
      return;
    }
    for (std::uint32_t k = 0; k < kVector; ++k) {
      const Value column = n + k;
      b_.if_then(less(column, n_extent_), [&] {
        epilogue_->run(place_(tile.batch, m, column), b_.component(sums, static_cast<int>(k)));
      });
    }
  });
}

std::vector<Dispatch> generate_contraction(const Context& context, const Contraction& contraction) {
  ContractionPlan plan =
      plan_contraction(contraction.size, context.kernel.core_type, context.traits);
  if (context.kernel.scratch < 0) {
    plan.splits = 1;
    plan.uses_scratch = false;
  }
  std::vector<Dispatch> dispatches;
  dispatches.push_back(plan.is_tiled ? generate_tiled_contraction(context, contraction, plan)
                                     : generate_direct_contraction(context, contraction, plan));
  if (plan.uses_scratch) dispatches.push_back(generate_epilogue(context, contraction, plan));
  return dispatches;
}

}  // namespace vkml::vulkan
