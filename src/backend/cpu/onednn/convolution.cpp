// oneDNN chooses the layout of every operand (blocks of channels, mostly); operands that lie
// otherwise are reordered into scratch before, and the result out of it after.
//
// oneDNN leaves products with padding out, which are NaN where the other factor is not finite.
// Where that shows in the result, the plain convolution computes it.
#include "onednn/convolution.h"

#ifdef VKML_HAVE_ONEDNN

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "cores/convolution.h"
#include "cores/core_result.h"
#include "cores/dense_copy.h"
#include "cores/scratch_layout.h"
#include "onednn/library.h"
#include "tile/transfer.h"

namespace vkml::cpu::onednn {
namespace {

using dispatch::Extents;
using dispatch::Kernel;
using dispatch::Operand;
using ops::CoreKind;

constexpr std::size_t kInput = 0;
constexpr std::size_t kWeight = 1;
constexpr std::size_t kOutput = 2;

// Positive strides, none of which steps over elements of another axis: what oneDNN describes.
bool is_plain(const Operand& operand) {
  std::int64_t reach = 1;
  std::array<bool, kMaxDims> is_seen{};
  for (int step = 0; step < kMaxDims; ++step) {
    std::size_t least = is_seen.size();
    for (std::size_t i = 0; i < is_seen.size(); ++i) {
      if (is_seen[i]) continue;
      if (least == is_seen.size() || operand.strides[i] < operand.strides[least]) least = i;
    }
    is_seen[least] = true;
    if (operand.extents[least] == 1) continue;
    if (operand.strides[least] < reach) return false;
    reach = operand.strides[least] * operand.extents[least];
  }
  return true;
}

struct Dims {
  std::array<std::int64_t, 5> values{};
  std::size_t count = 4;
  std::span<const std::int64_t> span() const { return {values.data(), count}; }
};

Dims dims_of(const Extents& extents, bool is_weight, std::int64_t groups) {
  if (!is_weight || groups == 1) return {{extents[0], extents[1], extents[2], extents[3], 0}, 4};
  return {{groups, extents[0] / groups, extents[1], extents[2], extents[3]}, 5};
}

Dims strides_of(const Operand& operand, bool is_weight, std::int64_t groups) {
  Extents s = operand.strides;
  // Axes of one element may have any stride; oneDNN checks them all the same.
  const Extents dense = dense_strides(operand.extents);
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = operand.extents[i] == 1 ? dense[i] : s[i];
  if (!is_weight || groups == 1) return {{s[0], s[1], s[2], s[3], 0}, 4};
  return {{operand.extents[0] / groups * s[0], s[0], s[1], s[2], s[3]}, 5};
}

// One operand on its way between the plan and the primitive.
struct Passage {
  Operand operand;  // of the plan, or its dense copy
  bool is_copied = false;
  std::int64_t copy_offset = 0;
  MemoryDesc plain;       // how it lies there
  PrimitiveDesc reorder;  // null where the primitive takes it as it lies
  std::int64_t reordered_offset = 0;
};

struct Form {
  std::array<Passage, 3> passages;  // input, weight, output; one of them is the result
  std::size_t result = kOutput;
  PrimitiveDesc desc;
  std::int64_t scratchpad_offset = 0;
  std::int64_t scratch_bytes = 0;
};

std::size_t result_of(CoreKind kind) {
  if (kind == CoreKind::kConv2d) return kOutput;
  return kind == CoreKind::kConv2dInputGradient ? kInput : kWeight;
}

// Which of input, weight and output the kernel's operands are.
std::array<std::size_t, 2> operands_of(CoreKind kind) {
  if (kind == CoreKind::kConv2d) return {kInput, kWeight};
  if (kind == CoreKind::kConv2dInputGradient) return {kOutput, kWeight};
  return {kInput, kOutput};
}

std::array<dnnl_query_t, 3> queries_of(CoreKind kind) {
  if (kind == CoreKind::kConv2d) {
    return {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md};
  }
  if (kind == CoreKind::kConv2dInputGradient) {
    return {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md};
  }
  return {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md};
}

std::array<int, 3> arguments_of(CoreKind kind) {
  if (kind == CoreKind::kConv2d) return {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  if (kind == CoreKind::kConv2dInputGradient) {
    return {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
  }
  return {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
}

PrimitiveDesc describe(const Kernel& kernel, const std::array<Passage, 3>& passages) {
  const graph::Attributes& a = kernel.attributes;
  const ConvolutionWindow window{{a[0], a[1]}, {a[4] - 1, a[5] - 1}, {a[2], a[3]}};
  std::array<MemoryDesc, 3> any;
  for (std::size_t i = 0; i < 3; ++i) {
    const Operand& operand = passages[i].operand;
    any[i] = any_layout(operand.dtype, dims_of(operand.extents, i == kWeight, a[6]).span());
    if (!any[i]) return nullptr;
  }
  const auto create = kernel.kind == CoreKind::kConv2d                ? convolution_forward
                      : kernel.kind == CoreKind::kConv2dInputGradient ? convolution_input_gradient
                                                                      : convolution_weight_gradient;
  return create(any[kInput].get(), any[kWeight].get(), any[kOutput].get(), window);
}

std::optional<Form> form_with(const Kernel& kernel, bool widens) {
  Form form;
  form.result = result_of(kernel.kind);
  const std::int64_t groups = kernel.attributes[6];
  ScratchLayout scratch(core_scratch_bytes(kernel, TargetLayout::kDense));
  const std::array<std::size_t, 2> roles = operands_of(kernel.kind);
  for (std::size_t k = 0; k < roles.size(); ++k) {
    Passage& passage = form.passages[roles[k]];
    passage.operand = kernel.core_inputs[k];
    const DType dtype = widens ? DType::kF32 : passage.operand.dtype;
    if (dtype == passage.operand.dtype && is_plain(passage.operand)) continue;
    passage.is_copied = true;
    passage.copy_offset = scratch.take(dispatch::numel(passage.operand.extents) *
                                       static_cast<std::int64_t>(size_of(dtype)));
    passage.operand = dense_copy_of(passage.operand, dtype, -1, passage.copy_offset);
  }
  Operand& result = form.passages[form.result].operand;
  result.dtype = DType::kF32;
  result.extents = kernel.space;
  result.strides = dense_strides(kernel.space);
  form.desc = describe(kernel, form.passages);
  if (!form.desc) return std::nullopt;
  const std::array<dnnl_query_t, 3> queries = queries_of(kernel.kind);
  for (std::size_t i = 0; i < 3; ++i) {
    Passage& passage = form.passages[i];
    const bool is_weight = i == kWeight;
    passage.plain =
        strided(passage.operand.dtype, dims_of(passage.operand.extents, is_weight, groups).span(),
                strides_of(passage.operand, is_weight, groups).span());
    const const_dnnl_memory_desc_t wanted = layout_of(form.desc, queries[i]);
    if (!passage.plain) return std::nullopt;
    if (same_layout(passage.plain.get(), wanted)) continue;
    passage.reorder = i == form.result ? reorder(wanted, passage.plain.get())
                                       : reorder(passage.plain.get(), wanted);
    if (!passage.reorder) return std::nullopt;
    passage.reordered_offset = scratch.take(bytes_of(wanted));
  }
  std::int64_t scratchpad = scratch_bytes_of(form.desc);
  for (const Passage& passage : form.passages) {
    if (passage.reorder) scratchpad = std::max(scratchpad, scratch_bytes_of(passage.reorder));
  }
  form.scratchpad_offset = scratch.take(scratchpad);
  form.scratch_bytes = scratch.total();
  return form;
}

std::optional<Form> form_of(const Kernel& kernel) {
  const auto is_float = [](const Operand& operand) {
    return is_floating(operand.dtype) && operand.dtype != DType::kF64;
  };
  const Operand& first = kernel.core_inputs[0];
  const Operand& second = kernel.core_inputs[1];
  const bool is_empty = dispatch::numel(kernel.space) == 0 || dispatch::numel(first.extents) == 0 ||
                        dispatch::numel(second.extents) == 0;
  if (is_empty || kernel.core_type != ops::ScalarType::kF32 || !is_float(first) ||
      !is_float(second) || !is_available()) {
    return std::nullopt;
  }
  if (first.dtype == second.dtype) {
    if (std::optional<Form> native = form_with(kernel, false)) return native;
  }
  return form_with(kernel, true);
}

bool has_padding(const Kernel& kernel) {
  return kernel.attributes[2] != 0 || kernel.attributes[3] != 0;
}

// Whether along both axes each tap of the window (for the gradient of the weight, each place of it)
// reads inside the image somewhere, so that a factor which is not finite shows in the result.
bool reaches_inside(const Kernel& kernel) {
  const bool is_forward = kernel.kind == CoreKind::kConv2d;
  const Extents& image = kernel.core_inputs[0].extents;
  const Extents& window = is_forward ? kernel.core_inputs[1].extents : kernel.space;
  const Extents& places = is_forward ? kernel.space : kernel.core_inputs[1].extents;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto at = [&](std::size_t first) {
      return kernel.attributes[static_cast<int>(first + axis)];
    };
    const std::int64_t asked = (is_forward ? window : places)[axis + 2];
    const std::int64_t others = (is_forward ? places : window)[axis + 2];
    const std::int64_t step = is_forward ? at(4) : at(0);
    const std::int64_t other_step = is_forward ? at(0) : at(4);
    for (std::int64_t i = 0; i < asked; ++i) {
      bool is_inside = false;
      for (std::int64_t j = 0; j < others && !is_inside; ++j) {
        const std::int64_t position = i * step + j * other_step - at(2);
        is_inside = position >= 0 && position < image[axis + 2];
      }
      if (!is_inside) return false;
    }
  }
  return true;
}

bool all_finite(const float* values, std::int64_t count) {
  constexpr std::int64_t kBlock = 16;  // a known number of turns becomes vector instructions
  std::array<std::uint32_t, kBlock> largest{};
  const auto meet = [&](std::int64_t lane, float value) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
    std::uint32_t& held = largest[static_cast<std::size_t>(lane)];
    held = std::max(held, magnitude);
  };
  std::int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (std::int64_t lane = 0; lane < kBlock; ++lane) meet(lane, values[i + lane]);
  }
  for (; i < count; ++i) meet(0, values[i]);
  return *std::ranges::max_element(largest) < 0x7f800000U;
}

bool all_finite(const Operand& operand, const RunContext& run) {
  std::vector<float> row(static_cast<std::size_t>(operand.extents[3]));
  const auto bytes = static_cast<std::int64_t>(size_of(operand.dtype));
  const std::byte* start = run.buffers[operand.buffer] + operand.offset * bytes;
  for (std::int64_t i = 0; i < operand.extents[0]; ++i) {
    for (std::int64_t j = 0; j < operand.extents[1]; ++j) {
      for (std::int64_t k = 0; k < operand.extents[2]; ++k) {
        const auto& s = operand.strides;
        load_elements(row.data(), start + (i * s[0] + j * s[1] + k * s[2]) * bytes, operand.dtype,
                      operand.extents[3], s[3]);
        if (!all_finite(row.data(), operand.extents[3])) return false;
      }
    }
  }
  return true;
}

// Tells when products with padding count, and computes them then.
class PaddingCheck {
 public:
  PaddingCheck(const Kernel& kernel, const dispatch::ExecutionGraph& graph)
      : shows_(reaches_inside(kernel)), factor_(kernel.core_inputs[1]) {
    // Each image meets the whole weight: one of them tells.
    const bool is_forward = kernel.kind == CoreKind::kConv2d;
    count_ = dispatch::numel(kernel.space) / (is_forward ? kernel.space[0] : 1);
    plain_ = cpu::compile_convolution(kernel, graph);
  }

  /// Whether it has computed the kernel, whose core has left this result.
  bool run(const RunContext& run, const std::byte* result) const {
    if (shows_ && all_finite(reinterpret_cast<const float*>(result), count_)) return false;
    if (all_finite(factor_, run)) return false;
    plain_->run(run);
    return true;
  }

 private:
  bool shows_;
  Operand factor_;
  std::int64_t count_;
  std::unique_ptr<CompiledKernel> plain_;
};

class Convolution final : public CompiledKernel {
 public:
  Convolution(const Kernel& kernel, const dispatch::ExecutionGraph& graph, Form form)
      : form_(std::move(form)),
        scratch_(kernel.scratch),
        result_(kernel, graph.buffers, TargetLayout::kDense) {
    const std::array<std::size_t, 2> roles = operands_of(kernel.kind);
    for (std::size_t k = 0; k < roles.size(); ++k) {
      Passage& passage = form_.passages[roles[k]];
      if (!passage.is_copied) continue;
      passage.operand.buffer = scratch_;
      copies_.push_back(copy_region(kernel.core_inputs[k], passage.operand, graph.buffers));
    }
    const std::array<dnnl_query_t, 3> queries = queries_of(kernel.kind);
    const std::array<int, 3> ids = arguments_of(kernel.kind);
    std::array<Primitive::Argument, 4> arguments;
    for (std::size_t i = 0; i < 3; ++i) {
      arguments[i] = {ids[i], layout_of(form_.desc, queries[i])};
      const Passage& passage = form_.passages[i];
      if (!passage.reorder) continue;
      const bool is_result = i == form_.result;
      const std::array<Primitive::Argument, 3> ends{
          {{DNNL_ARG_FROM, is_result ? arguments[i].layout : passage.plain.get()},
           {DNNL_ARG_TO, is_result ? passage.plain.get() : arguments[i].layout},
           {DNNL_ARG_SCRATCHPAD, layout_of(passage.reorder, dnnl_query_scratchpad_md)}}};
      reorders_[i].emplace(passage.reorder, ends);
    }
    if (has_padding(kernel) && kernel.kind != CoreKind::kConv2dInputGradient) {
      padding_check_.emplace(kernel, graph);
    }
    arguments[3] = {DNNL_ARG_SCRATCHPAD, layout_of(form_.desc, dnnl_query_scratchpad_md)};
    primitive_.emplace(form_.desc, arguments);
  }

  void run(const RunContext& run) override {
    for (const Region& copy : copies_) copy.run(run);
    std::byte* scratchpad =
        scratch_ < 0 ? nullptr : run.buffers[scratch_] + form_.scratchpad_offset;
    std::array<std::byte*, 4> addresses{};
    for (std::size_t i = 0; i < 3; ++i) {
      std::byte* plain = plain_address(run, i);
      addresses[i] =
          reorders_[i] ? run.buffers[scratch_] + form_.passages[i].reordered_offset : plain;
      if (reorders_[i] && i != form_.result) {
        reorders_[i]->run(std::array<std::byte*, 3>{plain, addresses[i], scratchpad});
      }
    }
    addresses[3] = scratchpad;
    primitive_->run(addresses);
    if (reorders_[form_.result]) {
      reorders_[form_.result]->run(std::array<std::byte*, 3>{
          addresses[form_.result], plain_address(run, form_.result), scratchpad});
    }
    if (padding_check_ && padding_check_->run(run, result_.address(run))) return;
    result_.finish(run);
  }

 private:
  std::byte* plain_address(const RunContext& run, std::size_t i) const {
    return i == form_.result ? result_.address(run) : address_of(form_.passages[i].operand, run);
  }

  Form form_;
  int scratch_;
  CoreResult result_;
  std::vector<Region> copies_;
  std::array<std::optional<Primitive>, 3> reorders_;
  std::optional<Primitive> primitive_;
  std::optional<PaddingCheck> padding_check_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_convolution(const Kernel& kernel,
                                                    const dispatch::ExecutionGraph& graph) {
  std::optional<Form> form = form_of(kernel);
  if (!form) return nullptr;
  return std::make_unique<Convolution>(kernel, graph, *std::move(form));
}

std::int64_t convolution_scratch_bytes(const Kernel& kernel) {
  const std::optional<Form> form = form_of(kernel);
  return form ? form->scratch_bytes : -1;
}

}  // namespace vkml::cpu::onednn

#endif
