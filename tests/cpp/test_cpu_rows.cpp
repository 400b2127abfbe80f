// Row reductions on the CPU backend: every kind and type, short, long and strided rows, several
// phases, against the oracle.
#include "cpu_kernel_check.h"

#include <omp.h>

namespace vkml::oracle {
namespace {

using dispatch::BufferKind;

struct Rows {
  Extents space;
  int reduce_dims;
};

std::vector<Rows> dense_rows() {
  return {{{1, 1, 1, 1}, 1},      {{1, 1, 1, 5}, 1},     {{1, 1, 64, 10}, 1},  {{1, 3, 7, 33}, 1},
          {{1, 1, 5, 1000}, 1},   {{1, 1, 3, 5003}, 1},  {{2, 3, 4, 5}, 2},    {{2, 3, 40, 50}, 3},
          {{1, 1, 1, 300000}, 1}, {{2, 1, 200, 900}, 2}, {{1, 1, 4, 0}, 1},    {{1, 0, 4, 3}, 2},
          {{2, 3, 4, 5}, 4},      {{1, 1, 300, 1}, 1},   {{1, 1, 2, 16384}, 1}};
}

/// Without rows of no elements, for kernels that also store elements.
std::vector<Rows> rows_with_elements() {
  std::vector<Rows> rows = dense_rows();
  std::erase_if(rows, [](const Rows& r) { return dispatch::numel(r.space) == 0; });
  return rows;
}

double tolerance_of(ReduceKind kind, DType dtype) {
  if (kind != ReduceKind::kSum && kind != ReduceKind::kProd) return 0;
  return dtype == DType::kF32 ? 2e-5 : 1e-12;
}

void check_reduction(ReduceKind kind, ScalarType type, const Rows& rows) {
  KernelBuilder build(CoreKind::kNone, rows.space, rows.reduce_dims);
  const DType dtype = ops::storage_type(type);
  const bool is_argument = kind == ReduceKind::kArgMax || kind == ReduceKind::kArgMin;
  const ScalarType result = is_argument ? ScalarType::kI32 : type;
  Register x = build.load(build.dense(dtype, rows.space));
  if (kind == ReduceKind::kProd && ops::is_floating(type)) {
    // Factors near 1, or long products leave the range.
    x = build.emit(Opcode::kConvert, ScalarType::kF64, {x});
    const Register small =
        build.emit(Opcode::kConstant, ScalarType::kF64, {}, std::bit_cast<std::int64_t>(1e-5));
    const Register one =
        build.emit(Opcode::kConstant, ScalarType::kF64, {}, std::bit_cast<std::int64_t>(1.0));
    x = build.emit(Opcode::kFma, ScalarType::kF64, {x, small, one});
    x = build.emit(Opcode::kConvert, type, {x});
  }
  build.result(ops::storage_type(result), build.reduce(kind, result, x), true);
  check(build.finish(), tolerance_of(kind, dtype));
}

TEST(CpuRows, EveryKindOfEveryType) {
  for (const Rows& rows : dense_rows()) {
    for (const ScalarType type :
         {ScalarType::kI32, ScalarType::kI64, ScalarType::kF32, ScalarType::kF64}) {
      for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax,
                                    ReduceKind::kMin, ReduceKind::kArgMax, ReduceKind::kArgMin}) {
        SCOPED_TRACE(std::string(ops::name_of(kind)) + " " + ops::name_of(type));
        check_reduction(kind, type, rows);
      }
    }
    check_reduction(ReduceKind::kAny, ScalarType::kBool, rows);
    check_reduction(ReduceKind::kAll, ScalarType::kBool, rows);
  }
}

// Rows whose elements are not neighbours: sums over leading axes, channels of images.
TEST(CpuRows, StridedRows) {
  struct Layout {
    Extents space;
    Extents strides;
    int reduce_dims;
  };
  const std::vector<Layout> layouts{
      {{1, 1, 128, 64}, {0, 0, 1, 128}, 1},  // sum over axis 0 of (64, 128)
      {{1, 1, 10, 64}, {0, 0, 1, 10}, 1},    // of (64, 10)
      {{1, 1, 5, 30}, {0, 0, 1, 5}, 1},      // too few for vectors
      {{1, 1, 700, 50}, {0, 0, 1, 700}, 1},
      {{1, 1, 33, 20000}, {0, 0, 1, 33}, 1},  // long: divided into parts
      {{1, 16, 8, 49}, {0, 49, 784, 1}, 2},   // (8, 16, 49) over axes 0 and 2
      {{16, 8, 5, 7}, {35, 560, 7, 1}, 3},
      {{1, 24, 8, 9}, {0, 1, 216, 24}, 2},  // channels last
      {{1, 4, 6, 50}, {0, 300, 1, 6}, 1},
      {{1, 1, 12, 40}, {0, 0, -1, 12}, 1},
  };
  for (const Layout& layout : layouts) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kBF16, DType::kI32}) {
      for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kArgMin}) {
        KernelBuilder build(CoreKind::kNone, layout.space, layout.reduce_dims);
        std::int64_t least = 0;
        std::int64_t most = 0;
        for (std::size_t i = 0; i < 4; ++i) {
          const std::int64_t reach = (layout.space[i] - 1) * layout.strides[i];
          least += std::min<std::int64_t>(reach, 0);
          most += std::max<std::int64_t>(reach, 0);
        }
        const int in = build.buffer((most - least + 1) * static_cast<std::int64_t>(size_of(dtype)),
                                    BufferKind::kInput);
        const ScalarType type = ops::compute_type(dtype);
        const Register x = build.load({in, dtype, -least, layout.space, layout.strides});
        const bool is_argument = kind == ReduceKind::kArgMin;
        const ScalarType result = is_argument ? ScalarType::kI32 : type;
        build.result(ops::storage_type(result), build.reduce(kind, result, x), true);
        check(build.finish(), dtype == DType::kF64 ? 1e-12 : 2e-5);
      }
    }
  }
}

// e = exp-like(x - max); e / sum(e), and the sum itself: three passes, a value kept between two.
void check_normalization(const Rows& rows, DType dtype, bool in_place) {
  KernelBuilder build(CoreKind::kNone, rows.space, rows.reduce_dims);
  const ScalarType f32 = ScalarType::kF32;
  const Register x = build.load(build.dense(dtype, rows.space));
  const Register greatest = build.reduce(ReduceKind::kMax, f32, x);
  const Register shifted = build.emit(Opcode::kSub, f32, {x, greatest});
  const Register square = build.emit(Opcode::kMul, f32, {shifted, shifted});
  const Register e = build.emit(Opcode::kAdd, f32, {square, build.constant(0.5F)});
  const Register sum = build.reduce(ReduceKind::kSum, f32, e);
  const Register root = build.emit(Opcode::kSqrt, f32, {sum});
  build.result(dtype, build.emit(Opcode::kDiv, f32, {e, sum}));
  if (in_place) build.graph.buffers.back().donor = 0;
  build.result(DType::kF32, root, true);
  build.result(DType::kF32, build.emit(Opcode::kAdd, f32, {shifted, root}));
  const double storage = dtype == DType::kBF16 ? 8e-3 : 0;
  check(build.finish(), storage + 3e-5);
}

TEST(CpuRows, SeveralPhases) {
  for (const Rows& rows : rows_with_elements()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      check_normalization(rows, dtype, false);
      check_normalization(rows, dtype, true);
    }
  }
}

TEST(CpuRows, SeveralPhasesOfStridedRows) {
  for (const Rows& rows : {Rows{{1, 1, 128, 64}, 1}, Rows{{1, 1, 40, 3000}, 1},
                           Rows{{1, 1, 9, 40000}, 1}, Rows{{1, 3, 17, 50}, 1}}) {
    KernelBuilder build(CoreKind::kNone, rows.space, rows.reduce_dims);
    const ScalarType f32 = ScalarType::kF32;
    const std::int64_t columns = rows.space[2];
    const Extents strides{0, columns * rows.space[3], 1, columns};
    const int in = build.buffer(dispatch::numel(rows.space) * 4, BufferKind::kInput);
    const Register x = build.load({in, DType::kF32, 0, rows.space, strides});
    // A value of each row, and one of each element along it.
    const int scale = build.buffer(columns * 4, BufferKind::kInput);
    const int weight = build.buffer(rows.space[3] * 4, BufferKind::kInput);
    const Register s = build.load({scale, DType::kF32, 0, rows.space, {0, 0, 1, 0}});
    const Register w = build.load({weight, DType::kF32, 0, rows.space, {0, 0, 0, 1}});
    const Register total = build.reduce(ReduceKind::kSum, f32, x);
    const Register mean = build.emit(
        Opcode::kMul, f32, {total, build.constant(1.0F / static_cast<float>(rows.space[3]))});
    const Register centred = build.emit(Opcode::kSub, f32, {x, mean});
    const Register square = build.emit(Opcode::kMul, f32, {centred, centred});
    const Register spread = build.reduce(ReduceKind::kSum, f32, square);
    const Register scaled = build.emit(Opcode::kMul, f32, {centred, s});
    const Register weighted = build.emit(Opcode::kMul, f32, {scaled, w});
    const int out = build.buffer(dispatch::numel(rows.space) * 4, BufferKind::kResult);
    build.store({out, DType::kF32, 0, rows.space, strides}, weighted);
    build.result(DType::kF32, spread, true);
    check(build.finish(), 3e-5);
  }
}

TEST(CpuRows, CoordinatesRowValuesAndConstants) {
  for (const Rows& rows : rows_with_elements()) {
    KernelBuilder build(CoreKind::kNone, rows.space, rows.reduce_dims);
    const ScalarType f32 = ScalarType::kF32;
    const Register x = build.load(build.dense(DType::kF32, rows.space));
    Register sum = x;
    for (int axis = 0; axis < kMaxDims; ++axis) {
      const Register at = build.emit(Opcode::kIota, ScalarType::kI32, {}, axis);
      const Register real = build.emit(Opcode::kConvert, f32, {at});
      sum = build.emit(Opcode::kFma, f32, {real, build.constant(0.001F), sum});
    }
    const Register total = build.reduce(ReduceKind::kSum, f32, sum);
    // The sum of a constant counts the row; an element store of a row value repeats it.
    const Register count = build.reduce(ReduceKind::kSum, f32, build.constant(1));
    build.result(DType::kF32, total, true);
    build.result(DType::kF32, count, true);
    build.result(DType::kF32, build.emit(Opcode::kAdd, f32, {count, build.constant(2)}));
    build.result(DType::kF32, build.constant(3), true);
    check(build.finish(), 3e-5);
  }
}

TEST(CpuRows, NotANumberWins) {
  for (const std::int64_t n : {4, 40, 5000}) {
    for (const ReduceKind kind :
         {ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kArgMax, ReduceKind::kArgMin}) {
      const bool is_argument = kind >= ReduceKind::kArgMax;
      KernelBuilder build(CoreKind::kNone, {1, 1, 3, n}, 1);
      const Register x = build.load(build.dense(DType::kF32, build.kernel.space));
      const ScalarType result = is_argument ? ScalarType::kI32 : ScalarType::kF32;
      build.result(ops::storage_type(result), build.reduce(kind, result, x), true);
      const auto graph = build.finish();
      Memory memory = random_memory(graph);
      write_raw(memory.buffers[0], n + n / 2, std::nanf(""));
      write_raw(memory.buffers[0], n + n - 1, std::nanf(""));
      check(graph, memory);
    }
  }
}

TEST(CpuRows, LongSumIsExactAndDoesNotDependOnThreads) {
  constexpr std::int64_t kCount = std::int64_t{1} << 25;
  KernelBuilder build(CoreKind::kNone, {1, 1, 1, kCount}, 1);
  const Register x = build.load(build.dense(DType::kF32, build.kernel.space));
  build.result(DType::kF32, build.reduce(ReduceKind::kSum, ScalarType::kF32, x), true);
  const auto graph = build.finish();
  Memory memory;
  memory.buffers.resize(2);
  memory.buffers[0].resize(kCount * 4);
  memory.buffers[1].resize(4);
  auto* values = reinterpret_cast<float*>(memory.buffers[0].data());
  std::fill_n(values, kCount, 1.0F);
  run_on_cpu(graph, memory);
  EXPECT_EQ(read_raw<float>(memory.buffers[1], 0), 0x1p25F);

  std::mt19937 random(7);
  fill_random(memory.buffers[0], DType::kF32, random);
  run_on_cpu(graph, memory);
  const float first = read_raw<float>(memory.buffers[1], 0);
  const int threads = omp_get_max_threads();
  for (const int count : {1, 2, 3, threads}) {
    omp_set_num_threads(count);
    run_on_cpu(graph, memory);
    EXPECT_EQ(read_raw<float>(memory.buffers[1], 0), first);
  }
  omp_set_num_threads(threads);
}

}  // namespace
}  // namespace vkml::oracle
