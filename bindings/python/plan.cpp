// Plans as Python sees them: explain(), and the data that vkml.graph draws.

#include "vkml/api/plan.h"

#include "common.h"

namespace vkml::python {
namespace {

using dispatch::Buffer;
using dispatch::BufferKind;
using dispatch::Kernel;
using dispatch::Operand;

nb::list numbers(const std::vector<Operand>& operands) {
  nb::list buffers;
  for (const Operand& operand : operands) buffers.append(operand.buffer);
  return buffers;
}

nb::dict dictionary_of(const NodeDescription& node) {
  nb::dict entry;
  entry["op"] = node.op;
  entry["dtype"] = dtype_object(node.dtype);
  entry["shape"] = nb::tuple(nb::cast(node.extents));
  entry["sources"] = node.sources;
  entry["is_root"] = node.is_root;
  entry["is_computed"] = node.is_computed;
  entry["is_view"] = node.is_view;
  entry["is_number"] = node.is_number;
  entry["requires_grad"] = node.requires_grad;
  entry["is_kept"] = node.is_kept;
  entry["kernel"] = node.kernel;
  return entry;
}

nb::dict dictionary_of(const Kernel& kernel) {
  nb::dict entry;
  nb::list reads = numbers(kernel.core_inputs);
  for (const nb::handle buffer : numbers(kernel.loads)) reads.append(buffer);
  entry["kind"] = name_of(kernel.kind);
  entry["reads"] = reads;
  entry["writes"] = numbers(kernel.stores);
  entry["instructions"] = kernel.program.code.size();
  return entry;
}

nb::dict dictionary_of(const Buffer& buffer) {
  nb::dict entry;
  entry["kind"] = buffer.kind == BufferKind::kInput    ? "input"
                  : buffer.kind == BufferKind::kResult ? "result"
                                                       : "temporary";
  entry["bytes"] = buffer.bytes;
  entry["offset"] = buffer.arena_offset;
  entry["overwrites"] = buffer.donor;
  return entry;
}

template <typename Entry>
nb::list list_of(const std::vector<Entry>& entries) {
  nb::list list;
  for (const Entry& entry : entries) list.append(dictionary_of(entry));
  return list;
}

/// "output" and the positions of sources.
nb::set set_of(const graph::GradientReads& reads, std::size_t sources) {
  nb::set set;
  if (reads.output) set.add("output");
  for (std::size_t i = 0; i < sources; ++i) {
    if (reads.operand(i)) set.add(i);
  }
  return set;
}

nb::list gradient_reads_of(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const RuleReads& reads : gradient_reads(tensors)) {
    list.append(nb::make_tuple(reads.op, set_of(reads.declared, reads.sources),
                               set_of(reads.found, reads.sources)));
  }
  return list;
}

}  // namespace

void bind_plan(nb::module_& m) {
  m.def(
      "explain", [](const Tensor& t) { return explain(t); }, nb::arg("tensor"), Release(),
      "The plan that realize() would run, as text: kernels, bytes, arena, cache hit or miss. Has "
      "no "
      "effect.");
  m.def(
      "_describe",
      [](const std::vector<Tensor>& tensors) {
        PlanDescription description;
        {
          const nb::gil_scoped_release release;
          description = describe(tensors);
        }
        nb::dict plan;
        plan["device"] = to_string(description.device);
        plan["is_pending"] = description.is_pending;
        plan["is_cached"] = description.is_cached;
        plan["arena_bytes"] = description.plan.arena_bytes;
        plan["nodes"] = list_of(description.nodes);
        plan["kernels"] = list_of(description.plan.kernels);
        plan["buffers"] = list_of(description.plan.buffers);
        return plan;
      },
      nb::arg("tensors"),
      nb::sig("def _describe(tensors: collections.abc.Sequence[Tensor]) -> "
              "builtins.dict[str, typing.Any]"),
      "The graph below some tensors, and its plan, as dictionaries.");
  m.def("_gradient_reads", &gradient_reads_of, nb::arg("tensors"),
        nb::sig("def _gradient_reads(tensors: collections.abc.Sequence[Tensor]) -> "
                "builtins.list[tuple[str, builtins.set[str | int], builtins.set[str | int]]]"),
        "For tests: of each operator below some tensors its name, what its gradient rule is said "
        "to read, and what it reads.");
}

}  // namespace vkml::python
