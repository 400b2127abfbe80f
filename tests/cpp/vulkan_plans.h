// Plans built by hand, for tests of the Vulkan runtime.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/vulkan/backend.h"
#include "backend/vulkan/instance.h"
#include "vkml/dispatch/execution_graph.h"

namespace vkml::vulkan::test {

/// The device for a test, or null where there is none.
inline VulkanBackend* backend() {
  static VulkanBackend* const shared =
      Instance::get().devices().empty() ? nullptr : new VulkanBackend(0);
  return shared;
}

#define VKML_REQUIRE_VULKAN() \
  if (vkml::vulkan::test::backend() == nullptr) GTEST_SKIP() << Instance::get().reason()

inline dispatch::Operand row(int buffer, std::int64_t count, std::int64_t offset = 0,
                             DType dtype = DType::kF32) {
  dispatch::Operand operand;
  operand.buffer = buffer;
  operand.dtype = dtype;
  operand.offset = offset;
  operand.extents = {1, 1, 1, count};
  operand.strides = {0, 0, 0, 1};
  return operand;
}

inline ops::Instruction load(int index, ops::ScalarType type = ops::ScalarType::kF32) {
  return {ops::Opcode::kLoad, type, 0, 0, 0, index};
}

/// A map over `count` elements.
inline dispatch::Kernel map(std::int64_t count, std::vector<dispatch::Operand> loads,
                            std::vector<dispatch::Operand> stores,
                            std::vector<ops::Instruction> code,
                            std::vector<std::uint16_t> outputs) {
  dispatch::Kernel kernel;
  kernel.space = {1, 1, 1, count};
  kernel.loads = std::move(loads);
  kernel.stores = std::move(stores);
  kernel.program.code = std::move(code);
  kernel.program.outputs = std::move(outputs);
  return kernel;
}

/// to[i] = from[i] + value.
inline dispatch::Kernel add_constant(int from, int to, std::int64_t count, float value) {
  return map(
      count, {row(from, count)}, {row(to, count)},
      {load(0),
       {ops::Opcode::kConstant, ops::ScalarType::kF32, 0, 0, 0, std::bit_cast<std::int32_t>(value)},
       {ops::Opcode::kAdd, ops::ScalarType::kF32, 0, 1}},
      {2});
}

inline dispatch::Buffer input_buffer(int binding) {
  dispatch::Buffer buffer;
  buffer.kind = dispatch::BufferKind::kInput;
  buffer.binding = binding;
  return buffer;
}

inline dispatch::Buffer result_buffer(int binding, std::int64_t bytes, int donor = -1) {
  dispatch::Buffer buffer;
  buffer.kind = dispatch::BufferKind::kResult;
  buffer.binding = binding;
  buffer.bytes = bytes;
  buffer.donor = donor;
  return buffer;
}

inline dispatch::Buffer temporary_buffer(std::int64_t offset, std::int64_t bytes) {
  dispatch::Buffer buffer;
  buffer.arena_offset = offset;
  buffer.bytes = bytes;
  return buffer;
}

template <typename T>
StoragePtr upload(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  StoragePtr storage = backend()->allocator().allocate(bytes.size());
  backend()->upload(*storage, 0, bytes);
  return storage;
}

template <typename T>
std::vector<T> download(const Storage& storage, std::size_t count) {
  std::vector<T> values(count);
  backend()->download(storage, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

/// Compiles and runs; the results' storages get their writer.
inline std::shared_ptr<Submission> run(const dispatch::ExecutionGraph& graph,
                                       const std::vector<StoragePtr>& inputs,
                                       const std::vector<StoragePtr>& results,
                                       std::vector<std::uint64_t> scalars = {}) {
  dispatch::Bindings bindings;
  for (const StoragePtr& storage : inputs) bindings.inputs.push_back({storage.get(), 0});
  for (const StoragePtr& storage : results) bindings.results.push_back({storage.get(), 0});
  bindings.scalars = std::move(scalars);
  const auto executable = backend()->compile(graph);
  const auto submission = backend()->run(*executable, bindings);
  for (const StoragePtr& storage : results) storage->set_writer(submission);
  return submission;
}

}  // namespace vkml::vulkan::test
