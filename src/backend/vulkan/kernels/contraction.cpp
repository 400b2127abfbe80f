#include "kernels/contraction.h"

#include <algorithm>
#include <bit>

#include "kernels/conversions.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 4;
/// Parts of a sum are multiples of this, and no shorter than the second.
constexpr std::int64_t kSpanUnit = 16;
constexpr std::int64_t kShortestSpan = 64;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t tiles_of(const ContractionSize& size, std::int64_t tile_m, std::int64_t tile_n) {
  return size.batch * divide_up(size.m, tile_m) * divide_up(size.n, tile_n);
}

/// Splits k so that about `wanted` workgroups or invocations have work, while the partial results
/// stay few.
void split_sum(const ContractionSize& size, std::int64_t tiles, std::int64_t wanted,
               ContractionPlan& plan) {
  const std::int64_t splits = std::min(divide_up(wanted, tiles), size.k / kShortestSpan);
  if (splits < 2) return;
  plan.span = divide_up(divide_up(size.k, splits), kSpanUnit) * kSpanUnit;
  plan.splits = static_cast<std::uint32_t>(divide_up(size.k, plan.span));
}

/// Adds the partial sums of each element in order, and runs the epilogue.
Dispatch generate_sum_of_splits(const Context& context, const Contraction& contraction,
                                const ContractionPlan& plan) {
  const std::uint32_t size = std::min<std::uint32_t>(context.traits.is_software ? 32 : 128,
                                                     context.traits.max_workgroup_invocations);
  Touches touches;
  touches.core_inputs = false;
  touches.reads_scratch = true;
  Shader shader(context, "sum_of_splits", {size, 1, 1}, touches);
  spirv::Builder& b = shader.builder();
  const ContractionSize& extents = contraction.size;
  const std::int64_t total = extents.batch * extents.m * extents.n;
  const Value count = shader.parameter(total);
  const Value m_extent = shader.parameter(extents.m), n_extent = shader.parameter(extents.n);
  const Value end = shader.parameter(total * plan.splits);
  const Place place = contraction.open_place(shader);
  Epilogue epilogue(shader);
  const Shader::Base scratch = shader.base_of(shader.scratch_buffer(), 0);
  const spirv::Type type = value_type(context.kernel.core_type);
  const bool is_wide = spirv::component_bytes(type.scalar) == 8;

  const Value element = shader.global_index();
  b.if_then(less(element, count), [&] {
    const spirv::Variable sum(b, type);
    sum.store(b.constant(type, 0));
    b.for_range(element, end, count, [&](Value part) {
      Value bits = shader.load(scratch, kWord, scratch.offset + part * (is_wide ? 2 : 1));
      if (is_wide) {
        const Value high = shader.load(scratch, kWord, scratch.offset + part * 2 + 1);
        const std::array<Value, 2> words{bits, high};
        bits = b.compose(words);
      }
      sum.store(sum.load() + b.bitcast(bits, type));
    });
    const Value row = element / n_extent;
    const Value batch = row / m_extent;
    epilogue.run(place(batch, row - batch * m_extent, element - row * n_extent), sum.load());
  });
  return shader.finish(shader.groups_for(divide_up(total, size)));
}

}  // namespace

ContractionPlan plan_contraction(const ContractionSize& size, ops::ScalarType type,
                                 const DeviceTraits& traits) {
  ContractionPlan plan;
  const std::uint32_t rows = size.m >= 16 ? 16 : std::bit_ceil(static_cast<std::uint32_t>(size.m));
  if (traits.is_software) {
    // Two threads of eight lanes: 64 tiles keep them busy. Larger tiles reuse what they load.
    const std::int64_t wanted = std::int64_t{traits.compute_units} * 16;
    for (const std::uint32_t edge : {16u, 8u, 4u}) {
      plan.tile = {std::min(rows, edge), edge};
      if (tiles_of(size, plan.tile.m, plan.tile.n) >= wanted) break;
    }
    split_sum(size, tiles_of(size, plan.tile.m, plan.tile.n), wanted, plan);
    return plan;
  }
  plan.tile = {std::min(rows, 4u), 4};
  const std::int64_t lanes = std::int64_t{traits.compute_units} * 128;
  split_sum(size, tiles_of(size, plan.tile.m, plan.tile.n), lanes, plan);
  static_cast<void>(type);
  return plan;
}

std::int64_t contraction_scratch_bytes(const ContractionSize& size, ops::ScalarType type,
                                       const DeviceTraits& traits) {
  const ContractionPlan plan = plan_contraction(size, type, traits);
  if (plan.splits < 2) return 0;
  const auto bytes = static_cast<std::int64_t>(size_of(ops::storage_type(type)));
  return size.batch * size.m * size.n * plan.splits * bytes;
}

Touches contraction_touches(const ContractionPlan& plan) {
  Touches touches;
  const bool is_split = plan.splits > 1;
  touches.loads = touches.stores = !is_split;
  touches.writes_scratch = is_split;
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

ContractionOutput::ContractionOutput(Shader& shader, const Contraction& contraction,
                                     const ContractionPlan& plan)
    : shader_(shader),
      b_(shader.builder()),
      is_split_(plan.splits > 1),
      four_in_row_(contraction.four_in_row) {
  m_extent_ = shader.parameter(contraction.size.m);
  n_extent_ = shader.parameter(contraction.size.n);
  if (is_split_) {
    batch_extent_ = shader.parameter(contraction.size.batch);
    scratch_ = shader.base_of(shader.scratch_buffer(), 0);
  } else {
    place_ = contraction.open_place(shader);
    epilogue_ = std::make_unique<Epilogue>(shader);
  }
}

void ContractionOutput::write4(const TilePosition& tile, Value m, Value n, Value sums) {
  b_.if_then(logical_and(less(m, m_extent_), less(n, n_extent_)), [&] {
    if (!is_split_ && four_in_row_) {
      epilogue_->run4(place_(tile.batch, m, n), sums);
      return;
    }
    for (std::uint32_t k = 0; k < kVector; ++k) {
      const Value column = n + k;
      const Value sum = b_.component(sums, static_cast<int>(k));
      b_.if_then(less(column, n_extent_), [&] {
        if (is_split_) {
          write_partial(tile, m, column, sum);
        } else {
          epilogue_->run(place_(tile.batch, m, column), sum);
        }
      });
    }
  });
}

void ContractionOutput::write_partial(const TilePosition& tile, Value m, Value n, Value sum) {
  const Value row = (tile.split * batch_extent_ + tile.batch) * m_extent_ + m;
  const bool is_wide = spirv::component_bytes(sum.type.scalar) == 8;
  const Value element = row * n_extent_ + n;
  const Value bits = b_.bitcast(sum, is_wide ? kWord2 : kWord);
  for (std::uint32_t i = 0; i < (is_wide ? 2u : 1u); ++i) {
    shader_.store(scratch_, kWord, scratch_.offset + element * (is_wide ? 2 : 1) + i,
                  b_.component(bits, static_cast<int>(i)));
  }
}

std::vector<Dispatch> generate_contraction(const Context& context, const Contraction& contraction) {
  ContractionPlan plan =
      plan_contraction(contraction.size, context.kernel.core_type, context.traits);
  if (context.kernel.scratch < 0) plan.splits = 1;
  std::vector<Dispatch> dispatches;
  dispatches.push_back(generate_direct_contraction(context, contraction, plan));
  if (plan.splits > 1) dispatches.push_back(generate_sum_of_splits(context, contraction, plan));
  return dispatches;
}

}  // namespace vkml::vulkan
