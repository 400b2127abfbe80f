// A product that takes less than milliseconds is shared out to our threads, each of which
// multiplies some of the rows or columns: they watch for work, while libgomp's have to be woken.
//
// oneDNN takes transposes and batches as strides. What it does not take (reversed or repeated
// elements, 16-bit floats on processors without instructions for them) is first copied to dense
// f32.
#include "onednn/matmul.h"

#ifdef VKML_HAVE_ONEDNN

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "cores/core_result.h"
#include "cores/dense_copy.h"
#include "cores/scratch_layout.h"
#include "onednn/library.h"
#include "threads.h"

namespace vkml::cpu::onednn {
namespace {

using dispatch::Extents;
using dispatch::Kernel;
using dispatch::Operand;

// Elements between the rows of a copy that is made for the sake of its row distance.
constexpr std::int64_t kSpacing = 16;

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

// Rows or columns that one thread multiplies. Offsets are in bytes.
struct Part {
  PrimitiveDesc desc;
  std::array<std::int64_t, 2> input_offsets{};
  std::int64_t result_offset = 0;
  std::int64_t scratchpad_offset = 0;
};

// One product as it is handed over.
struct Form {
  std::array<Operand, 2> inputs;  // as the primitive sees them; copies have no buffer yet
  std::array<bool, 2> is_copied{};
  std::array<std::int64_t, 2> copy_offset{};
  std::int64_t m = 0;        // rows, with the batches that lie behind each other
  std::int64_t batches = 1;  // times that the primitive runs
  bool is_batched = false;   // the primitive takes all batches at once
  PrimitiveDesc desc;
  std::int64_t scratchpad_offset = 0;
  std::vector<Part> parts;  // where threads share the product: instead of `desc`
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
      form.is_batched = true;
      return;
    }
  }
  const MemoryDesc c = result_matrix(space, form.m, false);
  const MemoryDesc one_a = matrix(a, form.m);
  const MemoryDesc one_b = matrix(b, b.extents[2]);
  if (one_a && one_b && c) form.desc = matmul(one_a.get(), one_b.get(), c.get());
}

// The longer of the two axes of the result is cut, at multiples of what fills vector registers.
std::vector<Part> parts_of(const Form& form, const Extents& space, DType result) {
  constexpr std::int64_t kFewest = std::int64_t{1} << 19;  // multiply-adds worth two threads
  constexpr std::int64_t kMost = std::int64_t{1} << 29;    // beyond, waking threads costs nothing
  constexpr std::int64_t kGrain = 16;
  const auto& [a, b] = form.inputs;
  const std::int64_t columns = space[3];
  const std::int64_t products = form.m * columns * a.extents[3];
  const int threads = thread_count();
  const bool is_one_product = form.batches == 1 && !form.is_batched;
  if (threads < 2 || !is_one_product || products < kFewest || products > kMost) return {};
  const bool cuts_rows = form.m >= columns;
  const std::int64_t blocks = (std::max(form.m, columns) + kGrain - 1) / kGrain;
  if (blocks < threads) return {};
  const SingleThreaded alone;
  std::vector<Part> parts;
  for (int i = 0; i < threads; ++i) {
    const Share share = share_of(blocks, i, threads);
    const std::int64_t begin = share.begin * kGrain;
    const std::int64_t end = std::min(share.end * kGrain, std::max(form.m, columns));
    Operand part_a = a, part_b = b, part_c;
    part_c.dtype = result;
    part_c.extents = {1, 1, form.m, columns};
    part_c.strides = dense_strides(part_c.extents);
    choose_unit_stride(part_c);
    std::int64_t rows = form.m;
    std::array<std::int64_t, 2> offsets{};
    if (cuts_rows) {
      rows = end - begin;
      offsets = {begin * a.strides[2], 0};
    } else {
      part_b.extents[3] = part_c.extents[3] = end - begin;
      offsets = {0, begin * b.strides[3]};
    }
    const std::int64_t stride = cuts_rows ? columns : 1;
    const MemoryDesc all_a = matrix(part_a, rows);
    const MemoryDesc all_b = matrix(part_b, b.extents[2]);
    const MemoryDesc all_c = matrix(part_c, rows);
    Part part;
    if (all_a && all_b && all_c) part.desc = matmul(all_a.get(), all_b.get(), all_c.get());
    if (!part.desc) return {};
    for (std::size_t k = 0; k < 2; ++k) {
      part.input_offsets[k] = offsets[k] * static_cast<std::int64_t>(size_of(form.inputs[k].dtype));
    }
    part.result_offset = begin * stride * static_cast<std::int64_t>(size_of(result));
    parts.push_back(std::move(part));
  }
  return parts;
}

// Rows of b that lie a multiple of 2 KiB apart meet in few sets of the first-level cache, and
// oneDNN multiplies by them at two thirds of its speed or less unless it repacks them, as it does
// for large products only. Many rows of a make up for a copy whose rows lie otherwise.
bool is_worth_spacing(const Operand& a, const Operand& b, const Extents& space) {
  constexpr std::int64_t kFewestRows = 64;
  constexpr std::int64_t kLargest = std::int64_t{1} << 27;  // multiply-adds
  constexpr std::int64_t kApart = 2048;
  const std::int64_t rows = space[0] * space[1] * space[2];
  const std::int64_t distance = b.strides[2] * static_cast<std::int64_t>(size_of(b.dtype));
  return b.dtype == DType::kF32 && b.strides[3] == 1 && b.extents[2] > 1 &&
         distance % kApart == 0 && b.strides[0] == 0 && b.strides[1] == 0 && rows >= kFewestRows &&
         rows * space[3] * a.extents[3] <= kLargest;
}

std::optional<Form> form_with(const Kernel& kernel, bool widens) {
  Form form;
  ScratchLayout scratch(core_scratch_bytes(kernel, TargetLayout::kDense));
  for (std::size_t i = 0; i < 2; ++i) {
    Operand operand = kernel.core_inputs[i];
    choose_unit_stride(operand);
    const DType dtype = widens ? DType::kF32 : operand.dtype;
    const bool is_plain = dtype == operand.dtype && is_plain_matrix(operand);
    const bool is_spaced =
        is_plain && i == 1 && is_worth_spacing(form.inputs[0], operand, kernel.space);
    if (!is_plain || is_spaced) {
      form.is_copied[i] = true;
      const std::int64_t columns = operand.extents[3] + (is_spaced ? kSpacing : 0);
      const std::int64_t elements =
          is_spaced ? operand.extents[2] * columns : dispatch::numel(operand.extents);
      form.copy_offset[i] = scratch.take(elements * static_cast<std::int64_t>(size_of(dtype)));
      if (is_spaced) operand.extents[0] = operand.extents[1] = 1;
      operand = dense_copy_of(operand, dtype, -1, form.copy_offset[i]);
      choose_unit_stride(operand);
      if (is_spaced) operand.strides[2] = columns;
    }
    form.inputs[i] = operand;
  }
  describe(form, kernel.space);
  if (!form.desc) return std::nullopt;
  form.parts = parts_of(form, kernel.space, DType::kF32);
  if (form.parts.empty()) {
    form.scratchpad_offset = scratch.take(scratch_bytes_of(form.desc));
  }
  for (Part& part : form.parts) {
    part.scratchpad_offset = scratch.take(scratch_bytes_of(part.desc));
  }
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
        result_(kernel, graph.buffers, TargetLayout::kDense) {
    if (form_.parts.empty()) {
      primitives_.push_back(make_primitive(form_.desc));
    } else {
      const SingleThreaded alone;
      for (const Part& part : form_.parts) primitives_.push_back(make_primitive(part.desc));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (!form_.is_copied[i]) continue;
      form_.inputs[i].buffer = scratch_;
      Operand from = kernel.core_inputs[i];
      from.extents = form_.inputs[i].extents;
      copies_[i].emplace(copy_region(from, form_.inputs[i], graph.buffers));
    }
  }

  void run(const RunContext& run) override {
    for (const std::optional<Region>& copy : copies_) {
      if (copy) copy->run(run);
    }
    if (form_.parts.empty()) {
      run_whole(run);
    } else {
      parallel_shares(static_cast<std::int64_t>(form_.parts.size()), true,
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i) {
                          run_part(run, static_cast<std::size_t>(i));
                        }
                      });
    }
    result_.finish(run);
  }

 private:
  static std::unique_ptr<Primitive> make_primitive(const PrimitiveDesc& desc) {
    return std::make_unique<Primitive>(
        desc, std::array<Primitive::Argument, 4>{
                  {{DNNL_ARG_SRC, layout_of(desc, dnnl_query_src_md)},
                   {DNNL_ARG_WEIGHTS, layout_of(desc, dnnl_query_weights_md)},
                   {DNNL_ARG_DST, layout_of(desc, dnnl_query_dst_md)},
                   {DNNL_ARG_SCRATCHPAD, layout_of(desc, dnnl_query_scratchpad_md)}}});
  }

  std::byte* scratchpad(const RunContext& run, std::int64_t offset) const {
    return scratch_ < 0 ? nullptr : run.buffers[scratch_] + offset;
  }

  void run_part(const RunContext& run, std::size_t index) const {
    const SingleThreaded alone;
    const Part& part = form_.parts[index];
    const std::array<std::byte*, 4> addresses{
        address_of(form_.inputs[0], run) + part.input_offsets[0],
        address_of(form_.inputs[1], run) + part.input_offsets[1],
        result_.address(run) + part.result_offset, scratchpad(run, part.scratchpad_offset)};
    primitives_[index]->run(addresses, Sharing::kCaller);
  }

  void run_whole(const RunContext& run) const {
    std::byte* target = result_.address(run);
    const std::int64_t target_bytes =
        space_[2] * space_[3] * static_cast<std::int64_t>(size_of(result_.target().dtype));
    for (std::int64_t batch = 0; batch < form_.batches; ++batch) {
      const std::array<std::byte*, 4> addresses{input(run, 0, batch), input(run, 1, batch),
                                                target + batch * target_bytes,
                                                scratchpad(run, form_.scratchpad_offset)};
      primitives_[0]->run(addresses);
    }
  }

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
  std::vector<std::unique_ptr<Primitive>> primitives_;  // of the parts, or of the whole
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
