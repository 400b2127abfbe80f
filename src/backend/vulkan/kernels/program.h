// Turns a kernel's scalar program into SPIR-V at the place where it is asked to, for one element or
// for four neighbours at once.
#pragma once

#include <functional>
#include <vector>

#include "kernels/elements.h"
#include "kernels/shader.h"

namespace vkml::vulkan {

/// Where a program's sources come from at the current element (or elements).
struct ProgramSources {
  std::function<spirv::Value(int load)> load;
  std::function<spirv::Value(int axis)> coordinate;  // 32 bits
  spirv::Value core;
};

class ProgramEmitter {
 public:
  /// `components` values are computed at once: 1 or 4.
  ProgramEmitter(Shader& shader, int components, ProgramSources sources);

  /// Emits every instruction.
  void emit_all();
  /// Emits one instruction, whose operands have been emitted or set.
  void emit(std::size_t index);
  /// Supplies the value of an instruction that is computed elsewhere.
  void set(std::size_t index, spirv::Value value) { values_[index] = value; }
  /// The value of a register, with this emitter's number of components.
  spirv::Value value(std::size_t index);
  bool has(std::size_t index) const { return static_cast<bool>(values_[index]); }

 private:
  spirv::Value evaluate(const ops::Instruction& instruction);

  Shader& shader_;
  const dispatch::Kernel& kernel_;
  int components_;
  ProgramSources sources_;
  std::vector<spirv::Value> values_;
};

/// One instruction with operands, but neither a source, a reduction nor a check.
spirv::Value emit_operation(Shader& shader, const ops::Instruction& instruction, spirv::Value a,
                            spirv::Value b, spirv::Value c);

/// What a program of such instructions, constants and arguments gives.
std::vector<spirv::Value> emit_program(Shader& shader, const ops::ScalarProgram& program,
                                       const std::vector<spirv::Value>& arguments);

/// kBeyond: the far function's own program, in a branch that an invocation takes if one of its
/// elements lies past the reach.
spirv::Value emit_beyond(Shader& shader, const ops::Instruction& instruction, spirv::Value near,
                         spirv::Value b, spirv::Value c);

/// The index clamped to [0, extent - 1]; reported to the status word when it lies outside.
spirv::Value emit_index_check(Shader& shader, int site, spirv::Value index, spirv::Value extent);

/// Throws UnsupportedError when the device lacks a type that the program computes in.
void require_program_types(const Context& context);

}  // namespace vkml::vulkan
