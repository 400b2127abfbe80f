#include "spirv/module.h"

#include <cstring>

#include "vkml/core/error.h"

namespace vkml::vulkan::spirv {

namespace {

constexpr std::uint32_t kVersion13 = 0x00010300;

std::uint32_t word(spv::StorageClass value) { return static_cast<std::uint32_t>(value); }

}  // namespace

std::uint32_t component_bytes(Scalar scalar) {
  constexpr std::uint32_t kBytes[] = {4, 1, 2, 4, 8, 4, 8, 2};
  return kBytes[static_cast<int>(scalar)];
}

void Module::append(Words& section, spv::Op op, std::span<const std::uint32_t> operands) {
  const auto count = static_cast<std::uint32_t>(operands.size() + 1);
  section.push_back((count << 16) | static_cast<std::uint32_t>(op));
  section.insert(section.end(), operands.begin(), operands.end());
}

void Module::append_text(Words& words, const std::string& text) {
  const std::size_t first = words.size();
  words.resize(first + text.size() / 4 + 1, 0);
  std::memcpy(&words[first], text.data(), text.size());
}

void Module::use_physical_addresses() {
  physical_addresses_ = true;
  require(spv::Capability::PhysicalStorageBufferAddresses);
  require_extension("SPV_KHR_physical_storage_buffer");
}

void Module::use_vulkan_memory_model() {
  vulkan_memory_model_ = true;
  require(spv::Capability::VulkanMemoryModel);
  require_extension("SPV_KHR_vulkan_memory_model");
}

Id Module::intern_type(spv::Op op, std::initializer_list<std::uint32_t> operands) {
  Words key{static_cast<std::uint32_t>(op)};
  key.insert(key.end(), operands.begin(), operands.end());
  Id& id = interned_[key];
  if (id == 0) {
    id = new_id();
    key[0] = id;
    append(declarations_, op, key);
  }
  return id;
}

Id Module::void_type() { return intern_type(spv::Op::OpTypeVoid, {}); }

Id Module::type(Type type) {
  if (type.components > 1) {
    return intern_type(spv::Op::OpTypeVector,
                       {this->type(with_components(type, 1)), type.components});
  }
  switch (type.scalar) {
    case Scalar::kBool:
      return intern_type(spv::Op::OpTypeBool, {});
    case Scalar::kInt8:
      return intern_type(spv::Op::OpTypeInt, {8, 0});
    case Scalar::kInt16:
      return intern_type(spv::Op::OpTypeInt, {16, 0});
    case Scalar::kInt32:
      return intern_type(spv::Op::OpTypeInt, {32, 0});
    case Scalar::kInt64:
      require(spv::Capability::Int64);
      return intern_type(spv::Op::OpTypeInt, {64, 0});
    case Scalar::kFloat32:
      return intern_type(spv::Op::OpTypeFloat, {32});
    case Scalar::kFloat64:
      require(spv::Capability::Float64);
      return intern_type(spv::Op::OpTypeFloat, {64});
    case Scalar::kFloat16:
      require(spv::Capability::Float16);
      return intern_type(spv::Op::OpTypeFloat, {16});
  }
  throw InternalError("unknown SPIR-V scalar type");
}

Id Module::pointer_type(spv::StorageClass storage, Id pointee) {
  return intern_type(spv::Op::OpTypePointer, {word(storage), pointee});
}

Id Module::function_type() { return intern_type(spv::Op::OpTypeFunction, {void_type()}); }

Id Module::runtime_array_block(Type element) {
  Id& block = runtime_blocks_[element];
  if (block == 0) {
    const Id element_id = type(element);
    const Id array = new_id();
    append(declarations_, spv::Op::OpTypeRuntimeArray, {array, element_id});
    decorate(array, spv::Decoration::ArrayStride,
             {component_bytes(element.scalar) * element.components});
    block = new_id();
    append(declarations_, spv::Op::OpTypeStruct, {block, array});
    decorate(block, spv::Decoration::Block);
    decorate_member(block, 0, spv::Decoration::Offset, {0});
  }
  return block;
}

Id Module::array_type(Id element, std::uint32_t length) {
  return intern_type(spv::Op::OpTypeArray, {element, constant(kInt32, length)});
}

Id Module::push_block(Type first, std::uint32_t first_length, Type second,
                      std::uint32_t second_length, std::uint32_t second_offset) {
  Words members;
  Words offsets;
  const auto add = [&](Type element, std::uint32_t length, std::uint32_t offset) {
    if (length == 0) return;
    const Id array = new_id();
    append(declarations_, spv::Op::OpTypeArray, {array, type(element), constant(kInt32, length)});
    decorate(array, spv::Decoration::ArrayStride, {component_bytes(element.scalar)});
    members.push_back(array);
    offsets.push_back(offset);
  };
  add(first, first_length, 0);
  add(second, second_length, second_offset);
  const Id block = new_id();
  Words operands{block};
  operands.insert(operands.end(), members.begin(), members.end());
  append(declarations_, spv::Op::OpTypeStruct, operands);
  decorate(block, spv::Decoration::Block);
  for (std::uint32_t i = 0; i < offsets.size(); ++i) {
    decorate_member(block, i, spv::Decoration::Offset, {offsets[i]});
  }
  return block;
}

Id Module::constant(Type type, std::uint64_t bits) {
  const Id type_id = this->type(type);
  Words key;
  spv::Op op = spv::Op::OpConstant;
  if (type.components > 1) {
    op = spv::Op::OpConstantComposite;
    key.assign(type.components, constant(with_components(type, 1), bits));
  } else if (type.scalar == Scalar::kBool) {
    op = bits != 0 ? spv::Op::OpConstantTrue : spv::Op::OpConstantFalse;
  } else {
    key.push_back(static_cast<std::uint32_t>(bits));
    if (component_bytes(type.scalar) == 8) key.push_back(static_cast<std::uint32_t>(bits >> 32));
  }
  key.insert(key.begin(), {static_cast<std::uint32_t>(op), type_id});
  Id& id = interned_[key];
  if (id == 0) {
    id = new_id();
    Words operands{type_id, id};
    operands.insert(operands.end(), key.begin() + 2, key.end());
    append(declarations_, op, operands);
  }
  return id;
}

Id Module::constant_composite(Id type, Id element) {
  Id& id = interned_[{static_cast<std::uint32_t>(spv::Op::OpConstantComposite), type, element}];
  if (id == 0) {
    id = new_id();
    append(declarations_, spv::Op::OpConstantComposite, {type, id, element});
  }
  return id;
}

Id Module::global_variable(spv::StorageClass storage, Id pointee, Id id) {
  if (id == 0) id = new_id();
  append(declarations_, spv::Op::OpVariable, {pointer_type(storage, pointee), id, word(storage)});
  return id;
}

Id Module::local_variable(Id pointee) {
  const Id id = new_id();
  append(
      locals_, spv::Op::OpVariable,
      {pointer_type(spv::StorageClass::Function, pointee), id, word(spv::StorageClass::Function)});
  return id;
}

Id Module::builtin(spv::BuiltIn builtin, Type type) {
  Id& id = builtins_[builtin];
  if (id == 0) {
    id = global_variable(spv::StorageClass::Input, this->type(type));
    decorate(id, spv::Decoration::BuiltIn, {static_cast<std::uint32_t>(builtin)});
  }
  return id;
}

void Module::decorate(Id target, spv::Decoration decoration,
                      std::initializer_list<std::uint32_t> operands) {
  Words words{target, static_cast<std::uint32_t>(decoration)};
  words.insert(words.end(), operands.begin(), operands.end());
  append(decorations_, spv::Op::OpDecorate, words);
}

void Module::decorate_member(Id target, std::uint32_t member, spv::Decoration decoration,
                             std::initializer_list<std::uint32_t> operands) {
  Words words{target, member, static_cast<std::uint32_t>(decoration)};
  words.insert(words.end(), operands.begin(), operands.end());
  append(decorations_, spv::Op::OpMemberDecorate, words);
}

Id Module::extended_instructions() {
  if (extended_instructions_ == 0) extended_instructions_ = new_id();
  return extended_instructions_;
}

Id Module::binary_function(Type type, spv::Op op, std::initializer_list<std::uint32_t> before) {
  Words key{static_cast<std::uint32_t>(spv::Op::OpFunction), static_cast<std::uint32_t>(op)};
  key.insert(key.end(), before.begin(), before.end());
  const Id value_type = this->type(type);
  const Id function_type =
      intern_type(spv::Op::OpTypeFunction, {value_type, value_type, value_type});
  Id& function = interned_[key];
  if (function != 0) return function;
  function = new_id();
  const Id a = new_id(), b = new_id(), label = new_id(), result = new_id();
  const auto emit = [&](spv::Op instruction, std::span<const std::uint32_t> operands) {
    append(other_functions_, instruction, operands);
  };
  const auto none = static_cast<std::uint32_t>(spv::FunctionControlMask::MaskNone);
  emit(spv::Op::OpFunction, Words{value_type, function, none, function_type});
  emit(spv::Op::OpFunctionParameter, Words{value_type, a});
  emit(spv::Op::OpFunctionParameter, Words{value_type, b});
  emit(spv::Op::OpLabel, Words{label});
  Words operands{value_type, result};
  operands.insert(operands.end(), before.begin(), before.end());
  operands.insert(operands.end(), {a, b});
  emit(op, operands);
  emit(spv::Op::OpReturnValue, Words{result});
  emit(spv::Op::OpFunctionEnd, {});
  return function;
}

std::vector<std::uint32_t> Module::assemble(std::array<std::uint32_t, 3> local_size) {
  const Id function = new_id();
  const Id label = new_id();
  const Id function_type_id = function_type();
  const Id void_id = void_type();

  Words words{spv::MagicNumber, kVersion13, 0, 0, 0};
  for (const spv::Capability capability : capabilities_) {
    append(words, spv::Op::OpCapability, {static_cast<std::uint32_t>(capability)});
  }
  for (const std::string& extension : extensions_) {
    Words text;
    append_text(text, extension);
    append(words, spv::Op::OpExtension, text);
  }
  if (extended_instructions_ != 0) {
    Words operands{extended_instructions_};
    append_text(operands, "GLSL.std.450");
    append(words, spv::Op::OpExtInstImport, operands);
  }
  append(words, spv::Op::OpMemoryModel,
         {static_cast<std::uint32_t>(physical_addresses_
                                         ? spv::AddressingModel::PhysicalStorageBuffer64
                                         : spv::AddressingModel::Logical),
          static_cast<std::uint32_t>(vulkan_memory_model_ ? spv::MemoryModel::Vulkan
                                                          : spv::MemoryModel::GLSL450)});
  Words entry{static_cast<std::uint32_t>(spv::ExecutionModel::GLCompute), function};
  append_text(entry, "main");
  for (const auto& [builtin, id] : builtins_) entry.push_back(id);
  append(words, spv::Op::OpEntryPoint, entry);
  append(words, spv::Op::OpExecutionMode,
         {function, static_cast<std::uint32_t>(spv::ExecutionMode::LocalSize), local_size[0],
          local_size[1], local_size[2]});
  for (const auto& [mode, operand] : modes_) {
    append(words, spv::Op::OpExecutionMode, {function, static_cast<std::uint32_t>(mode), operand});
  }
  words.insert(words.end(), decorations_.begin(), decorations_.end());
  words.insert(words.end(), declarations_.begin(), declarations_.end());
  append(words, spv::Op::OpFunction,
         {void_id, function, static_cast<std::uint32_t>(spv::FunctionControlMask::MaskNone),
          function_type_id});
  append(words, spv::Op::OpLabel, {label});
  words.insert(words.end(), locals_.begin(), locals_.end());
  words.insert(words.end(), body_.begin(), body_.end());
  append(words, spv::Op::OpReturn, {});
  append(words, spv::Op::OpFunctionEnd, {});
  words.insert(words.end(), other_functions_.begin(), other_functions_.end());
  words[3] = next_id_;
  return words;
}

}  // namespace vkml::vulkan::spirv
