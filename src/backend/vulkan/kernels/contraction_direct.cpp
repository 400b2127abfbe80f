// Contraction without shared memory: each invocation keeps a tile of the result in registers and
// reads its rows and columns straight from memory. On a software driver, where every lane's load is
// a step of a loop, a large tile is all that counts: 16 x 16 reuses each load 16 times, and vector
// loads gain nothing. Elsewhere this engine serves types and shapes that the tiled one does not.
// Bound: loads.
#include <algorithm>

#include "kernels/contraction.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 4;

class DirectContraction {
 public:
  DirectContraction(const Context& context, const Contraction& contraction,
                    const ContractionPlan& plan);
  Dispatch generate();

 private:
  void place_tile();
  std::vector<Position> outer_positions(ContractionOperand& operand, Value first, Value extent,
                                        std::uint32_t count);
  static std::vector<Value> load(ContractionOperand& operand, const std::vector<Position>& outer,
                                 Value k);
  void sum();

  const Contraction& contraction_;
  const ContractionPlan& plan_;
  Shader shader_;
  spirv::Builder& b_;
  ContractionOperands operands_;
  std::unique_ptr<ContractionOutput> output_;
  std::unique_ptr<Accumulators> sums_;
  Value tiles_m_, tiles_n_;
  std::unique_ptr<SumRange> range_;
  TilePosition tile_;
};

std::uint32_t workgroup_size(const DeviceTraits& traits) {
  return std::min<std::uint32_t>(traits.is_software ? 8 : 64, traits.max_workgroup_invocations);
}

DirectContraction::DirectContraction(const Context& context, const Contraction& contraction,
                                     const ContractionPlan& plan)
    : contraction_(contraction),
      plan_(plan),
      shader_(context, "contraction_direct", {workgroup_size(context.traits), 1, 1},
              contraction_touches(plan, context.kernel.core_type)),
      b_(shader_.builder()) {}

void DirectContraction::place_tile() {
  const Value index = shader_.global_index();
  const Value row = index / tiles_n_;
  tile_.n = (index - row * tiles_n_) * plan_.tile.n;
  const Value outer = row / tiles_m_;
  tile_.m = (row - outer * tiles_m_) * plan_.tile.m;
  range_->place(outer, tile_);
}

std::vector<Position> DirectContraction::outer_positions(ContractionOperand& operand, Value first,
                                                         Value extent, std::uint32_t count) {
  // Past the end the last row is read again; its sums are never used.
  std::vector<Position> positions;
  const Value last = extent - 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Value index = first + i;
    positions.push_back(operand.outer(b_.select(less(last, index), last, index)));
  }
  return positions;
}

std::vector<Value> DirectContraction::load(ContractionOperand& operand,
                                           const std::vector<Position>& outer, Value k) {
  const Position inner = operand.inner(k);
  std::vector<Value> values;
  for (const Position& position : outer) values.push_back(operand.load(position, inner));
  return values;
}

void DirectContraction::sum() {
  const auto rows = outer_positions(*operands_.a, tile_.m, output_->m_extent(), plan_.tile.m);
  const auto columns = outer_positions(*operands_.b, tile_.n, output_->n_extent(), plan_.tile.n);
  b_.for_range(range_->begin(), range_->end(), b_.u32(1), [&](Value k) {
    const std::vector<Value> a = load(*operands_.a, rows, k);
    const std::vector<Value> b = load(*operands_.b, columns, k);
    std::vector<Value> groups;
    for (std::uint32_t column = 0; column < plan_.tile.n; column += kVector) {
      groups.push_back(b_.compose(std::span(b).subspan(column, kVector)));
    }
    sums_->multiply_add(a, groups);
  });
}

Dispatch DirectContraction::generate() {
  const TileCounts tiles = tile_counts(contraction_.size(), plan_);
  const std::int64_t count = tiles.m * tiles.n * contraction_.size().batch * plan_.splits;
  operands_ = contraction_.open_operands(shader_);
  output_ = std::make_unique<ContractionOutput>(shader_, contraction_, plan_);
  tiles_m_ = shader_.parameter(tiles.m);
  tiles_n_ = shader_.parameter(tiles.n);
  const Value tile_count = shader_.parameter(count);
  range_ = std::make_unique<SumRange>(shader_, contraction_.size(), plan_);
  place_tile();
  b_.if_then(less(shader_.global_index(), tile_count), [&] {
    operands_.a->set_batch(tile_.batch);
    operands_.b->set_batch(tile_.batch);
    sums_ = std::make_unique<Accumulators>(shader_, plan_.tile);
    sum();
    for (std::uint32_t row = 0; row < sums_->rows(); ++row) {
      for (std::uint32_t group = 0; group < sums_->groups(); ++group) {
        output_->write4(tile_, tile_.m + row, tile_.n + group * kVector, sums_->load(row, group));
      }
    }
  });
  return shader_.finish(
      shader_.groups_for((count + shader_.local_count() - 1) / shader_.local_count()));
}

}  // namespace

Dispatch generate_direct_contraction(const Context& context, const Contraction& contraction,
                                     const ContractionPlan& plan) {
  return DirectContraction(context, contraction, plan).generate();
}

}  // namespace vkml::vulkan
