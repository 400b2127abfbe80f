// Matrix products on the CPU backend: types, transposes, batches, epilogues, against the oracle.
#include "cpu_kernel_check.h"

namespace vkml::oracle {
namespace {

using dispatch::BufferKind;

struct Product {
  std::int64_t b0, b1, m, n, k;
};

std::vector<Product> products() {
  return {{1, 1, 1, 1, 1},    {1, 1, 5, 7, 3},    {1, 1, 64, 10, 128}, {1, 1, 65, 130, 33},
          {2, 3, 9, 17, 20},  {1, 1, 30, 5, 700}, {1, 1, 4, 2500, 6},  {1, 1, 1, 40, 300},
          {1, 1, 50, 1, 300}, {1, 1, 3, 4, 0},    {1, 1, 0, 4, 3},     {5, 1, 31, 16, 12},
          {1, 1, 100, 40, 40}};
}

// A matrix stored row-major or column-major; batches dense, or the same for all (stride 0).
dispatch::Operand matrix(KernelBuilder& build, DType dtype, const Product& p, std::int64_t rows,
                         std::int64_t columns, bool is_transposed, bool is_shared) {
  dispatch::Operand operand;
  const std::int64_t size = rows * columns;
  operand.buffer = build.buffer(
      (is_shared ? size : p.b0 * p.b1 * size) * static_cast<std::int64_t>(size_of(dtype)),
      BufferKind::kInput);
  operand.dtype = dtype;
  operand.extents = {p.b0, p.b1, rows, columns};
  operand.strides = {is_shared ? 0 : p.b1 * size, is_shared ? 0 : size, is_transposed ? 1 : columns,
                     is_transposed ? rows : 1};
  return operand;
}

// Terms are at most 16; a sum of k of them in f32 may lose a few units of their last place.
double tolerance_of(DType dtype, std::int64_t k) {
  switch (dtype) {
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 1e-2;
    case DType::kF32:
      return 1e-5 + 1e-6 * static_cast<double>(k);
    case DType::kF64:
      return 1e-12;
    default:
      return 0;
  }
}

TEST(CpuMatmul, EveryTypeAndTranspose) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32,
                            DType::kI64, DType::kU8}) {
    for (const Product& p : products()) {
      for (const bool a_transposed : {false, true}) {
        for (const bool b_transposed : {false, true}) {
          for (const bool is_shared : {false, true}) {
            KernelBuilder build(CoreKind::kMatmul, {p.b0, p.b1, p.m, p.n});
            build.kernel.core_inputs = {matrix(build, dtype, p, p.m, p.k, a_transposed, false),
                                        matrix(build, dtype, p, p.k, p.n, b_transposed, is_shared)};
            build.result(dtype, build.core(ops::compute_type(dtype)));
            check(build.finish(), tolerance_of(dtype, p.k));
          }
        }
      }
    }
  }
}

TEST(CpuMatmul, StridedRowsAndColumns) {
  for (const DType dtype : {DType::kF32, DType::kI32}) {
    KernelBuilder build(CoreKind::kMatmul, {1, 1, 20, 30});
    const int a = build.buffer(20 * 100 * 4, BufferKind::kInput);
    const int b = build.buffer(40 * 60 * 4, BufferKind::kInput);
    build.kernel.core_inputs = {{a, dtype, 3, {1, 1, 20, 40}, {0, 0, 100, 2}},
                                {b, dtype, 60 * 40 - 1, {1, 1, 40, 30}, {0, 0, -60, -2}}};
    build.result(dtype, build.core(ops::compute_type(dtype)));
    check(build.finish(), tolerance_of(DType::kF32, 40));
  }
}

// relu(a @ b + bias) in another type, and a second output; bias along columns.
TEST(CpuMatmul, Epilogue) {
  for (const Product& p : products()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const bool is_single : {true, false}) {
        KernelBuilder build(CoreKind::kMatmul, {p.b0, p.b1, p.m, p.n});
        build.kernel.core_inputs = {matrix(build, dtype, p, p.m, p.k, false, false),
                                    matrix(build, dtype, p, p.k, p.n, true, false)};
        const int bias = build.buffer(p.n * 4, BufferKind::kInput);
        const Register core = build.core(ScalarType::kF32);
        const Register added = build.emit(
            Opcode::kAdd, ScalarType::kF32,
            {core, build.load({bias, DType::kF32, 0, build.kernel.space, {0, 0, 0, 1}})});
        build.result(dtype, build.emit(Opcode::kMax, ScalarType::kF32, {added, build.constant(0)}));
        if (!is_single) build.result(DType::kF32, core);
        check(build.finish(), tolerance_of(dtype, p.k));
      }
    }
  }
}

// The residual that the epilogue adds is overwritten by the result.
TEST(CpuMatmul, ResultOverwritesWhatTheEpilogueReads) {
  const Product p{1, 1, 70, 90, 30};
  KernelBuilder build(CoreKind::kMatmul, {1, 1, p.m, p.n});
  const dispatch::Operand residual = build.dense(DType::kF32, build.kernel.space);
  build.kernel.core_inputs = {matrix(build, DType::kF32, p, p.m, p.k, false, false),
                              matrix(build, DType::kF32, p, p.k, p.n, false, false)};
  const Register core = build.core(ScalarType::kF32);
  build.result(DType::kF32,
               build.emit(Opcode::kAdd, ScalarType::kF32, {core, build.load(residual)}));
  build.graph.buffers.back().donor = 0;
  check(build.finish(), tolerance_of(DType::kF32, 40));
}

}  // namespace
}  // namespace vkml::oracle
