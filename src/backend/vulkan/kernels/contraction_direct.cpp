// Contraction without shared memory: each invocation keeps a tile of the result in registers and
// reads its rows and columns straight from memory, four elements a load where they are dense. On a
// software driver loads decide the speed, and the largest tile wins (16 x 16); elsewhere this
// engine serves types and shapes that the tiled one does not. Bound: loads.
#include <algorithm>

#include "kernels/contraction.h"
#include "kernels/conversions.h"

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
  void sum(bool vectors);
  std::vector<Position> outer_positions(ContractionOperand& operand, Value first, Value extent,
                                        std::uint32_t count, bool by_vectors);
  std::vector<std::vector<Value>> load_inner(ContractionOperand& operand,
                                             const std::vector<Position>& outer, Value k,
                                             std::uint32_t depth, bool vectors);
  void step(const std::vector<Position>& rows, const std::vector<Position>& columns, Value k,
            std::uint32_t depth, bool vectors);
  void write();

  const Contraction& contraction_;
  const ContractionPlan& plan_;
  Shader shader_;
  spirv::Builder& b_;
  ContractionOperands operands_;
  std::unique_ptr<ContractionOutput> output_;
  std::unique_ptr<Accumulators> sums_;
  Value tiles_m_, tiles_n_, k_extent_, tile_count_;
  TilePosition tile_;
  Value begin_, end_;
};

std::uint32_t workgroup_size(const DeviceTraits& traits) {
  return std::min<std::uint32_t>(traits.is_software ? 8 : 64, traits.max_workgroup_invocations);
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

DirectContraction::DirectContraction(const Context& context, const Contraction& contraction,
                                     const ContractionPlan& plan)
    : contraction_(contraction),
      plan_(plan),
      shader_(context, "contraction_direct", {workgroup_size(context.traits), 1, 1},
              contraction_touches(plan)),
      b_(shader_.builder()) {}

void DirectContraction::place_tile() {
  const Value index = shader_.global_index();
  Value rest = index / tiles_n_;
  tile_.n = (index - rest * tiles_n_) * plan_.tile.n;
  const Value outer = rest / tiles_m_;
  tile_.m = (rest - outer * tiles_m_) * plan_.tile.m;
  tile_.batch = outer;
  tile_.split = b_.u32(0);
  begin_ = b_.u32(0);
  end_ = k_extent_;
  if (plan_.splits > 1) {
    const Value splits = shader_.parameter(plan_.splits);
    const Value span = shader_.parameter(plan_.span);
    tile_.batch = outer / splits;
    tile_.split = outer - tile_.batch * splits;
    begin_ = tile_.split * span;
    const Value past = begin_ + span;
    end_ = b_.select(less(past, k_extent_), past, k_extent_);
  }
}

std::vector<Position> DirectContraction::outer_positions(ContractionOperand& operand, Value first,
                                                         Value extent, std::uint32_t count,
                                                         bool by_vectors) {
  // Past the end the last row is read again; its sums are never written.
  std::vector<Position> positions;
  const std::uint32_t step = by_vectors ? kVector : 1;
  const Value last = extent - step;
  for (std::uint32_t i = 0; i < count; i += step) {
    const Value index = first + i;
    positions.push_back(operand.outer(b_.select(less(last, index), last, index)));
  }
  return positions;
}

/// By k, then by outer index: one value each.
std::vector<std::vector<Value>> DirectContraction::load_inner(ContractionOperand& operand,
                                                              const std::vector<Position>& outer,
                                                              Value k, std::uint32_t depth,
                                                              bool vectors) {
  using Dense = ContractionOperand::Dense;
  std::vector<std::vector<Value>> values(depth);
  const auto append = [&](std::vector<Value>& to, Value four) {
    for (int lane = 0; lane < 4; ++lane) to.push_back(b_.component(four, lane));
  };
  if (vectors && operand.dense() == Dense::kInner && depth == kVector) {
    const Position inner = operand.inner(k);
    for (const Position& position : outer) {
      const Value four = operand.load4(position, inner);
      for (std::uint32_t i = 0; i < depth; ++i) {
        values[i].push_back(b_.component(four, static_cast<int>(i)));
      }
    }
    return values;
  }
  for (std::uint32_t i = 0; i < depth; ++i) {
    const Position inner = operand.inner(k + i);
    for (const Position& position : outer) {
      if (vectors && operand.dense() == Dense::kOuter) {
        append(values[i], operand.load4(position, inner));
      } else {
        values[i].push_back(operand.load(position, inner));
      }
    }
  }
  return values;
}

void DirectContraction::step(const std::vector<Position>& rows,
                             const std::vector<Position>& columns, Value k, std::uint32_t depth,
                             bool vectors) {
  const auto a = load_inner(*operands_.a, rows, k, depth, vectors);
  const auto b = load_inner(*operands_.b, columns, k, depth, vectors);
  for (std::uint32_t i = 0; i < depth; ++i) {
    std::vector<Value> groups;
    for (std::uint32_t column = 0; column < plan_.tile.n; column += kVector) {
      groups.push_back(b_.compose(std::span(b[i]).subspan(column, kVector)));
    }
    sums_->multiply_add(a[i], groups);
  }
}

void DirectContraction::sum(bool vectors) {
  using Dense = ContractionOperand::Dense;
  const bool a_by_vectors = vectors && operands_.a->dense() == Dense::kOuter;
  const bool b_by_vectors = vectors && operands_.b->dense() == Dense::kOuter;
  const auto rows =
      outer_positions(*operands_.a, tile_.m, output_->m_extent(), plan_.tile.m, a_by_vectors);
  const auto columns =
      outer_positions(*operands_.b, tile_.n, output_->n_extent(), plan_.tile.n, b_by_vectors);
  const bool is_deep =
      vectors && (operands_.a->dense() == Dense::kInner || operands_.b->dense() == Dense::kInner);
  if (!is_deep) {
    b_.for_range(begin_, end_, b_.u32(1), [&](Value k) { step(rows, columns, k, 1, vectors); });
    return;
  }
  const Value whole_end = end_ & ~(kVector - 1);
  b_.for_range(begin_, whole_end, b_.u32(kVector),
               [&](Value k) { step(rows, columns, k, kVector, true); });
  if (contraction_.size.k % kVector != 0) {
    b_.for_range(whole_end, end_, b_.u32(1), [&](Value k) { step(rows, columns, k, 1, vectors); });
  }
}

void DirectContraction::write() {
  for (std::uint32_t row = 0; row < sums_->rows(); ++row) {
    for (std::uint32_t group = 0; group < sums_->groups(); ++group) {
      output_->write4(tile_, tile_.m + row, tile_.n + group * kVector, sums_->load(row, group));
    }
  }
}

Dispatch DirectContraction::generate() {
  const ContractionSize& size = contraction_.size;
  const std::int64_t tiles_m = divide_up(size.m, plan_.tile.m);
  const std::int64_t tiles_n = divide_up(size.n, plan_.tile.n);
  const std::int64_t count = tiles_m * tiles_n * size.batch * plan_.splits;
  operands_ = contraction_.open_operands(shader_);
  output_ = std::make_unique<ContractionOutput>(shader_, contraction_, plan_);
  tiles_m_ = shader_.parameter(tiles_m);
  tiles_n_ = shader_.parameter(tiles_n);
  tile_count_ = shader_.parameter(count);
  k_extent_ = shader_.parameter(size.k);
  place_tile();
  b_.if_then(less(shader_.global_index(), tile_count_), [&] {
    operands_.a->set_batch(tile_.batch);
    operands_.b->set_batch(tile_.batch);
    sums_ = std::make_unique<Accumulators>(shader_, plan_.tile);
    Value aligned = b_.boolean(true);
    bool any = false;
    for (ContractionOperand* operand : {operands_.a.get(), operands_.b.get()}) {
      if (operand->dense() == ContractionOperand::Dense::kNone) continue;
      aligned = logical_and(aligned, operand->is_aligned());
      any = true;
    }
    b_.if_else(
        any ? aligned : b_.boolean(false), [&] { sum(true); }, [&] { sum(false); });
    write();
  });
  return shader_.finish(shader_.groups_for(divide_up(count, shader_.local_count())));
}

}  // namespace

Dispatch generate_direct_contraction(const Context& context, const Contraction& contraction,
                                     const ContractionPlan& plan) {
  return DirectContraction(context, contraction, plan).generate();
}

}  // namespace vkml::vulkan
