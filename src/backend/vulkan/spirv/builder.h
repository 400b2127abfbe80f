// The typed language that kernels are written in: values with operators, structured control flow,
// variables, shared memory, barriers, subgroups. Each call emits its SPIR-V instruction at once.
//
// Floating-point arithmetic is never contracted. Integers wrap; `/`, `%`, `>>` and the comparison
// functions read them as unsigned unless the name says signed. Integer literals fold, so that index
// arithmetic may be written without special cases.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "spirv/module.h"

namespace vkml::vulkan::spirv {

class Builder;

/// The result of an instruction, or a literal (of a vector: the same in every component).
struct Value {
  Builder* builder = nullptr;
  Id id = 0;
  Type type;
  bool is_literal = false;
  std::uint64_t literal = 0;

  explicit operator bool() const { return builder != nullptr; }
  bool is(std::uint64_t value) const { return is_literal && literal == value; }
};

/// A function-local variable; every driver turns it into registers.
class Variable {
 public:
  Variable() = default;
  Variable(Builder& builder, Type type);
  Value load() const;
  void store(Value value) const;

 private:
  Builder* builder_ = nullptr;
  Id pointer_ = 0;
  Type type_;
};

/// An array shared by the workgroup.
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(Builder& builder, Type element, std::uint32_t length);
  Value load(Value index) const;
  void store(Value index, Value value) const;
  /// Of vectors: one component, by its number.
  Value load_component(Value index, Value component) const;
  /// Of 32-bit integers: raises the element to `value`.
  void atomic_max(Value index, Value value) const;
  Id element_pointer(Value index) const;
  Builder& builder() const { return *builder_; }

 private:
  Builder* builder_ = nullptr;
  Id pointer_ = 0;
  Type element_;
};

using Body = std::function<void()>;

class Builder {
 public:
  Builder() = default;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Module& module() { return module_; }

  /// Lets conversions between f32 and f16 be the device's: rounded to nearest even, with
  /// subnormals, infinities and NaN, as its float controls promise.
  void allow_half_conversions() { has_half_conversions_ = true; }
  /// Declares those controls: in modules that convert alone, since they bind the driver's compiler.
  void use_half_conversions();
  /// NaN, infinities and the signs of zeros of f32 are kept by every instruction
  /// (SPV_KHR_float_controls).
  void keep_special_values();
  bool has_half_conversions() const { return has_half_conversions_; }

  // Constants.
  Value constant(Type type, std::uint64_t bits);
  Value u32(std::uint32_t value) { return constant(kInt32, value); }
  Value f32(float value);
  Value boolean(bool value) { return constant(kBool, value ? 1 : 0); }

  // Instructions.
  Value op(spv::Op op, Type result, std::initializer_list<Value> operands);
  Value extended(std::uint32_t instruction, Type result, std::initializer_list<Value> operands);
  /// Floating-point arithmetic, kept as written.
  Value exact(spv::Op op, Type result, std::initializer_list<Value> operands);
  Value select(Value condition, Value a, Value b);
  Value bitcast(Value value, Type type);
  Value fma(Value a, Value b, Value c);
  /// The same value in every component.
  Value splat(Value scalar, int components);
  Value compose(std::span<const Value> scalars);
  Value component(Value vector, int index);
  /// Integer to integer of another width, zeros coming in.
  Value widen(Value value, Scalar scalar);

  // Builtin inputs.
  Value builtin(spv::BuiltIn builtin, Type type);
  Value workgroup_id(int axis);
  Value workgroup_count(int axis);
  Value local_index();
  Value subgroup_lane();
  Value subgroup_id();
  Value subgroup_size();
  Value subgroup_count();

  // Structured control flow. The conditions of `if_then` and loops are evaluated by each
  // invocation; barriers inside need conditions that are equal for the whole workgroup.
  void if_then(Value condition, const Body& body);
  void if_else(Value condition, const Body& then_body, const Body& else_body);
  /// for (i = begin; i < end; i += step), compared as unsigned.
  void for_range(Value begin, Value end, Value step, const std::function<void(Value)>& body);
  /// Evaluates `condition` before each turn.
  void while_loop(const std::function<Value()>& condition, const Body& body);

  // Memory of the workgroup.
  void workgroup_barrier() { barrier(spv::Scope::Workgroup); }
  /// For what invocations of one subgroup hand each other through shared memory.
  void subgroup_barrier() { barrier(spv::Scope::Subgroup); }
  /// An arithmetic reduction over the active invocations of a subgroup, by one of the
  /// OpGroupNonUniform... instructions.
  Value subgroup_reduce(spv::Op op, Value value);
  /// The value of the invocation whose number in the subgroup differs in the bits of `mask`.
  Value subgroup_shuffle_xor(Value value, std::uint32_t mask);

 private:
  Value make(Id id, Type type) { return {this, id, type, false, 0}; }
  void label(Id id) {
    module_.emit(spv::Op::OpLabel, {id});
    block_ = id;
  }
  void branch(Id target) { module_.emit(spv::Op::OpBranch, {target}); }
  void barrier(spv::Scope scope);

  Module module_;
  bool has_half_conversions_ = false;
  Id block_ = 0;  // the block being emitted, 0 for the first
};

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator%(Value a, Value b);
Value operator&(Value a, Value b);
Value operator|(Value a, Value b);
Value operator^(Value a, Value b);
Value operator<<(Value a, Value b);
Value operator>>(Value a, Value b);
Value operator~(Value a);
Value operator-(Value a);

Value operator+(Value a, std::uint32_t b);
Value operator-(Value a, std::uint32_t b);
Value operator*(Value a, std::uint32_t b);
Value operator/(Value a, std::uint32_t b);
Value operator%(Value a, std::uint32_t b);
Value operator&(Value a, std::uint32_t b);
Value operator|(Value a, std::uint32_t b);
Value operator<<(Value a, std::uint32_t b);
Value operator>>(Value a, std::uint32_t b);

/// Floats: false when either is NaN, except not_equal. Booleans: equal and not_equal.
Value equal(Value a, Value b);
Value not_equal(Value a, Value b);
Value less(Value a, Value b);
Value less_equal(Value a, Value b);
Value signed_less(Value a, Value b);
Value signed_less_equal(Value a, Value b);
Value equal(Value a, std::uint32_t b);
Value not_equal(Value a, std::uint32_t b);
Value less(Value a, std::uint32_t b);

Value logical_and(Value a, Value b);
Value logical_or(Value a, Value b);
Value logical_not(Value a);

/// On the bits, so that no compiler assumes it away.
Value is_nan(Value value);
/// Of float32; NaN and infinities give false.
Value is_finite(Value value);

}  // namespace vkml::vulkan::spirv
