// Products of blocks keep a tile of the result in registers, kTileRows x one panel, and broadcast
// the left operand. Between the products rows of scores pass through an exponential of their own:
// scores are in units of log 2, 2^x is a polynomial of degree 6 (error below 2e-8) times an
// exponent. Bound: arithmetic; an exponential costs about as much as 10 products.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cores/attention_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cores/attention_blocks.h"
#include "tile/transfer.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kPanelRows>;
using Vector = hn::Vec<D>;

inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
inline constexpr int kVectors = static_cast<int>(kPanelRows) / kLanes;
#if HWY_TARGET == HWY_AVX3
inline constexpr int kTileRows = 12;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
inline constexpr int kTileRows = 6;
#else
inline constexpr int kTileRows = 2;  // 16 vector registers of four floats
#endif

constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504F;
constexpr float kLn2 = 0.693147181F;

// The left operand of a product, of any strides.
struct Left {
  const float* data;
  std::int64_t row_stride;
  std::int64_t depth_stride;
};
// The right one: panels of kPanelRows columns.
struct Right {
  const float* data;
  std::int64_t depth_stride;
  std::int64_t panel_stride;
};

Right columns_of(const float* block, std::int64_t width) {
  return {block, kPanelRows, width * kPanelRows};
}
Right rows_of(const float* rows, std::int64_t stride) { return {rows, stride, kPanelRows}; }

template <int kRows, bool kAdds>
HWY_INLINE void multiply_tile(const Left& a, const float* HWY_RESTRICT b, std::int64_t b_stride,
                              float* HWY_RESTRICT c, std::int64_t c_stride, std::int64_t depth) {
  const D d;
  Vector sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = kAdds ? hn::LoadU(d, c + r * c_stride + v * kLanes) : hn::Zero(d);
    }
  }
  const float* HWY_RESTRICT left = a.data;
  for (std::int64_t p = 0; p < depth; ++p) {
    Vector right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vector value = hn::Set(d, left[r * a.row_stride]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(value, right[v], sums[r][v]);
    }
    left += a.depth_stride;
    b += b_stride;
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, c + r * c_stride + v * kLanes);
  }
}

// The rows that whole tiles leave over.
template <int kRows, bool kAdds>
void multiply_rest(std::int64_t rows, const Left& a, const float* b, std::int64_t b_stride,
                   float* c, std::int64_t c_stride, std::int64_t depth) {
  if constexpr (kRows > 0) {
    if (rows == kRows) {
      multiply_tile<kRows, kAdds>(a, b, b_stride, c, c_stride, depth);
    } else {
      multiply_rest<kRows - 1, kAdds>(rows, a, b, b_stride, c, c_stride, depth);
    }
  }
}

struct ProductSize {
  std::int64_t rows;
  std::int64_t columns;  // whole panels
  std::int64_t depth;
};

// c = a @ b, or c += a @ b.
template <bool kAdds>
void multiply(const Left& a, const Right& b, float* c, std::int64_t c_stride,
              const ProductSize& size) {
  for (std::int64_t column = 0; column < size.columns; column += kPanelRows) {
    const float* panel = b.data + column / kPanelRows * b.panel_stride;
    std::int64_t row = 0;
    for (; row + kTileRows <= size.rows; row += kTileRows) {
      const Left tile{a.data + row * a.row_stride, a.row_stride, a.depth_stride};
      multiply_tile<kTileRows, kAdds>(tile, panel, b.depth_stride, c + row * c_stride + column,
                                      c_stride, size.depth);
    }
    const Left rest{a.data + row * a.row_stride, a.row_stride, a.depth_stride};
    multiply_rest<kTileRows - 1, kAdds>(size.rows - row, rest, panel, b.depth_stride,
                                        c + row * c_stride + column, c_stride, size.depth);
  }
}

// 2^x for x of at most about 0: x = n + f with |f| <= 1/2, where adding 1.5 * 2^23 leaves n in the
// low bits. Below 2^-126 the result is 0. NaN stays.
HWY_INLINE Vector exp2(D d, Vector x) {
  const hn::RebindToSigned<D> di;
  const Vector magic = hn::Set(d, 12582912.0F);
  const Vector shifted = hn::Add(x, magic);
  const Vector f = hn::Sub(x, hn::Sub(shifted, magic));
  Vector p = hn::Set(d, 1.535336e-4F);
  p = hn::MulAdd(p, f, hn::Set(d, 1.3398875e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 9.618437e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5503324e-2F));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022648e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931472e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const Vector power = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0F)), power);
}

float exp2(float x) { return hn::GetLane(exp2(D(), hn::Set(D(), x))); }

float row_maximum(const float* row, std::int64_t columns) {
  const D d;
  Vector top = hn::LoadU(d, row);
  for (std::int64_t j = kLanes; j < columns; j += kLanes) top = hn::Max(top, hn::LoadU(d, row + j));
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

// row = 2^(row - shift); returns the sum.
float exponentiate(float* row, std::int64_t columns, float shift) {
  const D d;
  const Vector minus = hn::Set(d, shift);
  Vector sum = hn::Zero(d);
  for (std::int64_t j = 0; j < columns; j += kLanes) {
    const Vector power = exp2(d, hn::Sub(hn::LoadU(d, row + j), minus));
    hn::StoreU(power, d, row + j);
    sum = hn::Add(sum, power);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void scale_row(float* row, std::int64_t columns, float factor) {
  const D d;
  const Vector by = hn::Set(d, factor);
  for (std::int64_t j = 0; j < columns; j += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, row + j), by), d, row + j);
  }
}

// weights * (products - delta) * scale, in place of the products.
void score_gradients(float* products, const float* weights, std::int64_t columns, float delta,
                     float scale) {
  const D d;
  const Vector minus = hn::Set(d, delta);
  const Vector by = hn::Set(d, scale);
  for (std::int64_t j = 0; j < columns; j += kLanes) {
    const Vector difference = hn::Sub(hn::LoadU(d, products + j), minus);
    const Vector weight = hn::Mul(hn::LoadU(d, weights + j), by);
    hn::StoreU(hn::Mul(weight, difference), d, products + j);
  }
}

void mask_row(const AttentionMask& mask, std::int64_t query, const KeyBlock& range, float* row) {
  const std::byte* first = mask.data + (query * mask.query_stride + range.first * mask.key_stride) *
                                           static_cast<std::int64_t>(size_of(mask.dtype));
  if (mask.dtype == DType::kBool) {
    for (std::int64_t j = 0; j < range.count; ++j) {
      row[j] = first[j * mask.key_stride] != std::byte{0} ? row[j] : kNegativeInfinity;
    }
    return;
  }
  float added[kKeyBlock];
  load_elements(added, first, mask.dtype, range.count, mask.key_stride);
  for (std::int64_t j = 0; j < range.count; ++j) row[j] += added[j] * kLog2E;
}

// Scores of the block with a range of keys, in units of log 2, rows of kKeyBlock; -inf where a
// query does not see a key, and in the last panel past the range.
void score_block(const AttentionHead& head, const QueryBlock& block, const KeyBlock& range,
                 const float* keys, float* scores) {
  const std::int64_t columns = whole_panels(range.count);
  multiply<false>({block.query, block.query_stride, 1}, columns_of(keys, head.width), scores,
                  kKeyBlock, {block.count, columns, head.width});
  const bool crosses_diagonal = head.is_causal && range.first + range.count - 1 > block.first;
  for (std::int64_t i = 0; i < block.count; ++i) {
    float* row = scores + i * kKeyBlock;
    if (head.mask.data != nullptr) mask_row(head.mask, block.first + i, range, row);
    std::int64_t visible = range.count;
    if (crosses_diagonal) {
      visible = std::clamp<std::int64_t>(block.first + i + 1 - range.first, 0, range.count);
    }
    std::fill(row + visible, row + columns, kNegativeInfinity);
  }
}

// The weights of the block, from the log-sum-exp.
void weigh_block(const AttentionHead& head, const QueryBlock& block, const KeyBlock& range,
                 const float* keys, float* weights) {
  score_block(head, block, range, keys, weights);
  for (std::int64_t i = 0; i < block.count; ++i) {
    exponentiate(weights + i * kKeyBlock, whole_panels(range.count), block.log_sum_exp[i] * kLog2E);
  }
}

// weights * (g V^T - delta) * scale, into `products`.
void score_gradient_block(const AttentionHead& head, const QueryBlock& block, const KeyBlock& range,
                          const float* values, const float* weights, float* products) {
  const std::int64_t columns = whole_panels(range.count);
  multiply<false>({block.gradient, block.gradient_stride, 1}, columns_of(values, head.value_width),
                  products, kKeyBlock, {block.count, columns, head.value_width});
  for (std::int64_t i = 0; i < block.count; ++i) {
    score_gradients(products + i * kKeyBlock, weights + i * kKeyBlock, columns, block.delta[i],
                    head.scale);
  }
}

template <typename Visit>
void for_key_blocks(const AttentionHead& head, const QueryBlock& block, Visit visit) {
  const std::int64_t end = visible_keys(head, block);
  for (std::int64_t first = 0; first < end; first += kKeyBlock) {
    visit(KeyBlock{first, std::min(kKeyBlock, end - first)});
  }
}

// Softmax along the way (Milakov and Gimelshein, arXiv:1805.02867): sums are kept relative to the
// largest score so far, and scaled when a larger one comes.
void attend_block(const AttentionHead& head, const QueryBlock& block, const float* keys,
                  const float* values, float* work, float* out, float* log_sum_exp) {
  float* scores = work;
  float* tops = work + 2 * kQueryBlock * kKeyBlock;
  float* sums = tops + kQueryBlock;
  const std::int64_t out_stride = whole_panels(head.value_width);
  std::fill_n(tops, block.count, kNegativeInfinity);
  std::fill_n(sums, block.count, 0.0F);
  if (values != nullptr) std::fill_n(out, block.count * out_stride, 0.0F);
  for_key_blocks(head, block, [&](const KeyBlock& range) {
    const std::int64_t columns = whole_panels(range.count);
    score_block(head, block, range, keys + range.first * head.width, scores);
    for (std::int64_t i = 0; i < block.count; ++i) {
      float* row = scores + i * kKeyBlock;
      const float top = std::max(tops[i], row_maximum(row, columns));
      const float shift = top == kNegativeInfinity ? 0.0F : top;
      const float sum = exponentiate(row, columns, shift);
      if (top != tops[i]) {
        const float factor = exp2(tops[i] - shift);
        sums[i] *= factor;
        if (values != nullptr) scale_row(out + i * out_stride, out_stride, factor);
        tops[i] = top;
      }
      sums[i] += sum;
    }
    if (values != nullptr) {
      multiply<true>({scores, kKeyBlock, 1}, rows_of(values + range.first * out_stride, out_stride),
                     out, out_stride, {block.count, out_stride, range.count});
    }
  });
  for (std::int64_t i = 0; i < block.count; ++i) {
    // A query that sees nothing: 0 and a weight of 0 where a mask says so, else 0 / 0.
    const bool is_hidden = sums[i] == 0.0F && head.mask.data != nullptr;
    log_sum_exp[i] = is_hidden         ? std::numeric_limits<float>::infinity()
                     : sums[i] == 0.0F ? std::numeric_limits<float>::quiet_NaN()
                                       : (tops[i] + std::log2(sums[i])) * kLn2;
    if (values == nullptr) continue;
    scale_row(out + i * out_stride, out_stride, is_hidden ? 0.0F : 1.0F / sums[i]);
  }
}

void query_gradient_block(const AttentionHead& head, const QueryBlock& block, const float* keys,
                          const float* values, const float* key_rows, float* work, float* out) {
  float* weights = work;
  float* products = work + kQueryBlock * kKeyBlock;
  const std::int64_t stride = whole_panels(head.width);
  std::fill_n(out, block.count * stride, 0.0F);
  for_key_blocks(head, block, [&](const KeyBlock& range) {
    weigh_block(head, block, range, keys + range.first * head.width, weights);
    score_gradient_block(head, block, range, values + range.first * head.value_width, weights,
                         products);
    multiply<true>({products, kKeyBlock, 1}, rows_of(key_rows + range.first * stride, stride), out,
                   stride, {block.count, stride, range.count});
  });
}

void add_key_gradients(const AttentionHead& head, const QueryBlock& block, const KeyBlock& range,
                       const float* keys, const float* values, float* work, float* key_gradient,
                       float* value_gradient) {
  float* weights = work;
  float* products = work + kQueryBlock * kKeyBlock;
  weigh_block(head, block, range, keys, weights);
  if (value_gradient != nullptr) {
    const std::int64_t stride = whole_panels(head.value_width);
    multiply<true>({weights, 1, kKeyBlock}, rows_of(block.gradient, block.gradient_stride),
                   value_gradient, stride, {range.count, stride, block.count});
  }
  if (key_gradient != nullptr) {
    const std::int64_t stride = whole_panels(head.width);
    score_gradient_block(head, block, range, values, weights, products);
    multiply<true>({products, 1, kKeyBlock}, rows_of(block.query, block.query_stride), key_gradient,
                   stride, {range.count, stride, block.count});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace vkml::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(attend_block);
HWY_EXPORT(query_gradient_block);
HWY_EXPORT(add_key_gradients);

std::int64_t visible_keys(const AttentionHead& head, const QueryBlock& block) {
  return head.is_causal ? std::min(head.keys, block.first + block.count) : head.keys;
}

void attend_block(const AttentionHead& head, const QueryBlock& block, const float* keys,
                  const float* values, float* work, float* out, float* log_sum_exp) {
  HWY_DYNAMIC_DISPATCH(attend_block)(head, block, keys, values, work, out, log_sum_exp);
}
void query_gradient_block(const AttentionHead& head, const QueryBlock& block, const float* keys,
                          const float* values, const float* key_rows, float* work, float* out) {
  HWY_DYNAMIC_DISPATCH(query_gradient_block)(head, block, keys, values, key_rows, work, out);
}
void add_key_gradients(const AttentionHead& head, const QueryBlock& block, const KeyBlock& range,
                       const float* keys, const float* values, float* work, float* key_gradient,
                       float* value_gradient) {
  HWY_DYNAMIC_DISPATCH(add_key_gradients)
  (head, block, range, keys, values, work, key_gradient, value_gradient);
}

}  // namespace vkml::cpu
#endif
