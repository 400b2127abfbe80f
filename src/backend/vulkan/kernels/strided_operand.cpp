// Contraction operands whose elements lie at a sum of strides: matrices in any layout, the weights
// and output gradients of convolutions, the images of 1 x 1 convolutions.
#include <algorithm>

#include "kernels/contraction.h"

namespace vkml::vulkan {

using spirv::Value;

namespace {

constexpr std::int64_t kVector = 4;

/// Joins axes that are stepped through as one, and drops those of extent 1.
std::vector<IndexAxis> joined(const std::vector<IndexAxis>& axes) {
  std::vector<IndexAxis> result;
  for (const IndexAxis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!result.empty() && result.back().stride == axis.stride * axis.extent) {
      result.back() = {result.back().extent * axis.extent, axis.stride};
    } else {
      result.push_back(axis);
    }
  }
  if (result.empty()) result.push_back({1, 0});
  return result;
}

/// The offset of an index that several axes make up.
class StridedIndex {
 public:
  StridedIndex(Shader& shader, const std::vector<IndexAxis>& axes)
      : b_(shader.builder()), has_runs_(axes.back().extent % kMatrixRun == 0) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      extents_.push_back(i == 0 ? b_.u32(1) : shader.parameter(axes[i].extent));
      strides_.push_back(shader.stride_parameter(axes[i].stride));
    }
  }

  Value offset(Value index) const {
    Value offset = b_.u32(0), rest = index;
    for (std::size_t axis = strides_.size(); axis-- > 1;) {
      const Value outer = rest / extents_[axis];
      offset = offset + (rest - outer * extents_[axis]) * strides_[axis];
      rest = outer;
    }
    return offset + rest * strides_[0];
  }
  /// Eight offsets from a multiple of 8 on, where such neighbours differ in the last axis alone.
  std::array<Value, kMatrixRun> run(Value first, Value last) const {
    std::array<Value, kMatrixRun> offsets;
    const Value last_run = last & ~(kMatrixRun - 1);
    offsets[0] = offset(b_.select(less(last, first), last_run, first));
    for (std::uint32_t i = 1; i < kMatrixRun; ++i) offsets[i] = offsets[i - 1] + strides_.back();
    return offsets;
  }
  bool has_runs() const { return has_runs_; }
  Value last_stride() const { return strides_.back(); }

 private:
  spirv::Builder& b_;
  bool has_runs_;
  std::vector<Value> extents_, strides_;
};

/// Whether all but the last `skipped` axes step by whole groups of neighbours.
bool are_aligned(const std::vector<IndexAxis>& axes, std::int64_t group, int skipped = 0) {
  return std::all_of(axes.begin(), axes.end() - skipped,
                     [&](const IndexAxis& axis) { return axis.stride % group == 0; });
}

/// A group of neighbours along the last axis never crosses into the axis before it.
bool is_dense(const std::vector<IndexAxis>& axes, std::int64_t group, bool may_end_anywhere) {
  const bool fits = axes.back().extent % group == 0 || (may_end_anywhere && axes.size() == 1);
  return axes.back().stride == 1 && fits && are_aligned(axes, group, 1);
}

class StridedOperand : public ContractionOperand {
 public:
  StridedOperand(Shader& shader, const dispatch::Operand& operand,
                 const StridedOperandLayout& layout)
      : elements_(shader, operand),
        batch_(shader, layout.batch),
        outer_(shader, layout.outer),
        inner_(shader, layout.inner),
        batch_offset_(shader.builder().u32(0)),
        inner_is_nearest_(layout.inner.back().stride == 1),
        vectors_(vector_direction(layout)) {
    if (!are_aligned(layout.batch, kVector)) return;
    // Sums may end within four inner neighbours: the engines take the rest one by one.
    if (is_dense(layout.inner, kVector, true) && are_aligned(layout.outer, kVector)) {
      dense_ = Dense::kInner;
    }
    if (is_dense(layout.outer, kVector, false) && are_aligned(layout.inner, kVector)) {
      dense_ = Dense::kOuter;
    }
  }

  Dense dense() const override { return dense_; }
  Value is_aligned() const override { return elements_.is_aligned(); }
  bool inner_is_nearest() const override { return inner_is_nearest_; }
  void set_batch(Value batch) override { batch_offset_ = batch_.offset(batch); }
  Position outer(Value index) override { return {batch_offset_ + outer_.offset(index)}; }
  Position inner(Value index) override { return {inner_.offset(index)}; }
  PositionRun outer_run(Value first, Value last) override {
    if (!outer_.has_runs()) return ContractionOperand::outer_run(first, last);
    PositionRun run;
    const auto offsets = outer_.run(first, last);
    for (std::size_t i = 0; i < run.size(); ++i) run[i] = {batch_offset_ + offsets[i]};
    return run;
  }
  PositionRun inner_run(Value first, Value last) override {
    if (!inner_.has_runs()) return ContractionOperand::inner_run(first, last);
    PositionRun run;
    const auto offsets = inner_.run(first, last);
    for (std::size_t i = 0; i < run.size(); ++i) run[i] = {offsets[i]};
    return run;
  }
  Value load(const Position& outer, const Position& inner) override {
    return elements_.load(outer[0] + inner[0]);
  }
  Value load4(const Position& outer, const Position& inner) override {
    return elements_.load4(outer[0] + inner[0]);
  }
  Dense vectors() const override { return vectors_; }
  Lines lines() const override {
    return {batch_offset_, outer_.last_stride(), inner_.last_stride(),
            elements_.is_vector_aligned()};
  }
  Value load_vector(Value element) const override { return elements_.load_vector(element); }

 private:
  Elements elements_;
  StridedIndex batch_, outer_, inner_;
  Value batch_offset_;
  bool inner_is_nearest_;
  Dense dense_ = Dense::kNone, vectors_;
};

StridedOperandLayout joined(const StridedOperandLayout& layout) {
  return {joined(layout.batch), joined(layout.outer), joined(layout.inner)};
}

}  // namespace

ContractionOperand::Dense vector_direction(const StridedOperandLayout& layout) {
  constexpr std::int64_t kGroup = kMatrixRun;
  using Dense = ContractionOperand::Dense;
  const auto [batch, outer, inner] = joined(layout);
  if (outer.size() > 1 || inner.size() > 1 || !are_aligned(batch, kGroup)) return Dense::kNone;
  if (is_dense(inner, kGroup, false) && are_aligned(outer, kGroup)) return Dense::kInner;
  if (is_dense(outer, kGroup, false) && are_aligned(inner, kGroup)) return Dense::kOuter;
  return Dense::kNone;
}

std::unique_ptr<ContractionOperand> strided_operand(Shader& shader,
                                                    const dispatch::Operand& operand,
                                                    const StridedOperandLayout& layout) {
  return std::make_unique<StridedOperand>(shader, operand, joined(layout));
}

}  // namespace vkml::vulkan
