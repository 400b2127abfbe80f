// Attention on vector units. A row of the result, a query's or a key's, belongs to four invocations
// of a subgroup, which deal out its columns and add their parts of a product by shuffles (where a
// device has none, to one invocation). Rows of the other side pass through shared memory, which all
// rows of a workgroup read at once, four at a time.
//
// Forward: softmax along the way (Milakov and Gimelshein, arXiv:1805.02867). Backward: weights from
// the log-sum-exp, one pass for queries and one for keys and values, so that every sum has one
// owner and a fixed order. Scores are in units of log 2; 2^x is a polynomial of degree 6, since
// Vulkan promises less. Bound: shared memory, 16 bytes for four multiply-adds.
#include <spirv/unified1/GLSL.std.450.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/attention.h"
#include "kernels/conversions.h"

namespace vkml::vulkan {

using ops::CoreKind;
using spirv::Value;
using spirv::Variable;

namespace {

constexpr std::uint32_t kVector = 4;
constexpr std::uint32_t kTogether = 4;  // rows of the other side whose exponentials are one vector
const spirv::Type kFloat4 = spirv::with_components(spirv::kFloat32, kVector);

Value splat_f32(spirv::Builder& b, float value) {
  return b.constant(kFloat4, std::bit_cast<std::uint32_t>(value));
}

/// 2^x of four numbers of at most about 0; below 2^-126 the result is 0. NaN stays.
Value exp2_of(Value x) {
  spirv::Builder& b = *x.builder;
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
  const Value magic = splat_f32(b, 12582912.0F);
  const Value shifted = x + magic;
  const Value f = x - (shifted - magic);
  Value p = splat_f32(b, 1.535336e-4F);
  for (const float c :
       {1.3398875e-3F, 9.618437e-3F, 5.5503324e-2F, 2.4022648e-1F, 6.931472e-1F, 1.0F}) {
    p = b.fma(p, f, splat_f32(b, c));
  }
  const Value power = b.bitcast(
      b.bitcast(p, kWord4) + (b.bitcast(shifted, kWord4) << b.constant(kWord4, 23)), kFloat4);
  const Value kept = b.select(is_nan(x), x, power);
  return b.select(less(x, splat_f32(b, -126.0F)), splat_f32(b, 0), kept);
}

Value maximum(Value x, Value y) { return x.builder->extended(GLSLstd450FMax, x.type, {x, y}); }

class AttentionRows {
 public:
  explicit AttentionRows(const Context& context);
  Dispatch generate();

 private:
  using Vectors = std::vector<Variable>;

  bool by_keys() const {
    return kernel_.kind == CoreKind::kAttentionKeyGradient ||
           kernel_.kind == CoreKind::kAttentionValueGradient;
  }
  bool is_forward() const {
    return kernel_.kind == CoreKind::kAttention || kernel_.kind == CoreKind::kAttentionLogSumExp;
  }
  /// Whether weights become gradients of scores.
  bool has_score_gradient() const {
    return kernel_.kind == CoreKind::kAttentionQueryGradient ||
           kernel_.kind == CoreKind::kAttentionKeyGradient;
  }
  std::uint32_t vectors_of(std::int64_t width) const {
    const auto whole = static_cast<std::uint32_t>((width + kVector - 1) / kVector);
    return (whole + lanes_ - 1) / lanes_;
  }
  std::uint32_t first_vectors() const { return vectors_of(size_.width); }
  std::uint32_t second_vectors() const { return vectors_of(size_.value_width); }
  std::uint32_t rows_of_group() const { return threads_ / lanes_; }

  void choose_sizes(const DeviceTraits& traits);
  void open();
  void place(Value group);
  Vectors load_own(const HeadRows& rows, std::uint32_t count);
  static Vectors zeros(spirv::Builder& b, std::uint32_t count);
  void walk(Value begin, Value end);
  void stage(const HeadRows& rows, const spirv::SharedArray& memory, std::uint32_t vectors,
             Value first);
  Value dot(const Vectors& own, const spirv::SharedArray& memory, std::uint32_t vectors, Value row);
  Value products(const Vectors& own, const spirv::SharedArray& memory, std::uint32_t vectors,
                 Value row);
  void add(const Vectors& sums, const spirv::SharedArray& memory, std::uint32_t vectors, Value row,
           Value factors);
  Value masked(Value scores, Value first);
  void step(Value row, Value first);
  void step_forward(Value row, Value scores);
  void step_backward(Value row, Value scores);
  Value from_tile(const spirv::SharedArray& memory, Value row);
  void finish_forward();
  void write(const Vectors& values, Value factor);

  const dispatch::Kernel& kernel_;
  AttentionInputs inputs_;
  AttentionSize size_;
  std::uint32_t lanes_ = 1, threads_ = 128, tile_ = 16;
  std::optional<Shader> shader_;
  spirv::Builder* b_ = nullptr;
  std::optional<HeadRows> own_first_, own_second_, other_first_, other_second_, mask_;
  std::optional<HeadRows> log_sum_exp_, delta_;
  std::optional<CompanionRows> companion_;
  std::optional<Epilogue> epilogue_;
  spirv::SharedArray first_, second_, tile_log_sum_exp_, tile_delta_;
  Vectors own_first_rows_, own_second_rows_, first_sums_, second_sums_;
  Variable top_, sum_;
  Value batch_, head_, row_, own_row_, lane_, local_;
  Value queries_, keys_, own_log_sum_exp_, own_delta_;
};

AttentionRows::AttentionRows(const Context& context)
    : kernel_(context.kernel),
      inputs_(attention_inputs(context.kernel)),
      size_(attention_size(context.kernel)) {
  choose_sizes(context.traits);
  shader_.emplace(context, "attention_rows", std::array<std::uint32_t, 3>{threads_, 1, 1});
  b_ = &shader_->builder();
}

void AttentionRows::choose_sizes(const DeviceTraits& traits) {
  lanes_ = traits.has_subgroup_shuffle && traits.subgroup_size % 4 == 0 ? 4 : 1;
  threads_ =
      std::min<std::uint32_t>(traits.is_software ? 32 : 128, traits.max_workgroup_invocations);
  if (lanes_ > 1) threads_ = std::max(threads_, traits.subgroup_size);
  const std::uint32_t row_bytes = (first_vectors() + second_vectors()) * lanes_ * 16 + 8;
  const std::uint32_t fitting = traits.max_shared_bytes / row_bytes / kTogether * kTogether;
  tile_ = std::clamp<std::uint32_t>(fitting, kTogether, 32);
}

void AttentionRows::open() {
  const auto rows = [&](std::optional<HeadRows>& target, const dispatch::Operand* operand) {
    if (operand != nullptr) target.emplace(*shader_, *operand);
  };
  epilogue_.emplace(*shader_);
  rows(own_first_, by_keys() ? inputs_.key : inputs_.query);
  rows(other_first_, by_keys() ? inputs_.query : inputs_.key);
  if (by_keys()) {
    rows(own_second_, inputs_.value);
    rows(other_second_, inputs_.gradient);
  } else {
    rows(own_second_, inputs_.gradient);
    rows(other_second_, inputs_.value);
  }
  rows(log_sum_exp_, inputs_.log_sum_exp);
  rows(delta_, inputs_.delta);
  rows(mask_, inputs_.mask);
  if (!kernel_.core_stores.empty()) companion_.emplace(*shader_, kernel_.core_stores[0]);
  queries_ = shader_->parameter(size_.queries);
  keys_ = shader_->parameter(size_.keys);
  first_ = spirv::SharedArray(*b_, kFloat4, tile_ * first_vectors() * lanes_);
  if (other_second_) {
    second_ = spirv::SharedArray(*b_, kFloat4, tile_ * second_vectors() * lanes_);
  }
  if (by_keys()) {
    tile_log_sum_exp_ = spirv::SharedArray(*b_, spirv::kFloat32, tile_);
    if (delta_) tile_delta_ = spirv::SharedArray(*b_, spirv::kFloat32, tile_);
  }
}

/// Of `rows`, those of the invocation's row that fall to its lane.
AttentionRows::Vectors AttentionRows::load_own(const HeadRows& rows, std::uint32_t count) {
  Vectors loaded;
  for (std::uint32_t j = 0; j < count; ++j) {
    loaded.emplace_back(*b_, kFloat4);
    loaded.back().store(rows.load4(own_row_, lane_ + j * lanes_));
  }
  return loaded;
}

AttentionRows::Vectors AttentionRows::zeros(spirv::Builder& b, std::uint32_t count) {
  Vectors sums;
  for (std::uint32_t j = 0; j < count; ++j) {
    sums.emplace_back(b, kFloat4);
    sums.back().store(splat_f32(b, 0));
  }
  return sums;
}

void AttentionRows::place(Value group) {
  spirv::Builder& b = *b_;
  const std::int64_t extent = by_keys() ? size_.keys : size_.queries;
  const std::int64_t heads = by_keys() ? size_.shared_heads : size_.heads;
  const std::int64_t blocks = (extent + rows_of_group() - 1) / rows_of_group();
  const Value block_count = shader_->parameter(blocks);
  const Value head_count = shader_->parameter(heads);
  const Value outer = group / block_count;
  Value block = group - outer * block_count;
  // With a causal mask the last queries take longest, and come first.
  if (size_.is_causal && !by_keys()) block = block_count - 1 - block;
  batch_ = outer / head_count;
  head_ = outer - batch_ * head_count;
  local_ = lanes_ == 1 ? b.local_index()
                       : b.subgroup_id() * shader_->traits().subgroup_size + b.subgroup_lane();
  lane_ = lanes_ == 1 ? b.u32(0) : local_ & (lanes_ - 1);
  const Value first = block * rows_of_group();
  row_ = first + local_ / lanes_;
  const Value last = (by_keys() ? keys_ : queries_) - 1;
  own_row_ = b.select(less(last, row_), last, row_);
  if (companion_) companion_->set_head(batch_, head_);

  own_first_->set_head(batch_, head_);
  own_first_rows_ = load_own(*own_first_, first_vectors());
  // Scores come out in units of log 2.
  const auto factor = static_cast<float>(size_.scale * kLog2E);
  for (const Variable& vector : own_first_rows_) vector.store(vector.load() * splat_f32(b, factor));
  if (own_second_) {
    own_second_->set_head(batch_, head_);
    own_second_rows_ = load_own(*own_second_, second_vectors());
  }
  if (has_score_gradient()) first_sums_ = zeros(b, first_vectors());
  const bool sums_values = kernel_.kind == CoreKind::kAttention ||
                           kernel_.kind == CoreKind::kAttentionValueGradient ||
                           (by_keys() && companion_);
  if (sums_values) second_sums_ = zeros(b, second_vectors());

  const std::int64_t sharing = size_.heads / size_.shared_heads;
  if (by_keys()) {
    const Value heads_each = shader_->parameter(sharing);
    // The first query that sees the block's first key.
    const Value begin = size_.is_causal ? first / tile_ * tile_ : b.u32(0);
    b.for_range(b.u32(0), heads_each, b.u32(1), [&](Value i) {
      const Value query_head = head_ * heads_each + i;
      for (auto* rows : {&other_first_, &other_second_, &log_sum_exp_, &delta_, &mask_}) {
        if (*rows) (*rows)->set_head(batch_, query_head);
      }
      walk(begin, queries_);
    });
    return;
  }
  const Value shared = head_ / shader_->parameter(sharing);
  for (auto* rows : {&other_first_, &other_second_}) {
    if (*rows) (*rows)->set_head(batch_, shared);
  }
  for (auto* rows : {&log_sum_exp_, &delta_, &mask_}) {
    if (*rows) (*rows)->set_head(batch_, head_);
  }
  if (is_forward()) {
    top_ = Variable(b, spirv::kFloat32);
    sum_ = Variable(b, spirv::kFloat32);
    top_.store(b.f32(-std::numeric_limits<float>::infinity()));
    sum_.store(b.f32(0));
  } else {
    own_log_sum_exp_ = log_sum_exp_->load(own_row_, b.u32(0)) * b.f32(static_cast<float>(kLog2E));
    own_delta_ = delta_->load(own_row_, b.u32(0));
  }
  Value end = keys_;
  if (size_.is_causal) {
    const Value visible = first + rows_of_group();
    end = b.select(less(visible, keys_), visible, keys_);
  }
  walk(b.u32(0), end);
}

/// A tile of the other side's rows into shared memory; zeros past the last one.
void AttentionRows::stage(const HeadRows& rows, const spirv::SharedArray& memory,
                          std::uint32_t vectors, Value first) {
  spirv::Builder& b = *b_;
  const std::uint32_t row_vectors = vectors * lanes_;
  const Value last = (by_keys() ? queries_ : keys_) - 1;
  b.for_range(local_, b.u32(tile_ * row_vectors), b.u32(threads_), [&](Value i) {
    const Value row = i / row_vectors;
    const Value wanted = first + row;
    const Value is_there = less_equal(wanted, last);
    const Value vector = rows.load4(b.select(is_there, wanted, last), i - row * row_vectors);
    memory.store(i, b.select(is_there, vector, splat_f32(b, 0)));
  });
}

void AttentionRows::walk(Value begin, Value end) {
  spirv::Builder& b = *b_;
  b.for_range(begin, end, b.u32(tile_), [&](Value first) {
    b.workgroup_barrier();
    stage(*other_first_, first_, first_vectors(), first);
    if (other_second_) stage(*other_second_, second_, second_vectors(), first);
    if (by_keys()) {
      const Value last = queries_ - 1;
      b.for_range(local_, b.u32(tile_), b.u32(threads_), [&](Value i) {
        const Value wanted = first + i;
        const Value row = b.select(less(last, wanted), last, wanted);
        tile_log_sum_exp_.store(
            i, log_sum_exp_->load(row, b.u32(0)) * b.f32(static_cast<float>(kLog2E)));
        if (delta_) tile_delta_.store(i, delta_->load(row, b.u32(0)));
      });
    }
    b.workgroup_barrier();
    const Value left = end - first;
    const Value count = b.select(less(left, tile_), left, b.u32(tile_));
    b.for_range(b.u32(0), count, b.u32(kTogether), [&](Value row) { step(row, first + row); });
  });
}

/// The product of the invocation's row with one of the tile, as far as it falls to its lane.
Value AttentionRows::dot(const Vectors& own, const spirv::SharedArray& memory,
                         std::uint32_t vectors, Value row) {
  Value sums = splat_f32(*b_, 0);
  const Value start = row * (vectors * lanes_) + lane_;
  for (std::uint32_t j = 0; j < vectors; ++j) {
    sums = b_->fma(own[j].load(), memory.load(start + j * lanes_), sums);
  }
  return (b_->component(sums, 0) + b_->component(sums, 1)) +
         (b_->component(sums, 2) + b_->component(sums, 3));
}

/// With kTogether rows of the tile, from `row` on.
Value AttentionRows::products(const Vectors& own, const spirv::SharedArray& memory,
                              std::uint32_t vectors, Value row) {
  std::array<Value, kTogether> each;
  for (std::uint32_t c = 0; c < kTogether; ++c) each[c] = dot(own, memory, vectors, row + c);
  Value all = b_->compose(each);
  for (std::uint32_t mask = 1; mask < lanes_; mask *= 2) {
    all = all + b_->subgroup_shuffle_xor(all, mask);
  }
  return all;
}

/// sums += factors * kTogether rows of the tile.
void AttentionRows::add(const Vectors& sums, const spirv::SharedArray& memory,
                        std::uint32_t vectors, Value row, Value factors) {
  for (std::uint32_t c = 0; c < kTogether; ++c) {
    const Value factor = b_->splat(b_->component(factors, static_cast<int>(c)), kVector);
    const Value start = (row + c) * (vectors * lanes_) + lane_;
    for (std::uint32_t j = 0; j < vectors; ++j) {
      sums[j].store(b_->fma(factor, memory.load(start + j * lanes_), sums[j].load()));
    }
  }
}

/// Scores with kTogether rows of the other side from `first` on: -inf where a query does not see a
/// key, or there is none.
Value AttentionRows::masked(Value scores, Value first) {
  spirv::Builder& b = *b_;
  const Value hidden = b.f32(-std::numeric_limits<float>::infinity());
  const Value extent = by_keys() ? queries_ : keys_;
  std::array<Value, kTogether> result;
  for (std::uint32_t c = 0; c < kTogether; ++c) {
    const Value other = first + c;
    Value visible = less(other, extent);
    Value score = b.component(scores, static_cast<int>(c));
    const Value inside = b.select(visible, other, extent - 1);
    if (mask_) {
      const Value mask = by_keys() ? mask_->load(inside, own_row_) : mask_->load(own_row_, inside);
      if (inputs_.mask->dtype == DType::kBool) {
        visible = logical_and(visible, mask);
      } else {
        score = score + mask * b.f32(static_cast<float>(kLog2E));
      }
    }
    if (size_.is_causal) {
      visible = logical_and(visible, by_keys() ? less_equal(row_, other) : less_equal(other, row_));
    }
    result[c] = b.select(visible, score, hidden);
  }
  return b.compose(result);
}

void AttentionRows::step(Value row, Value first) {
  const Value scores = masked(products(own_first_rows_, first_, first_vectors(), row), first);
  if (is_forward()) {
    step_forward(row, scores);
  } else {
    step_backward(row, scores);
  }
}

void AttentionRows::step_forward(Value row, Value scores) {
  spirv::Builder& b = *b_;
  const Value before = top_.load();
  const Value pair = maximum(maximum(b.component(scores, 0), b.component(scores, 1)),
                             maximum(b.component(scores, 2), b.component(scores, 3)));
  const Value top = maximum(before, pair);
  const Value none = equal(top, b.f32(-std::numeric_limits<float>::infinity()));
  const Value shift = b.select(none, b.f32(0), top);
  const Value weights = exp2_of(scores - b.splat(shift, kVector));
  b.if_then(not_equal(top, before), [&] {
    const Value factors = exp2_of(b.splat(before - shift, kVector));
    sum_.store(sum_.load() * b.component(factors, 0));
    for (const Variable& sum : second_sums_) sum.store(sum.load() * factors);
    top_.store(top);
  });
  sum_.store(sum_.load() + ((b.component(weights, 0) + b.component(weights, 1)) +
                            (b.component(weights, 2) + b.component(weights, 3))));
  if (!second_sums_.empty()) add(second_sums_, second_, second_vectors(), row, weights);
}

/// One number for each of kTogether rows of the tile.
Value AttentionRows::from_tile(const spirv::SharedArray& memory, Value row) {
  std::array<Value, kTogether> each;
  for (std::uint32_t c = 0; c < kTogether; ++c) each[c] = memory.load(row + c);
  return b_->compose(each);
}

void AttentionRows::step_backward(Value row, Value scores) {
  spirv::Builder& b = *b_;
  const Value shift =
      by_keys() ? from_tile(tile_log_sum_exp_, row) : b.splat(own_log_sum_exp_, kVector);
  const Value weights = exp2_of(scores - shift);
  if (by_keys() && !second_sums_.empty()) {
    add(second_sums_, second_, second_vectors(), row, weights);
  }
  if (!has_score_gradient()) return;
  const Value delta = by_keys() ? from_tile(tile_delta_, row) : b.splat(own_delta_, kVector);
  const Value of_weights = products(own_second_rows_, second_, second_vectors(), row);
  const Value scale = splat_f32(b, static_cast<float>(size_.scale));
  add(first_sums_, first_, first_vectors(), row, weights * (of_weights - delta) * scale);
}

/// The row's vectors through the epilogue.
void AttentionRows::write(const Vectors& values, Value factor) {
  for (std::uint32_t j = 0; j < values.size(); ++j) {
    const Value column = (lane_ + j * lanes_) * kVector;
    const Coordinates at{batch_, head_, row_, column};
    b_->if_then(less(column, static_cast<std::uint32_t>(kernel_.space[3])), [&] {
      const Value value = values[j].load();
      epilogue_->run4(at, factor ? value * b_->splat(factor, kVector) : value);
    });
  }
}

void AttentionRows::finish_forward() {
  spirv::Builder& b = *b_;
  const Value sum = sum_.load();
  const Value nothing = equal(sum, b.f32(0));
  // Nothing that a mask hides has a weight; without one it is 0 / 0.
  const float of_nothing = mask_ ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  const bool has_values = kernel_.kind == CoreKind::kAttention;
  if (has_values) write(second_sums_, b.select(nothing, b.f32(of_nothing), b.f32(1) / sum));
  if (has_values && !companion_) return;
  const Value logarithm = b.extended(GLSLstd450Log2, sum.type, {sum});
  const float of_none =
      mask_ ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  const Value lse = b.select(nothing, b.f32(of_none),
                             (top_.load() + logarithm) * b.f32(static_cast<float>(1 / kLog2E)));
  b.if_then(equal(lane_, 0), [&] {
    if (has_values) {
      companion_->store(row_, b.u32(0), lse);
    } else {
      epilogue_->run({batch_, head_, row_, b.u32(0)}, lse);
    }
  });
}

Dispatch AttentionRows::generate() {
  open();
  spirv::Builder& b = *b_;
  const std::int64_t extent = by_keys() ? size_.keys : size_.queries;
  const std::int64_t heads = by_keys() ? size_.shared_heads : size_.heads;
  const std::int64_t blocks = (extent + rows_of_group() - 1) / rows_of_group();
  const std::int64_t count = size_.batches * heads * blocks;
  const std::array<std::uint32_t, 3> groups = shader_->groups_for(count);
  const Value group = b.workgroup_id(1) * b.workgroup_count(0) + b.workgroup_id(0);
  const auto body = [&] {
    place(group);
    b.if_then(less(row_, by_keys() ? keys_ : queries_), [&] {
      if (is_forward()) {
        finish_forward();
        return;
      }
      const bool is_value = kernel_.kind == CoreKind::kAttentionValueGradient;
      write(is_value ? second_sums_ : first_sums_, {});
      if (!companion_) return;
      for (std::uint32_t j = 0; j < second_sums_.size(); ++j) {
        companion_->store4(row_, lane_ + j * lanes_, second_sums_[j].load());
      }
    });
  };
  if (groups[1] > 1) {
    b.if_then(less(group, shader_->parameter(count)), body);
  } else {
    body();
  }
  return shader_->finish(groups);
}

/// Loop turns of an invocation: over tiles, and in each over what it stages and its rows.
std::int64_t turns_of(const AttentionSize& size, bool by_keys) {
  const std::int64_t others = by_keys ? size.queries * (size.heads / size.shared_heads) : size.keys;
  return 3 * others;
}

}  // namespace

std::vector<Dispatch> generate_attention_rows(const Context& context) {
  const bool by_keys = context.kernel.kind == CoreKind::kAttentionKeyGradient ||
                       context.kernel.kind == CoreKind::kAttentionValueGradient;
  require_turns(context, turns_of(attention_size(context.kernel), by_keys));
  return {AttentionRows(context).generate()};
}

}  // namespace vkml::vulkan
