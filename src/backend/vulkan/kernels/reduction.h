// Reductions: their identities, how two partial results combine, and the fixed trees that combine
// those of a vector's components, of a subgroup and of a workgroup. The order never depends on
// timing, so results are equal from run to run.
//
// Sums of f32 carry what their additions round off (Knuth's TwoSum), so that the same numbers have
// the same sum however a plan deals them out to lanes, and the error does not grow with their
// number: loss.item() before backward() cuts the graph elsewhere, and changes no gradient.
#pragma once

#include <vector>

#include "kernels/shader.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::vulkan {

/// A partial result. `position` only for kArgMax and kArgMin; `rest` only where is_compensated(),
/// and not for single elements. Booleans are held as u32.
struct Partial {
  spirv::Value value;
  spirv::Value position;
  spirv::Value rest;
};

/// a + b, two sums each with what it has lost; of `rest` undefined, nothing.
Partial two_sum(const Partial& a, const Partial& b);
/// A sum with what it has lost. The rest of an infinity is NaN, and left out.
spirv::Value rounded_sum(const Partial& sum);

class Reduction {
 public:
  /// `instruction` is a kReduce over values of `operand`.
  Reduction(Shader& shader, const ops::Instruction& instruction, ops::ScalarType operand);

  bool has_position() const {
    return kind_ == ops::ReduceKind::kArgMax || kind_ == ops::ReduceKind::kArgMin;
  }
  /// Whether partial results are two f32, of which the second holds what the first has lost.
  bool is_compensated() const {
    return kind_ == ops::ReduceKind::kSum && operand_ == ops::ScalarType::kF32;
  }
  spirv::Type type(int components) const;

  Partial identity(int components) const;
  /// The partial result of elements, at `position` of their row.
  Partial of_elements(spirv::Value value, spirv::Value position) const;
  Partial combine(const Partial& a, const Partial& b) const;
  /// `condition` ? `a` : identity.
  Partial masked(spirv::Value condition, const Partial& a) const;
  Partial across_components(const Partial& partial) const;

  /// Whether across_subgroup() is available to workgroups of so many invocations: 32-bit, without
  /// position, on a device that has it.
  bool has_subgroup_form(std::uint32_t invocations) const;
  Partial across_subgroup(const Partial& partial) const;

  /// The value of the kReduce instruction.
  spirv::Value result(const Partial& partial) const;

 private:
  bool is_maximum() const {
    return kind_ == ops::ReduceKind::kMax || kind_ == ops::ReduceKind::kArgMax;
  }
  std::uint64_t identity_bits() const;
  spirv::Value wins(const Partial& challenger, const Partial& holder) const;
  spirv::Value to_ordered_key(spirv::Value value) const;
  spirv::Value from_ordered_key(spirv::Value key) const;

  Shader* shader_;
  ops::ReduceKind kind_;
  ops::ScalarType operand_;
  ops::ScalarType result_;
};

/// A Partial that changes: the accumulator of a loop.
class PartialVariable {
 public:
  PartialVariable(spirv::Builder& builder, const Reduction& reduction, int components);
  Partial load() const;
  void store(const Partial& partial) const;

 private:
  spirv::Variable value_, position_, rest_;
  bool has_position_, has_rest_;
};

/// How the invocations of a workgroup share rows: `lanes` of them work on each of `rows` rows.
struct LaneLayout {
  std::uint32_t lanes = 1;
  std::uint32_t rows = 1;
  bool rows_are_neighbours = false;  // neighbouring invocations hold neighbouring rows

  std::uint32_t size() const { return lanes * rows; }
  /// Of the invocation with this local index.
  spirv::Value lane(spirv::Value local) const;
  spirv::Value row(spirv::Value local) const;
};

/// Combines the partial results of the lanes of each row, through subgroups where one row fills the
/// workgroup, otherwise through a tree in shared memory. Every lane gets the result.
class LaneReducer {
 public:
  LaneReducer(Shader& shader, LaneLayout layout) : shader_(shader), layout_(layout) {}

  /// All invocations of the workgroup must arrive. `first` numbers the reductions in the kernel.
  std::vector<Partial> reduce(const std::vector<Reduction>& reductions,
                              std::vector<Partial> partials, std::size_t first);

 private:
  struct Arrays {
    spirv::SharedArray values, positions, rests;
  };

  Arrays& arrays_for(const Reduction& reduction, std::size_t number);
  bool uses_subgroups(const Reduction& reduction) const;
  void store(Arrays& arrays, const Reduction& reduction, spirv::Value slot, const Partial& partial);
  Partial load(Arrays& arrays, const Reduction& reduction, spirv::Value slot);
  void start(Arrays& arrays, const Reduction& reduction, Partial& partial);
  Partial finish_subgroups(Arrays& arrays, const Reduction& reduction);

  Shader& shader_;
  LaneLayout layout_;
  std::vector<Arrays> arrays_;
  std::vector<bool> is_made_;
};

}  // namespace vkml::vulkan
