// Hand-built kernels of every family run on the device and agree with naive loops over their
// definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernel_attention_cases.h"
#include "kernel_line_cases.h"
#include "vkml/core/error.h"
#include "vulkan_plans.h"

namespace vkml::vulkan {
namespace {

using dispatch::BufferKind;
using dispatch::ExecutionGraph;
using oracle::KernelCase;
using oracle::Memory;
using oracle::Number;

/// Bytes after each result that no kernel may touch.
constexpr std::size_t kGuardBytes = 64;
constexpr auto kGuard = std::byte{0x5a};

/// The plan with temporaries as results and inputs of the test, and with its scratch.
ExecutionGraph bound_graph(ExecutionGraph graph) {
  for (dispatch::Kernel& kernel : graph.kernels) {
    kernel.scratch_bytes = test::backend()->scratch_bytes(kernel);
    if (kernel.scratch_bytes == 0) continue;
    kernel.scratch = static_cast<int>(graph.buffers.size());
    graph.buffers.push_back(test::temporary_buffer(0, kernel.scratch_bytes));
    graph.arena_bytes = kernel.scratch_bytes;
  }
  const std::set<int> stored = [&] {
    std::set<int> buffers;
    for (const auto& store : oracle::results_of(graph.kernels[0])) buffers.insert(store.buffer);
    return buffers;
  }();
  for (std::size_t i = 0; i < graph.buffers.size(); ++i) {
    dispatch::Buffer& buffer = graph.buffers[i];
    const bool is_scratch = graph.kernels[0].scratch == static_cast<int>(i);
    if (buffer.kind != BufferKind::kTemporary || is_scratch) continue;
    const bool is_result = stored.contains(static_cast<int>(i));
    buffer.kind = is_result ? BufferKind::kResult : BufferKind::kInput;
    buffer.binding = is_result ? graph.result_count++ : graph.input_count++;
  }
  return graph;
}

/// Runs the case on the device; `memory` receives the results. Inputs are bound at an offset.
void run_on_device(const ExecutionGraph& graph, Memory& memory, std::size_t input_offset) {
  dispatch::Bindings bindings;
  bindings.inputs.resize(static_cast<std::size_t>(graph.input_count));
  bindings.results.resize(static_cast<std::size_t>(graph.result_count));
  bindings.scalars = memory.scalars;
  std::vector<StoragePtr> storages(memory.buffers.size());
  for (std::size_t i = 0; i < memory.buffers.size(); ++i) {
    const dispatch::Buffer& buffer = graph.buffers[i];
    const bool is_input = buffer.kind == BufferKind::kInput;
    std::vector<std::byte> bytes(is_input ? input_offset : 0);
    bytes.insert(bytes.end(), memory.buffers[i].begin(), memory.buffers[i].end());
    bytes.resize(bytes.size() + kGuardBytes, kGuard);
    storages[i] = test::upload(bytes);
    auto& binding =
        (is_input ? bindings.inputs : bindings.results)[static_cast<std::size_t>(buffer.binding)];
    binding = {storages[i].get(), static_cast<std::int64_t>(is_input ? input_offset : 0)};
  }
  const auto executable = test::backend()->compile(graph);
  const auto submission = test::backend()->run(*executable, bindings);
  for (std::size_t i = 0; i < memory.buffers.size(); ++i) {
    if (graph.buffers[i].kind != BufferKind::kResult) continue;
    storages[i]->set_writer(submission);
    const std::size_t size = memory.buffers[i].size();
    const auto bytes = test::download<std::byte>(*storages[i], size + kGuardBytes);
    std::copy_n(bytes.begin(), size, memory.buffers[i].begin());
    // Narrow elements may share their last word with padding.
    for (std::size_t k = (size + 3) / 4 * 4; k < bytes.size(); ++k) {
      ASSERT_EQ(bytes[k], kGuard) << "byte " << k - size << " past the end was overwritten";
    }
  }
}

bool agrees(const KernelCase& test, Number want, Number got) {
  if (want.i != got.i) return false;
  if (std::isnan(want.f) || std::isnan(got.f)) return std::isnan(want.f) && std::isnan(got.f);
  if (want.f == got.f) return true;
  return std::fabs(want.f - got.f) <= test.relative * std::fabs(want.f) + test.absolute;
}

void expect_agreement(const KernelCase& test, std::size_t input_offset) {
  SCOPED_TRACE(test.name + ", inputs at byte " + std::to_string(input_offset));
  const ExecutionGraph graph = bound_graph(test.graph);
  Memory want = oracle::memory_of(test);
  Memory got = want;
  oracle::Interpreter(graph.kernels[0], want).run();
  try {
    run_on_device(graph, got, input_offset);
  } catch (const UnsupportedError&) {
    return;  // the device lacks 64-bit types; test_spirv checks the message
  }
  int wrong = 0;
  for (const dispatch::Operand& store : oracle::results_of(graph.kernels[0])) {
    const auto buffer = static_cast<std::size_t>(store.buffer);
    const std::size_t count = want.buffers[buffer].size() / size_of(store.dtype);
    for (std::size_t i = 0; i < count && wrong < 5; ++i) {
      const auto place = static_cast<std::int64_t>(i);
      const Number a = oracle::read_element(want.buffers[buffer], store.dtype, place);
      const Number b = oracle::read_element(got.buffers[buffer], store.dtype, place);
      if (agrees(test, a, b)) continue;
      ++wrong;
      ADD_FAILURE() << "element " << i << " of buffer " << buffer << ": want " << a.f << " / "
                    << a.i << ", got " << b.f << " / " << b.i;
    }
  }
}

void expect_agreement(const std::vector<KernelCase>& cases) {
  for (const KernelCase& test : cases) expect_agreement(test, 0);
}

#define VKML_DEVICE_TEST(name, cases)  \
  TEST(VulkanKernels, name) {          \
    VKML_REQUIRE_VULKAN();             \
    expect_agreement(oracle::cases()); \
  }

VKML_DEVICE_TEST(Maps, map_cases)
VKML_DEVICE_TEST(Conversions, conversion_cases)
VKML_DEVICE_TEST(Opcodes, opcode_cases)
VKML_DEVICE_TEST(Rows, row_cases)
VKML_DEVICE_TEST(Reductions, reduce_cases)
VKML_DEVICE_TEST(Products, matmul_cases)
VKML_DEVICE_TEST(Convolutions, convolution_cases)
VKML_DEVICE_TEST(Pools, pool_cases)
VKML_DEVICE_TEST(Indexing, index_cases)
VKML_DEVICE_TEST(Scatters, scatter_cases)
VKML_DEVICE_TEST(Scans, scan_cases)
VKML_DEVICE_TEST(Sorts, sort_cases)
VKML_DEVICE_TEST(Searches, search_cases)

TEST(VulkanKernels, Attention) {
  VKML_REQUIRE_VULKAN();
  for (const KernelCase& test : oracle::attention_cases()) {
    const dispatch::Kernel& kernel = test.graph.kernels[0];
    const bool is_joined = !kernel.loads.empty() || !kernel.core_stores.empty();
    const std::size_t operands =
        kernel.core_inputs.size() + kernel.loads.size() + oracle::results_of(kernel).size();
    // Plans hold no such kernel.
    if (is_joined && static_cast<int>(operands) > test::backend()->max_operands()) continue;
    expect_agreement(test, 0);
  }
}

TEST(VulkanKernels, AttentionOnMatrixUnits) {
  VKML_REQUIRE_VULKAN();
  const std::vector<std::string> features = test::backend()->info().features;
  if (std::ranges::find(features, "matrix units for f16") == features.end()) {
    GTEST_SKIP() << "the device has none";
  }
  expect_agreement(oracle::matrix_attention_cases());
}

TEST(VulkanKernels, InputsMayStartAnywhere) {
  VKML_REQUIRE_VULKAN();
  expect_agreement(oracle::multiply_add_case(1000, BufferKind::kInput), 4);
  expect_agreement(oracle::softmax_case({1, 1, 5, 64}, 1, false, DType::kF32, BufferKind::kInput),
                   8);
  expect_agreement(oracle::matmul_case({1, 1, 64, 64}, 64, {}), 4);
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kBool}) {
    expect_agreement(oracle::conversion_case(dtype, DType::kF32, 50, 0), 2);
  }
}

TEST(VulkanKernels, BadIndexLeavesResultsAlone) {
  VKML_REQUIRE_VULKAN();
  for (const std::int64_t bad : {-1, 3}) {
    const KernelCase test = oracle::scatter_case(DType::kI32, 0, false);
    const ExecutionGraph graph = bound_graph(test.graph);
    const dispatch::Kernel& kernel = graph.kernels[0];
    const auto index = static_cast<std::size_t>(kernel.core_inputs[1].buffer);
    const auto result = static_cast<std::size_t>(kernel.stores[0].buffer);
    Memory memory = oracle::memory_of(test);
    oracle::write_element(memory.buffers[index], DType::kI32, 5, {0, bad});
    EXPECT_THROW(run_on_device(graph, memory, 0), IndexError);
    EXPECT_EQ(memory.buffers[result], oracle::memory_of(test).buffers[result]);
  }
}

TEST(VulkanKernels, SumsAreEqualFromRunToRun) {
  VKML_REQUIRE_VULKAN();
  const KernelCase test =
      oracle::reduce_case(ops::ReduceKind::kSum, ops::ScalarType::kF32, {1, 1, 1, 200000}, false);
  const ExecutionGraph graph = bound_graph(test.graph);
  Memory first = oracle::memory_of(test);
  run_on_device(graph, first, 0);
  for (int repeat = 0; repeat < 3; ++repeat) {
    Memory again = oracle::memory_of(test);
    run_on_device(graph, again, 0);
    EXPECT_EQ(again.buffers[1], first.buffers[1]);
  }
}

}  // namespace
}  // namespace vkml::vulkan

#include "validation_end.h"
