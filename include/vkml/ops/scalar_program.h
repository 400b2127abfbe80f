// The scalar program: what a kernel computes at one element, as straight-line SSA.
//
// Rows of the elementwise table record themselves into it (expr.h), the fuser links many of them
// into one, and each backend turns it into loops or shader code. The instruction set is small on
// purpose: everything that hardware does not promise accurately (log, sin, division of integers by
// zero, ...) is written in these instructions once, so that devices agree. The exponential is an
// instruction, since half of what networks compute at an element is one, and some devices have it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vkml/core/dtype.h"

namespace vkml::ops {

/// Types that arithmetic exists in. Narrow storage types convert at load and store.
enum class ScalarType : std::uint8_t { kBool, kI32, kI64, kF32, kF64 };

/// The type in which elements of `dtype` are computed: u8 in kI32; f16, bf16 in kF32.
ScalarType compute_type(DType dtype);
/// The storage type that holds every value of `type`.
DType storage_type(ScalarType type);
constexpr bool is_floating(ScalarType type) { return type >= ScalarType::kF32; }

enum class Opcode : std::uint8_t {
  // Sources.
  kArgument,  // imm: which argument (only in rows; the fuser replaces it)
  kLoad,      // imm: index into Kernel::loads; widened to `type`
  kCore,      // the result of the kernel's core (matmul, convolution, ...) at this element
  kScalar,    // imm: index into the run-time scalars, already of `type`
  kConstant,  // imm: the bits (f32 and i32 in the low 32; bool 0 or 1)
  kIota,      // imm: axis of the iteration space; the coordinate along it (kI32 or kI64)
  // Arithmetic, kI32 (wrapping), kI64 (wrapping), kF32, kF64. No contraction, no reassociation.
  kAdd,
  kSub,
  kMul,
  kDiv,  // floats: IEEE; imm kNearQuotient: see there. Integers: truncating; never by 0 or -1
  kRem,  // integers: sign of the dividend; the divisor is never 0 and never -1
  kNeg,
  kAbs,
  kMin,  // floats: a < b ? a : b, so b when either is NaN
  kMax,  // floats: a > b ? a : b, so b when either is NaN
  // Floats only.
  kFma,  // a * b + c, rounded once
  kSqrt,
  kFloor,
  kCeil,
  kTrunc,
  kRoundEven,
  kExp,     // e^a within 2 ULP, infinities and subnormal results included: exp_program() or better
  kBeyond,  // imm: a FarFunction of b (and c) where they are past its reach; elsewhere a
  // Integers only (kI32, kI64); kAnd, kOr, kXor, kNot on kBool too.
  kMulHighU32,  // high 32 bits of the unsigned 32x32 product (kI32)
  kAnd,
  kOr,
  kXor,
  kNot,
  kShiftLeft,          // shift counts are within [0, width)
  kShiftRight,         // arithmetic
  kShiftRightLogical,  // zeros come in
  // Comparisons: operands of one type, result kBool. A NaN compares false (kNotEqual: true).
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kSelect,   // a ? b : c
  kConvert,  // from a's type to `type`; float to integer truncates a value that is in range
  kBitcast,  // kF32 <-> kI32, kF64 <-> kI64
  kNarrow,   // imm: a DType; rounds to its values (f16, bf16 in kF32; u8 wraps in kI32)
  // Across a row: the trailing `reduce_dims` axes of the iteration space.
  kReduce,  // imm: a ReduceKind; a is an element value, the result is one value a row
  // Data-dependent indices: a clamped to [0, b - 1]; the first failure goes to the status word.
  kCheckIndex,  // imm: index into ExecutionGraph::sites
};

/// As imm of kDiv: any value within 3 ULP of the quotient will do, and the divisor is at least
/// 2^-126, and at most 2^126 unless the numerator is at most 1: then the quotient is subnormal,
/// which a device may take for 0.
inline constexpr std::int64_t kNearQuotient = 1;

/// NaN wins in kMax and kMin; kArgMax and kArgMin give the first index (of a NaN, if any) along the
/// flattened row, as kI32. kAny and kAll take and give kBool. Empty rows give the identity.
enum class ReduceKind : std::uint8_t { kSum, kProd, kMax, kMin, kArgMax, kArgMin, kAny, kAll };

struct Instruction {
  Opcode op = Opcode::kConstant;
  ScalarType type = ScalarType::kF32;  // of the result
  std::uint16_t a = 0, b = 0, c = 0;   // registers: indices of earlier instructions
  std::int64_t imm = 0;

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// How many of a, b, c an opcode reads.
int operand_count(Opcode op);
const char* name_of(Opcode op);
const char* name_of(ScalarType type);
const char* name_of(ReduceKind kind);

struct ScalarProgram {
  std::vector<Instruction> code;       // register i is the result of code[i]
  std::vector<std::uint16_t> outputs;  // registers; parallel to Kernel::stores
};

/// The exponential of argument 0, in the other instructions.
const ScalarProgram& exp_program(ScalarType type);

/// One instruction a line, for debugging and explain().
std::string to_string(const ScalarProgram& program);

}  // namespace vkml::ops
