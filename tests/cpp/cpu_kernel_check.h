// Runs a hand-built plan of one kernel on the CPU backend and on the oracle, and compares.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "backend/cpu/cpu_backend.h"
#include "kernel_builder.h"
#include "kernel_oracle.h"

namespace vkml::oracle {

inline dispatch::Backend& cpu_backend() {
  static const std::unique_ptr<dispatch::Backend> backend = cpu::make_cpu_backend();
  return *backend;
}

/// Values that suit each type: floats in [-4, 4), small integers, bools.
inline void fill_random(std::vector<std::byte>& bytes, DType dtype, std::mt19937& random) {
  const std::size_t count = bytes.size() / size_of(dtype);
  std::uniform_real_distribution<double> real(-4, 4);
  std::uniform_int_distribution<int> integer(-50, 50);
  for (std::size_t i = 0; i < count; ++i) {
    Number value{real(random), integer(random)};
    if (dtype == DType::kBool) value.i = value.i & 1;
    write_element(bytes, dtype, static_cast<std::int64_t>(i), value);
  }
}

/// Buffers of the plan's sizes; inputs random, in the dtype of the first operand that names them.
inline Memory random_memory(const dispatch::ExecutionGraph& graph, unsigned seed = 1) {
  std::mt19937 random(seed);
  Memory memory;
  for (const dispatch::Buffer& buffer : graph.buffers) {
    memory.buffers.emplace_back(static_cast<std::size_t>(buffer.bytes));
  }
  const dispatch::Kernel& kernel = graph.kernels[0];
  std::vector<bool> filled(graph.buffers.size(), false);
  for (const auto* list : {&kernel.core_inputs, &kernel.loads}) {
    for (const Operand& operand : *list) {
      const auto i = static_cast<std::size_t>(operand.buffer);
      if (!filled[i]) fill_random(memory.buffers[i], operand.dtype, random);
      filled[i] = true;
    }
  }
  return memory;
}

/// Runs the plan on the backend; results come back into `memory`. A result with a donor starts from
/// that input's bytes and overwrites its block.
inline void run_on_cpu(dispatch::ExecutionGraph graph, Memory& memory) {
  dispatch::Backend& backend = cpu_backend();
  for (dispatch::Kernel& kernel : graph.kernels) {
    kernel.scratch_bytes = backend.scratch_bytes(kernel);
    if (kernel.scratch_bytes == 0) continue;
    dispatch::Buffer scratch;
    scratch.bytes = kernel.scratch_bytes;
    graph.buffers.push_back(scratch);
    kernel.scratch = static_cast<int>(graph.buffers.size()) - 1;
  }
  for (dispatch::Buffer& buffer : graph.buffers) {
    if (buffer.kind != dispatch::BufferKind::kTemporary) continue;
    buffer.arena_offset = graph.arena_bytes;
    graph.arena_bytes += (buffer.bytes + 255) / 256 * 256;
  }
  dispatch::Bindings bindings;
  bindings.inputs.resize(static_cast<std::size_t>(graph.input_count));
  bindings.results.resize(static_cast<std::size_t>(graph.result_count));
  bindings.scalars = memory.scalars;
  std::vector<StoragePtr> storages;
  for (std::size_t i = 0; i < memory.buffers.size(); ++i) {
    const dispatch::Buffer& buffer = graph.buffers[i];
    if (buffer.kind == dispatch::BufferKind::kTemporary) continue;
    const bool is_input = buffer.kind == dispatch::BufferKind::kInput;
    if (!is_input && buffer.donor >= 0) continue;
    StoragePtr storage = backend.allocator().allocate(memory.buffers[i].size());
    backend.upload(*storage, 0, memory.buffers[i]);
    auto& list = is_input ? bindings.inputs : bindings.results;
    list[static_cast<std::size_t>(buffer.binding)].storage = storage.get();
    storages.push_back(std::move(storage));
  }
  for (const dispatch::Buffer& buffer : graph.buffers) {
    if (buffer.donor < 0) continue;
    bindings.results[static_cast<std::size_t>(buffer.binding)] =
        bindings.inputs[static_cast<std::size_t>(buffer.donor)];
  }
  const auto copy_back = [&] {
    for (std::size_t i = 0; i < memory.buffers.size(); ++i) {
      const dispatch::Buffer& buffer = graph.buffers[i];
      if (buffer.kind == dispatch::BufferKind::kTemporary) continue;
      const auto& list =
          buffer.kind == dispatch::BufferKind::kInput ? bindings.inputs : bindings.results;
      backend.download(*list[static_cast<std::size_t>(buffer.binding)].storage, 0,
                       memory.buffers[i]);
    }
  };
  const auto executable = backend.compile(graph);
  try {
    backend.run(*executable, bindings);
  } catch (...) {
    copy_back();
    throw;
  }
  copy_back();
}

inline bool is_close(DType dtype, Number got, Number want, double tolerance) {
  if (!is_floating(dtype)) return got.i == want.i;
  if (std::isnan(got.f) || std::isnan(want.f)) return std::isnan(got.f) == std::isnan(want.f);
  if (got.f == want.f) return true;
  if (std::isinf(got.f) || std::isinf(want.f)) return false;
  return std::fabs(got.f - want.f) <= tolerance * std::max(1.0, std::fabs(want.f));
}

inline void expect_same(const dispatch::ExecutionGraph& graph, const Memory& got,
                        const Memory& want, double tolerance) {
  for (const Operand& store : results_of(graph.kernels[0])) {
    const auto i = static_cast<std::size_t>(store.buffer);
    const std::size_t count = want.buffers[i].size() / size_of(store.dtype);
    int shown = 0;
    for (std::size_t k = 0; k < count && shown < 5; ++k) {
      const auto at = static_cast<std::int64_t>(k);
      const Number a = read_element(got.buffers[i], store.dtype, at);
      const Number b = read_element(want.buffers[i], store.dtype, at);
      if (is_close(store.dtype, a, b, tolerance)) continue;
      ++shown;
      ADD_FAILURE() << "buffer " << i << " element " << k << ": " << a.f << " " << a.i
                    << ", expected " << b.f << " " << b.i << "\n"
                    << dispatch::to_string(graph);
    }
  }
}

/// The plan's results on the backend equal the oracle's: exactly, or to `tolerance` relative to the
/// larger of 1 and the value.
inline void check(const dispatch::ExecutionGraph& graph, const Memory& memory,
                  double tolerance = 0) {
  Memory want = memory;
  for (std::size_t i = 0; i < graph.buffers.size(); ++i) {
    const int donor = graph.buffers[i].donor;
    if (donor >= 0) want.buffers[i] = memory.buffers[static_cast<std::size_t>(donor)];
  }
  Interpreter(graph.kernels[0], want).run();
  Memory got = memory;
  run_on_cpu(graph, got);
  expect_same(graph, got, want, tolerance);
}

inline void check(const dispatch::ExecutionGraph& graph, double tolerance = 0) {
  check(graph, random_memory(graph), tolerance);
}

}  // namespace vkml::oracle
