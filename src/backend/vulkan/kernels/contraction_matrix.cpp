// Contraction on matrix units (cooperative matrices of a subgroup, 16 x 16). A workgroup computes a
// tile of the result in steps along k: it asks memory for the next step's operands, multiplies what
// lies in shared memory, and puts there what has arrived, between two barriers. One slot of shared
// memory is enough, since two workgroups share a compute unit; a branch round the loads keeps
// compilers from moving them down into the multiplication.
//
// f32 goes as bf16 parts x = x0 + x1 + x2: the six products of parts i + j < 3 miss less than
// 2^-22 of each term (three products of two parts: 2^-14). Matrix units truncate as they add, so
// that a sum kept there would lose bits with every step; each step starts from zero and is added in
// f32. An element that is not finite counts as 0 there; a workgroup that met one adds its products
// in a second pass, as sign times infinity or NaN. Of elements below 2^-102 up to 2^-126 is lost,
// as by devices that flush subnormal numbers.
//
// Sizes: 128 x 128 by four subgroups of 64 x 64, the largest that registers hold, steps of 64 (16
// bits), 32 or 16 (f32 in two or three parts); 64 x 64 by four of 32 x 32 where those would leave
// the device idle. Sums reach the epilogue through strips of shared memory: storing matrices
// straight to memory changes what NVIDIA's compiler makes of the loop, and costs 5 to 10 %. Bound:
// matrix units, and the way through registers into shared memory.
#include <algorithm>

#include "kernels/matrix_staging.h"
#include "kernels/matrix_strip.h"

namespace vkml::vulkan {

using spirv::Matrix;
using spirv::MatrixUse;
using spirv::MatrixVariable;
using spirv::Value;

namespace {

constexpr std::uint32_t kEdge = kMatrixEdge;
constexpr std::uint32_t kVector = 4;  // f32 in 16 bytes
/// Rows of tiles that are walked together, so that what they share stays in the cache.
constexpr std::uint32_t kRowsTogether = 16;

class MatrixContraction {
 public:
  MatrixContraction(const Context& context, const Contraction& contraction,
                    const ContractionPlan& plan);
  Dispatch generate();

 private:
  const MatrixTile& tile() const { return plan_.matrix; }
  std::uint32_t subgroups() const { return tile().subgroups_m * tile().subgroups_n; }
  std::uint32_t threads() const { return subgroups() * shader_.traits().subgroup_size; }
  std::uint32_t subgroup_m() const { return tile().m / tile().subgroups_m; }
  std::uint32_t subgroup_n() const { return tile().n / tile().subgroups_n; }
  std::uint32_t matrices_m() const { return subgroup_m() / kEdge; }
  std::uint32_t matrices_n() const { return subgroup_n() / kEdge; }
  bool cuts() const { return format_.parts > 1; }

  void open();
  void place_tile(Value group);
  void load(Value k);
  void store(Value k);
  void multiply();
  void multiply_parts(std::uint32_t k);
  void multiply_plain(std::uint32_t k, std::uint32_t part);
  void add_special();
  void sum();
  void write_strip(std::uint32_t row);
  void write_sums(Value row, Value column, Value sums);

  Matrix read_a(std::uint32_t part, std::uint32_t row, std::uint32_t k) const {
    return a_->read(part, subgroup_row_ + row * kEdge, k);
  }
  Matrix read_b(std::uint32_t part, std::uint32_t column, std::uint32_t k) const {
    return b_operand_->read(part, subgroup_column_ + column * kEdge, k);
  }
  MatrixVariable& sum_at(std::uint32_t row, std::uint32_t column) {
    return sums_[row * matrices_n() + column];
  }

  const Contraction& contraction_;
  const ContractionPlan& plan_;
  MatrixFormat format_;
  Shader shader_;
  spirv::Builder& b_;
  ContractionOperands operands_;
  std::unique_ptr<ContractionOutput> output_;
  std::unique_ptr<MatrixStaging> a_, b_operand_;
  spirv::SharedArray memory_, found_special_;
  std::vector<MatrixVariable> sums_;
  Value tiles_m_, tiles_n_;
  std::unique_ptr<SumRange> range_;
  std::unique_ptr<MatrixStrip> strip_;
  TilePosition tile_;
  Value is_aligned_, subgroup_, subgroup_row_, subgroup_column_;
};

std::uint32_t threads_of(const MatrixTile& tile, const DeviceTraits& traits) {
  return tile.subgroups_m * tile.subgroups_n * traits.subgroup_size;
}

MatrixContraction::MatrixContraction(const Context& context, const Contraction& contraction,
                                     const ContractionPlan& plan)
    : contraction_(contraction),
      plan_(plan),
      format_(matrix_format(contraction.problem.dtype, contraction.problem.parts)),
      shader_(context, "contraction_matrix", {threads_of(plan.matrix, context.traits), 1, 1},
              contraction_touches(plan, context.kernel.core_type)),
      b_(shader_.builder()) {
  b_.module().use_vulkan_memory_model();
}

void MatrixContraction::open() {
  const ContractionSize& size = contraction_.size();
  operands_ = contraction_.open_operands(shader_);
  output_ = std::make_unique<ContractionOutput>(shader_, contraction_, plan_);
  const TileCounts tiles = tile_counts(size, plan_);
  tiles_m_ = shader_.parameter(tiles.m);
  tiles_n_ = shader_.parameter(tiles.n);
  range_ = std::make_unique<SumRange>(shader_, size, plan_);
  const auto staging = [&](ContractionOperand& operand, MatrixUse use, std::uint32_t edge,
                           std::int64_t extent, Value extent_value) {
    const MatrixStaging::Shape shape{edge,         tile().depth,       threads(),
                                     extent_value, extent % edge == 0, size.k % tile().depth == 0};
    return std::make_unique<MatrixStaging>(shader_, operand, use, format_, shape);
  };
  a_ = staging(*operands_.a, MatrixUse::kA, tile().m, size.m, output_->m_extent());
  b_operand_ = staging(*operands_.b, MatrixUse::kB, tile().n, size.n, output_->n_extent());
  is_aligned_ = logical_and(a_->is_aligned(), b_operand_->is_aligned());

  const std::uint32_t staged = a_->shared_vectors() + b_operand_->shared_vectors();
  strip_ = std::make_unique<MatrixStrip>(shader_, matrices_n());
  const std::uint32_t strips = subgroups() * strip_->shared_vectors();
  memory_ = spirv::SharedArray(b_, kWord4, std::max(staged, strips));
  if (cuts()) found_special_ = spirv::SharedArray(b_, kWord, 1);
  a_->set_memory(memory_, 0, found_special_);
  b_operand_->set_memory(memory_, a_->shared_vectors(), found_special_);
}

void MatrixContraction::place_tile(Value group) {
  const Value tiles = tiles_m_ * tiles_n_;
  const Value outer = group / tiles;
  const Value in_matrix = group - outer * tiles;
  const Value band_size = tiles_n_ * kRowsTogether;
  const Value band = in_matrix / band_size;
  const Value in_band = in_matrix - band * band_size;
  const Value rows_left = tiles_m_ - band * kRowsTogether;
  const Value rows = b_.select(less(rows_left, kRowsTogether), rows_left, b_.u32(kRowsTogether));
  const Value column = in_band / rows;
  tile_.m = (band * kRowsTogether + (in_band - column * rows)) * tile().m;
  tile_.n = column * tile().n;
  range_->place(outer, tile_);
  operands_.a->set_batch(tile_.batch);
  operands_.b->set_batch(tile_.batch);
  const Value local = b_.local_index();
  a_->set_place(local, tile_.m);
  b_operand_->set_place(local, tile_.n);
  subgroup_ = b_.subgroup_id();
  subgroup_row_ = subgroup_ / tile().subgroups_n * subgroup_m();
  subgroup_column_ = subgroup_ % tile().subgroups_n * subgroup_n();
  strip_->set_memory(memory_, subgroup_ * strip_->shared_vectors());
}

void MatrixContraction::load(Value k) {
  b_.if_then(is_aligned_, [&] {
    a_->load(k, range_->end());
    b_operand_->load(k, range_->end());
  });
}

void MatrixContraction::store(Value k) {
  b_.if_else(
      is_aligned_,
      [&] {
        a_->store();
        b_operand_->store();
      },
      [&] {
        a_->stage_elements(k, range_->end());
        b_operand_->stage_elements(k, range_->end());
      });
}

void MatrixContraction::multiply_plain(std::uint32_t k, std::uint32_t part) {
  std::vector<Matrix> rows;
  for (std::uint32_t row = 0; row < matrices_m(); ++row) rows.push_back(read_a(part, row, k));
  for (std::uint32_t column = 0; column < matrices_n(); ++column) {
    const Matrix b = read_b(part, column, k);
    for (std::uint32_t row = 0; row < matrices_m(); ++row) {
      const MatrixVariable& sum = sum_at(row, column);
      sum.store(multiply_add(rows[row], b, sum.load()));
    }
  }
}

void MatrixContraction::multiply_parts(std::uint32_t k) {
  const std::uint32_t parts = format_.parts;
  std::vector<std::vector<Matrix>> a(parts);
  for (std::uint32_t part = 0; part < parts; ++part) {
    for (std::uint32_t row = 0; row < matrices_m(); ++row) a[part].push_back(read_a(part, row, k));
  }
  for (std::uint32_t column = 0; column < matrices_n(); ++column) {
    std::vector<Matrix> b;
    for (std::uint32_t part = 0; part < parts; ++part) b.push_back(read_b(part, column, k));
    const std::vector<Matrix> products = products_of_parts(a, b);
    for (std::uint32_t row = 0; row < matrices_m(); ++row) {
      const MatrixVariable& sum = sum_at(row, column);
      sum.store(sum.load() + products[row]);
    }
  }
}

void MatrixContraction::multiply() {
  for (std::uint32_t k = 0; k < tile().depth; k += kEdge) {
    if (cuts()) {
      multiply_parts(k);
    } else {
      multiply_plain(k, 0);
    }
  }
}

void MatrixContraction::add_special() {
  b_.if_then(not_equal(found_special_.load(b_.u32(0)), 0), [&] {
    b_.for_range(range_->begin(), range_->end(), b_.u32(tile().depth), [&](Value k) {
      a_->stage_special(k, range_->end());
      b_operand_->stage_special(k, range_->end());
      b_.workgroup_barrier();
      for (std::uint32_t step = 0; step < tile().depth; step += kEdge) {
        multiply_plain(step, 0);
        multiply_plain(step, 1);
      }
      b_.workgroup_barrier();
    });
  });
}

void MatrixContraction::sum() {
  for (std::uint32_t i = 0; i < matrices_m() * matrices_n(); ++i) {
    sums_.emplace_back(b_, kMatrixSums);
    sums_.back().store(zero_matrix(b_, kMatrixSums));
  }
  if (cuts()) {
    b_.if_then(equal(b_.local_index(), 0), [&] { found_special_.store(b_.u32(0), b_.u32(0)); });
    b_.workgroup_barrier();
  }
  load(range_->begin());
  store(range_->begin());
  b_.workgroup_barrier();
  b_.for_range(range_->begin(), range_->end(), b_.u32(tile().depth), [&](Value k) {
    const Value next = k + tile().depth;
    const Value has_next = less(next, range_->end());
    b_.if_then(has_next, [&] { load(next); });
    multiply();
    b_.workgroup_barrier();
    b_.if_then(has_next, [&] { store(next); });
    b_.workgroup_barrier();
  });
  if (cuts()) add_special();
}

void MatrixContraction::write_sums(Value row, Value column, Value sums) {
  if (output_->prefers_four()) {
    output_->write4(tile_, row, column, sums);
  } else {
    output_->write(tile_, row, column, sums);
  }
}

void MatrixContraction::write_strip(std::uint32_t row) {
  std::vector<Matrix> sums;
  for (std::uint32_t column = 0; column < matrices_n(); ++column) {
    sums.push_back(sum_at(row, column).load());
  }
  const Value first_row = tile_.m + subgroup_row_ + row * kEdge;
  const Value first_column = tile_.n + subgroup_column_;
  strip_->write(sums, output_->prefers_four() ? kVector : 1,
                [&](Value own_row, Value own_column, Value own_sums) {
                  write_sums(first_row + own_row, first_column + own_column, own_sums);
                });
}

Dispatch MatrixContraction::generate() {
  open();
  const TileCounts tiles = tile_counts(contraction_.size(), plan_);
  const std::int64_t count = tiles.m * tiles.n * contraction_.size().batch * plan_.splits;
  const std::array<std::uint32_t, 3> groups = shader_.groups_for(count);
  const Value group_count = groups[1] > 1 ? shader_.parameter(count) : Value{};
  const Value group = b_.workgroup_id(1) * b_.workgroup_count(0) + b_.workgroup_id(0);
  const auto body = [&] {
    place_tile(group);
    sum();
    for (std::uint32_t strip = 0; strip < matrices_m(); ++strip) write_strip(strip);
  };
  if (group_count) {
    b_.if_then(less(group, group_count), body);
  } else {
    body();
  }
  return shader_.finish(groups);
}

}  // namespace

Dispatch generate_matrix_contraction(const Context& context, const Contraction& contraction,
                                     const ContractionPlan& plan) {
  return MatrixContraction(context, contraction, plan).generate();
}

}  // namespace vkml::vulkan
