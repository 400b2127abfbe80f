#include "kernels/reduction.h"

#include <bit>
#include <limits>

#include "kernels/conversions.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {

using ops::ReduceKind;
using ops::ScalarType;
using spirv::Scalar;
using spirv::Value;
using spv::Op;

namespace {

constexpr std::uint32_t kNoPosition = 0xffffffffu;

}  // namespace

Reduction::Reduction(Shader& shader, const ops::Instruction& instruction, ScalarType operand)
    : shader_(&shader),
      kind_(static_cast<ReduceKind>(instruction.imm)),
      operand_(operand),
      result_(instruction.type) {}

spirv::Type Reduction::type(int components) const {
  return operand_ == ScalarType::kBool ? spirv::with_components(spirv::kInt32, components)
                                       : value_type(operand_, components);
}

std::uint64_t Reduction::identity_bits() const {
  const auto f32 = [](float value) { return std::uint64_t{std::bit_cast<std::uint32_t>(value)}; };
  const auto f64 = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const bool is_f32 = operand_ == ScalarType::kF32, is_f64 = operand_ == ScalarType::kF64;
  switch (kind_) {
    case ReduceKind::kSum:
    case ReduceKind::kAny:
      return 0;
    case ReduceKind::kProd:
      return is_f32 ? f32(1.0F) : is_f64 ? f64(1.0) : 1;
    case ReduceKind::kAll:
      return 1;
    default:
      break;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double extreme = is_maximum() ? -infinity : infinity;
  switch (operand_) {
    case ScalarType::kF32:
      return f32(static_cast<float>(extreme));
    case ScalarType::kF64:
      return f64(extreme);
    case ScalarType::kI32:
      return is_maximum() ? 0x80000000u : 0x7fffffffu;
    case ScalarType::kI64:
      return is_maximum() ? 0x8000000000000000u : 0x7fffffffffffffffu;
    case ScalarType::kBool:
      return is_maximum() ? 0 : 1;
  }
  throw InternalError("[vulkan] unknown type in a reduction");
}

Partial Reduction::identity(int components) const {
  spirv::Builder& b = shader_->builder();
  Partial partial{b.constant(type(components), identity_bits()), {}, {}};
  if (has_position()) {
    partial.position = b.constant(spirv::with_components(spirv::kInt32, components), kNoPosition);
  }
  if (is_compensated()) partial.rest = b.constant(type(components), 0);
  return partial;
}

Partial Reduction::of_elements(Value value, Value position) const {
  if (operand_ == ScalarType::kBool) value = bits_of_value(DType::kBool, value);
  return {value, has_position() ? position : Value{}, {}};
}

Value Reduction::wins(const Partial& challenger, const Partial& holder) const {
  const Value a = holder.value, b = challenger.value;
  const bool is_float = spirv::is_float(a.type);
  const auto is_before = [&](Value x, Value y) {
    return is_float ? less(x, y) : signed_less(x, y);
  };
  const Value beats = is_maximum() ? is_before(a, b) : is_before(b, a);
  if (!has_position()) {
    // NaN stays, and NaN comes in.
    return is_float ? logical_and(logical_not(is_nan(a)), logical_or(is_nan(b), beats)) : beats;
  }
  const Value earlier = less(challenger.position, holder.position);
  const Value ties = logical_and(equal(a, b), earlier);
  const Value ordinary = logical_or(beats, ties);
  if (!is_float) return ordinary;
  return shader_->builder().select(is_nan(a), logical_and(is_nan(b), earlier),
                                   logical_or(is_nan(b), ordinary));
}

/// D. E. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B: the rounded sum, and exactly
/// what rounding has lost.
Partial two_sum(const Partial& a, const Partial& b) {
  const Value sum = a.value + b.value;
  const Value b_part = sum - a.value;
  const Value a_part = sum - b_part;
  Value rest = (a.value - a_part) + (b.value - b_part);
  if (a.rest && b.rest) {
    rest = (a.rest + b.rest) + rest;
  } else if (a.rest || b.rest) {
    rest = (a.rest ? a.rest : b.rest) + rest;
  }
  return {sum, {}, rest};
}

Value rounded_sum(const Partial& sum) {
  const Value whole = sum.value + sum.rest;
  return sum.value.builder->select(is_finite(sum.value), whole, sum.value);
}

Partial Reduction::combine(const Partial& a, const Partial& b) const {
  spirv::Builder& builder = shader_->builder();
  switch (kind_) {
    case ReduceKind::kSum:
      return is_compensated() ? two_sum(a, b) : Partial{a.value + b.value, {}, {}};
    case ReduceKind::kProd:
      return {a.value * b.value, {}, {}};
    case ReduceKind::kAny:
      return {a.value | b.value, {}, {}};
    case ReduceKind::kAll:
      return {a.value & b.value, {}, {}};
    default:
      break;
  }
  const Value b_wins = wins(b, a);
  Partial result{builder.select(b_wins, b.value, a.value), {}, {}};
  if (has_position()) result.position = builder.select(b_wins, b.position, a.position);
  return result;
}

Partial Reduction::masked(Value condition, const Partial& a) const {
  spirv::Builder& b = shader_->builder();
  const Partial none = identity(a.value.type.components);
  Partial result{b.select(condition, a.value, none.value), {}, {}};
  if (has_position()) result.position = b.select(condition, a.position, none.position);
  if (a.rest) result.rest = b.select(condition, a.rest, none.rest);
  return result;
}

Partial Reduction::across_components(const Partial& partial) const {
  spirv::Builder& b = shader_->builder();
  const int components = partial.value.type.components;
  if (components == 1) return partial;
  const auto part = [&](int k) {
    return Partial{b.component(partial.value, k),
                   has_position() ? b.component(partial.position, k) : Value{},
                   partial.rest ? b.component(partial.rest, k) : Value{}};
  };
  const Partial first = combine(part(0), part(1));
  return combine(first, combine(part(2), part(3)));
}

bool Reduction::has_subgroup_form(std::uint32_t invocations) const {
  // Invocations exchange partial results with each other, so that none may be missing.
  if (is_compensated()) {
    return shader_->traits().has_subgroup_shuffle &&
           invocations % shader_->traits().subgroup_size == 0;
  }
  // 64-bit types need a feature of their own in subgroups.
  return shader_->traits().has_subgroup_arithmetic && !has_position() &&
         (operand_ == ScalarType::kF32 || operand_ == ScalarType::kI32 ||
          operand_ == ScalarType::kBool);
}

// The subgroup's maximum of floats leaves NaN open; as an unsigned key, ordered like the values, a
// NaN can be put at the end where it wins.
Value Reduction::to_ordered_key(Value value) const {
  spirv::Builder& b = shader_->builder();
  const Value bits = b.bitcast(value, spirv::kInt32);
  const Value negative = signed_less(bits, b.u32(0));
  const Value key = b.select(negative, ~bits, bits | 0x80000000u);
  return b.select(is_nan(value), b.u32(is_maximum() ? 0xffffffffu : 0), key);
}

Value Reduction::from_ordered_key(Value key) const {
  spirv::Builder& b = shader_->builder();
  const Value negative = less(key, 0x80000000u);
  return b.bitcast(b.select(negative, ~key, key ^ b.u32(0x80000000u)), spirv::kFloat32);
}

Partial Reduction::across_subgroup(const Partial& partial) const {
  spirv::Builder& b = shader_->builder();
  const bool is_float = operand_ == ScalarType::kF32;
  const bool is_maximum = this->is_maximum();
  switch (kind_) {
    case ReduceKind::kSum: {
      if (!is_compensated()) {
        return {b.subgroup_reduce(Op::OpGroupNonUniformIAdd, partial.value), {}, {}};
      }
      Partial sum = partial;
      for (std::uint32_t distance = shader_->traits().subgroup_size / 2; distance > 0;
           distance /= 2) {
        sum = combine(sum, {b.subgroup_shuffle_xor(sum.value, distance),
                            {},
                            sum.rest ? b.subgroup_shuffle_xor(sum.rest, distance) : Value{}});
      }
      return sum;
    }
    case ReduceKind::kProd:
      return {b.subgroup_reduce(is_float ? Op::OpGroupNonUniformFMul : Op::OpGroupNonUniformIMul,
                                partial.value),
              {},
              {}};
    case ReduceKind::kAny:
      return {b.subgroup_reduce(Op::OpGroupNonUniformBitwiseOr, partial.value), {}, {}};
    case ReduceKind::kAll:
      return {b.subgroup_reduce(Op::OpGroupNonUniformBitwiseAnd, partial.value), {}, {}};
    default:
      break;
  }
  if (is_float) {
    const Value key =
        b.subgroup_reduce(is_maximum ? Op::OpGroupNonUniformUMax : Op::OpGroupNonUniformUMin,
                          to_ordered_key(partial.value));
    return {from_ordered_key(key), {}, {}};
  }
  return {b.subgroup_reduce(is_maximum ? Op::OpGroupNonUniformSMax : Op::OpGroupNonUniformSMin,
                            partial.value),
          {},
          {}};
}

Value Reduction::result(const Partial& partial) const {
  spirv::Builder& b = shader_->builder();
  if (has_position()) {
    const Value index = b.select(equal(partial.position, kNoPosition), b.u32(0), partial.position);
    return b.widen(index, value_type(result_).scalar);
  }
  if (result_ == ScalarType::kBool) return not_equal(partial.value, 0);
  return partial.rest ? rounded_sum(partial) : partial.value;
}

PartialVariable::PartialVariable(spirv::Builder& builder, const Reduction& reduction,
                                 int components)
    : value_(builder, reduction.type(components)),
      has_position_(reduction.has_position()),
      has_rest_(reduction.is_compensated()) {
  if (has_position_) {
    position_ = spirv::Variable(builder, spirv::with_components(spirv::kInt32, components));
  }
  if (has_rest_) rest_ = spirv::Variable(builder, reduction.type(components));
  store(reduction.identity(components));
}

Partial PartialVariable::load() const {
  return {value_.load(), has_position_ ? position_.load() : Value{},
          has_rest_ ? rest_.load() : Value{}};
}

void PartialVariable::store(const Partial& partial) const {
  value_.store(partial.value);
  if (has_position_) position_.store(partial.position);
  if (has_rest_) {
    rest_.store(partial.rest ? partial.rest
                             : partial.value.builder->constant(partial.value.type, 0));
  }
}

Value LaneLayout::lane(Value local) const {
  return rows_are_neighbours ? local / rows : local % lanes;
}

Value LaneLayout::row(Value local) const {
  return rows_are_neighbours ? local % rows : local / lanes;
}

bool LaneReducer::uses_subgroups(const Reduction& reduction) const {
  return layout_.rows == 1 && reduction.has_subgroup_form(layout_.size());
}

LaneReducer::Arrays& LaneReducer::arrays_for(const Reduction& reduction, std::size_t number) {
  if (number >= arrays_.size()) {
    arrays_.resize(number + 1);
    is_made_.resize(number + 1, false);
  }
  if (!is_made_[number]) {
    is_made_[number] = true;
    spirv::Builder& b = shader_.builder();
    // With subgroups one slot for each of them, and there are no more than invocations.
    arrays_[number].values = spirv::SharedArray(b, reduction.type(1), layout_.size());
    if (reduction.has_position()) {
      arrays_[number].positions = spirv::SharedArray(b, spirv::kInt32, layout_.size());
    }
    if (reduction.is_compensated()) {
      arrays_[number].rests = spirv::SharedArray(b, reduction.type(1), layout_.size());
    }
  }
  return arrays_[number];
}

void LaneReducer::store(Arrays& arrays, const Reduction& reduction, Value slot,
                        const Partial& partial) {
  arrays.values.store(slot, partial.value);
  if (reduction.has_position()) arrays.positions.store(slot, partial.position);
  if (reduction.is_compensated()) {
    arrays.rests.store(
        slot, partial.rest ? partial.rest : shader_.builder().constant(reduction.type(1), 0));
  }
}

Partial LaneReducer::load(Arrays& arrays, const Reduction& reduction, Value slot) {
  return {arrays.values.load(slot),
          reduction.has_position() ? arrays.positions.load(slot) : Value{},
          reduction.is_compensated() ? arrays.rests.load(slot) : Value{}};
}

/// Puts what the first exchange needs into shared memory.
void LaneReducer::start(Arrays& arrays, const Reduction& reduction, Partial& partial) {
  spirv::Builder& b = shader_.builder();
  if (uses_subgroups(reduction)) {
    partial = reduction.across_subgroup(partial);
    b.if_then(equal(b.subgroup_lane(), 0),
              [&] { store(arrays, reduction, b.subgroup_id(), partial); });
  } else {
    store(arrays, reduction, b.local_index(), partial);
  }
}

Partial LaneReducer::finish_subgroups(Arrays& arrays, const Reduction& reduction) {
  spirv::Builder& b = shader_.builder();
  const PartialVariable total(b, reduction, 1);
  b.for_range(b.subgroup_lane(), b.subgroup_count(), b.subgroup_size(), [&](Value slot) {
    total.store(reduction.combine(total.load(), load(arrays, reduction, slot)));
  });
  return reduction.across_subgroup(total.load());
}

std::vector<Partial> LaneReducer::reduce(const std::vector<Reduction>& reductions,
                                         std::vector<Partial> partials, std::size_t first) {
  if (layout_.lanes == 1) return partials;
  spirv::Builder& b = shader_.builder();
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    start(arrays_for(reductions[i], first + i), reductions[i], partials[i]);
  }
  b.workgroup_barrier();

  const Value local = b.local_index();
  const Value lane = layout_.lane(local);
  const std::uint32_t lane_stride = layout_.rows_are_neighbours ? layout_.rows : 1;
  std::vector<std::size_t> trees;
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    if (!uses_subgroups(reductions[i])) trees.push_back(i);
  }
  for (std::uint32_t half = layout_.lanes / 2; half > 0 && !trees.empty(); half /= 2) {
    b.if_then(less(lane, half), [&] {
      for (const std::size_t i : trees) {
        Arrays& arrays = arrays_for(reductions[i], first + i);
        const Partial mine = load(arrays, reductions[i], local);
        const Partial other = load(arrays, reductions[i], local + half * lane_stride);
        store(arrays, reductions[i], local, reductions[i].combine(mine, other));
      }
    });
    b.workgroup_barrier();
  }
  const Value first_lane = local - lane * lane_stride;
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    Arrays& arrays = arrays_for(reductions[i], first + i);
    partials[i] = uses_subgroups(reductions[i]) ? finish_subgroups(arrays, reductions[i])
                                                : load(arrays, reductions[i], first_lane);
  }
  return partials;
}

}  // namespace vkml::vulkan
