// A SPIR-V module under construction: ids, interned types and constants, capabilities added on use,
// and the sections in the order that the specification asks for. Instructions are words here;
// builder.h gives them types and meaning.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <spirv/unified1/spirv.hpp11>
#include <string>
#include <utility>
#include <vector>

namespace vkml::vulkan::spirv {

using Id = std::uint32_t;

/// Integers have no sign: the instruction that uses one decides how it reads the bits.
enum class Scalar : std::uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat32,
  kFloat64,
  kFloat16
};

struct Type {
  Scalar scalar = Scalar::kInt32;
  std::uint8_t components = 1;

  friend auto operator<=>(const Type&, const Type&) = default;
};

inline constexpr Type kBool{Scalar::kBool, 1};
inline constexpr Type kInt32{Scalar::kInt32, 1};
inline constexpr Type kInt64{Scalar::kInt64, 1};
inline constexpr Type kFloat32{Scalar::kFloat32, 1};
inline constexpr Type kFloat64{Scalar::kFloat64, 1};
inline constexpr Type kFloat16{Scalar::kFloat16, 1};

constexpr bool is_float(Type type) { return type.scalar >= Scalar::kFloat32; }
constexpr Type with_components(Type type, int components) {
  return {type.scalar, static_cast<std::uint8_t>(components)};
}
/// Bytes of one component.
std::uint32_t component_bytes(Scalar scalar);

class Module {
 public:
  Id new_id() { return next_id_++; }

  void require(spv::Capability capability) { capabilities_.insert(capability); }
  void require_extension(const char* name) { extensions_.insert(name); }
  /// Of the entry point.
  void require_mode(spv::ExecutionMode mode, std::uint32_t operand) {
    modes_.insert({mode, operand});
  }
  /// Switches to 64-bit physical addresses for the PhysicalStorageBuffer class.
  void use_physical_addresses();
  /// Switches to the Vulkan memory model, which cooperative matrices ask for. Accesses to memory
  /// that invocations share must then say so.
  void use_vulkan_memory_model();
  bool uses_vulkan_memory_model() const { return vulkan_memory_model_; }

  Id void_type();
  Id type(Type type);
  Id pointer_type(spv::StorageClass storage, Id pointee);
  Id function_type();
  /// struct { Type elements[]; }, decorated as a block whose array is tightly packed.
  Id runtime_array_block(Type element);
  /// An array without layout, for shared memory.
  Id array_type(Id element, std::uint32_t length);
  /// struct { first a[]; second b[]; } as a push constant block, both tightly packed from
  /// `second_offset` bytes on; a length of 0 leaves that member out.
  Id push_block(Type first, std::uint32_t first_length, Type second, std::uint32_t second_length,
                std::uint32_t second_offset);
  /// Types outside Type's reach, as (opcode, operands).
  Id intern_type(spv::Op op, std::initializer_list<std::uint32_t> operands);

  /// Every component has the same bits.
  Id constant(Type type, std::uint64_t bits);
  /// Of a type outside Type's reach, whose elements are all the one constant.
  Id constant_composite(Id type, Id element);

  /// Variables of any class but Function; `id` 0 makes a new one.
  Id global_variable(spv::StorageClass storage, Id pointee, Id id = 0);
  /// A variable of the one function.
  Id local_variable(Id pointee);
  /// A builtin input, listed in the entry point's interface.
  Id builtin(spv::BuiltIn builtin, Type type);

  void decorate(Id target, spv::Decoration decoration,
                std::initializer_list<std::uint32_t> operands = {});
  void decorate_member(Id target, std::uint32_t member, spv::Decoration decoration,
                       std::initializer_list<std::uint32_t> operands = {});

  /// The GLSL.std.450 instruction set.
  Id extended_instructions();

  /// A function of two values of a type, for instructions that take one: `op` of them, after the
  /// words `before`.
  Id binary_function(Type type, spv::Op op, std::initializer_list<std::uint32_t> before);

  /// Appends to the body of the function.
  void emit(spv::Op op, std::span<const std::uint32_t> operands) { append(body_, op, operands); }
  void emit(spv::Op op, std::initializer_list<std::uint32_t> operands) {
    append(body_, op, {operands.begin(), operands.size()});
  }

  /// The finished module, SPIR-V 1.3, with the entry point "main".
  std::vector<std::uint32_t> assemble(std::array<std::uint32_t, 3> local_size);

 private:
  using Words = std::vector<std::uint32_t>;

  static void append(Words& section, spv::Op op, std::span<const std::uint32_t> operands);
  static void append(Words& section, spv::Op op, std::initializer_list<std::uint32_t> operands) {
    append(section, op, {operands.begin(), operands.size()});
  }
  static void append_text(Words& words, const std::string& text);

  Id next_id_ = 1;
  bool physical_addresses_ = false;
  bool vulkan_memory_model_ = false;
  std::set<spv::Capability> capabilities_{spv::Capability::Shader};
  std::set<std::string> extensions_;
  std::set<std::pair<spv::ExecutionMode, std::uint32_t>> modes_;
  Id extended_instructions_ = 0;
  std::map<Words, Id> interned_;
  std::map<spv::BuiltIn, Id> builtins_;
  std::map<Type, Id> runtime_blocks_;
  Words decorations_, declarations_, locals_, body_, other_functions_;
};

}  // namespace vkml::vulkan::spirv
