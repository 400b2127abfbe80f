// oneDNN takes transposes and batches as strides. What it does not take (reversed or repeated
// elements, 16-bit floats on processors without instructions for them) is first copied to dense
// f32.
#include "onednn/matmul.h"

#ifdef VKML_HAVE_ONEDNN

#include <array>
#include <optional>

#include "cores/core_result.h"
#include "cores/dense_copy.h"
#include "cores/scratch_layout.h"
#include "onednn/library.h"

namespace vkml::cpu::onednn {
namespace {

using dispatch::Extents;
using dispatch::Kernel;
using dispatch::Operand;

// Strides of a matrix such that one of them is 1, where its extents of 1 leave a choice.
void choose_unit_stride(Operand& operand) {
  const auto& extents = operand.extents;
  auto& strides = operand.strides;
  if (extents[3] == 1) {
    strides[3] = 1;
    if (extents[2] == 1) strides[2] = 1;
  } else if (extents[2] == 1) {
    strides[2] = strides[3] == 1 ? extents[3] : 1;
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (extents[axis] == 1) strides[axis] = 0;
  }
}

bool is_plain_matrix(const Operand& operand) {
  const std::int64_t rows = operand.strides[2];
  const std::int64_t columns = operand.strides[3];
  const bool row_major = columns == 1 && rows >= operand.extents[3];
  const bool column_major = rows == 1 && columns >= operand.extents[2];
  return (row_major || column_major || (rows == 1 && columns == 1)) && operand.strides[0] >= 0 &&
         operand.strides[1] >= 0;
}

// One product as it is handed over.
struct Form {
  std::array<Operand, 2> inputs;  // as the primitive sees them; copies have no buffer yet
  std::array<bool, 2> is_copied{};
  std::array<std::int64_t, 2> copy_offset{};
  std::int64_t m = 0;        // rows, with the batches that lie behind each other
  std::int64_t batches = 1;  // times that the primitive runs
  PrimitiveDesc desc;
  std::int64_t scratchpad_offset = 0;
  std::int64_t scratch_bytes = 0;
};

// Batches that share b and lie behind each other in a are more rows of one product.
bool batches_are_rows(const Operand& a, const Operand& b) {
  if (b.strides[0] != 0 || b.strides[1] != 0) return false;
  const bool inner = a.extents[1] == 1 || a.strides[1] == a.strides[2] * a.extents[2];
  const bool outer =
      a.extents[0] == 1 || a.strides[0] == a.strides[2] * a.extents[2] * a.extents[1];
  return inner && outer;
}

MemoryDesc matrix(const Operand& operand, std::int64_t rows) {
  const std::array<std::int64_t, 2> dims{rows, operand.extents[3]};
  const std::array<std::int64_t, 2> strides{operand.strides[2], operand.strides[3]};
  return strided(operand.dtype, dims, strides);
}

// All batches in one description; an operand that is the same for all has extent 1 there.
MemoryDesc batched_matrix(const Operand& operand) {
  std::array<std::int64_t, 4> dims = operand.extents;
  std::array<std::int64_t, 4> strides = operand.strides;
  for (std::size_t axis = 2; axis-- > 0;) {
    if (strides[axis] == 0) {
      dims[axis] = 1;
      strides[axis] = dims[axis + 1] * strides[axis + 1];
    }
  }
  return strided(operand.dtype, dims, strides);
}

MemoryDesc result_matrix(const Extents& space, std::int64_t rows, bool is_batched) {
  Operand result;
  result.extents = space;
  result.strides = dense_strides(space);
  return is_batched ? batched_matrix(result) : matrix(result, rows);
}

void describe(Form& form, const Extents& space) {
  const auto& [a, b] = form.inputs;
  const std::int64_t batches = space[0] * space[1];
  form.m = space[2];
  form.batches = batches;
  if (batches > 1 && batches_are_rows(a, b)) {
    form.m = batches * space[2];
    form.batches = 1;
  }
  if (form.batches > 1) {
    const MemoryDesc c = result_matrix(space, 0, true);
    const MemoryDesc all_a = batched_matrix(a);
    const MemoryDesc all_b = batched_matrix(b);
    if (all_a && all_b && c) form.desc = matmul(all_a.get(), all_b.get(), c.get());
    if (form.desc) {
      form.batches = 1;
      return;
    }
  }
  const MemoryDesc c = result_matrix(space, form.m, false);
  const MemoryDesc one_a = matrix(a, form.m);
  const MemoryDesc one_b = matrix(b, b.extents[2]);
  if (one_a && one_b && c) form.desc = matmul(one_a.get(), one_b.get(), c.get());
}

std::optional<Form> form_with(const Kernel& kernel, bool widens) {
  Form form;
  ScratchLayout scratch(core_scratch_bytes(kernel, TargetLayout::kDense));
  for (std::size_t i = 0; i < 2; ++i) {
    Operand operand = kernel.core_inputs[i];
    choose_unit_stride(operand);
    const DType dtype = widens ? DType::kF32 : operand.dtype;
    if (dtype != operand.dtype || !is_plain_matrix(operand)) {
      form.is_copied[i] = true;
      form.copy_offset[i] = scratch.take(dispatch::numel(operand.extents) *
                                         static_cast<std::int64_t>(size_of(dtype)));
      operand = dense_copy_of(operand, dtype, -1, form.copy_offset[i]);
      choose_unit_stride(operand);
    }
    form.inputs[i] = operand;
  }
  describe(form, kernel.space);
  if (!form.desc) return std::nullopt;
  form.scratchpad_offset = scratch.take(scratch_bytes_of(form.desc));
  form.scratch_bytes = scratch.total();
  return form;
}

std::optional<Form> form_of(const Kernel& kernel) {
  const auto is_float = [](const Operand& operand) {
    return is_floating(operand.dtype) && operand.dtype != DType::kF64;
  };
  const Operand& a = kernel.core_inputs[0];
  const Operand& b = kernel.core_inputs[1];
  const bool is_empty = dispatch::numel(kernel.space) == 0 || a.extents[3] == 0;
  if (is_empty || kernel.core_type != ops::ScalarType::kF32 || !is_float(a) || !is_float(b) ||
      !is_available()) {
    return std::nullopt;
  }
  if (a.dtype == b.dtype) {
    if (std::optional<Form> native = form_with(kernel, false)) return native;
  }
  return form_with(kernel, true);
}

class Matmul final : public CompiledKernel {
 public:
  Matmul(const Kernel& kernel, const dispatch::ExecutionGraph& graph, Form form)
      : form_(std::move(form)),
        space_(kernel.space),
        scratch_(kernel.scratch),
        result_(kernel, graph.buffers, TargetLayout::kDense),
        primitive_(form_.desc,
                   std::array<Primitive::Argument, 4>{
                       {{DNNL_ARG_SRC, layout_of(form_.desc, dnnl_query_src_md)},
                        {DNNL_ARG_WEIGHTS, layout_of(form_.desc, dnnl_query_weights_md)},
                        {DNNL_ARG_DST, layout_of(form_.desc, dnnl_query_dst_md)},
                        {DNNL_ARG_SCRATCHPAD, layout_of(form_.desc, dnnl_query_scratchpad_md)}}}) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (!form_.is_copied[i]) continue;
      form_.inputs[i].buffer = scratch_;
      copies_[i].emplace(copy_region(kernel.core_inputs[i],
                                     dense_copy_of(kernel.core_inputs[i], form_.inputs[i].dtype,
                                                   scratch_, form_.copy_offset[i]),
                                     graph.buffers));
    }
  }

  void run(const RunContext& run) override {
    for (const std::optional<Region>& copy : copies_) {
      if (copy) copy->run(run);
    }
    std::byte* scratchpad =
        scratch_ < 0 ? nullptr : run.buffers[scratch_] + form_.scratchpad_offset;
    std::byte* target = result_.address(run);
    const std::int64_t target_bytes =
        space_[2] * space_[3] * static_cast<std::int64_t>(size_of(result_.target().dtype));
    for (std::int64_t batch = 0; batch < form_.batches; ++batch) {
      const std::array<std::byte*, 4> addresses{input(run, 0, batch), input(run, 1, batch),
                                                target + batch * target_bytes, scratchpad};
      primitive_.run(addresses);
    }
    result_.finish(run);
  }

 private:
  std::byte* input(const RunContext& run, std::size_t i, std::int64_t batch) const {
    const Operand& operand = form_.inputs[i];
    const std::int64_t position =
        batch / space_[1] * operand.strides[0] + batch % space_[1] * operand.strides[1];
    return address_of(operand, run) + position * static_cast<std::int64_t>(size_of(operand.dtype));
  }

  Form form_;
  Extents space_;
  int scratch_;
  CoreResult result_;
  std::array<std::optional<Region>, 2> copies_;
  Primitive primitive_;
};

}  // namespace

std::unique_ptr<CompiledKernel> compile_matmul(const Kernel& kernel,
                                               const dispatch::ExecutionGraph& graph) {
  std::optional<Form> form = form_of(kernel);
  if (!form) return nullptr;
  return std::make_unique<Matmul>(kernel, graph, *std::move(form));
}

std::int64_t matmul_scratch_bytes(const Kernel& kernel) {
  const std::optional<Form> form = form_of(kernel);
  return form ? form->scratch_bytes : -1;
}

}  // namespace vkml::cpu::onednn

#endif
