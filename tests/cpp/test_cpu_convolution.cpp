// Convolution and pooling on the CPU backend, with their gradients, against the oracle.
#include "cpu_kernel_check.h"

namespace vkml::oracle {
namespace {

using dispatch::BufferKind;

struct Convolution {
  std::int64_t n, c, h, w, o, kh, kw;
  std::int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;

  Extents input() const { return {n, c, h, w}; }
  Extents weight() const { return {o, c / groups, kh, kw}; }
  Extents output() const {
    return {n, o, (h + 2 * padding_h - dilation_h * (kh - 1) - 1) / stride_h + 1,
            (w + 2 * padding_w - dilation_w * (kw - 1) - 1) / stride_w + 1};
  }
  graph::Attributes attributes() const {
    return {stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups};
  }
};

std::vector<Convolution> convolutions() {
  return {
      {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1},   {2, 3, 8, 9, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1},
      {2, 4, 7, 6, 6, 3, 2, 2, 1, 0, 1, 1, 1, 2},   {1, 6, 9, 9, 6, 3, 3, 1, 1, 1, 1, 1, 1, 6},
      {3, 2, 11, 14, 3, 3, 3, 1, 1, 4, 4, 1, 1, 1}, {1, 2, 12, 10, 3, 3, 3, 1, 2, 2, 2, 2, 3, 1},
      {2, 8, 5, 5, 16, 1, 1, 1, 1, 0, 0, 1, 1, 1},  {1, 2, 1, 4, 2, 1, 2, 1, 2, 0, 0, 1, 1, 2},
      {2, 8, 20, 20, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {1, 3, 16, 16, 8, 5, 5, 3, 3, 2, 2, 1, 1, 1},
      {0, 3, 8, 8, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1}};
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 4e-3;
    case DType::kBF16:
      return 2e-2;
    case DType::kF64:
      return 1e-12;
    default:
      return 4e-4;
  }
}

void check_convolution(CoreKind kind, const Convolution& conv, DType dtype, bool has_epilogue) {
  const bool is_forward = kind == CoreKind::kConv2d;
  const bool is_weight = kind == CoreKind::kConv2dWeightGradient;
  const Extents space = is_forward ? conv.output() : is_weight ? conv.weight() : conv.input();
  KernelBuilder build(kind, space);
  build.kernel.attributes = conv.attributes();
  const Extents first = is_forward || is_weight ? conv.input() : conv.output();
  const Extents second = is_weight ? conv.output() : conv.weight();
  build.kernel.core_inputs = {build.dense(dtype, first), build.dense(dtype, second)};
  const ScalarType type = ops::compute_type(dtype);
  Register value = build.core(type);
  if (has_epilogue) {
    const int bias = build.buffer(space[1] * 4, BufferKind::kInput);
    value = build.emit(Opcode::kAdd, type,
                       {value, build.load({bias, DType::kF32, 0, space, {0, 1, 0, 0}})});
    value = build.emit(Opcode::kMax, type, {value, build.constant(0)});
  }
  build.result(dtype, value);
  check(build.finish(), tolerance_of(dtype));
}

constexpr CoreKind kConvolutions[] = {CoreKind::kConv2d, CoreKind::kConv2dInputGradient,
                                      CoreKind::kConv2dWeightGradient};

TEST(CpuConvolution, EveryDirectionAndType) {
  for (const Convolution& conv : convolutions()) {
    for (const CoreKind kind : kConvolutions) {
      for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        check_convolution(kind, conv, dtype, false);
      }
    }
  }
}

TEST(CpuConvolution, BiasAndRelu) {
  for (const Convolution& conv : convolutions()) {
    for (const CoreKind kind : kConvolutions) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        check_convolution(kind, conv, dtype, true);
      }
    }
  }
}

// Channels last, and an image cut from a larger one.
TEST(CpuConvolution, StridedOperands) {
  const Convolution conv{2, 4, 6, 7, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1};
  const Extents channels_last_input{4 * 42, 1, 28, 4};
  const Extents cut_input{4 * 100, 100, 10, 1};
  for (const Extents& strides : {channels_last_input, cut_input}) {
    for (const CoreKind kind : {CoreKind::kConv2d, CoreKind::kConv2dWeightGradient}) {
      const bool is_forward = kind == CoreKind::kConv2d;
      KernelBuilder build(kind, is_forward ? conv.output() : conv.weight());
      build.kernel.attributes = conv.attributes();
      const int image = build.buffer(2 * 400 * 4, BufferKind::kInput);
      const int other = build.buffer(2 * 5 * 42 * 4, BufferKind::kInput);
      const dispatch::Operand weight{other, DType::kF32, 0, conv.weight(), {36, 1, 12, 4}};
      const dispatch::Operand gradient{other, DType::kF32, 0, conv.output(), {210, 1, 35, 5}};
      build.kernel.core_inputs = {{image, DType::kF32, 0, conv.input(), strides},
                                  is_forward ? weight : gradient};
      build.result(DType::kF32, build.core(ScalarType::kF32));
      check(build.finish(), 1e-4);
    }
  }
}

struct Pool {
  std::int64_t h, w, kh, kw, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;

  Extents input() const { return {2, 3, h, w}; }
  Extents output() const {
    return {2, 3, (h + 2 * padding_h - dilation_h * (kh - 1) - 1) / stride_h + 1,
            (w + 2 * padding_w - dilation_w * (kw - 1) - 1) / stride_w + 1};
  }
};

std::vector<Pool> pools() {
  return {{8, 8, 2, 2, 2, 2, 0, 0, 1, 1}, {7, 9, 3, 3, 2, 2, 1, 1, 1, 1},
          {5, 5, 3, 2, 1, 1, 1, 0, 1, 1}, {10, 9, 3, 2, 1, 2, 1, 1, 2, 3},
          {1, 1, 1, 1, 1, 1, 0, 0, 1, 1}, {40, 40, 2, 2, 2, 2, 0, 0, 1, 1}};
}

TEST(CpuPooling, MaximumWithIndices) {
  for (const Pool& pool : pools()) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32}) {
      for (const bool has_nan : {false, true}) {
        if (has_nan && dtype != DType::kF32) continue;
        for (const bool indices : {false, true}) {
          KernelBuilder build(indices ? CoreKind::kMaxPool2dIndices : CoreKind::kMaxPool2d,
                              pool.output());
          build.kernel.attributes = {pool.kh,         pool.kw,        pool.stride_h,
                                     pool.stride_w,   pool.padding_h, pool.padding_w,
                                     pool.dilation_h, pool.dilation_w};
          build.kernel.core_inputs = {build.dense(dtype, pool.input())};
          build.result(indices ? DType::kI32 : dtype,
                       build.core(indices ? ScalarType::kI32 : ops::compute_type(dtype)));
          const auto graph = build.finish();
          Memory memory = random_memory(graph);
          if (has_nan) write_raw(memory.buffers[0], pool.h * pool.w / 2, std::nanf(""));
          check(graph, memory);
        }
      }
    }
  }
}

TEST(CpuPooling, PaddingNeverWins) {
  KernelBuilder build(CoreKind::kMaxPool2d, {1, 1, 3, 3});
  build.kernel.attributes = {2, 2, 2, 2, 1, 1, 1, 1};
  build.kernel.core_inputs = {build.dense(DType::kF32, {1, 1, 4, 4})};
  build.result(DType::kF32, build.core(ScalarType::kF32));
  const auto graph = build.finish();
  Memory memory = random_memory(graph);
  for (int i = 0; i < 16; ++i) write_raw(memory.buffers[0], i, -5.0F);
  run_on_cpu(graph, memory);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(read_raw<float>(memory.buffers[1], i), -5.0F);
}

TEST(CpuPooling, MaximumGradient) {
  for (const Pool& pool : pools()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      KernelBuilder build(CoreKind::kMaxPool2dGradient, pool.input());
      build.kernel.attributes = {pool.kh,        pool.kw,        pool.stride_h,   pool.stride_w,
                                 pool.padding_h, pool.padding_w, pool.dilation_h, pool.dilation_w};
      build.kernel.core_inputs = {build.dense(dtype, pool.output()),
                                  build.dense(DType::kI32, pool.output())};
      build.result(dtype, build.core(ScalarType::kF32));
      const auto graph = build.finish();
      Memory memory = random_memory(graph);
      std::mt19937 random(5);
      for (std::int64_t i = 0; i < dispatch::numel(pool.output()); ++i) {
        write_raw(memory.buffers[1], i,
                  static_cast<std::int32_t>(random() % static_cast<unsigned>(pool.h * pool.w)));
      }
      check(graph, memory, dtype == DType::kBF16 ? 1e-2 : 1e-5);
    }
  }
}

TEST(CpuPooling, AverageWithGradient) {
  for (const Pool& pool : pools()) {
    if (pool.dilation_h != 1) continue;
    for (const std::int64_t counts_padding : {0, 1}) {
      for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16}) {
        for (const bool is_gradient : {false, true}) {
          KernelBuilder build(is_gradient ? CoreKind::kAvgPool2dGradient : CoreKind::kAvgPool2d,
                              is_gradient ? pool.input() : pool.output());
          build.kernel.attributes = {pool.kh,        pool.kw,        pool.stride_h, pool.stride_w,
                                     pool.padding_h, pool.padding_w, counts_padding};
          build.kernel.core_inputs = {
              build.dense(dtype, is_gradient ? pool.output() : pool.input())};
          build.result(dtype, build.core(ops::compute_type(dtype)));
          check(build.finish(), dtype == DType::kF16 ? 2e-3 : 1e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace vkml::oracle
