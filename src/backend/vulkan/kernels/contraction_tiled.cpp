// Contraction through shared memory, for f32 sums on hardware. A workgroup computes a tile of the
// result in steps of 16 along k. Each invocation brings 4 x 4 blocks of the operands, four elements
// a load where they are dense, turns them so that k is outermost, and keeps a tile of the result in
// registers as 4 x 4 blocks. Two slots of shared memory alternate: a step loads the next block,
// multiplies from one slot, stores into the other, and meets one barrier.
//
// In shared memory columns are exchanged by an exclusive or with k, so that blocks turned on their
// way in fall into different banks. Sizes: 128 x 128 and 64 x 128 with 128 invocations, smaller
// ones where those would leave the device idle. Bound: arithmetic.
#include <algorithm>

#include "kernels/contraction.h"
#include "kernels/conversions.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::uint32_t kVector = 4;
constexpr std::uint32_t kDepth = kTiledDepth;  // of k in one step
constexpr std::uint32_t kBlocksAlongK = kDepth / kVector;
constexpr std::uint32_t kSlots = 2;

const spirv::Type kVec4 = spirv::with_components(spirv::kFloat32, 4);

/// One operand's way from memory into a slot.
class Staging {
 public:
  /// With `whole_steps` no step reaches past the end of k.
  Staging(Shader& shader, ContractionOperand& operand, std::uint32_t tile, Value extent,
          bool whole_steps);

  std::uint32_t blocks() const { return tile_ / kVector * kBlocksAlongK; }
  /// `worker` is the invocation's number among those that bring this operand.
  void set_place(Value worker, Value first_outer);
  /// Reads the blocks of the step at k; elements from `end` on are 0.
  void load(Value k, Value end);
  void store(std::uint32_t slot) const;
  /// Four outer neighbours, `group` within the tile, at row `k` of a slot.
  Value read(std::uint32_t slot, std::uint32_t k, Value group) const;

 private:
  using Block = std::array<Value, kVector>;  // by k, four outer neighbours in each

  Block load_along_inner(Value k) const;
  Block load_along_outer(Value k, Value end) const;
  Block load_one_by_one(Value k, Value end) const;
  Value clamped(Value index, std::uint32_t step) const;
  Value is_inside(Value k, Value end) const {
    return whole_steps_ ? b_.boolean(true) : less(k, end);
  }
  Value exchanged(Value group, Value k_block) const;

  spirv::Builder& b_;
  ContractionOperand& operand_;
  std::uint32_t tile_;
  Value extent_;
  bool whole_steps_;
  spirv::SharedArray shared_;
  std::array<spirv::Variable, kVector> loaded_;
  Value is_worker_, outer_block_, inner_block_, first_outer_;
};

Staging::Staging(Shader& shader, ContractionOperand& operand, std::uint32_t tile, Value extent,
                 bool whole_steps)
    : b_(shader.builder()),
      operand_(operand),
      tile_(tile),
      extent_(extent),
      whole_steps_(whole_steps),
      shared_(b_, kVec4, kSlots * kDepth * tile / kVector) {
  for (spirv::Variable& row : loaded_) row = spirv::Variable(b_, kVec4);
}

void Staging::set_place(Value worker, Value first_outer) {
  const std::uint32_t blocks_along_outer = tile_ / kVector;
  is_worker_ = less(worker, blocks());
  // Neighbouring invocations read neighbouring memory.
  if (operand_.inner_is_nearest()) {
    outer_block_ = worker / kBlocksAlongK;
    inner_block_ = worker % kBlocksAlongK;
  } else {
    outer_block_ = worker % blocks_along_outer;
    inner_block_ = worker / blocks_along_outer;
  }
  first_outer_ = first_outer + outer_block_ * kVector;
}

Value Staging::clamped(Value index, std::uint32_t step) const {
  const Value last = extent_ - step;
  return b_.select(less(last, index), last, index);
}

Staging::Block Staging::load_along_inner(Value k) const {
  const Position inner = operand_.inner(k);
  std::array<Value, kVector> rows;
  for (std::uint32_t i = 0; i < kVector; ++i) {
    rows[i] = operand_.load4(operand_.outer(clamped(first_outer_ + i, 1)), inner);
  }
  Block block;
  for (int lane = 0; lane < static_cast<int>(kVector); ++lane) {
    std::array<Value, kVector> column;
    for (std::uint32_t i = 0; i < kVector; ++i) column[i] = b_.component(rows[i], lane);
    block[static_cast<std::size_t>(lane)] = b_.compose(column);
  }
  return block;
}

Staging::Block Staging::load_along_outer(Value k, Value end) const {
  const Position outer = operand_.outer(clamped(first_outer_, kVector));
  Block block;
  for (std::uint32_t i = 0; i < kVector; ++i) {
    const Value inside = is_inside(k + i, end);
    const Value row = operand_.load4(outer, operand_.inner(b_.select(inside, k + i, b_.u32(0))));
    block[i] = b_.select(inside, row, b_.constant(kVec4, 0));
  }
  return block;
}

Staging::Block Staging::load_one_by_one(Value k, Value end) const {
  std::array<Position, kVector> outer;
  for (std::uint32_t i = 0; i < kVector; ++i) {
    outer[i] = operand_.outer(clamped(first_outer_ + i, 1));
  }
  std::array<Position, kVector> inner = operand_.inner4(k);
  const Position start = operand_.inner(b_.u32(0));
  Block block;
  for (std::uint32_t i = 0; i < kVector; ++i) {
    const Value inside = is_inside(k + i, end);
    for (std::size_t part = 0; part < start.size(); ++part) {
      inner[i][part] = b_.select(inside, inner[i][part], start[part]);
    }
    std::array<Value, kVector> row;
    for (std::uint32_t j = 0; j < kVector; ++j) row[j] = operand_.load(outer[j], inner[i]);
    block[i] = b_.select(inside, b_.compose(row), b_.constant(kVec4, 0));
  }
  return block;
}

void Staging::load(Value k, Value end) {
  using Dense = ContractionOperand::Dense;
  const Value first = k + inner_block_ * kVector;
  const auto keep = [&](const Block& block) {
    for (std::uint32_t i = 0; i < kVector; ++i) loaded_[i].store(block[i]);
  };
  Value is_dense = b_.boolean(false);
  if (operand_.dense() == Dense::kOuter) is_dense = operand_.is_aligned();
  if (operand_.dense() == Dense::kInner) {
    is_dense = logical_and(operand_.is_aligned(), is_inside(first + (kVector - 1), end));
  }
  b_.if_then(is_worker_, [&] {
    b_.if_else(
        is_dense,
        [&] {
          keep(operand_.dense() == Dense::kInner ? load_along_inner(first)
                                                 : load_along_outer(first, end));
        },
        [&] { keep(load_one_by_one(first, end)); });
  });
}

Value Staging::exchanged(Value group, Value k_block) const {
  return group ^ ((k_block * 2) & (tile_ / kVector - 1));
}

void Staging::store(std::uint32_t slot) const {
  const std::uint32_t width = tile_ / kVector;
  b_.if_then(is_worker_, [&] {
    const Value first = inner_block_ * (kVector * width) + exchanged(outer_block_, inner_block_);
    for (std::uint32_t i = 0; i < kVector; ++i) {
      shared_.store(first + (slot * kDepth + i) * width, loaded_[i].load());
    }
  });
}

Value Staging::read(std::uint32_t slot, std::uint32_t k, Value group) const {
  const std::uint32_t width = tile_ / kVector;
  const Value column = exchanged(group, b_.u32(k / kVector));
  return shared_.load(column + (slot * kDepth + k) * width);
}

class TiledContraction {
 public:
  TiledContraction(const Context& context, const Contraction& contraction,
                   const ContractionPlan& plan);
  Dispatch generate();

 private:
  std::uint32_t threads() const { return plan_.threads_m * plan_.threads_n; }
  std::uint32_t tile_m() const { return plan_.threads_m * plan_.tile.m; }
  std::uint32_t tile_n() const { return plan_.threads_n * plan_.tile.n; }

  void place_tile(Value group);
  void load(Value k);
  void store(std::uint32_t slot);
  void multiply(std::uint32_t slot);
  void step(Value k, std::uint32_t slot);
  void write();

  const Contraction& contraction_;
  const ContractionPlan& plan_;
  Shader shader_;
  spirv::Builder& b_;
  ContractionOperands operands_;
  std::unique_ptr<ContractionOutput> output_;
  std::unique_ptr<Accumulators> sums_;
  std::unique_ptr<Staging> a_, b_operand_;
  Value tiles_m_, tiles_n_;
  std::unique_ptr<SumRange> range_;
  TilePosition tile_;
  Value thread_m_, thread_n_;
};

TiledContraction::TiledContraction(const Context& context, const Contraction& contraction,
                                   const ContractionPlan& plan)
    : contraction_(contraction),
      plan_(plan),
      shader_(context, "contraction_tiled", {threads(), 1, 1},
              contraction_touches(plan, context.kernel.core_type)),
      b_(shader_.builder()) {}

void TiledContraction::place_tile(Value group) {
  const Value row = group / tiles_n_;
  tile_.n = (group - row * tiles_n_) * tile_n();
  const Value outer = row / tiles_m_;
  tile_.m = (row - outer * tiles_m_) * tile_m();
  range_->place(outer, tile_);
  const Value local = b_.local_index();
  thread_m_ = local / plan_.threads_n;
  thread_n_ = local % plan_.threads_n;
  operands_.a->set_batch(tile_.batch);
  operands_.b->set_batch(tile_.batch);
  a_->set_place(local, tile_.m);
  // Invocations that bring no block of a bring those of b.
  const bool shares = a_->blocks() + b_operand_->blocks() <= threads();
  b_operand_->set_place(shares ? local - a_->blocks() : local, tile_.n);
}

void TiledContraction::load(Value k) {
  a_->load(k, range_->end());
  b_operand_->load(k, range_->end());
}

void TiledContraction::store(std::uint32_t slot) {
  a_->store(slot);
  b_operand_->store(slot);
}

void TiledContraction::multiply(std::uint32_t slot) {
  for (std::uint32_t k = 0; k < kDepth; ++k) {
    std::vector<Value> rows, columns;
    for (std::uint32_t i = 0; i < plan_.tile.m / kVector; ++i) {
      const Value four = a_->read(slot, k, thread_m_ + i * plan_.threads_m);
      for (int lane = 0; lane < static_cast<int>(kVector); ++lane) {
        rows.push_back(b_.component(four, lane));
      }
    }
    for (std::uint32_t i = 0; i < plan_.tile.n / kVector; ++i) {
      columns.push_back(b_operand_->read(slot, k, thread_n_ + i * plan_.threads_n));
    }
    sums_->multiply_add(rows, columns);
  }
}

void TiledContraction::step(Value k, std::uint32_t slot) {
  const Value next = k + kDepth;
  const Value has_next = less(next, range_->end());
  b_.if_then(has_next, [&] { load(next); });
  multiply(slot);
  b_.if_then(has_next, [&] { store(1 - slot); });
  b_.workgroup_barrier();
}

void TiledContraction::write() {
  for (std::uint32_t row = 0; row < sums_->rows(); ++row) {
    const Value block = thread_m_ + row / kVector * plan_.threads_m;
    const Value m = tile_.m + block * kVector + row % kVector;
    for (std::uint32_t group = 0; group < sums_->groups(); ++group) {
      const Value n = tile_.n + (thread_n_ + group * plan_.threads_n) * kVector;
      output_->write4(tile_, m, n, sums_->load(row, group));
    }
  }
}

Dispatch TiledContraction::generate() {
  const TileCounts tiles = tile_counts(contraction_.size(), plan_);
  const std::int64_t count = tiles.m * tiles.n * contraction_.size().batch * plan_.splits;
  operands_ = contraction_.open_operands(shader_);
  output_ = std::make_unique<ContractionOutput>(shader_, contraction_, plan_);
  tiles_m_ = shader_.parameter(tiles.m);
  tiles_n_ = shader_.parameter(tiles.n);
  range_ = std::make_unique<SumRange>(shader_, contraction_.size(), plan_);
  const Value group_count = shader_.parameter(count);
  const bool whole_steps = contraction_.size().k % kDepth == 0;
  a_ = std::make_unique<Staging>(shader_, *operands_.a, tile_m(), output_->m_extent(), whole_steps);
  b_operand_ =
      std::make_unique<Staging>(shader_, *operands_.b, tile_n(), output_->n_extent(), whole_steps);
  const Value group = b_.workgroup_id(1) * b_.workgroup_count(0) + b_.workgroup_id(0);
  b_.if_then(less(group, group_count), [&] {
    place_tile(group);
    sums_ = std::make_unique<Accumulators>(shader_, plan_.tile);
    load(range_->begin());
    store(0);
    b_.workgroup_barrier();
    b_.for_range(range_->begin(), range_->end(), b_.u32(kSlots * kDepth), [&](Value k) {
      step(k, 0);
      b_.if_then(less(k + kDepth, range_->end()), [&] { step(k + kDepth, 1); });
    });
    write();
  });
  return shader_.finish(shader_.groups_for(count));
}

}  // namespace

Dispatch generate_tiled_contraction(const Context& context, const Contraction& contraction,
                                    const ContractionPlan& plan) {
  return TiledContraction(context, contraction, plan).generate();
}

}  // namespace vkml::vulkan
