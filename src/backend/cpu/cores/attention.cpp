// Attention by FlashAttention-2 (Dao, arXiv:2307.08691). Operands that many blocks read are packed
// once, in parallel, as f32 (cores/attention_blocks.h says how); threads then take blocks of
// queries, or for the gradients of keys and values blocks of keys, each with a fixed order of sums.
// With a causal mask the first block and the last take turns, so that shares are of equal work.
// Bound: arithmetic, 4 T S D operations forward (half of it causal), 6 and 8 in the two passes
// backward.
#include "cores/attention.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "cores/attention_blocks.h"
#include "cores/core_result.h"
#include "cores/dense_copy.h"
#include "cores/scratch_layout.h"
#include "scratch.h"
#include "threads.h"
#include "tile/transfer.h"
#include "vkml/dispatch/attention_inputs.h"
#include "vkml/ops/attention_options.h"

namespace vkml::cpu {
namespace {

using dispatch::Kernel;
using dispatch::Operand;
using ops::CoreKind;

constexpr std::int64_t kFloat = sizeof(float);
constexpr double kLog2E = 1.4426950408889634;

const std::byte* address_of_row(const Operand& operand, const RunContext& run, std::int64_t batch,
                                std::int64_t head, std::int64_t row) {
  const std::int64_t place =
      batch * operand.strides[0] + head * operand.strides[1] + row * operand.strides[2];
  return address_of(operand, run) + place * static_cast<std::int64_t>(size_of(operand.dtype));
}

void read_row(float* target, const Operand& operand, const RunContext& run, std::int64_t batch,
              std::int64_t head, std::int64_t row) {
  load_elements(target, address_of_row(operand, run, batch, head, row), operand.dtype,
                operand.extents[3], operand.strides[3]);
}

// An operand as rows of f32, padded to whole panels: where it lies, or in scratch.
class PackedRows {
 public:
  PackedRows(const Operand& operand, ScratchLayout& scratch)
      : operand_(operand), stride_(whole_panels(operand.extents[3])) {
    const bool is_packed = operand.dtype == DType::kF32 && operand.strides[3] == 1 &&
                           operand.strides[2] == stride_ && operand.extents[3] == stride_;
    if (!is_packed) offset_ = scratch.take(rows() * stride_ * kFloat);
  }

  std::int64_t stride() const { return stride_; }

  void pack(const RunContext& run, int scratch) const {
    if (offset_ < 0) return;
    const auto [batches, heads, length, width] = operand_.extents;
    auto* const target = reinterpret_cast<float*>(run.buffers[scratch] + offset_);
    parallel_shares(rows(), worth_threads(static_cast<double>(rows() * width)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        float* row = target + i * stride_;
                        read_row(row, operand_, run, i / length / heads, i / length % heads,
                                 i % length);
                        std::fill(row + width, row + stride_, 0.0F);
                      }
                    });
  }

  /// Row 0 of a head.
  const float* head(const RunContext& run, int scratch, std::int64_t batch,
                    std::int64_t head) const {
    if (offset_ < 0) {
      return reinterpret_cast<const float*>(address_of_row(operand_, run, batch, head, 0));
    }
    return reinterpret_cast<const float*>(run.buffers[scratch] + offset_) +
           (batch * operand_.extents[1] + head) * operand_.extents[2] * stride_;
  }

 private:
  std::int64_t rows() const {
    return operand_.extents[0] * operand_.extents[1] * operand_.extents[2];
  }

  Operand operand_;
  std::int64_t stride_;
  std::int64_t offset_ = -1;  // into scratch
};

// One block of rows as columns, times a factor.
void pack_columns(float* target, const Operand& operand, const RunContext& run, std::int64_t batch,
                  std::int64_t head, const KeyBlock& range, float factor) {
  const std::int64_t width = operand.extents[3];
  const std::int64_t count = whole_panels(range.count);
  float row[graph::kMaxAttentionWidth];
  for (std::int64_t r = 0; r < count; ++r) {
    if (r < range.count) {
      read_row(row, operand, run, batch, head, range.first + r);
    } else {
      std::fill_n(row, width, 0.0F);
    }
    float* panel = target + r / kPanelRows * width * kPanelRows + r % kPanelRows;
    for (std::int64_t d = 0; d < width; ++d) panel[d * kPanelRows] = row[d] * factor;
  }
}

std::int64_t blocks_of(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block;
}

// An operand as columns, in scratch.
class PackedColumns {
 public:
  PackedColumns(const Operand& operand, ScratchLayout& scratch)
      : operand_(operand),
        head_floats_(blocks_of(operand.extents[2], kKeyBlock) * kKeyBlock * operand.extents[3]),
        offset_(scratch.take(operand.extents[0] * operand.extents[1] * head_floats_ * kFloat)) {}

  void pack(const RunContext& run, int scratch, float factor) const {
    const auto [batches, heads, length, width] = operand_.extents;
    const std::int64_t blocks = blocks_of(length, kKeyBlock);
    const std::int64_t count = batches * heads * blocks;
    auto* const target = reinterpret_cast<float*>(run.buffers[scratch] + offset_);
    parallel_shares(count, worth_threads(static_cast<double>(head_floats_)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const std::int64_t first = i % blocks * kKeyBlock;
                        pack_columns(target + i * kKeyBlock * width, operand_, run,
                                     i / blocks / heads, i / blocks % heads,
                                     {first, std::min(kKeyBlock, length - first)}, factor);
                      }
                    });
  }

  const float* head(const RunContext& run, int scratch, std::int64_t batch,
                    std::int64_t head) const {
    return reinterpret_cast<const float*>(run.buffers[scratch] + offset_) +
           (batch * operand_.extents[1] + head) * head_floats_;
  }

 private:
  Operand operand_;
  std::int64_t head_floats_;
  std::int64_t offset_;
};

// What a kernel packs, and where.
struct Packed {
  std::optional<PackedColumns> key_columns, value_columns;
  std::optional<PackedRows> query_rows, key_rows, value_rows, gradient_rows;
  std::int64_t scratch_bytes = 0;
};

Packed packed_for(const Kernel& kernel) {
  const dispatch::AttentionInputs inputs = dispatch::attention_inputs(kernel);
  ScratchLayout scratch(core_scratch_bytes(kernel, TargetLayout::kDense));
  Packed packed;
  switch (kernel.kind) {
    case CoreKind::kAttentionLogSumExp:
      packed.key_columns.emplace(*inputs.key, scratch);
      break;
    case CoreKind::kAttention:
      packed.key_columns.emplace(*inputs.key, scratch);
      packed.value_rows.emplace(*inputs.value, scratch);
      break;
    case CoreKind::kAttentionQueryGradient:
      packed.key_columns.emplace(*inputs.key, scratch);
      packed.value_columns.emplace(*inputs.value, scratch);
      packed.key_rows.emplace(*inputs.key, scratch);
      break;
    default:
      packed.query_rows.emplace(*inputs.query, scratch);
      packed.gradient_rows.emplace(*inputs.gradient, scratch);
      break;
  }
  packed.scratch_bytes = scratch.total();
  return packed;
}

// The first and the last in turn.
std::int64_t balanced(std::int64_t index, std::int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

class Attention final : public CompiledKernel {
 public:
  Attention(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : kernel_(kernel),
        inputs_(dispatch::attention_inputs(kernel_)),
        packed_(packed_for(kernel_)),
        result_(kernel_, graph.buffers, TargetLayout::kDense) {
    const Operand& query = *inputs_.query;
    head_.keys = inputs_.key->extents[2];
    head_.width = query.extents[3];
    const Operand* values = inputs_.value != nullptr ? inputs_.value : inputs_.gradient;
    head_.value_width = values != nullptr ? values->extents[3] : 0;
    head_.is_causal = kernel_.attributes[1] != 0;
    head_.scale = static_cast<float>(std::bit_cast<double>(kernel_.attributes[0]));
    heads_ = query.extents[1];
    queries_ = query.extents[2];
    shared_heads_ = inputs_.key->extents[1];
  }

  void run(const RunContext& run) override {
    pack(run);
    const bool by_keys = kernel_.kind == CoreKind::kAttentionKeyGradient ||
                         kernel_.kind == CoreKind::kAttentionValueGradient;
    const std::int64_t blocks =
        by_keys ? blocks_of(head_.keys, kKeyBlock) : blocks_of(queries_, kQueryBlock);
    const std::int64_t heads = by_keys ? shared_heads_ : heads_;
    const std::int64_t count = inputs_.query->extents[0] * heads * blocks;
    parallel_shares(count, worth_threads(cost()), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t block = balanced(i % blocks, blocks);
        const std::int64_t batch = i / blocks / heads;
        const std::int64_t head = i / blocks % heads;
        if (by_keys) {
          run_keys(run, batch, head, block * kKeyBlock);
        } else {
          run_queries(run, batch, head, block * kQueryBlock);
        }
      }
    });
    result_.finish(run);
  }

 private:
  double cost() const {
    constexpr double kNanosecondsPerProduct = 0.05;
    return kNanosecondsPerProduct * static_cast<double>(dispatch::numel(inputs_.query->extents)) *
           static_cast<double>(head_.keys);
  }

  float key_factor() const {
    return static_cast<float>(std::bit_cast<double>(kernel_.attributes[0]) * kLog2E);
  }

  void pack(const RunContext& run) const {
    if (packed_.key_columns) packed_.key_columns->pack(run, kernel_.scratch, key_factor());
    if (packed_.value_columns) packed_.value_columns->pack(run, kernel_.scratch, 1.0F);
    for (const auto* rows :
         {&packed_.query_rows, &packed_.key_rows, &packed_.value_rows, &packed_.gradient_rows}) {
      if (*rows) (*rows)->pack(run, kernel_.scratch);
    }
  }

  AttentionHead head_with_mask(const RunContext& run, std::int64_t batch, std::int64_t head) const {
    AttentionHead result = head_;
    if (inputs_.mask != nullptr) {
      const Operand& mask = *inputs_.mask;
      result.mask = {address_of_row(mask, run, batch, head, 0), mask.dtype, mask.strides[2],
                     mask.strides[3]};
    }
    return result;
  }

  // One value a query.
  void load_queries(float* target, const Operand& operand, const RunContext& run,
                    std::int64_t batch, std::int64_t head, const QueryBlock& block) const {
    load_elements(target, address_of_row(operand, run, batch, head, block.first), operand.dtype,
                  block.count, operand.strides[2]);
  }

  // Rows of `operand` from `first` on, padded, into memory of the thread.
  static void load_rows(float* target, const Operand& operand, const RunContext& run,
                        std::int64_t batch, std::int64_t head, const QueryBlock& block) {
    const std::int64_t stride = whole_panels(operand.extents[3]);
    for (std::int64_t i = 0; i < block.count; ++i) {
      read_row(target + i * stride, operand, run, batch, head, block.first + i);
    }
  }

  // Rows of the result, or of the companion's.
  static void store_rows(const float* rows, std::int64_t stride, const Operand& target,
                         const RunContext& run, std::int64_t batch, std::int64_t head,
                         const KeyBlock& range) {
    const std::int64_t width = target.extents[3];
    const auto bytes = static_cast<std::int64_t>(size_of(target.dtype));
    for (std::int64_t i = 0; i < range.count; ++i) {
      const std::int64_t row =
          ((batch * target.extents[1] + head) * target.extents[2] + range.first + i) * width;
      store_elements(address_of(target, run) + row * bytes, rows + i * stride, target.dtype, width);
    }
  }

  void run_queries(const RunContext& run, std::int64_t batch, std::int64_t head,
                   std::int64_t first) const {
    const int scratch = kernel_.scratch;
    const std::int64_t shared = head / (heads_ / shared_heads_);
    const std::int64_t query_stride = whole_panels(head_.width);
    const std::int64_t value_stride = whole_panels(head_.value_width);
    QueryBlock block;
    block.first = first;
    block.count = std::min(kQueryBlock, queries_ - first);
    const std::int64_t floats =
        kAttentionWork +
        kQueryBlock * (2 * std::max(query_stride, value_stride) + query_stride + 2);
    auto* work = reinterpret_cast<float*>(
        thread_scratch(ScratchPurpose::kPanelA, static_cast<std::size_t>(floats * kFloat)));
    float* query = work + kAttentionWork;
    float* gradient = query + kQueryBlock * query_stride;
    float* out = gradient + kQueryBlock * std::max(query_stride, value_stride);
    float* lse = out + kQueryBlock * std::max(query_stride, value_stride);
    float* delta = lse + kQueryBlock;
    load_rows(query, *inputs_.query, run, batch, head, block);
    block.query = query;
    block.query_stride = query_stride;
    const AttentionHead heads = head_with_mask(run, batch, head);
    const float* keys = packed_.key_columns->head(run, scratch, batch, shared);
    const KeyBlock range{block.first, block.count};
    if (kernel_.kind == CoreKind::kAttentionQueryGradient) {
      load_rows(gradient, *inputs_.gradient, run, batch, head, block);
      load_queries(lse, *inputs_.log_sum_exp, run, batch, head, block);
      load_queries(delta, *inputs_.delta, run, batch, head, block);
      block.gradient = gradient;
      block.gradient_stride = value_stride;
      block.log_sum_exp = lse;
      block.delta = delta;
      query_gradient_block(heads, block, keys,
                           packed_.value_columns->head(run, scratch, batch, shared),
                           packed_.key_rows->head(run, scratch, batch, shared), work, out);
      store_rows(out, query_stride, result_.target(), run, batch, head, range);
      return;
    }
    const bool has_values = kernel_.kind == CoreKind::kAttention;
    attend_block(heads, block, keys,
                 has_values ? packed_.value_rows->head(run, scratch, batch, shared) : nullptr, work,
                 out, lse);
    if (has_values) store_rows(out, value_stride, result_.target(), run, batch, head, range);
    const Operand* lse_target = nullptr;
    if (!has_values) lse_target = &result_.target();
    if (!kernel_.core_stores.empty()) lse_target = &kernel_.core_stores[0];
    if (lse_target != nullptr) store_rows(lse, 1, *lse_target, run, batch, head, range);
  }

  void run_keys(const RunContext& run, std::int64_t batch, std::int64_t shared,
                std::int64_t first) const {
    const int scratch = kernel_.scratch;
    const bool wants_key = kernel_.kind == CoreKind::kAttentionKeyGradient;
    const bool wants_value = !wants_key || !kernel_.core_stores.empty();
    const KeyBlock range{first, std::min(kKeyBlock, head_.keys - first)};
    const std::int64_t key_stride = whole_panels(head_.width);
    const std::int64_t value_stride = whole_panels(head_.value_width);
    const std::int64_t columns = kKeyBlock * (head_.width + head_.value_width);
    const std::int64_t floats =
        kAttentionWork + columns + kKeyBlock * (key_stride + value_stride) + 2 * kQueryBlock;
    auto* work = reinterpret_cast<float*>(
        thread_scratch(ScratchPurpose::kPanelA, static_cast<std::size_t>(floats * kFloat)));
    float* keys = work + kAttentionWork;
    float* values = keys + kKeyBlock * head_.width;
    float* key_gradient = work + kAttentionWork + columns;
    float* value_gradient = key_gradient + kKeyBlock * key_stride;
    float* lse = value_gradient + kKeyBlock * value_stride;
    float* delta = lse + kQueryBlock;
    pack_columns(keys, *inputs_.key, run, batch, shared, range, key_factor());
    if (wants_key) pack_columns(values, *inputs_.value, run, batch, shared, range, 1.0F);
    std::fill_n(key_gradient, kKeyBlock * (key_stride + value_stride), 0.0F);
    const std::int64_t sharing = heads_ / shared_heads_;
    for (std::int64_t head = shared * sharing; head < (shared + 1) * sharing; ++head) {
      const AttentionHead heads = head_with_mask(run, batch, head);
      const float* queries = packed_.query_rows->head(run, scratch, batch, head);
      const float* gradients = packed_.gradient_rows->head(run, scratch, batch, head);
      // The first block with a query that sees the first key.
      const std::int64_t start = head_.is_causal ? first / kQueryBlock * kQueryBlock : 0;
      QueryBlock block;
      block.query_stride = packed_.query_rows->stride();
      block.gradient_stride = packed_.gradient_rows->stride();
      block.log_sum_exp = lse;
      block.delta = delta;
      for (block.first = start; block.first < queries_; block.first += kQueryBlock) {
        block.count = std::min(kQueryBlock, queries_ - block.first);
        block.query = queries + block.first * block.query_stride;
        block.gradient = gradients + block.first * block.gradient_stride;
        load_queries(lse, *inputs_.log_sum_exp, run, batch, head, block);
        if (wants_key) load_queries(delta, *inputs_.delta, run, batch, head, block);
        add_key_gradients(heads, block, range, keys, values, work,
                          wants_key ? key_gradient : nullptr,
                          wants_value ? value_gradient : nullptr);
      }
    }
    if (!wants_key) {
      store_rows(value_gradient, value_stride, result_.target(), run, batch, shared, range);
      return;
    }
    store_rows(key_gradient, key_stride, result_.target(), run, batch, shared, range);
    if (wants_value) {
      store_rows(value_gradient, value_stride, kernel_.core_stores[0], run, batch, shared, range);
    }
  }

  Kernel kernel_;
  dispatch::AttentionInputs inputs_;
  Packed packed_;
  CoreResult result_;
  AttentionHead head_;  // without a mask
  std::int64_t heads_ = 1;
  std::int64_t shared_heads_ = 1;
  std::int64_t queries_ = 0;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_attention(const Kernel& kernel,
                                                  const dispatch::ExecutionGraph& graph) {
  return std::make_unique<Attention>(kernel, graph);
}

std::int64_t attention_scratch_bytes(const Kernel& kernel) {
  return packed_for(kernel).scratch_bytes;
}

}  // namespace vkml::cpu
