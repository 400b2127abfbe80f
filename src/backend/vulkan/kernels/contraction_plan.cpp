// Which engine computes a contraction, with which tiles, in how many parts of the sum: the choice
// that promises the shortest time. The constants were fitted to measurements of one large GPU; only
// the order of the estimates matters.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/contraction.h"

namespace vkml::vulkan {

namespace {

constexpr std::uint32_t kVector = 4;
constexpr std::int64_t kScratchAlignment = 256;

/// Vectors of sums in a tile up to which the program is written out for each on a software driver.
constexpr std::uint32_t kUnrolledEpilogues = 4;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

std::int64_t tiles_of(const ContractionSize& size, const ContractionPlan& plan) {
  const TileCounts tiles = tile_counts(size, plan);
  return size.batch * tiles.m * tiles.n;
}

void split_into(const ContractionSize& size, std::int64_t splits, std::int64_t unit,
                ContractionPlan& plan) {
  if (splits < 2) return;
  plan.span = round_up(divide_up(size.k, splits), unit);
  plan.splits = static_cast<std::uint32_t>(divide_up(size.k, plan.span));
}

/// Splits k so that about `wanted` tiles have work, while the parts stay long but for `longest`.
void split_sum(const ContractionSize& size, std::int64_t wanted, std::int64_t longest,
               ContractionPlan& plan) {
  constexpr std::int64_t kUnit = 16, kShortest = 64;
  const std::int64_t useful = std::min(divide_up(wanted, tiles_of(size, plan)), size.k / kShortest);
  split_into(size, std::max(useful, divide_up(size.k, longest)), kUnit, plan);
}

/// Tiles of a workgroup through shared memory, with what one workgroup reaches.
struct Candidate {
  ContractionEngine engine;
  RegisterTile tile;
  std::uint32_t threads_m, threads_n;
  MatrixTile matrix;
  double rate;          // multiply-adds of a full compute unit in a microsecond
  double slots;         // workgroups that fill a compute unit
  double step_latency;  // microseconds, below which no step of a workgroup falls

  std::uint32_t m() const { return tile.m * threads_m; }
  std::uint32_t n() const { return tile.n * threads_n; }
  std::uint32_t depth() const {
    return engine == ContractionEngine::kMatrix ? matrix.depth : kTiledDepth;
  }
};

constexpr Candidate on_vector_units(RegisterTile tile, std::uint32_t threads_m,
                                    std::uint32_t threads_n, double rate, double step_latency) {
  const double slots = 256.0 / (threads_m * threads_n);
  return {ContractionEngine::kTiled, tile, threads_m, threads_n, {}, rate, slots, step_latency};
}
constexpr Candidate on_matrix_units(MatrixTile tile, double rate, double slots,
                                    double step_latency) {
  return {ContractionEngine::kMatrix, {tile.m, tile.n}, 1, 1, tile, rate, slots, step_latency};
}

constexpr Candidate kVectorUnits[] = {
    on_vector_units({8, 16}, 16, 8, 178e3, 0.6),
    on_vector_units({8, 8}, 8, 16, 169e3, 0.6),
    on_vector_units({8, 8}, 8, 8, 160e3, 0.45),
    on_vector_units({4, 4}, 8, 8, 80e3, 0.2),
};
/// f32 as products of bf16 parts.
constexpr Candidate kMatrixUnitsF32[] = {
    on_matrix_units({128, 128, 16, 2, 2}, 231e3, 2, 1.3),
    on_matrix_units({64, 128, 16, 2, 2}, 190e3, 2, 0.8),
    on_matrix_units({64, 64, 16, 2, 2}, 150e3, 2, 0.4),
};
/// The same with two parts, three products.
constexpr Candidate kMatrixUnitsF32High[] = {
    on_matrix_units({128, 128, 32, 2, 2}, 330e3, 2, 1.6),
    on_matrix_units({64, 128, 32, 2, 2}, 270e3, 2, 1.0),
    on_matrix_units({64, 64, 32, 2, 2}, 220e3, 2, 0.6),
};
constexpr Candidate kMatrixUnits16[] = {
    on_matrix_units({128, 128, 64, 2, 2}, 1150e3, 2, 1.2),
    on_matrix_units({64, 128, 64, 2, 2}, 850e3, 2, 1.1),
    on_matrix_units({64, 64, 64, 2, 2}, 640e3, 3, 1.0),
};

/// More than any of their tiles takes, in any layout of the operands.
constexpr std::uint32_t kMatrixSharedBytes = 48 << 10;

bool fits(const Candidate& candidate, const DeviceTraits& traits) {
  const std::uint32_t shared = 2 * kTiledDepth * (candidate.m() + candidate.n()) * 4;
  return candidate.threads_m * candidate.threads_n <= traits.max_workgroup_invocations &&
         shared <= traits.max_shared_bytes;
}

std::int64_t copied_bytes(const ContractionProblem& problem) {
  std::int64_t bytes = 0;
  for (const MatrixAccess& access : {problem.a, problem.b}) {
    if (access.kind == MatrixAccess::Kind::kThroughCopy) bytes += access.copy_bytes;
  }
  return bytes;
}

/// Microseconds. Workgroups that do not fill their compute unit use a part of it, and no step is
/// shorter than its latency.
double estimate(const ContractionProblem& problem, const Candidate& candidate,
                const ContractionPlan& plan, const DeviceTraits& traits) {
  constexpr double kDispatch = 4;
  constexpr double kBytes = 2e6;  // written and read in a microsecond
  constexpr double kAlone = 0.7;  // the time, in a full unit's, of workgroups that do not fill it
  const ContractionSize& size = problem.size;
  const double span = static_cast<double>(plan.splits > 1 ? plan.span : size.k);
  const auto groups = static_cast<double>(tiles_of(size, plan) * plan.splits);
  const double resident = std::ceil(groups / traits.compute_units);
  const double full = std::floor(resident / candidate.slots) * candidate.slots;
  const double rest = resident > full ? std::max(resident - full, kAlone * candidate.slots) : 0;
  const double work = span * candidate.m() * candidate.n() / candidate.rate;
  const double steps = span / candidate.depth() * candidate.step_latency;
  double time = std::max((full + rest) * work, std::ceil(resident / candidate.slots) * steps);
  if (plan.splits > 1) {
    const auto partials = static_cast<double>(size.batch * size.m * size.n * plan.splits);
    time += kDispatch + partials * 8 / kBytes;
  }
  if (candidate.engine == ContractionEngine::kMatrix && copied_bytes(problem) > 0) {
    time += kDispatch + static_cast<double>(copied_bytes(problem)) * 2 / kBytes;
  }
  return time;
}

/// The candidates among which a problem's shape decides.
std::vector<Candidate> candidates_for(const ContractionProblem& problem, const DeviceTraits& traits,
                                      bool has_scratch) {
  std::vector<Candidate> candidates;
  const auto add = [&](const auto& list) {
    for (const Candidate& candidate : list) {
      if (candidate.engine == ContractionEngine::kMatrix || fits(candidate, traits)) {
        candidates.push_back(candidate);
      }
    }
  };
  add(kVectorUnits);
  const auto serves = [&](const MatrixAccess& access) {
    return access.kind == MatrixAccess::Kind::kVectors ||
           access.kind == MatrixAccess::Kind::kElements ||
           (access.kind == MatrixAccess::Kind::kThroughCopy && has_scratch);
  };
  if (!serves(problem.a) || !serves(problem.b) || problem.size.k == 0 ||
      traits.max_shared_bytes < kMatrixSharedBytes) {
    return candidates;
  }
  if (problem.dtype == DType::kF32 && traits.has_matrix_bf16) {
    add(problem.parts == 3 ? kMatrixUnitsF32 : kMatrixUnitsF32High);
  }
  const bool has_16 = problem.dtype == DType::kF16
                          ? traits.has_matrix_f16
                          : problem.dtype == DType::kBF16 && traits.has_matrix_bf16;
  if (has_16) add(kMatrixUnits16);
  return candidates;
}

void choose_workgroup_tile(const ContractionProblem& problem, const DeviceTraits& traits,
                           bool has_scratch, ContractionPlan& plan) {
  constexpr std::int64_t kMostSplits = 256, kFewestSteps = 4;
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates_for(problem, traits, has_scratch)) {
    for (std::int64_t splits = 1; splits <= (has_scratch ? kMostSplits : 1); splits *= 2) {
      if (splits > 1 && problem.size.k / splits < kFewestSteps * candidate.depth()) break;
      ContractionPlan trial;
      trial.engine = candidate.engine;
      trial.tile = candidate.tile;
      trial.threads_m = candidate.threads_m;
      trial.threads_n = candidate.threads_n;
      trial.matrix = candidate.matrix;
      split_into(problem.size, splits, candidate.depth(), trial);
      const double time = estimate(problem, candidate, trial, traits);
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
  split_sum(size, wanted, kSoftwareTurns / 2, plan);
  plan.uses_scratch = plan.tile.m * plan.tile.n / kVector > kUnrolledEpilogues;
}

void lay_out_scratch(const ContractionProblem& problem, ContractionPlan& plan) {
  std::int64_t end = 0;
  const auto reserve = [&](std::int64_t bytes) {
    const std::int64_t begin = end;
    end += round_up(bytes, kScratchAlignment);
    return begin;
  };
  if (plan.engine == ContractionEngine::kMatrix) {
    const auto copy = [&](const MatrixAccess& access) {
      return reserve(access.kind == MatrixAccess::Kind::kThroughCopy ? access.copy_bytes : 0);
    };
    plan.copy_a = copy(problem.a);
    plan.copy_b = copy(problem.b);
  }
  plan.partials = end;
  if (plan.uses_scratch) {
    const TileCounts tiles = tile_counts(problem.size, plan);
    const std::int64_t rows = tiles.m * plan.tile.m * plan.threads_m;
    const std::int64_t columns = tiles.n * plan.tile.n * plan.threads_n;
    reserve(problem.size.batch * rows * columns * plan.splits *
            static_cast<std::int64_t>(size_of(ops::storage_type(problem.type))));
  }
  plan.scratch_bytes = end;
}

}  // namespace

TileCounts tile_counts(const ContractionSize& size, const ContractionPlan& plan) {
  return {divide_up(size.m, std::int64_t{plan.tile.m} * plan.threads_m),
          divide_up(size.n, std::int64_t{plan.tile.n} * plan.threads_n)};
}

ContractionPlan plan_contraction(const ContractionProblem& problem, const DeviceTraits& traits,
                                 bool has_scratch) {
  ContractionPlan plan;
  const ContractionSize& size = problem.size;
  const std::uint32_t rows = size.m >= 16 ? 16 : std::bit_ceil(static_cast<std::uint32_t>(size.m));
  const bool is_large = size.m >= 8 && size.n >= 8;
  if (traits.is_software) {
    choose_software_tile(size, traits, rows, plan);
  } else if (problem.type == ops::ScalarType::kF32 && is_large && fits(kVectorUnits[3], traits)) {
    choose_workgroup_tile(problem, traits, has_scratch, plan);
  } else {
    plan.tile = {std::min(rows, 4u), 4};
    split_sum(size, std::int64_t{traits.compute_units} * 128, size.k + 1, plan);
  }
  plan.uses_scratch |= plan.splits > 1;
  if (!has_scratch) {
    plan.splits = 1;
    plan.uses_scratch = false;
  }
  lay_out_scratch(problem, plan);
  return plan;
}

}  // namespace vkml::vulkan
