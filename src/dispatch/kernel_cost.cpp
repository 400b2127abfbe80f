// Costs follow from the plan alone, so that they are the same on every device.

#include "vkml/dispatch/kernel_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "vkml/dispatch/execution_graph.h"

namespace vkml::dispatch {
namespace {

using ops::CoreKind;
using ops::Opcode;

/// Names of long kernels end here.
constexpr std::size_t kMaxNamed = 8;

/// Elements of memory that a window covers: axes along which it does not move do not count.
std::int64_t elements_of(const Operand& operand) {
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < operand.extents.size(); ++axis) {
    if (operand.strides[axis] != 0 || operand.extents[axis] == 0) count *= operand.extents[axis];
  }
  return count;
}

std::int64_t bytes_of(const Operand& operand, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(size_of(operand.dtype));
}

bool is_same_window(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.strides == b.strides &&
         a.extents == b.extents;
}

std::int64_t bytes_read(const Kernel& kernel) {
  std::vector<const Operand*> seen;
  std::int64_t bytes = 0;
  const auto add = [&](const Operand& operand, std::int64_t most) {
    const bool is_known = std::ranges::any_of(
        seen, [&](const Operand* known) { return is_same_window(*known, operand); });
    if (is_known) return;
    seen.push_back(&operand);
    bytes += bytes_of(operand, std::min(elements_of(operand), most));
  };
  for (std::size_t i = 0; i < kernel.core_inputs.size(); ++i) {
    // A gather reads what its index names, not the whole table.
    const bool is_table = kernel.kind == CoreKind::kGather && i == 0;
    add(kernel.core_inputs[i], is_table ? numel(kernel.space) : kAnyBlock);
  }
  for (const Operand& operand : kernel.loads) add(operand, kAnyBlock);
  return bytes;
}

std::int64_t bytes_written(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const auto* stores : {&kernel.stores, &kernel.core_stores}) {
    for (const Operand& operand : *stores) bytes += bytes_of(operand, elements_of(operand));
  }
  return bytes;
}

bool is_product(CoreKind kind) {
  return kind == CoreKind::kMatmul || ops::is_convolution(kind) || ops::is_attention(kind);
}

double product_of(const Extents& extents, std::initializer_list<std::size_t> axes) {
  double product = 1;
  for (const std::size_t axis : axes) product *= static_cast<double>(extents[axis]);
  return product;
}

/// Of its products; a causal mask leaves half of the pairs of a query and a key.
double attention_terms(const Kernel& kernel) {
  const Extents& query = kernel.core_inputs[0].extents;
  const double width = static_cast<double>(query[3]);
  double pairs = product_of(query, {0, 1, 2}) * product_of(kernel.core_inputs[1].extents, {2});
  if (kernel.attributes[1] != 0) pairs /= 2;
  const double result_width = static_cast<double>(kernel.space[3]);
  switch (kernel.kind) {
    case CoreKind::kAttentionLogSumExp:
      return pairs * width;
    case CoreKind::kAttention:
    case CoreKind::kAttentionValueGradient:
      return pairs * (width + result_width);
    default: {
      // Scores, gradients of weights, and each result.
      const double value_width = product_of(kernel.core_inputs[2].extents, {3});
      const double companion = kernel.core_stores.empty() ? 0 : value_width;
      return pairs * (2 * width + value_width + companion);
    }
  }
}

double core_flops(const Kernel& kernel) {
  if (!ops::is_floating(kernel.core_type)) return 0;
  switch (kernel.kind) {
    case CoreKind::kScan: {
      const auto kind = static_cast<ops::ScanKind>(kernel.attributes[1]);
      const double each = kind == ops::ScanKind::kLinear ? 2 : 1;
      return each * static_cast<double>(numel(kernel.space));
    }
    case CoreKind::kScatter:
      return static_cast<ops::ScatterKind>(kernel.attributes[1]) == ops::ScatterKind::kReplace
                 ? 0
                 : static_cast<double>(numel(kernel.core_inputs[2].extents));
    default:
      return core_terms(kernel) * (is_product(kernel.kind) ? 2 : 1);
  }
}

/// Of its program in f32, whatever a device does in its stead.
constexpr double kExpFlops = 25;

/// Operations of one instruction, each time that it runs.
double flops_of(const ops::Instruction& instruction) {
  if (!ops::is_floating(instruction.type)) return 0;
  switch (instruction.op) {
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kMul:
    case Opcode::kDiv:
    case Opcode::kRem:
    case Opcode::kMin:
    case Opcode::kMax:
    case Opcode::kSqrt:
    case Opcode::kReduce:
      return 1;
    case Opcode::kFma:
      return 2;
    case Opcode::kExp:
      return kExpFlops;
    default:
      return 0;
  }
}

double program_flops(const Kernel& kernel) {
  const ProgramLevels levels = analyze_levels(kernel);
  double rows = 1;
  for (int axis = 0; axis < kMaxDims - kernel.reduce_dims; ++axis)
    rows *= static_cast<double>(kernel.space[static_cast<std::size_t>(axis)]);
  const auto times = [&](Level level) {
    switch (level) {
      case Level::kUniform:
        return 1.0;
      case Level::kRow:
        return rows;
      case Level::kElement:
        break;
    }
    return static_cast<double>(numel(kernel.space));
  };
  double flops = 0;
  for (std::size_t i = 0; i < kernel.program.code.size(); ++i) {
    const ops::Instruction& instruction = kernel.program.code[i];
    // A reduction works at each element that it takes.
    const Level level =
        instruction.op == Opcode::kReduce ? levels.level[instruction.a] : levels.level[i];
    flops += flops_of(instruction) * times(level);
  }
  return flops;
}

}  // namespace

std::string name_of(const Kernel& kernel, const ExecutionGraph& graph) {
  std::string name = ops::name_of(kernel.kind);
  std::size_t count = 0;
  for (const int position : kernel.nodes) {
    const graph::OpInfo& op = *graph.nodes[static_cast<std::size_t>(position)].op;
    const bool is_core = kernel.kind != CoreKind::kNone && ops::core_of(op) == kernel.kind;
    if (is_core) continue;
    if (count < kMaxNamed) name += fmt::format("{}{}", count == 0 ? " " : "+", op.name);
    ++count;
  }
  if (count > kMaxNamed) name += fmt::format("+{} more", count - kMaxNamed);
  return name;
}

double core_terms(const Kernel& kernel) {
  if (ops::is_attention(kernel.kind)) return attention_terms(kernel);
  const double results = static_cast<double>(numel(kernel.space));
  switch (kernel.kind) {
    case CoreKind::kMatmul:
      return results * product_of(kernel.core_inputs[0].extents, {3});
    case CoreKind::kConv2d:
      return results * product_of(kernel.core_inputs[1].extents, {1, 2, 3});
    case CoreKind::kConv2dInputGradient:  // each output gradient meets one filter's weights
      return static_cast<double>(numel(kernel.core_inputs[0].extents)) *
             product_of(kernel.core_inputs[1].extents, {1, 2, 3});
    case CoreKind::kConv2dWeightGradient:
      return results * product_of(kernel.core_inputs[1].extents, {0, 2, 3});
    case CoreKind::kMaxPool2d:
    case CoreKind::kMaxPool2dIndices:
    case CoreKind::kMaxPool2dGradient:
    case CoreKind::kAvgPool2d:
    case CoreKind::kAvgPool2dGradient:
      return results * static_cast<double>(kernel.attributes[0] * kernel.attributes[1]);
    default:
      return 0;
  }
}

KernelCost cost_of(const Kernel& kernel, const ExecutionGraph& graph) {
  KernelCost cost;
  cost.name = name_of(kernel, graph);
  cost.extents = kernel.space;
  cost.bytes_read = bytes_read(kernel);
  cost.bytes_written = bytes_written(kernel);
  cost.flops = core_flops(kernel) + program_flops(kernel);
  if (is_product(kernel.kind) && ops::is_floating(kernel.core_type))
    cost.product = kernel.core_inputs[0].dtype;
  return cost;
}

}  // namespace vkml::dispatch
