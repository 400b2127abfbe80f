// Hand-built kernels with a core: products, convolutions, pooling, gather and scatter.
#pragma once

#include "kernel_cases.h"
#include "vkml/ops/core_kind.h"

namespace vkml::oracle {

struct MatmulLayout {
  bool transposes_a = false, transposes_b = false;
  bool broadcasts_b = false;  // over the batch axes
  bool has_epilogue = false;  // a bias and a second operand
  DType dtype = DType::kF32;
};

inline KernelCase matmul_case(const Extents& space, std::int64_t inner,
                              const MatmulLayout& layout) {
  KernelBuilder b(CoreKind::kMatmul, space);
  const ScalarType type = ops::compute_type(layout.dtype);
  const auto matrix = [&](Extents extents, bool transposes, bool broadcasts) {
    const Extents whole = extents;
    if (broadcasts) extents[0] = extents[1] = 1;
    if (transposes) std::swap(extents[2], extents[3]);
    Operand operand = b.dense(layout.dtype, extents);
    if (transposes) operand = transposed(operand);
    return broadcasts ? broadcast(operand, whole) : operand;
  };
  b.kernel.core_inputs = {
      matrix({space[0], space[1], space[2], inner}, layout.transposes_a, false),
      matrix({space[0], space[1], inner, space[3]}, layout.transposes_b, layout.broadcasts_b)};
  const DType result = is_floating(layout.dtype) ? layout.dtype : ops::storage_type(type);
  Register value = b.core(type);
  if (layout.has_epilogue) {
    const Register bias = b.load(broadcast(b.dense(result, {1, 1, 1, space[3]}), space));
    value = b.emit(Opcode::kAdd, type, {value, bias});
    value = b.emit(Opcode::kMax, type, {value, b.load(b.dense(result, space))});
  }
  b.result(result, value);
  const bool is_half = layout.dtype == DType::kF16 || layout.dtype == DType::kBF16;
  return {"matmul " + to_string(std::span<const std::int64_t>(space)) + " over " +
              std::to_string(inner),
          b.finish(),
          layout.dtype == DType::kBF16 ? 1e-2
          : is_half                    ? 2e-3
                                       : 1e-5,
          is_half ? 1e-2 : 2e-4,
          {}};
}

inline std::vector<KernelCase> matmul_cases() {
  std::vector<KernelCase> cases;
  for (const bool transposes_a : {false, true}) {
    for (const bool transposes_b : {false, true}) {
      const MatmulLayout plain{transposes_a, transposes_b, false, false, DType::kF32};
      MatmulLayout with_epilogue = plain;
      with_epilogue.has_epilogue = true;
      cases.push_back(matmul_case({1, 1, 5, 7}, 3, with_epilogue));
      cases.push_back(matmul_case({2, 3, 9, 12}, 20, with_epilogue));
      cases.push_back(matmul_case({1, 1, 64, 128}, 84, plain));
      cases.push_back(matmul_case({1, 1, 200, 132}, 40, with_epilogue));
      cases.push_back(matmul_case({1, 1, 10, 8}, 1000, with_epilogue));
    }
  }
  cases.push_back(matmul_case({1, 1, 1, 40}, 33, {}));
  cases.push_back(matmul_case({1, 1, 33, 1}, 65, {}));
  cases.push_back(matmul_case({1, 1, 3, 4}, 0, {}));
  cases.push_back(matmul_case({2, 3, 5, 8}, 12, {false, false, true, true, DType::kF32}));
  cases.push_back(matmul_case({2, 3, 5, 8}, 12, {true, false, true, false, DType::kF32}));
  for (const DType dtype :
       {DType::kF16, DType::kBF16, DType::kF64, DType::kI32, DType::kI64, DType::kU8}) {
    cases.push_back(matmul_case({1, 2, 9, 12}, 20, {false, true, false, true, dtype}));
    cases.push_back(matmul_case({1, 1, 70, 68}, 24, {false, false, false, false, dtype}));
  }
  return cases;
}

/// Extents and attributes of a window sweep, as in convolution and pooling.
struct Sweep {
  std::int64_t images, channels, height, width;
  std::int64_t outputs = 1;
  std::int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  std::int64_t padding_h = 0, padding_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;

  std::int64_t out_height() const {
    return (height + 2 * padding_h - dilation_h * (kernel_h - 1) - 1) / stride_h + 1;
  }
  std::int64_t out_width() const {
    return (width + 2 * padding_w - dilation_w * (kernel_w - 1) - 1) / stride_w + 1;
  }
  Extents image() const { return {images, channels, height, width}; }
};

inline std::vector<KernelCase> convolution_cases_of(const Sweep& s, DType dtype = DType::kF32) {
  const Extents weight{s.outputs, s.channels / s.groups, s.kernel_h, s.kernel_w};
  const Extents output{s.images, s.outputs, s.out_height(), s.out_width()};
  const graph::Attributes attributes{s.stride_h,   s.stride_w,   s.padding_h, s.padding_w,
                                     s.dilation_h, s.dilation_w, s.groups};
  const auto make = [&](CoreKind kind, const Extents& space, const Extents& first,
                        const Extents& second) {
    KernelBuilder b(kind, space);
    b.kernel.attributes = attributes;
    b.kernel.core_inputs = {b.dense(dtype, first), b.dense(dtype, second)};
    const Register core = b.core(ScalarType::kF32);
    const Register bias = b.load(broadcast(b.dense(DType::kF32, {1, space[1], 1, 1}), space));
    b.result(DType::kF32, b.emit(Opcode::kAdd, ScalarType::kF32, {core, bias}));
    return KernelCase{name_of(kind), b.finish(), 1e-5, 1e-3, {}};
  };
  return {make(CoreKind::kConv2d, output, s.image(), weight),
          make(CoreKind::kConv2dInputGradient, s.image(), output, weight),
          make(CoreKind::kConv2dWeightGradient, weight, s.image(), output)};
}

inline std::vector<KernelCase> convolution_cases() {
  std::vector<KernelCase> cases;
  const auto add = [&](const Sweep& sweep, DType dtype = DType::kF32) {
    for (KernelCase& test : convolution_cases_of(sweep, dtype)) cases.push_back(std::move(test));
  };
  add({2, 3, 8, 9, 4, 3, 3, 1, 1, 1, 1});
  add({2, 4, 7, 8, 6, 3, 2, 2, 1, 1, 0, 1, 2, 2});
  add({2, 4, 7, 8, 6, 3, 2, 2, 1, 1, 0, 1, 2, 2}, DType::kF16);
  add({1, 4, 6, 6, 4, 3, 3, 1, 1, 1, 1, 1, 1, 4});
  add({3, 8, 4, 4, 16});
  add({2, 2, 11, 14, 3, 3, 3, 1, 1, 4, 4});
  add({4, 1, 28, 28, 8, 3, 3, 1, 1, 1, 1});
  add({1, 6, 5, 4, 4, 1, 1, 2, 2, 0, 0, 1, 1, 2});
  return cases;
}

/// For matrix units that stage images, of a device so small that few tiles are enough: tiles that
/// stick out, rows of pixels that four or two neighbours divide and others, channels that eight
/// divide and others, strides, dilation, groups, kernels of many taps and of one row.
inline std::vector<KernelCase> staged_convolution_cases() {
  std::vector<KernelCase> cases;
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    for (const Sweep& sweep :
         {Sweep{2, 32, 8, 32, 64, 3, 3, 1, 1, 1, 1}, Sweep{1, 10, 7, 14, 100, 3, 3, 1, 1, 1, 1},
          Sweep{1, 16, 14, 15, 33, 3, 3, 1, 1, 1, 1}, Sweep{2, 24, 16, 32, 32, 3, 3, 2, 2, 1, 1},
          Sweep{1, 64, 12, 16, 96, 3, 3, 1, 1, 2, 2, 2, 2, 2},
          Sweep{1, 32, 12, 16, 24, 3, 3, 1, 1, 1, 1, 1, 1, 2},
          Sweep{1, 16, 8, 32, 32, 5, 5, 1, 1, 2, 2}, Sweep{1, 16, 6, 34, 32, 1, 3}}) {
      for (KernelCase& test : convolution_cases_of(sweep, dtype)) cases.push_back(std::move(test));
    }
  }
  return cases;
}

/// Large enough for matrix units: rows of pixels that eight neighbours divide and others, strides,
/// groups, types.
inline std::vector<KernelCase> large_convolution_cases() {
  std::vector<KernelCase> cases;
  const auto add = [&](const Sweep& sweep, DType dtype = DType::kF32) {
    for (KernelCase& test : convolution_cases_of(sweep, dtype)) cases.push_back(std::move(test));
  };
  add({8, 32, 32, 32, 128, 3, 3, 1, 1, 1, 1});
  add({8, 32, 32, 32, 128, 3, 3, 1, 1, 1, 1}, DType::kF16);
  add({8, 40, 31, 33, 96, 3, 3, 1, 1, 1, 1});
  add({16, 64, 48, 48, 64, 3, 3, 2, 2, 1, 1}, DType::kBF16);
  add({8, 64, 32, 32, 128, 3, 3, 1, 1, 2, 2, 2, 2, 2});
  add({16, 64, 32, 32, 128});
  return cases;
}

inline KernelCase pool_case(CoreKind kind, const Sweep& s, graph::Attributes attributes) {
  const Extents output{s.images, s.channels, s.out_height(), s.out_width()};
  const bool is_gradient =
      kind == CoreKind::kMaxPool2dGradient || kind == CoreKind::kAvgPool2dGradient;
  const bool gives_index = kind == CoreKind::kMaxPool2dIndices;
  KernelBuilder b(kind, is_gradient ? s.image() : output);
  b.kernel.attributes = attributes;
  b.kernel.core_inputs = {b.dense(DType::kF32, is_gradient ? output : s.image())};
  if (kind == CoreKind::kMaxPool2dGradient) {
    b.kernel.core_inputs.push_back(b.dense(DType::kI32, output));
  }
  const Register core = b.core(gives_index ? ScalarType::kI32 : ScalarType::kF32);
  b.result(gives_index ? DType::kI32 : DType::kF32, core);
  const auto prepare = [kind, s](Memory& memory) {
    if (kind == CoreKind::kMaxPool2d || kind == CoreKind::kMaxPool2dIndices) {
      write_element(memory.buffers[0], DType::kF32, 40, {std::nan(""), 0});
    }
    if (kind != CoreKind::kMaxPool2dGradient) return;
    // Winners anywhere in their windows.
    std::mt19937 random(5);
    const auto pick = [&](std::int64_t out, std::int64_t stride, std::int64_t padding,
                          std::int64_t kernel, std::int64_t dilation, std::int64_t extent) {
      for (;;) {
        const auto tap = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kernel));
        const std::int64_t place = out * stride - padding + tap * dilation;
        if (place >= 0 && place < extent) return place;
      }
    };
    const std::int64_t oh = s.out_height(), ow = s.out_width();
    for (std::int64_t i = 0; i < s.images * s.channels * oh * ow; ++i) {
      const std::int64_t h =
          pick(i / ow % oh, s.stride_h, s.padding_h, s.kernel_h, s.dilation_h, s.height);
      const std::int64_t w =
          pick(i % ow, s.stride_w, s.padding_w, s.kernel_w, s.dilation_w, s.width);
      write_element(memory.buffers[1], DType::kI32, i, {0, h * s.width + w});
    }
  };
  const bool sums = is_gradient || kind == CoreKind::kAvgPool2d;
  return {name_of(kind), b.finish(), sums ? 1e-5 : 0, sums ? 1e-5 : 0, prepare};
}

inline std::vector<KernelCase> pool_cases() {
  std::vector<KernelCase> cases;
  const Sweep sweeps[] = {{2, 3, 9, 8, 1, 2, 2, 2, 2},
                          {2, 3, 9, 8, 1, 3, 3, 1, 1, 1, 1},
                          {2, 3, 9, 8, 1, 3, 2, 2, 1, 1, 0, 2, 2},
                          {2, 3, 9, 8, 1, 3, 3, 2, 2, 1, 1}};
  for (const Sweep& s : sweeps) {
    const graph::Attributes maximum{s.kernel_h,  s.kernel_w,  s.stride_h,   s.stride_w,
                                    s.padding_h, s.padding_w, s.dilation_h, s.dilation_w};
    for (const CoreKind kind :
         {CoreKind::kMaxPool2d, CoreKind::kMaxPool2dIndices, CoreKind::kMaxPool2dGradient}) {
      cases.push_back(pool_case(kind, s, maximum));
    }
    if (s.dilation_h > 1) continue;
    for (const std::int64_t counts_padding : {0, 1}) {
      const graph::Attributes average{s.kernel_h,  s.kernel_w,  s.stride_h,    s.stride_w,
                                      s.padding_h, s.padding_w, counts_padding};
      cases.push_back(pool_case(CoreKind::kAvgPool2d, s, average));
      cases.push_back(pool_case(CoreKind::kAvgPool2dGradient, s, average));
    }
  }
  return cases;
}

/// An index operand that is dense over `extents`, or the same along every axis but one.
inline Operand index_operand(KernelBuilder& b, DType dtype, const Extents& extents,
                             std::size_t axis, bool is_shared) {
  if (!is_shared) return b.dense(dtype, extents);
  Extents line{1, 1, 1, 1};
  line[axis] = extents[axis];
  return broadcast(b.dense(dtype, line), extents);
}

inline KernelCase gather_case(DType index_type, std::size_t axis, bool is_shared) {
  const Extents source{3, 4, 5, 6};
  Extents space = source;
  space[axis] = 7;
  KernelBuilder b(CoreKind::kGather, space);
  b.graph.sites = {{"gather", source[axis]}};
  b.kernel.core_site = 0;
  b.kernel.attributes = {static_cast<std::int64_t>(axis)};
  const Operand x = b.dense(DType::kF32, source);
  const Operand index = index_operand(b, index_type, space, axis, is_shared);
  b.kernel.core_inputs = {x, index};
  const Register core = b.core(ScalarType::kF32);
  b.result(DType::kF32, b.emit(Opcode::kAdd, ScalarType::kF32, {core, b.constant(1)}));
  return {"gather", b.finish(), 0, 0, valid_indices(index, source[axis])};
}

inline KernelCase scatter_case(DType index_type, std::size_t axis, bool is_shared,
                               Extents space = {3, 4, 5, 6}, std::int64_t indices = 7,
                               ops::ScatterKind kind = ops::ScatterKind::kAdd,
                               DType dtype = DType::kF32) {
  KernelBuilder b(CoreKind::kScatter, space);
  b.graph.sites = {{"scatter_add", space[axis]}};
  b.kernel.core_site = 0;
  b.kernel.attributes = {static_cast<std::int64_t>(axis), static_cast<std::int64_t>(kind)};
  Extents extents = space;
  extents[axis] = indices;
  if (axis != 2 && !is_shared) extents[2] = 2;
  const Operand base = b.dense(dtype, space);
  const Operand index = index_operand(b, index_type, extents, axis, is_shared);
  b.kernel.core_inputs = {base, index, b.dense(dtype, extents)};
  b.result(dtype, b.core(ops::compute_type(dtype)));
  return {"scatter_add", b.finish(), 1e-6, 1e-5, valid_indices(index, space[axis])};
}

inline std::vector<KernelCase> index_cases() {
  std::vector<KernelCase> cases;
  for (const DType type : {DType::kI32, DType::kI64}) {
    for (std::size_t axis = 0; axis < kMaxDims; ++axis) {
      for (const bool is_shared : {false, true}) {
        cases.push_back(gather_case(type, axis, is_shared));
        cases.push_back(scatter_case(type, axis, is_shared));
      }
    }
  }
  // An embedding's gradient.
  cases.push_back(scatter_case(DType::kI32, 2, true, {1, 1, 65, 32}, 512));
  return cases;
}

}  // namespace vkml::oracle
