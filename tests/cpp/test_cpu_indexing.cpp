// Gather and scatter-add on the CPU backend, good indices and bad ones.
#include "cpu_kernel_check.h"

namespace vkml::oracle {
namespace {

using dispatch::BufferKind;

struct Case {
  Extents x;  // of gather: the source; of scatter: the base
  Extents index;
  int axis;
  bool is_shared;  // the index is the same along the last axis
};

std::vector<Case> cases() {
  return {{{1, 1, 50, 16}, {1, 1, 30, 16}, 2, true}, {{1, 1, 50, 16}, {1, 1, 30, 16}, 2, false},
          {{1, 1, 1, 20}, {1, 1, 1, 7}, 3, false},   {{2, 3, 4, 20}, {2, 3, 4, 33}, 3, false},
          {{6, 3, 4, 5}, {9, 3, 4, 5}, 0, true},     {{6, 3, 4, 5}, {9, 2, 3, 4}, 0, false},
          {{2, 7, 4, 5}, {2, 3, 4, 5}, 1, false},    {{1, 1, 60, 16}, {1, 1, 500, 16}, 2, true},
          {{1, 1, 4, 5}, {1, 1, 0, 5}, 2, false},    {{1, 1, 40, 1}, {1, 1, 25, 1}, 2, false},
          {{1, 2, 4, 300}, {1, 2, 4, 200}, 3, false}};
}

dispatch::Operand index_operand(KernelBuilder& build, const Case& c, DType dtype) {
  dispatch::Operand operand = build.dense(dtype, c.index);
  if (!c.is_shared) return operand;
  const Extents outer{c.index[0], c.index[1], c.index[2], 1};
  operand.strides = row_major(outer);
  operand.strides[3] = 0;
  return operand;
}

void fill_indices(Memory& memory, const dispatch::Operand& index, std::int64_t extent) {
  std::mt19937 random(11);
  auto& bytes = memory.buffers[static_cast<std::size_t>(index.buffer)];
  for (std::size_t i = 0; i < bytes.size() / size_of(index.dtype); ++i) {
    write_element(bytes, index.dtype, static_cast<std::int64_t>(i),
                  {0, static_cast<std::int64_t>(random()) % extent});
  }
}

dispatch::ExecutionGraph gather_graph(const Case& c, DType dtype, DType index_type,
                                      bool has_epilogue) {
  KernelBuilder build(CoreKind::kGather, c.index);
  build.graph.sites.push_back({"gather", c.x[static_cast<std::size_t>(c.axis)]});
  build.kernel.core_site = 0;
  build.kernel.attributes = {c.axis};
  build.kernel.core_inputs = {build.dense(dtype, c.x), index_operand(build, c, index_type)};
  const ScalarType type = ops::compute_type(dtype);
  Register value = build.core(type);
  if (has_epilogue) value = build.emit(Opcode::kConvert, ScalarType::kF64, {value});
  build.result(has_epilogue ? DType::kF64 : dtype, value);
  return build.finish();
}

TEST(CpuIndexing, GatherOfEveryType) {
  for (const Case& c : cases()) {
    for (int i = 0; i < kDTypeCount; ++i) {
      for (const DType index_type : {DType::kI32, DType::kI64}) {
        for (const bool has_epilogue : {false, true}) {
          const auto graph = gather_graph(c, static_cast<DType>(i), index_type, has_epilogue);
          Memory memory = random_memory(graph);
          fill_indices(memory, graph.kernels[0].core_inputs[1],
                       c.x[static_cast<std::size_t>(c.axis)]);
          check(graph, memory);
        }
      }
    }
  }
}

dispatch::ExecutionGraph scatter_graph(const Case& c, DType dtype, bool in_place) {
  KernelBuilder build(CoreKind::kScatter, c.x);
  build.graph.sites.push_back({"scatter_add", c.x[static_cast<std::size_t>(c.axis)]});
  build.kernel.core_site = 0;
  build.kernel.attributes = {c.axis, 0};
  build.kernel.core_inputs = {build.dense(dtype, c.x), index_operand(build, c, DType::kI32),
                              build.dense(dtype, c.index)};
  build.result(dtype, build.core(ops::compute_type(dtype)));
  if (in_place) build.graph.buffers.back().donor = 0;
  return build.finish();
}

TEST(CpuIndexing, ScatterAddOfEveryType) {
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32,
                              DType::kI64, DType::kU8}) {
      for (const bool in_place : {false, true}) {
        const auto graph = scatter_graph(c, dtype, in_place);
        Memory memory = random_memory(graph);
        fill_indices(memory, graph.kernels[0].core_inputs[1],
                     c.x[static_cast<std::size_t>(c.axis)]);
        const bool is_narrow = dtype == DType::kF16 || dtype == DType::kBF16;
        check(graph, memory, is_narrow ? 2e-2 : 1e-4);
      }
    }
  }
}

TEST(CpuIndexing, BadIndexWritesNothing) {
  const Case c{{1, 1, 50, 16}, {1, 1, 30, 16}, 2, true};
  for (const bool is_scatter : {false, true}) {
    for (const std::int32_t bad : {50, -1}) {
      const auto graph = is_scatter ? scatter_graph(c, DType::kF32, true)
                                    : gather_graph(c, DType::kF32, DType::kI32, false);
      Memory memory = random_memory(graph);
      fill_indices(memory, graph.kernels[0].core_inputs[1], 50);
      write_raw(memory.buffers[1], 29, bad);
      const Memory before = memory;
      try {
        run_on_cpu(graph, memory);
        FAIL() << "no IndexError";
      } catch (const IndexError& error) {
        EXPECT_EQ(std::string(error.what()),
                  std::string(is_scatter ? "[scatter_add]" : "[gather]") + " index " +
                      std::to_string(bad) + " is out of bounds for an axis of extent 50");
      }
      EXPECT_EQ(memory.buffers[0], before.buffers[0]);
    }
  }
}

}  // namespace
}  // namespace vkml::oracle
