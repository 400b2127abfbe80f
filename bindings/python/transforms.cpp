// vkml.func's native half: placeholders, batching and tangents.

#include "vkml/api/transforms.h"

#include <utility>

#include "common.h"

namespace vkml::python {
namespace {

std::vector<std::optional<Tensor>> optionals_of(std::vector<Tensor> tensors) {
  std::vector<std::optional<Tensor>> results;
  for (Tensor& each : tensors)
    results.push_back(each.is_defined() ? std::optional(std::move(each)) : std::nullopt);
  return results;
}

}  // namespace

void bind_transforms(nb::module_& m) {
  m.def(
      "_placeholder",
      [](nb::handle shape, nb::handle dtype, Device device, bool requires_grad) {
        return placeholder(extents_from("vmap", shape), dtype_from(dtype), device, requires_grad);
      },
      nb::arg("shape"), nb::arg("dtype"), nb::arg("device"), nb::arg("requires_grad"),
      "Stands for one example while a function is recorded.");
  m.def("_pinned", &Tensor::pinned, nb::arg("input"),
        "The value that a tensor has now, whatever is written to it later.");
  m.def("_have_one_value", &have_one_value, nb::arg("a"), nb::arg("b"),
        "Whether two tensors show one recorded value.");
  m.def(
      "_vectorize",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& placeholders,
         const std::vector<Tensor>& batches) {
        std::vector<BatchedTensor> found;
        {
          const nb::gil_scoped_release release;
          found = vectorize(outputs, placeholders, batches);
        }
        nb::list results;
        for (const BatchedTensor& each : found)
          results.append(nb::make_tuple(each.tensor, each.is_batched));
        return results;
      },
      nb::arg("outputs"), nb::arg("placeholders"), nb::arg("batches"),
      nb::sig("def _vectorize(outputs: collections.abc.Sequence[Tensor], placeholders: "
              "collections.abc.Sequence[Tensor], batches: collections.abc.Sequence[Tensor]) -> "
              "list[tuple[Tensor, bool]]"),
      "Records outputs again with placeholders replaced by batches; with each result, whether it "
      "has a batch axis.");
  m.def(
      "_cotangents",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
         const std::vector<Tensor>& inputs, bool create_graph) {
        return optionals_of(cotangents(outputs, gradients, inputs, create_graph));
      },
      nb::arg("outputs"), nb::arg("gradients"), nb::arg("inputs"), nb::arg("create_graph"),
      Release(), "Gradients of inputs from those of outputs; None where there is no dependence.");
  m.def(
      "_tangents",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
         const std::vector<Tensor>& directions, bool create_graph) {
        return optionals_of(tangents(outputs, inputs, directions, create_graph));
      },
      nb::arg("outputs"), nb::arg("inputs"), nb::arg("directions"), nb::arg("create_graph"),
      Release(), "Tangents of outputs from those of inputs; None where there is no dependence.");
  m.def(
      "_other_leaves",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs) {
        return other_leaves(outputs, inputs);
      },
      nb::arg("outputs"), nb::arg("inputs"), Release(),
      "The leaves besides inputs that outputs depend on and that require a gradient.");
  m.def(
      "_has_other_leaves",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs) {
        return has_other_leaves(outputs, inputs);
      },
      nb::arg("outputs"), nb::arg("inputs"), Release(),
      "Whether outputs depend on something that requires a gradient besides inputs.");
}

}  // namespace vkml::python
