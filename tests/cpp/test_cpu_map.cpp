// Maps on the CPU backend: every instruction in every type, every layout, against the oracle.
#include "cpu_kernel_check.h"

#include <omp.h>

namespace vkml::oracle {
namespace {

using dispatch::BufferKind;

std::vector<Extents> shapes() {
  return {{1, 1, 1, 1}, {1, 1, 1, 7},   {1, 1, 1, 16},  {1, 1, 1, 1000},  {1, 1, 3, 5},
          {2, 3, 4, 5}, {1, 1, 33, 65}, {7, 1, 5, 130}, {1, 1, 1, 40000}, {0, 1, 2, 3}};
}

std::string label(const char* what, ScalarType type) {
  return std::string(what) + " " + ops::name_of(type);
}

class Unary : public ::testing::TestWithParam<Opcode> {};

void check_instruction(Opcode op, ScalarType type, const Extents& space) {
  KernelBuilder build(CoreKind::kNone, space);
  const DType dtype = ops::storage_type(type);
  const int count = ops::operand_count(op);
  const bool shifts =
      op == Opcode::kShiftLeft || op == Opcode::kShiftRight || op == Opcode::kShiftRightLogical;
  const bool divides = op == Opcode::kDiv || op == Opcode::kRem;
  const bool compares = op >= Opcode::kEqual && op <= Opcode::kLessEqual;
  Register a = build.load(build.dense(op == Opcode::kSelect ? DType::kBool : dtype, space));
  Register b = count > 1 ? build.load(build.dense(dtype, space)) : a;
  const Register c = count > 2 ? build.load(build.dense(dtype, space)) : a;
  if (shifts) b = build.emit(Opcode::kAnd, type, {b, build.integer(31, type)});
  if (divides && !ops::is_floating(type)) {
    b = build.emit(Opcode::kOr, type,
                   {build.emit(Opcode::kAbs, type, {b}), build.integer(1, type)});
  }
  if (op == Opcode::kSqrt) a = build.emit(Opcode::kAbs, type, {a});
  const ScalarType result = compares ? ScalarType::kBool : type;
  Register r = 0;
  if (count == 1) r = build.emit(op, result, {a});
  if (count == 2) r = build.emit(op, result, {a, b});
  if (count == 3) r = build.emit(op, result, {a, b, c});
  build.result(ops::storage_type(result), r);
  check(build.finish());
}

TEST(CpuMap, ArithmeticOfEveryType) {
  const std::vector<Opcode> any{
      Opcode::kAdd,  Opcode::kSub,       Opcode::kMul,   Opcode::kDiv,   Opcode::kNeg,
      Opcode::kAbs,  Opcode::kMin,       Opcode::kMax,   Opcode::kEqual, Opcode::kNotEqual,
      Opcode::kLess, Opcode::kLessEqual, Opcode::kSelect};
  const std::vector<Opcode> floats{Opcode::kFma,  Opcode::kSqrt,  Opcode::kFloor,
                                   Opcode::kCeil, Opcode::kTrunc, Opcode::kRoundEven};
  const std::vector<Opcode> integers{
      Opcode::kRem, Opcode::kAnd,       Opcode::kOr,         Opcode::kXor,
      Opcode::kNot, Opcode::kShiftLeft, Opcode::kShiftRight, Opcode::kShiftRightLogical};
  for (const ScalarType type :
       {ScalarType::kI32, ScalarType::kI64, ScalarType::kF32, ScalarType::kF64}) {
    auto ops = any;
    const auto& more = ops::is_floating(type) ? floats : integers;
    ops.insert(ops.end(), more.begin(), more.end());
    for (const Opcode op : ops) {
      SCOPED_TRACE(label(ops::name_of(op), type));
      for (const Extents& space : shapes()) check_instruction(op, type, space);
    }
  }
  for (const Opcode op : {Opcode::kAnd, Opcode::kOr, Opcode::kXor, Opcode::kNot, Opcode::kEqual,
                          Opcode::kNotEqual, Opcode::kSelect}) {
    SCOPED_TRACE(label(ops::name_of(op), ScalarType::kBool));
    for (const Extents& space : shapes()) check_instruction(op, ScalarType::kBool, space);
  }
  check_instruction(Opcode::kMulHighU32, ScalarType::kI32, {1, 1, 1, 100});
}

TEST(CpuMap, ConversionsBetweenEveryPair) {
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int to = 0; to < kDTypeCount; ++to) {
      const auto source = static_cast<DType>(from);
      const auto target = static_cast<DType>(to);
      SCOPED_TRACE(std::string(name_of(source)) + " to " + std::string(name_of(target)));
      for (const Extents& space : shapes()) {
        KernelBuilder build(CoreKind::kNone, space);
        const Register x = build.load(build.dense(source, space));
        build.result(target, build.emit(Opcode::kConvert, ops::compute_type(target), {x}));
        check(build.finish());
      }
    }
  }
}

TEST(CpuMap, NarrowStorageRoundsToNearestEven) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    KernelBuilder build(CoreKind::kNone, {1, 1, 1, 70000});
    const dispatch::Operand x = build.dense(DType::kF32, build.kernel.space);
    const Register value = build.load(x);
    build.result(dtype, value);
    build.result(DType::kF32, build.emit(Opcode::kNarrow, ScalarType::kF32, {value},
                                         static_cast<std::int64_t>(dtype)));
    const auto graph = build.finish();
    Memory memory = random_memory(graph);
    std::mt19937 random(3);
    for (std::size_t i = 0; i < 70000; ++i) {
      write_raw(memory.buffers[0], static_cast<std::int64_t>(i),
                static_cast<std::uint32_t>(random()));
    }
    check(graph, memory);
  }
}

TEST(CpuMap, NotANumberInMinMaxAndComparisons) {
  const float nan = std::nanf("");
  for (const Opcode op : {Opcode::kMin, Opcode::kMax, Opcode::kLess, Opcode::kEqual,
                          Opcode::kNotEqual, Opcode::kLessEqual}) {
    KernelBuilder build(CoreKind::kNone, {1, 1, 1, 4});
    const bool compares = op >= Opcode::kEqual;
    const Register a = build.load(build.dense(DType::kF32, build.kernel.space));
    const Register b = build.load(build.dense(DType::kF32, build.kernel.space));
    build.result(compares ? DType::kBool : DType::kF32,
                 build.emit(op, compares ? ScalarType::kBool : ScalarType::kF32, {a, b}));
    const auto graph = build.finish();
    Memory memory = random_memory(graph);
    const float as[] = {nan, 1, nan, 2};
    const float bs[] = {1, nan, nan, 2};
    for (int i = 0; i < 4; ++i) {
      write_raw(memory.buffers[0], i, as[i]);
      write_raw(memory.buffers[1], i, bs[i]);
    }
    check(graph, memory);
  }
}

// a * b + c where an addition after a rounded product would differ.
TEST(CpuMap, FusedMultiplyAddRoundsOnce) {
  KernelBuilder build(CoreKind::kNone, {1, 1, 1, 1});
  const Register a = build.load(build.dense(DType::kF32, build.kernel.space));
  build.result(DType::kF32,
               build.emit(Opcode::kFma, ScalarType::kF32, {a, a, build.constant(-1.0F)}));
  const auto graph = build.finish();
  Memory memory = random_memory(graph);
  write_raw(memory.buffers[0], 0, 1.0F + 0x1p-12F);
  run_on_cpu(graph, memory);
  EXPECT_EQ(read_raw<float>(memory.buffers[1], 0), 0x1p-11F + 0x1p-24F);
}

TEST(CpuMap, ConstantsScalarsAndCoordinates) {
  for (const Extents& space : shapes()) {
    KernelBuilder build(CoreKind::kNone, space);
    const Register x = build.load(build.dense(DType::kF32, space));
    const int scalar = build.scalar(ScalarType::kF32);
    const Register s = build.emit(Opcode::kScalar, ScalarType::kF32, {}, scalar);
    Register sum = build.emit(Opcode::kAdd, ScalarType::kF32, {x, s});
    const Register uniform = build.emit(Opcode::kMul, ScalarType::kF32, {s, build.constant(0.5F)});
    sum = build.emit(Opcode::kMul, ScalarType::kF32, {sum, uniform});
    for (int axis = 0; axis < kMaxDims; ++axis) {
      const ScalarType type = axis % 2 == 0 ? ScalarType::kI32 : ScalarType::kI64;
      const Register at = build.emit(Opcode::kIota, type, {}, axis);
      sum = build.emit(Opcode::kAdd, ScalarType::kF32,
                       {sum, build.emit(Opcode::kConvert, ScalarType::kF32, {at})});
    }
    build.result(DType::kF32, sum);
    build.result(DType::kF32, uniform);
    const auto graph = build.finish();
    Memory memory = random_memory(graph);
    memory.scalars.push_back(std::bit_cast<std::uint32_t>(1.25F));
    check(graph, memory);
  }
}

TEST(CpuMap, BooleanAndWideScalars) {
  KernelBuilder build(CoreKind::kNone, {1, 1, 1, 50});
  const Register x = build.load(build.dense(DType::kF64, build.kernel.space));
  const Register yes =
      build.emit(Opcode::kScalar, ScalarType::kBool, {}, build.scalar(ScalarType::kBool));
  const Register wide =
      build.emit(Opcode::kScalar, ScalarType::kF64, {}, build.scalar(ScalarType::kF64));
  build.result(DType::kF64, build.emit(Opcode::kSelect, ScalarType::kF64, {yes, x, wide}));
  const auto graph = build.finish();
  Memory memory = random_memory(graph);
  for (const std::uint64_t flag : {0U, 1U}) {
    memory.scalars = {flag, std::bit_cast<std::uint64_t>(0.1)};
    check(graph, memory);
  }
}

// A Horner chain becomes one step; the value must not change by a bit.
TEST(CpuMap, PolynomialEqualsItsChain) {
  for (const bool f32 : {true, false}) {
    const ScalarType type = f32 ? ScalarType::kF32 : ScalarType::kF64;
    const DType dtype = ops::storage_type(type);
    const auto constant = [&](KernelBuilder& build, double value) {
      return build.emit(Opcode::kConstant, type, {},
                        f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                            : std::bit_cast<std::int64_t>(value));
    };
    for (const Extents& space : shapes()) {
      KernelBuilder build(CoreKind::kNone, space);
      const Register x = build.load(build.dense(dtype, space));
      Register p = constant(build, 0.25);
      for (int k = 0; k < 7; ++k) {
        const Register c = constant(build, 1.0 / (k + 3));
        p = k % 2 == 0 ? build.emit(Opcode::kFma, type, {p, x, c})
                       : build.emit(Opcode::kFma, type, {x, p, c});
      }
      build.result(dtype, p);
      const Register y = build.load(build.dense(dtype, space));
      Register q = build.emit(Opcode::kFma, type, {y, x, constant(build, 3)});
      q = build.emit(Opcode::kFma, type, {q, x, constant(build, 2)});
      build.result(dtype, build.emit(Opcode::kFma, type, {q, q, y}));
      check(build.finish());
    }
  }
}

// Operands over the space in every arrangement: permuted, reversed, broadcast, spread out.
TEST(CpuMap, EveryLayout) {
  const Extents space{3, 5, 34, 40};
  const std::vector<std::pair<Extents, std::int64_t>> layouts{
      {{6800, 1360, 40, 1}, 0},   {{1, 3, 15, 510}, 0},
      {{6800, 1, 5, 170}, 0},     {{6800, 1360, 1, 34}, 0},
      {{0, 0, 0, 1}, 3},          {{0, 0, 1, 0}, 0},
      {{0, 1, 0, 0}, 0},          {{0, 0, 0, 0}, 11},
      {{13600, 2720, 80, 2}, 1},  {{-6800, -1360, -40, -1}, 20399},
      {{6800, 1360, 40, -1}, 39}, {{-1, 3, 15, 510}, 2}};
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kU8, DType::kBool}) {
    for (const auto& [strides, offset] : layouts) {
      for (const bool dense_store : {true, false}) {
        KernelBuilder build(CoreKind::kNone, space);
        const ScalarType type = ops::compute_type(dtype);
        const int in =
            build.buffer(45000 * static_cast<std::int64_t>(size_of(dtype)), BufferKind::kInput);
        const Register x = build.load({in, dtype, offset, space, strides});
        const Register y = build.load(build.dense(dtype, space));
        const Opcode op = type == ScalarType::kBool ? Opcode::kXor : Opcode::kAdd;
        const Register sum = build.emit(op, type, {x, y});
        if (dense_store) {
          build.result(dtype, sum);
        } else {
          const int out =
              build.buffer(45000 * static_cast<std::int64_t>(size_of(dtype)), BufferKind::kResult);
          build.store({out, dtype, 5, space, {1, 3, 15, 512}}, sum);
        }
        check(build.finish());
      }
    }
  }
}

TEST(CpuMap, ResultsOverwriteTheirOperands) {
  for (const std::int64_t n : {1, 16, 100, 5000}) {
    KernelBuilder build(CoreKind::kNone, {1, 1, 1, n});
    const dispatch::Operand x = build.dense(DType::kF32, build.kernel.space);
    const dispatch::Operand y = build.dense(DType::kF32, build.kernel.space);
    const Register a = build.load(x);
    const Register b = build.load(y);
    const Register sum = build.emit(Opcode::kAdd, ScalarType::kF32, {a, b});
    build.result(DType::kF32, sum);
    build.graph.buffers.back().donor = 0;
    // Reads what the first store overwrites, after it could have been written.
    build.result(DType::kF32, build.emit(Opcode::kMul, ScalarType::kF32, {a, sum}));
    build.graph.buffers.back().donor = 1;
    check(build.finish());
  }
}

TEST(CpuMap, OperandsChangePlaces) {
  KernelBuilder build(CoreKind::kNone, {1, 1, 1, 3000});
  const Register a = build.load(build.dense(DType::kF32, build.kernel.space));
  const Register b = build.load(build.dense(DType::kF32, build.kernel.space));
  build.result(DType::kF32, b);
  build.graph.buffers.back().donor = 0;
  build.result(DType::kF32, a);
  build.graph.buffers.back().donor = 1;
  check(build.finish());
}

TEST(CpuMap, ManyLiveValues) {
  KernelBuilder build(CoreKind::kNone, {1, 1, 1, 2049});
  std::vector<Register> values{build.load(build.dense(DType::kF32, build.kernel.space))};
  for (int i = 0; i < 100; ++i) {
    values.push_back(
        build.emit(Opcode::kMul, ScalarType::kF32,
                   {values.back(), build.constant(1.0F + 0.01F * static_cast<float>(i))}));
  }
  Register sum = values[0];
  for (const Register value : values) {
    sum = build.emit(Opcode::kAdd, ScalarType::kF32, {value, sum});
  }
  build.result(DType::kF32, sum);
  build.result(DType::kF32, values[50]);
  build.result(DType::kF32, values[50]);
  check(build.finish());
}

TEST(CpuMap, BadIndexIsReportedAndClamped) {
  for (const bool is_bad : {false, true}) {
    KernelBuilder build(CoreKind::kNone, {1, 1, 1, 21});
    build.graph.sites.push_back({"take", 10});
    const Register index = build.load(build.dense(DType::kI32, build.kernel.space));
    const Register checked =
        build.emit(Opcode::kCheckIndex, ScalarType::kI32, {index, build.integer(10)}, 0);
    build.result(DType::kI32, checked);
    const auto graph = build.finish();
    Memory memory = random_memory(graph);
    for (std::int32_t i = 0; i < 21; ++i) write_raw(memory.buffers[0], i, i % 10);
    if (!is_bad) {
      check(graph, memory);
      continue;
    }
    write_raw<std::int32_t>(memory.buffers[0], 17, 12);
    write_raw<std::int32_t>(memory.buffers[0], 19, -3);
    try {
      run_on_cpu(graph, memory);
      FAIL() << "no IndexError";
    } catch (const IndexError& error) {
      EXPECT_STREQ(error.what(), "[take] index 12 is out of bounds for an axis of extent 10");
    }
  }
}

}  // namespace
}  // namespace vkml::oracle
