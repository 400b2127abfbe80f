// Hand-built kernels of every family, over types, layouts and sizes that break code generators:
// tails, odd offsets, transposes, reversed and broadcast axes, empty rows, bad indices. The tests
// of SPIR-V validate what is generated for them; the tests of Vulkan kernels run them.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernel_builder.h"
#include "kernel_oracle.h"

namespace vkml::oracle {

struct KernelCase {
  std::string name;
  dispatch::ExecutionGraph graph;
  double relative = 0, absolute = 0;     // largest error allowed
  std::function<void(Memory&)> prepare;  // special values, valid indices
};

inline const std::vector<DType> kAllTypes = {DType::kBool, DType::kU8,   DType::kI32, DType::kI64,
                                             DType::kF16,  DType::kBF16, DType::kF32, DType::kF64};

/// Fills every operand with values of moderate size, then applies the case's own preparation.
inline Memory memory_of(const KernelCase& test) {
  Memory memory;
  for (const dispatch::Buffer& buffer : test.graph.buffers) {
    memory.buffers.emplace_back(static_cast<std::size_t>(buffer.bytes));
  }
  std::mt19937 random(7);
  std::uniform_real_distribution<double> values(-4, 4);
  const auto fill = [&](const Operand& operand) {
    auto& bytes = memory.buffers[static_cast<std::size_t>(operand.buffer)];
    const auto count = static_cast<std::int64_t>(bytes.size() / size_of(operand.dtype));
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = values(random);
      const bool is_float = is_floating(operand.dtype);
      write_element(bytes, operand.dtype, i,
                    {is_float ? value : 0.0, operand.dtype == DType::kBool ? value > 0
                                             : operand.dtype == DType::kU8
                                                 ? static_cast<std::int64_t>(value * value * 10)
                                                 : static_cast<std::int64_t>(value * 25)});
    }
  };
  for (const Kernel& kernel : test.graph.kernels) {
    for (const auto* operands : {&kernel.core_inputs, &kernel.loads, &kernel.stores}) {
      for (const Operand& operand : *operands) fill(operand);
    }
  }
  for (std::size_t i = 0; i < test.graph.scalars.size(); ++i) {
    memory.scalars.push_back(std::bit_cast<std::uint32_t>(1.5F + static_cast<float>(i)));
  }
  if (test.prepare) test.prepare(memory);
  return memory;
}

inline Operand transposed(Operand operand) {
  std::swap(operand.strides[2], operand.strides[3]);
  std::swap(operand.extents[2], operand.extents[3]);
  return operand;
}

/// The operand read over `space`, with stride 0 along axes where it has one element.
inline Operand broadcast(Operand operand, const Extents& space) {
  for (std::size_t axis = 0; axis < space.size(); ++axis) {
    if (operand.extents[axis] == 1) operand.strides[axis] = 0;
  }
  operand.extents = space;
  return operand;
}

/// Fills an index operand's buffer with places inside [0, extent).
inline std::function<void(Memory&)> valid_indices(const Operand& operand, std::int64_t extent) {
  return [operand, extent](Memory& memory) {
    auto& bytes = memory.buffers[static_cast<std::size_t>(operand.buffer)];
    std::mt19937 random(11);
    const auto count = static_cast<std::int64_t>(bytes.size() / size_of(operand.dtype));
    for (std::int64_t i = 0; i < count; ++i) {
      write_element(bytes, operand.dtype, i,
                    {0, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent))});
    }
  };
}

// Maps.

inline KernelCase multiply_add_case(std::int64_t count, dispatch::BufferKind kind) {
  KernelBuilder b(CoreKind::kNone, {1, 1, 1, count});
  const Register x = b.load(b.dense(DType::kF32, b.kernel.space, kind));
  const Register y = b.load(b.dense(DType::kF32, b.kernel.space));
  const Register product = b.emit(Opcode::kMul, ScalarType::kF32, {x, y});
  const Register scalar = b.emit(Opcode::kScalar, ScalarType::kF32, {}, b.scalar(ScalarType::kF32));
  b.result(DType::kF32, b.emit(Opcode::kAdd, ScalarType::kF32, {product, scalar}));
  return {"multiply_add " + std::to_string(count), b.finish(), 0, 0, {}};
}

inline KernelCase strided_map_case(const Extents& space) {
  const ScalarType f32 = ScalarType::kF32;
  KernelBuilder b(CoreKind::kNone, space);
  const Register x =
      b.load(transposed(b.dense(DType::kF32, {space[0], space[1], space[3], space[2]})));
  const Register bias = b.load(broadcast(b.dense(DType::kF32, {1, 1, 1, space[3]}), space));
  const Register scale = b.load(broadcast(b.dense(DType::kF32, {1, space[1], 1, 1}), space));
  Operand reversed = b.dense(DType::kF32, {space[0], space[1], space[2], 2 * space[3] + 1});
  reversed.extents = space;
  reversed.offset = 2 * space[3];
  reversed.strides[3] = -2;
  Register sum = b.emit(Opcode::kAdd, f32, {x, bias});
  sum = b.emit(Opcode::kMul, f32, {sum, scale});
  sum = b.emit(Opcode::kSub, f32, {sum, b.load(reversed)});
  for (int axis = 0; axis < kMaxDims; ++axis) {
    const Register place = b.emit(Opcode::kIota, ScalarType::kI32, {}, axis);
    sum = b.emit(Opcode::kAdd, f32, {sum, b.emit(Opcode::kConvert, f32, {place})});
  }
  b.result(DType::kF32, sum);
  b.result(DType::kF32, x);
  return {"strided map", b.finish(), 0, 0, {}};
}

/// Rows in reverse order, dense within each: addresses run backwards from the base.
inline KernelCase flipped_rows_case(DType dtype) {
  const Extents space{1, 3, 6, 8};
  KernelBuilder b(CoreKind::kNone, space);
  Operand flipped = b.dense(dtype, space);
  flipped.offset = 2 * 48 + 5 * 8;
  flipped.strides = {0, -48, -8, 1};
  b.result(dtype, b.load(flipped));
  return {"flipped rows of " + std::string(name_of(dtype)), b.finish(), 0, 0, {}};
}

inline KernelCase conversion_case(DType from, DType to, std::int64_t count, std::int64_t offset) {
  KernelBuilder b(CoreKind::kNone, {1, 1, 1, count});
  Operand operand = b.dense(from, {1, 1, 1, count + offset});
  operand.extents = b.kernel.space;
  operand.offset = offset;
  const ScalarType type = ops::compute_type(to);
  const Register value = b.emit(Opcode::kConvert, type, {b.load(operand)});
  b.result(to, b.emit(Opcode::kNarrow, type, {value}, static_cast<std::int64_t>(to)));
  return {std::string(name_of(from)) + " to " + std::string(name_of(to)), b.finish(), 0, 0, {}};
}

/// One instruction over ordinary values and, for floats, NaN, infinities and signed zero.
inline KernelCase opcode_case(Opcode op, ScalarType from, ScalarType to) {
  constexpr std::int64_t kCount = 70;
  KernelBuilder b(CoreKind::kNone, {1, 1, 1, kCount});
  std::vector<Register> operands;
  const DType dtype = ops::storage_type(from);
  for (int i = 0; i < ops::operand_count(op); ++i) {
    operands.push_back(b.load(b.dense(dtype, b.kernel.space)));
  }
  const bool is_shift =
      op == Opcode::kShiftLeft || op == Opcode::kShiftRight || op == Opcode::kShiftRightLogical;
  const bool divides = (op == Opcode::kDiv || op == Opcode::kRem) && !ops::is_floating(from);
  if (is_shift || divides) {
    operands[1] = b.emit(Opcode::kAnd, from, {operands[1], b.integer(31, from)});
  }
  if (divides) operands[1] = b.emit(Opcode::kAdd, from, {operands[1], b.integer(1, from)});
  ops::Instruction instruction;
  instruction.op = op;
  instruction.type = to;
  if (!operands.empty()) instruction.a = operands[0];
  if (operands.size() > 1) instruction.b = operands[1];
  if (operands.size() > 2) instruction.c = operands[2];
  b.kernel.program.code.push_back(instruction);
  b.result(ops::storage_type(to), static_cast<Register>(b.kernel.program.code.size() - 1));
  const auto special = [dtype, count = operands.size()](Memory& memory) {
    if (!is_floating(dtype)) return;
    const double values[] = {std::nan(""), INFINITY, -INFINITY, -0.0, 2.5, 3e38, 1e-30};
    for (std::size_t i = 0; i < count; ++i) {
      for (std::int64_t k = 0; k < 7; ++k) {
        write_element(memory.buffers[i], dtype, k * 2 + static_cast<std::int64_t>(i),
                      {values[k], 0});
      }
    }
  };
  // A quotient or a root may be off by the last bit where the remainder is subnormal, and subnormal
  // results may be flushed.
  const bool may_round = from == ScalarType::kF32 && (op == Opcode::kDiv || op == Opcode::kSqrt);
  double relative = may_round ? 1.2e-7 : 0;
  if (op == Opcode::kExp) relative = from == ScalarType::kF32 ? 0x1p-22 : 0x1p-51;  // 2 ULP
  return {std::string(name_of(op)) + " of " + name_of(from), b.finish(), relative,
          relative > 0 ? 1.2e-38 : 0, special};
}

inline std::vector<KernelCase> opcode_cases() {
  std::vector<KernelCase> cases;
  for (const ScalarType t :
       {ScalarType::kF32, ScalarType::kF64, ScalarType::kI32, ScalarType::kI64}) {
    for (const Opcode op : {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kDiv, Opcode::kNeg,
                            Opcode::kAbs, Opcode::kMin, Opcode::kMax}) {
      cases.push_back(opcode_case(op, t, t));
    }
    for (const Opcode op : {Opcode::kEqual, Opcode::kNotEqual, Opcode::kLess, Opcode::kLessEqual}) {
      cases.push_back(opcode_case(op, t, ScalarType::kBool));
    }
    const bool is_float = ops::is_floating(t);
    const auto group =
        is_float
            ? std::vector<Opcode>{Opcode::kFloor, Opcode::kCeil, Opcode::kTrunc, Opcode::kRoundEven,
                                  Opcode::kSqrt,  Opcode::kFma,  Opcode::kExp}
            : std::vector<Opcode>{Opcode::kAnd,        Opcode::kOr,
                                  Opcode::kXor,        Opcode::kNot,
                                  Opcode::kRem,        Opcode::kShiftLeft,
                                  Opcode::kShiftRight, Opcode::kShiftRightLogical};
    for (const Opcode op : group) cases.push_back(opcode_case(op, t, t));
  }
  for (const Opcode op :
       {Opcode::kAnd, Opcode::kOr, Opcode::kXor, Opcode::kNot, Opcode::kEqual, Opcode::kNotEqual}) {
    cases.push_back(opcode_case(op, ScalarType::kBool, ScalarType::kBool));
  }
  cases.push_back(opcode_case(Opcode::kMulHighU32, ScalarType::kI32, ScalarType::kI32));
  cases.push_back(opcode_case(Opcode::kBitcast, ScalarType::kF32, ScalarType::kI32));
  cases.push_back(opcode_case(Opcode::kBitcast, ScalarType::kI32, ScalarType::kF32));
  cases.push_back(opcode_case(Opcode::kBitcast, ScalarType::kF64, ScalarType::kI64));
  return cases;
}

/// Indices checked by a map: the one bad index, if any, is at place 7.
inline KernelCase check_index_case(std::int64_t seventh) {
  constexpr std::int64_t kCount = 50;
  KernelBuilder b(CoreKind::kNone, {1, 1, 1, kCount});
  b.graph.sites.push_back({"index", kCount});
  const Register index = b.load(b.dense(DType::kI32, b.kernel.space));
  const Register extent = b.integer(kCount);
  const Register checked = b.emit(Opcode::kCheckIndex, ScalarType::kI32, {index, extent}, 0);
  b.result(DType::kI32, checked, false, dispatch::BufferKind::kTemporary);
  return {"check_index", b.finish(), 0, 0, [seventh](Memory& memory) {
            for (std::int64_t i = 0; i < kCount; ++i) {
              write_element(memory.buffers[0], DType::kI32, i, {0, i == 7 ? seventh : i});
            }
          }};
}

inline std::vector<KernelCase> map_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t count : {1, 3, 4, 7, 64, 4099}) {
    cases.push_back(multiply_add_case(count, dispatch::BufferKind::kInput));
  }
  cases.push_back(multiply_add_case(1000, dispatch::BufferKind::kTemporary));
  for (const Extents& space :
       {Extents{2, 3, 5, 8}, Extents{2, 3, 5, 7}, Extents{1, 4, 4, 4}, Extents{3, 1, 1, 8}}) {
    cases.push_back(strided_map_case(space));
  }
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kU8, DType::kI64}) {
    cases.push_back(flipped_rows_case(dtype));
  }
  cases.push_back(check_index_case(7));
  return cases;
}

inline std::vector<KernelCase> conversion_cases() {
  std::vector<KernelCase> cases;
  for (const DType from : kAllTypes) {
    for (const DType to : kAllTypes) {
      cases.push_back(conversion_case(from, to, from == to ? 64 : 9, 0));
      if (from == to) cases.push_back(conversion_case(from, to, 9, 1));
    }
  }
  return cases;
}

// Rows.

/// max, 1 / (1 + (x - max)^2), sum, quotient: the phases of softmax with exact instructions.
inline KernelCase softmax_case(const Extents& space, int reduce_dims, bool is_transposed,
                               DType dtype, dispatch::BufferKind kind) {
  const ScalarType f32 = ScalarType::kF32;
  KernelBuilder b(CoreKind::kNone, space, reduce_dims);
  const auto operand = [&](dispatch::BufferKind where) {
    if (!is_transposed) return b.dense(dtype, space, where);
    return transposed(b.dense(dtype, {space[0], space[1], space[3], space[2]}, where));
  };
  const Register x = b.load(operand(kind));
  const Register shifted = b.emit(Opcode::kSub, f32, {x, b.reduce(ReduceKind::kMax, f32, x)});
  const Register square = b.emit(Opcode::kMul, f32, {shifted, shifted});
  const Register one = b.constant(1);
  const Register weight =
      b.emit(Opcode::kDiv, f32, {one, b.emit(Opcode::kAdd, f32, {square, one})});
  const Register sum = b.reduce(ReduceKind::kSum, f32, weight);
  b.store(operand(dispatch::BufferKind::kResult), b.emit(Opcode::kDiv, f32, {weight, sum}));
  b.result(DType::kF32, sum, true);
  const double relative = dtype == DType::kF16 ? 2e-3 : dtype == DType::kBF16 ? 1e-2 : 2e-6;
  return {
      "softmax " + to_string(std::span<const std::int64_t>(space)), b.finish(), relative, 1e-7, {}};
}

inline KernelCase reduce_case(ReduceKind kind, ScalarType type, const Extents& space,
                              bool is_transposed, bool has_nan = false) {
  KernelBuilder b(CoreKind::kNone, space, 1);
  const DType dtype = ops::storage_type(type);
  const Operand operand = is_transposed
                              ? transposed(b.dense(dtype, {space[0], space[1], space[3], space[2]}))
                              : b.dense(dtype, space);
  const bool gives_index = kind == ReduceKind::kArgMax || kind == ReduceKind::kArgMin;
  const ScalarType result = gives_index ? ScalarType::kI32 : type;
  b.result(ops::storage_type(result), b.reduce(kind, result, b.load(operand)), true);
  const auto nan = [dtype](Memory& memory) {
    for (const std::int64_t place : {21, 77, 90}) {
      write_element(memory.buffers[0], dtype, place, {std::nan(""), 0});
    }
  };
  const bool is_wide = type == ScalarType::kF64;
  const bool sums = kind == ReduceKind::kSum || kind == ReduceKind::kProd;
  return {std::string(name_of(kind)) + " of " + name_of(type) + " " +
              to_string(std::span<const std::int64_t>(space)),
          b.finish(),
          !sums     ? 0
          : is_wide ? 1e-12
                    : 2e-6,
          !sums     ? 0
          : is_wide ? 1e-9
                    : 1e-3,
          has_nan ? std::function<void(Memory&)>(nan) : nullptr};
}

/// A product that is stored, and its sum along each row: the gradients of a scale and of a bias.
inline KernelCase stored_product_case(const Extents& space, bool is_transposed, DType dtype) {
  const ScalarType f32 = ScalarType::kF32;
  KernelBuilder b(CoreKind::kNone, space, 1);
  const auto operand = [&](dispatch::BufferKind kind) {
    if (!is_transposed) return b.dense(dtype, space, kind);
    return transposed(b.dense(dtype, {space[0], space[1], space[3], space[2]}, kind));
  };
  const Register x = b.load(operand(dispatch::BufferKind::kInput));
  const Register y = b.load(operand(dispatch::BufferKind::kTemporary));
  const Register product = b.emit(Opcode::kMul, f32, {x, y});
  b.store(operand(dispatch::BufferKind::kResult), product);
  b.result(DType::kF32, b.reduce(ReduceKind::kSum, f32, product), true);
  b.result(DType::kF32, b.reduce(ReduceKind::kMax, f32, y), true);
  const double relative = dtype == DType::kF16 ? 2e-3 : dtype == DType::kBF16 ? 1e-2 : 2e-6;
  return {"stored product " + to_string(std::span<const std::int64_t>(space)),
          b.finish(),
          relative,
          1e-3,
          {}};
}

/// Rows that two axes make up, as in batch norm: (C | N, HW) of an (N, C, HW) tensor.
inline KernelCase batch_norm_case(std::int64_t channels, std::int64_t images, std::int64_t pixels) {
  const ScalarType f32 = ScalarType::kF32;
  const Extents space{1, channels, images, pixels};
  KernelBuilder b(CoreKind::kNone, space, 2);
  const auto operand = [&](dispatch::BufferKind kind) {
    Operand tensor = b.dense(DType::kF32, {images, channels, 1, pixels}, kind);
    tensor.extents = space;
    tensor.strides = {0, pixels, channels * pixels, 1};
    return tensor;
  };
  const Register x = b.load(operand(dispatch::BufferKind::kInput));
  const Register gamma = b.load(broadcast(b.dense(DType::kF32, {1, channels, 1, 1}), space));
  const Register scale = b.constant(1.0F / static_cast<float>(images * pixels));
  const Register mean = b.emit(Opcode::kMul, f32, {b.reduce(ReduceKind::kSum, f32, x), scale});
  const Register centred = b.emit(Opcode::kSub, f32, {x, mean});
  const Register square = b.emit(Opcode::kMul, f32, {centred, centred});
  const Register variance =
      b.emit(Opcode::kMul, f32, {b.reduce(ReduceKind::kSum, f32, square), scale});
  Register y = b.emit(Opcode::kMul, f32, {b.emit(Opcode::kMul, f32, {centred, variance}), gamma});
  for (const std::int64_t axis : {1, 2, 3}) {
    const Register place = b.emit(Opcode::kIota, ScalarType::kI32, {}, axis);
    y = b.emit(Opcode::kAdd, f32, {y, b.emit(Opcode::kConvert, f32, {place})});
  }
  b.store(operand(dispatch::BufferKind::kResult), y);
  b.result(DType::kF32, mean, true);
  return {"batch norm", b.finish(), 1e-5, 1e-4, {}};
}

inline std::vector<KernelCase> row_cases() {
  using dispatch::BufferKind;
  std::vector<KernelCase> cases;
  for (const bool is_transposed : {false, true}) {
    for (const Extents& space :
         {Extents{1, 2, 3, 4}, Extents{2, 1, 5, 10}, Extents{1, 1, 2, 1024}, Extents{1, 2, 33, 128},
          Extents{1, 3, 1, 333}, Extents{1, 1, 2, 3000}, Extents{1, 1, 1, 9001}}) {
      cases.push_back(softmax_case(space, 1, is_transposed, DType::kF32, BufferKind::kTemporary));
    }
    cases.push_back(softmax_case({2, 2, 5, 8}, 2, is_transposed, DType::kF32, BufferKind::kInput));
  }
  cases.push_back(softmax_case({1, 1, 5, 100}, 1, false, DType::kF16, BufferKind::kInput));
  cases.push_back(softmax_case({1, 1, 5, 99}, 1, false, DType::kBF16, BufferKind::kInput));
  // Rows that begin at no multiple of a vector: held by lanes, and read again in each phase.
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Extents& space : {Extents{1, 1, 7, 65}, Extents{1, 2, 3, 258},
                                 Extents{1, 1, 5, 1027}, Extents{1, 1, 3, 40003}}) {
      cases.push_back(softmax_case(space, 1, false, dtype, BufferKind::kTemporary));
    }
  }
  for (const bool is_transposed : {false, true}) {
    for (const Extents& space : {Extents{1, 1, 5, 70}, Extents{1, 1, 2, 30001},
                                 Extents{1, 1, 40, 9000}, Extents{1, 2, 33, 130}}) {
      cases.push_back(stored_product_case(space, is_transposed, DType::kF32));
    }
    cases.push_back(stored_product_case({1, 1, 3, 12001}, is_transposed, DType::kBF16));
  }
  cases.push_back(batch_norm_case(6, 5, 24));
  cases.push_back(batch_norm_case(3, 40, 256));
  return cases;
}

inline std::vector<KernelCase> reduce_cases() {
  std::vector<KernelCase> cases;
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax,
                                ReduceKind::kMin, ReduceKind::kArgMax, ReduceKind::kArgMin}) {
    for (const ScalarType type :
         {ScalarType::kF32, ScalarType::kF64, ScalarType::kI32, ScalarType::kI64}) {
      const bool orders = kind != ReduceKind::kSum && kind != ReduceKind::kProd;
      cases.push_back(
          reduce_case(kind, type, {1, 1, 3, 40}, false, orders && ops::is_floating(type)));
      cases.push_back(reduce_case(kind, type, {1, 2, 17, 9}, true));
      if (kind == ReduceKind::kProd) continue;
      cases.push_back(reduce_case(kind, type, {1, 1, 1, 20000}, false));
    }
    cases.push_back(reduce_case(kind, ScalarType::kF32, {1, 1, 9, 0}, false));
  }
  for (const ReduceKind kind : {ReduceKind::kAny, ReduceKind::kAll}) {
    cases.push_back(reduce_case(kind, ScalarType::kBool, {1, 1, 40, 3}, false));
    cases.push_back(reduce_case(kind, ScalarType::kBool, {1, 1, 3, 300}, true));
  }
  cases.push_back(reduce_case(ReduceKind::kSum, ScalarType::kF32, {1, 1, 32, 30000}, true));
  cases.push_back(reduce_case(ReduceKind::kSum, ScalarType::kF32, {1, 1, 10, 64}, true));
  return cases;
}

}  // namespace vkml::oracle
