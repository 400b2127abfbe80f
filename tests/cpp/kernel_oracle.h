// The meaning of a planned kernel, for tests of code generation: naive loops over any strides,
// written from the comments of execution_graph.h and scalar_program.h, one element at a time. Sums
// are in double; everything else is computed in the type that the program names.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "vkml/core/half.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::oracle {

using dispatch::Extents;
using dispatch::Kernel;
using dispatch::Operand;
using ops::CoreKind;
using ops::Opcode;
using ops::ReduceKind;
using ops::ScalarType;

/// A value of any type: floats in `f`, integers and booleans in `i`.
struct Number {
  double f = 0;
  std::int64_t i = 0;
};

struct Memory {
  std::vector<std::vector<std::byte>> buffers;  // by plan buffer
  std::vector<std::uint64_t> scalars;
  int failed_site = -1;
  std::int64_t failed_index = 0;
};

/// What the kernel writes: its program's results, and a companion's.
inline std::vector<Operand> results_of(const Kernel& kernel) {
  std::vector<Operand> results = kernel.stores;
  results.insert(results.end(), kernel.core_stores.begin(), kernel.core_stores.end());
  return results;
}

inline std::int64_t place(const Operand& operand, const Extents& at) {
  std::int64_t index = operand.offset;
  for (std::size_t axis = 0; axis < at.size(); ++axis) index += at[axis] * operand.strides[axis];
  return index;
}

template <typename T>
T read_raw(const std::vector<std::byte>& bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void write_raw(std::vector<std::byte>& bytes, std::int64_t index, T value) {
  std::memcpy(bytes.data() + static_cast<std::size_t>(index) * sizeof(T), &value, sizeof(T));
}

inline Number read_element(const std::vector<std::byte>& bytes, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::kBool:
      return {0, read_raw<std::uint8_t>(bytes, index) != 0};
    case DType::kU8:
      return {0, read_raw<std::uint8_t>(bytes, index)};
    case DType::kI32:
      return {0, read_raw<std::int32_t>(bytes, index)};
    case DType::kI64:
      return {0, read_raw<std::int64_t>(bytes, index)};
    case DType::kF16:
      return {f16_to_f32(read_raw<std::uint16_t>(bytes, index)), 0};
    case DType::kBF16:
      return {bf16_to_f32(read_raw<std::uint16_t>(bytes, index)), 0};
    case DType::kF32:
      return {read_raw<float>(bytes, index), 0};
    case DType::kF64:
      return {read_raw<double>(bytes, index), 0};
  }
  throw std::logic_error("dtype");
}

inline void write_element(std::vector<std::byte>& bytes, DType dtype, std::int64_t index,
                          Number value) {
  switch (dtype) {
    case DType::kBool:
      write_raw<std::uint8_t>(bytes, index, value.i != 0);
      return;
    case DType::kU8:
      write_raw(bytes, index, static_cast<std::uint8_t>(value.i));
      return;
    case DType::kI32:
      write_raw(bytes, index, static_cast<std::int32_t>(value.i));
      return;
    case DType::kI64:
      write_raw(bytes, index, value.i);
      return;
    case DType::kF16:
      write_raw(bytes, index, f32_to_f16(static_cast<float>(value.f)));
      return;
    case DType::kBF16:
      write_raw(bytes, index, f32_to_bf16(static_cast<float>(value.f)));
      return;
    case DType::kF32:
      write_raw(bytes, index, static_cast<float>(value.f));
      return;
    case DType::kF64:
      write_raw(bytes, index, value.f);
      return;
  }
}

/// Brings a result back to the values of its type.
inline Number rounded(ScalarType type, Number value) {
  if (type == ScalarType::kF32) value.f = static_cast<float>(value.f);
  if (type == ScalarType::kI32) value.i = static_cast<std::int32_t>(value.i);
  return value;
}

inline std::int64_t wrap_multiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
inline std::int64_t wrap_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, Memory& memory)
      : kernel_(kernel), memory_(memory), code_(kernel.program.code) {}

  /// Runs the whole kernel.
  void run() {
    std::vector<std::pair<std::pair<std::size_t, std::int64_t>, Number>> writes;
    for_each(kernel_.space, [&](const Extents& at) { store(at, writes); });
    // An empty row still has its value.
    if (kernel_.reduce_dims > 0) {
      Extents rows = kernel_.space;
      bool is_empty = false;
      for (int axis = kMaxDims - kernel_.reduce_dims; axis < kMaxDims; ++axis) {
        is_empty |= rows[static_cast<std::size_t>(axis)] == 0;
        rows[static_cast<std::size_t>(axis)] = 1;
      }
      if (is_empty) for_each(rows, [&](const Extents& at) { store(at, writes); });
    }
    for (const auto& [where, value] : writes) {
      const Operand& operand = kernel_.stores[where.first];
      write_element(buffer(operand), operand.dtype, where.second, value);
    }
    for (const Operand& operand : kernel_.core_stores) {
      for_each(operand.extents, [&](const Extents& at) {
        const Number value = attend(ops::companion_of(kernel_.kind).kind, at);
        write_element(buffer(operand), operand.dtype, place(operand, at), value);
      });
    }
  }

 private:
  template <typename F>
  static void for_each(const Extents& extents, F&& function) {
    Extents at{};
    for (at[0] = 0; at[0] < extents[0]; ++at[0])
      for (at[1] = 0; at[1] < extents[1]; ++at[1])
        for (at[2] = 0; at[2] < extents[2]; ++at[2])
          for (at[3] = 0; at[3] < extents[3]; ++at[3]) function(at);
  }

  void store(const Extents& at,
             std::vector<std::pair<std::pair<std::size_t, std::int64_t>, Number>>& writes) {
    values_.assign(code_.size(), {});
    known_.assign(code_.size(), false);
    for (std::size_t i = 0; i < kernel_.stores.size(); ++i) {
      const Number value = evaluate(kernel_.program.outputs[i], at);
      writes.push_back({{i, place(kernel_.stores[i], at)}, value});
    }
  }

  std::vector<std::byte>& buffer(const Operand& operand) {
    return memory_.buffers[static_cast<std::size_t>(operand.buffer)];
  }
  Number element(const Operand& operand, const Extents& at) {
    return read_element(buffer(operand), operand.dtype, place(operand, at));
  }

  Number evaluate(std::size_t index, const Extents& at) {
    if (known_[index]) return values_[index];
    const Number value = compute(index, at);
    known_[index] = true;
    return values_[index] = value;
  }

  Number compute(std::size_t index, const Extents& at) {
    const ops::Instruction& in = code_[index];
    switch (in.op) {
      case Opcode::kLoad:
        return element(kernel_.loads[static_cast<std::size_t>(in.imm)], at);
      case Opcode::kCore:
        return rounded(in.type, core(at));
      case Opcode::kScalar:
        return from_bits(in.type, memory_.scalars[static_cast<std::size_t>(in.imm)]);
      case Opcode::kConstant:
        return from_bits(in.type, static_cast<std::uint64_t>(in.imm));
      case Opcode::kIota:
        return {0, at[static_cast<std::size_t>(in.imm)]};
      case Opcode::kReduce:
        return row_values_[index] = reduce(index, at);
      default:
        break;
    }
    const int count = ops::operand_count(in.op);
    const Number a = evaluate(in.a, at);
    const Number b = count > 1 ? evaluate(in.b, at) : Number{};
    const Number c = count > 2 ? evaluate(in.c, at) : Number{};
    return rounded(in.type, apply(in, code_[in.a].type, a, b, c));
  }

  static Number from_bits(ScalarType type, std::uint64_t bits) {
    switch (type) {
      case ScalarType::kBool:
        return {0, bits != 0};
      case ScalarType::kI32:
        return {0, static_cast<std::int32_t>(bits)};
      case ScalarType::kI64:
        return {0, static_cast<std::int64_t>(bits)};
      case ScalarType::kF32:
        return {std::bit_cast<float>(static_cast<std::uint32_t>(bits)), 0};
      case ScalarType::kF64:
        return {std::bit_cast<double>(bits), 0};
    }
    throw std::logic_error("type");
  }

  Number apply(const ops::Instruction& in, ScalarType from, Number a, Number b, Number c) {
    const bool f = ops::is_floating(from);
    const auto pick = [](bool first, Number x, Number y) { return first ? x : y; };
    const std::uint64_t mask = from == ScalarType::kI64 ? ~0ull : 0xffffffffull;
    switch (in.op) {
      case Opcode::kAdd:
        return {a.f + b.f, wrap_add(a.i, b.i)};
      case Opcode::kSub:
        return {a.f - b.f, wrap_add(a.i, wrap_multiply(b.i, -1))};
      case Opcode::kMul:
        return {a.f * b.f, wrap_multiply(a.i, b.i)};
      case Opcode::kDiv:
        return f ? Number{a.f / b.f, 0} : Number{0, a.i / b.i};
      case Opcode::kRem:
        return {0, a.i % b.i};
      case Opcode::kNeg:
        return {-a.f, wrap_multiply(a.i, -1)};
      case Opcode::kAbs:
        return {std::fabs(a.f), a.i < 0 ? wrap_multiply(a.i, -1) : a.i};
      case Opcode::kMin:
        return pick(f ? a.f < b.f : a.i < b.i, a, b);
      case Opcode::kMax:
        return pick(f ? a.f > b.f : a.i > b.i, a, b);
      case Opcode::kFma:
        if (from == ScalarType::kF32) {
          return {
              std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f)),
              0};
        }
        return {std::fma(a.f, b.f, c.f), 0};
      case Opcode::kSqrt:
        return {std::sqrt(a.f), 0};
      case Opcode::kFloor:
        return {std::floor(a.f), 0};
      case Opcode::kCeil:
        return {std::ceil(a.f), 0};
      case Opcode::kTrunc:
        return {std::trunc(a.f), 0};
      case Opcode::kRoundEven:
        return {std::nearbyint(a.f), 0};
      case Opcode::kExp:
        return {std::exp(a.f), 0};
      case Opcode::kMulHighU32:
        return {0, static_cast<std::int32_t>(
                       (static_cast<std::uint64_t>(static_cast<std::uint32_t>(a.i)) *
                        static_cast<std::uint32_t>(b.i)) >>
                       32)};
      case Opcode::kAnd:
        return {0, a.i & b.i};
      case Opcode::kOr:
        return {0, a.i | b.i};
      case Opcode::kXor:
        return {0, a.i ^ b.i};
      case Opcode::kNot:
        return {0, from == ScalarType::kBool ? !a.i : ~a.i};
      case Opcode::kShiftLeft:
        return {0, static_cast<std::int64_t>(static_cast<std::uint64_t>(a.i) << b.i)};
      case Opcode::kShiftRight:
        return {0, a.i >> b.i};
      case Opcode::kShiftRightLogical:
        return {0, static_cast<std::int64_t>((static_cast<std::uint64_t>(a.i) & mask) >> b.i)};
      case Opcode::kEqual:
        return {0, f ? a.f == b.f : a.i == b.i};
      case Opcode::kNotEqual:
        return {0, f ? a.f != b.f : a.i != b.i};
      case Opcode::kLess:
        return {0, f ? a.f < b.f : a.i < b.i};
      case Opcode::kLessEqual:
        return {0, f ? a.f <= b.f : a.i <= b.i};
      case Opcode::kSelect:
        return pick(a.i != 0, b, c);
      case Opcode::kConvert:
        return convert(from, in.type, a);
      case Opcode::kBitcast:
        if (from == ScalarType::kF32)
          return {0, std::bit_cast<std::int32_t>(static_cast<float>(a.f))};
        if (from == ScalarType::kF64) return {0, std::bit_cast<std::int64_t>(a.f)};
        if (from == ScalarType::kI32)
          return {std::bit_cast<float>(static_cast<std::int32_t>(a.i)), 0};
        return {std::bit_cast<double>(a.i), 0};
      case Opcode::kNarrow: {
        std::vector<std::byte> cell(8);
        write_element(cell, static_cast<DType>(in.imm), 0, a);
        return read_element(cell, static_cast<DType>(in.imm), 0);
      }
      case Opcode::kCheckIndex:
        return {0, checked(static_cast<int>(in.imm), a.i, b.i)};
      default:
        break;
    }
    throw std::logic_error("opcode");
  }

  static Number convert(ScalarType from, ScalarType to, Number a) {
    const bool from_float = ops::is_floating(from);
    if (to == ScalarType::kBool) return {0, from_float ? a.f != 0 : a.i != 0};
    if (from_float) {
      return ops::is_floating(to) ? Number{a.f, 0} : Number{0, static_cast<std::int64_t>(a.f)};
    }
    if (!ops::is_floating(to)) return {0, a.i};
    return {to == ScalarType::kF32 ? static_cast<float>(a.i) : static_cast<double>(a.i), 0};
  }

  std::int64_t checked(int site, std::int64_t index, std::int64_t extent) {
    if (index >= 0 && index < extent) return index;
    if (memory_.failed_site < 0) {
      memory_.failed_site = site;
      memory_.failed_index = index;
    }
    return std::max<std::int64_t>(0, std::min(index, extent - 1));
  }

  Number reduce(std::size_t index, const Extents& at);
  Number core(const Extents& at);
  Number matmul(const Extents& at);
  Number convolve(const Extents& at);
  Number pool(const Extents& at);
  Number scatter(const Extents& at);
  Number scan(const Extents& at);
  Number sorted_position(const Extents& at);
  Number searched(const Extents& at);
  Number attend(CoreKind kind, const Extents& at);
  double score(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s);

  const Kernel& kernel_;
  Memory& memory_;
  const std::vector<ops::Instruction>& code_;
  std::vector<Number> values_;
  std::vector<bool> known_;
  Extents row_{-1, -1, -1, -1};
  std::map<std::size_t, Number> row_values_;  // of row_
};

inline Number Interpreter::reduce(std::size_t index, const Extents& at) {
  const ops::Instruction& in = code_[index];
  const auto kind = static_cast<ReduceKind>(in.imm);
  Extents key = at;
  for (int axis = kMaxDims - kernel_.reduce_dims; axis < kMaxDims; ++axis) {
    key[static_cast<std::size_t>(axis)] = 0;
  }
  if (key != row_) {
    row_ = key;
    row_values_.clear();
  }
  if (const auto found = row_values_.find(index); found != row_values_.end()) return found->second;
  const ScalarType type = code_[in.a].type;
  const bool f = ops::is_floating(type);
  Extents row = at, extents{1, 1, 1, 1};
  for (int axis = kMaxDims - kernel_.reduce_dims; axis < kMaxDims; ++axis) {
    extents[static_cast<std::size_t>(axis)] = kernel_.space[static_cast<std::size_t>(axis)];
  }
  const std::vector<Number> saved_values = values_;
  const std::vector<bool> saved_known = known_;
  const bool is_maximum = kind == ReduceKind::kMax || kind == ReduceKind::kArgMax;
  Number best;
  best.f = is_maximum ? -std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::infinity();
  const bool is_narrow = type == ScalarType::kI32;
  best.i = is_maximum ? (is_narrow ? std::numeric_limits<std::int32_t>::min()
                                   : std::numeric_limits<std::int64_t>::min())
                      : (is_narrow ? std::numeric_limits<std::int32_t>::max()
                                   : std::numeric_limits<std::int64_t>::max());
  if (type == ScalarType::kBool) best.i = is_maximum ? 0 : 1;
  Number sum{0, 0}, product{1, 1};
  bool any = false, all = true;
  std::int64_t position = 0, best_position = 0;
  for_each(extents, [&](const Extents& offset) {
    for (int axis = kMaxDims - kernel_.reduce_dims; axis < kMaxDims; ++axis) {
      row[static_cast<std::size_t>(axis)] = offset[static_cast<std::size_t>(axis)];
    }
    // Only the row's own values hold for another element.
    values_.assign(code_.size(), {});
    known_.assign(code_.size(), false);
    const Number value = evaluate(in.a, row);
    sum = {sum.f + value.f, wrap_add(sum.i, value.i)};
    product = {product.f * value.f, wrap_multiply(product.i, value.i)};
    any |= value.i != 0;
    all &= value.i != 0;
    bool wins = position == 0;
    if (f && position > 0) {
      wins = !std::isnan(best.f) &&
             (std::isnan(value.f) || (is_maximum ? value.f > best.f : value.f < best.f));
    } else if (position > 0) {
      wins = is_maximum ? value.i > best.i : value.i < best.i;
    }
    if (wins) {
      best = value;
      best_position = position;
    }
    ++position;
  });
  values_ = saved_values;
  known_ = saved_known;
  Number result;
  switch (kind) {
    case ReduceKind::kSum:
      result = rounded(in.type, sum);
      break;
    case ReduceKind::kProd:
      result = rounded(in.type, product);
      break;
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      result = best;
      break;
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      result = {0, best_position};
      break;
    case ReduceKind::kAny:
      result = {0, any};
      break;
    case ReduceKind::kAll:
      result = {0, all};
      break;
  }
  return row_values_[index] = result;
}

inline Number Interpreter::core(const Extents& at) {
  switch (kernel_.kind) {
    case CoreKind::kMatmul:
      return matmul(at);
    case CoreKind::kConv2d:
    case CoreKind::kConv2dInputGradient:
    case CoreKind::kConv2dWeightGradient:
      return convolve(at);
    case CoreKind::kGather: {
      Extents from = at;
      const auto axis = static_cast<std::size_t>(kernel_.attributes[0]);
      const std::int64_t index = element(kernel_.core_inputs[1], at).i;
      from[axis] = checked(kernel_.core_site, index, kernel_.core_inputs[0].extents[axis]);
      return element(kernel_.core_inputs[0], from);
    }
    case CoreKind::kScatter:
      return scatter(at);
    case CoreKind::kScan:
      return scan(at);
    case CoreKind::kArgSort:
      return sorted_position(at);
    case CoreKind::kSearchSorted:
      return searched(at);
    case CoreKind::kAttentionLogSumExp:
    case CoreKind::kAttention:
    case CoreKind::kAttentionQueryGradient:
    case CoreKind::kAttentionKeyGradient:
    case CoreKind::kAttentionValueGradient:
      return attend(kernel_.kind, at);
    default:
      return pool(at);
  }
}

}  // namespace vkml::oracle

#include "kernel_oracle_attention.h"
#include "kernel_oracle_lines.h"
#include "kernel_oracle_windows.h"
