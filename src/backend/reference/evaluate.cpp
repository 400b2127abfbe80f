#include "evaluate.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <exception>

#include "cores.h"
#include "reductions.h"
#include "vkml/core/error.h"
#include "vkml/ops/elementwise.h"

namespace vkml::reference {
namespace {

using dispatch::Bindings;
using dispatch::ExecutionGraph;
using dispatch::PlanNode;
using graph::Family;
using ops::ScalarType;
using Sources = std::span<const Array* const>;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

Array with_shape_of(const PlanNode& node) { return {node.dtype, node.shape}; }

/// An operand read at the elements of the result.
struct Operand {
  const Array* array;
  Extents strides;
};

template <typename T>
T element(const Operand& operand, const Extents& index) {
  const std::size_t position = at(position_of(index, operand.strides));
  return is_floating(operand.array->dtype) ? static_cast<T>(operand.array->floats[position])
                                           : static_cast<T>(operand.array->integers[position]);
}

void write_value(Array& out, std::size_t position, double value) {
  if (is_floating(out.dtype)) {
    out.floats[position] = rounded(value, out.dtype);
  } else {
    out.integers[position] = rounded(static_cast<std::int64_t>(value), out.dtype);
  }
}
void write_value(Array& out, std::size_t position, std::int64_t value) {
  out.integers[position] = rounded(value, out.dtype);
}

Array evaluate_elementwise(const PlanNode& node, Sources sources) {
  const ops::ElementwiseRow& row = ops::row_of(*node.op);
  std::vector<Operand> operands;
  for (const Array* source : sources) {
    operands.push_back({source, broadcast_strides(source->extents)});
  }
  const DType operand_dtype = sources[row.rule == ops::DTypeRule::kSelect ? 1 : 0]->dtype;
  const bool in_integers = !is_floating(operand_dtype) && row.integer_oracle != nullptr;
  // A bool has one bit.
  const bool one_bit = row.rule == ops::DTypeRule::kBits && operand_dtype == DType::kBool;
  Array out = with_shape_of(node);
  std::size_t next = 0;
  for_each(out.extents, [&](const Extents& index) {
    if (in_integers) {
      std::int64_t values[ops::kMaxOperands] = {};
      for (std::size_t k = 0; k < operands.size(); ++k) {
        values[k] = element<std::int64_t>(operands[k], index);
      }
      const std::int64_t value = row.integer_oracle(values);
      write_value(out, next++, one_bit ? value & 1 : value);
    } else {
      double values[ops::kMaxOperands] = {};
      for (std::size_t k = 0; k < operands.size(); ++k) {
        values[k] = element<double>(operands[k], index);
      }
      const bool has_own = is_floating(operand_dtype) && row.dtype_oracle != nullptr;
      write_value(out, next++,
                  has_own ? row.dtype_oracle(operand_dtype, values) : row.oracle(values));
    }
  });
  return out;
}

Array evaluate_iota(const PlanNode& node) {
  Array out = with_shape_of(node);
  const std::size_t axis = at(node.attributes[0] + kMaxDims - out.rank);
  std::size_t next = 0;
  for_each(out.extents, [&](const Extents& index) { out.integers[next++] = index[axis]; });
  return out;
}

Array evaluate_check(const PlanNode& node, const Array& x) {
  const ops::ValueCheck check = ops::value_check_of(*node.op);
  if (check != ops::ValueCheck::kNone) {
    const ops::ValueInterval& interval = ops::interval_of(check);
    for (const double value : x.floats) {
      const bool is_low = interval.is_open ? !(value > 0) : !(value >= 0);
      if (!is_low && (interval.is_unit ? value <= 1 : std::isfinite(value))) continue;
      const auto bits = std::bit_cast<std::int32_t>(static_cast<float>(value));
      std::rethrow_exception(dispatch::failure_at({node.op->name, 1, check}, bits));
    }
    return x;
  }
  const std::int64_t extent = node.attributes[0];
  const std::int64_t exempt = node.attributes[1];
  for (const std::int64_t value : x.integers) {
    if (value != exempt) check_index(node.op->name, value, extent);
  }
  return x;
}

Array evaluate_concat(const PlanNode& node, Sources sources) {
  Array out = with_shape_of(node);
  const std::size_t axis = at(node.attributes[0] + kMaxDims - out.rank);
  const Extents strides = dense_strides(out.extents);
  std::int64_t start = 0;
  for (const Array* part : sources) {
    with_type(out.dtype, [&]<typename T>(T) {
      std::size_t next = 0;
      for_each(part->extents, [&](Extents index) {
        index[axis] += start;
        out.values<T>()[at(position_of(index, strides))] = part->values<T>()[next++];
      });
    });
    start += part->extents[axis];
  }
  return out;
}

/// attributes: offset, then a stride for each axis of the window, in elements of the dense base.
Array evaluate_view_update(const PlanNode& node, const Array& base, const Array& value) {
  Array out = base;
  Extents strides{};
  for (int axis = 0; axis < value.rank; ++axis) {
    strides[at(axis + kMaxDims - value.rank)] = node.attributes[axis + 1];
  }
  with_type(out.dtype, [&]<typename T>(T) {
    std::size_t next = 0;
    for_each(value.extents, [&](const Extents& index) {
      out.values<T>()[at(node.attributes[0] + position_of(index, strides))] =
          value.values<T>()[next++];
    });
  });
  return out;
}

class Evaluation {
 public:
  Evaluation(const ExecutionGraph& graph, const Bindings& bindings)
      : graph_(graph), bindings_(bindings), values_(graph.nodes.size()) {}

  std::vector<Result> run() {
    const std::vector<std::vector<int>> last_reads = find_last_reads();
    std::vector<Result> results;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const PlanNode& node = graph_.nodes[i];
      values_[i] = evaluate(node);
      if (node.result >= 0) {
        results.push_back({values_[i], graph_.buffers[at(node.result)].binding});
      }
      for (const int position : last_reads[i]) values_[at(position)] = Array();
    }
    return results;
  }

 private:
  /// By position: the values that nobody reads later, so that memory follows the graph's needs.
  std::vector<std::vector<int>> find_last_reads() const {
    std::vector<int> last(graph_.nodes.size(), -1);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const PlanNode& node = graph_.nodes[i];
      for (const int source : node.sources) last[at(source)] = static_cast<int>(i);
      if (node.view_root >= 0) last[at(node.view_root)] = static_cast<int>(i);
    }
    std::vector<std::vector<int>> by_reader(graph_.nodes.size());
    for (std::size_t i = 0; i < last.size(); ++i) {
      if (last[i] >= 0) by_reader[at(last[i])].push_back(static_cast<int>(i));
    }
    return by_reader;
  }

  Array evaluate(const PlanNode& node) const {
    if (node.input.buffer >= 0) return read_input(node);
    if (node.view_root >= 0) return read_view(node);
    std::vector<const Array*> sources;
    for (const int source : node.sources) sources.push_back(&values_[at(source)]);
    switch (node.op->family) {
      case Family::kScalar:
        return read_scalar(node);
      case Family::kElementwise:
        return evaluate_elementwise(node, sources);
      case Family::kIota:
        return evaluate_iota(node);
      case Family::kCopy:
        return *sources[0];
      case Family::kCast:
        return cast(*sources[0], node.dtype);
      case Family::kAssign:
        return *sources.back();
      case Family::kViewUpdate:
        return evaluate_view_update(node, *sources[0], *sources[1]);
      case Family::kCheck:
        return evaluate_check(node, *sources[0]);
      case Family::kConcat:
        return evaluate_concat(node, sources);
      case Family::kReduce:
        return evaluate_reduction(node, *sources[0]);
      case Family::kCore:
        return evaluate_core(node, sources);
      case Family::kLeaf:
      case Family::kView:
      case Family::kCustom:
        break;
    }
    throw InternalError(fmt::format("[{}] has no definition in the reference", node.op->name));
  }

  Array read_input(const PlanNode& node) const {
    const dispatch::Operand& operand = node.input;
    const dispatch::Binding& binding =
        bindings_.inputs[at(graph_.buffers[at(operand.buffer)].binding)];
    const std::byte* memory =
        static_cast<const std::byte*>(binding.storage->host()) + binding.offset;
    return load(memory, node.dtype, node.shape, operand.offset, operand.strides);
  }

  Array read_scalar(const PlanNode& node) const {
    const std::uint64_t bits = bindings_.scalars[at(node.scalar)];
    Array out = with_shape_of(node);
    switch (graph_.scalars[at(node.scalar)]) {
      case ScalarType::kF32:
        write_value(out, 0,
                    static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
        break;
      case ScalarType::kF64:
        write_value(out, 0, std::bit_cast<double>(bits));
        break;
      case ScalarType::kI32:
        write_value(out, 0,
                    std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))});
        break;
      default:
        write_value(out, 0, static_cast<std::int64_t>(bits));
        break;
    }
    return out;
  }

  /// A view's strides (bytes) and offset (elements) are over the dense value of its root.
  Array read_view(const PlanNode& node) const {
    const Array& root = values_[at(node.view_root)];
    Array out = with_shape_of(node);
    Extents strides{};
    const auto element_bytes = static_cast<std::int64_t>(size_of(node.dtype));
    for (int axis = 0; axis < out.rank; ++axis) {
      strides[at(axis + kMaxDims - out.rank)] = node.shape.stride(axis) / element_bytes;
    }
    with_type(out.dtype, [&]<typename T>(T) {
      std::size_t next = 0;
      for_each(out.extents, [&](const Extents& index) {
        out.values<T>()[next++] =
            root.values<T>()[at(node.view_offset + position_of(index, strides))];
      });
    });
    return out;
  }

  const ExecutionGraph& graph_;
  const Bindings& bindings_;
  std::vector<Array> values_;
};

}  // namespace

std::vector<Result> evaluate(const ExecutionGraph& graph, const Bindings& bindings) {
  return Evaluation(graph, bindings).run();
}

}  // namespace vkml::reference
