#include "vkml/dispatch/execution_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "vkml/core/error.h"
#include "vkml/dispatch/kernel_cost.h"

namespace vkml::dispatch {

std::exception_ptr failure_at(const Site& site, std::int64_t found) {
  if (site.values == ops::ValueCheck::kNone) {
    return std::make_exception_ptr(IndexError(fmt::format(
        "[{}] index {} is out of bounds for an axis of extent {}", site.op, found, site.extent)));
  }
  const ops::ValueInterval& interval = ops::interval_of(site.values);
  return std::make_exception_ptr(
      ArgumentError(fmt::format("[{}] {} is {}, not in {}0, {}", site.op, interval.noun,
                                std::bit_cast<float>(static_cast<std::int32_t>(found)),
                                interval.is_open ? '(' : '[', interval.is_unit ? "1]" : "inf)")));
}

std::vector<int> sites_of(const Kernel& kernel) {
  std::vector<int> sites;
  if (kernel.core_site >= 0) sites.push_back(kernel.core_site);
  for (const ops::Instruction& instruction : kernel.program.code) {
    if (instruction.op == ops::Opcode::kCheckIndex)
      sites.push_back(static_cast<int>(instruction.imm));
  }
  std::ranges::sort(sites);
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  return sites;
}

std::int64_t numel(const Extents& extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  return count;
}

namespace {

bool varies_along_row(const Operand& operand, const Kernel& kernel) {
  for (int axis = kMaxDims - kernel.reduce_dims; axis < kMaxDims; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (kernel.space[i] != 1 && operand.strides[i] != 0) return true;
  }
  return false;
}

Level source_level(const ops::Instruction& instruction, const Kernel& kernel) {
  using ops::Opcode;
  switch (instruction.op) {
    case Opcode::kConstant:
    case Opcode::kScalar:
      return Level::kUniform;
    case Opcode::kCore:
      return Level::kElement;
    case Opcode::kIota:
      return instruction.imm >= kMaxDims - kernel.reduce_dims ? Level::kElement : Level::kRow;
    default: {
      const Operand& operand = kernel.loads[static_cast<std::size_t>(instruction.imm)];
      return varies_along_row(operand, kernel) ? Level::kElement : Level::kRow;
    }
  }
}

}  // namespace

ProgramLevels analyze_levels(const Kernel& kernel) {
  const auto& code = kernel.program.code;
  ProgramLevels result;
  result.level.resize(code.size());
  result.phase.resize(code.size());
  for (std::size_t i = 0; i < code.size(); ++i) {
    const ops::Instruction& instruction = code[i];
    const std::uint16_t operands[] = {instruction.a, instruction.b, instruction.c};
    const int count = ops::operand_count(instruction.op);
    Level level = count == 0 ? source_level(instruction, kernel) : Level::kUniform;
    // With no row axes every value is computed at each element.
    if (kernel.reduce_dims == 0 && level == Level::kRow) level = Level::kElement;
    std::uint8_t phase = 0;
    for (int k = 0; k < count; ++k) {
      level = std::max(level, result.level[operands[k]]);
      phase = std::max(phase, result.phase[operands[k]]);
    }
    if (instruction.op == ops::Opcode::kReduce) {
      level = Level::kRow;
      ++phase;
    }
    result.level[i] = level;
    result.phase[i] = phase;
    result.phases = std::max(result.phases, phase + 1);
  }
  return result;
}

namespace {

std::string to_string(const Extents& values) {
  return fmt::format("[{}, {}, {}, {}]", values[0], values[1], values[2], values[3]);
}

std::string to_string(const Operand& operand) {
  return fmt::format("buffer {} {} + {} extents {} strides {}", operand.buffer,
                     name_of(operand.dtype), operand.offset, to_string(operand.extents),
                     to_string(operand.strides));
}

}  // namespace

std::string to_string(const ExecutionGraph& graph) {
  std::string text =
      fmt::format("{} kernels, arena {} bytes\n", graph.kernels.size(), graph.arena_bytes);
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const Kernel& kernel = graph.kernels[i];
    text += fmt::format("kernel {}: {} space {} rows over the last {} axes\n", i,
                        name_of(kernel, graph), to_string(kernel.space), kernel.reduce_dims);
    for (const Operand& operand : kernel.core_inputs)
      text += "  core  " + to_string(operand) + "\n";
    for (const Operand& operand : kernel.loads) text += "  load  " + to_string(operand) + "\n";
    for (const Operand& operand : kernel.stores) text += "  store " + to_string(operand) + "\n";
    for (const Operand& operand : kernel.core_stores)
      text += "  core store " + to_string(operand) + "\n";
    text += ops::to_string(kernel.program);
  }
  return text;
}

}  // namespace vkml::dispatch
