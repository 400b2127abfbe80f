// vkml.autograd's native half: the record, operators by name, hooks and custom gradients. Python
// functions called from a backward pass take the interpreter's lock there; whatever may wait for a
// device is called here without it.

#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <utility>

#include "common.h"
#include "python_reference.h"
#include "vkml/api/anomaly.h"
#include "vkml/api/autograd.h"

namespace vkml::python {
namespace {

using autograd::ComputationGraph;
using autograd::GraphNode;
using autograd::OperatorPtr;
using autograd::OpRegistry;
using graph::Value;

std::vector<Tensor> tensors_of(std::span<const Value> values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.push_back(tensor_of(value));
  return tensors;
}

/// What a Python hook or backward returned: a tensor, or None for no gradient.
Tensor gradient_from(nb::handle object, const char* op) {
  if (object.is_none()) return {};
  if (nb::isinstance<Tensor>(object)) return nb::cast<Tensor>(object);
  throw DTypeError(std::string("[") + op + "] a gradient is a tensor or None, not " +
                   nb::cast<std::string>(nb::repr(object.type())));
}

/// One gradient, or a sequence of them.
std::vector<Tensor> gradients_from(nb::handle object, const char* op) {
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) {
    return {gradient_from(object, op)};
  }
  std::vector<Tensor> gradients;
  for (const nb::handle each : object) gradients.push_back(gradient_from(each, op));
  return gradients;
}

/// An operator whose forward and backward are Python's.
class PythonOperator final : public autograd::Differentiable {
 public:
  explicit PythonOperator(nb::object object) : object_(std::move(object)) {}

  Value forward(std::span<const Value> inputs) const override {
    const nb::gil_scoped_acquire held;
    const nb::object result = object_.get().attr("forward")(tensors_of(inputs));
    return result.is_none() ? Value() : operand_from(result, "forward").value();
  }

  std::vector<Value> backward(const Value& output_gradient, std::span<const Value> inputs,
                              const Value& output) const override {
    const nb::gil_scoped_acquire held;
    const nb::object result = object_.get().attr("backward")(tensor_of(output_gradient),
                                                             tensors_of(inputs), tensor_of(output));
    std::vector<Value> gradients;
    for (const Tensor& each : gradients_from(result, "backward")) {
      gradients.push_back(each.is_defined() ? each.value() : Value());
    }
    return gradients;
  }

  nb::object object() const { return nb::borrow(object_.get()); }

 private:
  PythonReference object_;
};

/// An operator of vkML's own, as Python sees it.
struct BuiltinOperator {
  std::string name;
  OperatorPtr op;
};

OperatorPtr operator_from(nb::handle object) {
  if (nb::isinstance<BuiltinOperator>(object)) return nb::cast<BuiltinOperator&>(object).op;
  if (nb::hasattr(object, "forward") && nb::hasattr(object, "backward")) {
    return std::make_shared<PythonOperator>(nb::borrow(object));
  }
  throw DTypeError("[register_op] an operator has forward and backward; " +
                   nb::cast<std::string>(nb::repr(object)) + " has not");
}

nb::object object_of(const std::string& name, const OperatorPtr& op) {
  if (const auto* ours = dynamic_cast<const PythonOperator*>(op.get())) return ours->object();
  return nb::cast(BuiltinOperator{name, op});
}

std::vector<Tensor> operands_from(const char* op, nb::handle objects) {
  std::vector<Tensor> tensors;
  for (const nb::handle object : objects) tensors.push_back(operand_from(object, op));
  return tensors;
}

/// Records a call of the package's function of that name, which knows the parameters.
Tensor apply_with_parameters(ComputationGraph& graph, const std::string& name,
                             const nb::args& operands, const nb::kwargs& parameters) {
  if (!graph.registry().get(name)->records_gradients()) {
    throw ArgumentError("[apply] the custom operator \"" + name +
                        "\" takes tensors alone; keep parameters in the operator");
  }
  const nb::object output =
      nb::module_::import_("vkml").attr(name.c_str())(*operands, **parameters);
  return record(graph, name, operands_from(name.c_str(), operands), nb::cast<Tensor>(output));
}

void bind_registry(nb::module_& m) {
  nb::class_<BuiltinOperator>(m, "BuiltinOperator", "One of vkML's own operators, by itself.")
      .def_ro("name", &BuiltinOperator::name, "Its name in the registry.")
      .def(
          "forward",
          [](const BuiltinOperator& self, nb::handle inputs) {
            const std::vector<Tensor> operands = operands_from(self.name.c_str(), inputs);
            const nb::gil_scoped_release release;
            return apply(self.name, self.op, operands);
          },
          nb::arg("inputs"), "The value, from a sequence of tensors.")
      .def(
          "backward",
          [](const BuiltinOperator& self, const Tensor& output_gradient, nb::handle inputs,
             const Tensor& output) {
            const std::vector<Tensor> operands = operands_from(self.name.c_str(), inputs);
            const nb::gil_scoped_release release;
            std::vector<std::optional<Tensor>> gradients;
            for (Tensor& each : backward(self.op, output_gradient, operands, output)) {
              gradients.push_back(each.is_defined() ? std::optional(std::move(each))
                                                    : std::nullopt);
            }
            return gradients;
          },
          nb::arg("output_gradient"), nb::arg("inputs"), nb::arg("output"),
          "The gradient of each input, or None, from that of the output.")
      .def("__repr__",
           [](const BuiltinOperator& self) { return "BuiltinOperator(\"" + self.name + "\")"; });

  nb::class_<OpRegistry>(m, "OpRegistry", "Operators by name, each with forward and backward.")
      .def(nb::init<>(), "An empty registry.")
      .def(
          "register_op",
          [](OpRegistry& self, const std::string& name, nb::handle op) {
            self.register_op(name, operator_from(op));
          },
          nb::arg("name"), nb::arg("op"),
          "Adds an operator (an object with forward(inputs) and backward(output_gradient, inputs, "
          "output)), or replaces the one of that name.")
      .def(
          "get",
          [](const OpRegistry& self, const std::string& name) {
            return object_of(name, self.get(name));
          },
          nb::arg("name"),
          "The operator of that name. Raises UnregisteredOpError, which names the nearest one; the "
          "registry stays as it is.")
      .def("names", &OpRegistry::names, "Every name, in alphabetical order.")
      .def("__contains__",
           [](const OpRegistry& self, const std::string& name) { return self.contains(name); })
      .def("__len__", &OpRegistry::size)
      .def("__repr__", [](const OpRegistry& self) {
        return "OpRegistry(" + std::to_string(self.size()) + " operators)";
      });
  m.attr("_registry") = nb::cast(autograd::default_registry());
}

void bind_graph(nb::module_& m) {
  nb::class_<GraphNode>(m, "GraphNode", "One recorded call of an operator.")
      .def_ro("op_name", &GraphNode::op_name, "The operator's name.")
      .def_prop_ro(
          "inputs", [](const GraphNode& node) { return tensors_of(node.inputs); },
          "The tensors it was called with.")
      .def_prop_ro(
          "output", [](const GraphNode& node) { return tensor_of(node.output); },
          "The tensor it gave.")
      .def_prop_ro(
          "grad", [](const GraphNode& node) { return tensor_of(node.grad); },
          "The gradient of the output: zeros until a backward pass reaches this node.")
      .def_ro("requires_grad", &GraphNode::requires_grad, "Always true of a recorded node.")
      .def("__repr__", [](const GraphNode& node) {
        return "GraphNode(\"" + node.op_name + "\", output=" + tensor_of(node.output).to_string() +
               ")";
      });

  nb::class_<ComputationGraph>(m, "ComputationGraph",
                               "A record of calls, in the order they were made.")
      .def(
          "__init__",
          [](ComputationGraph* self, const std::shared_ptr<OpRegistry>& registry) {
            new (self) ComputationGraph(registry ? registry : autograd::default_registry());
          },
          nb::arg("registry") = nb::none(),
          "An empty record that finds operators in `registry`, by default vkML's own.")
      .def(
          "record",
          [](ComputationGraph& self, const std::string& op_name, nb::handle inputs,
             const Tensor& output) {
            const std::vector<Tensor> operands = operands_from(op_name.c_str(), inputs);
            const nb::gil_scoped_release release;
            return record(self, op_name, operands, output);
          },
          nb::arg("op_name"), nb::arg("inputs"), nb::arg("output"),
          "Records a call that was made already, if an input requires a gradient. Returns the "
          "output to go on with.")
      .def(
          "apply",
          [](ComputationGraph& self, const std::string& op_name, const nb::args& inputs,
             const nb::kwargs& parameters) {
            // NOLINTNEXTLINE(readability-container-size-empty): nanobind 2.0 has no empty().
            if (parameters.size() > 0) {
              return apply_with_parameters(self, op_name, inputs, parameters);
            }
            const std::vector<Tensor> operands = operands_from(op_name.c_str(), inputs);
            const nb::gil_scoped_release release;
            return apply(self, op_name, operands);
          },
          nb::arg("op_name"), nb::arg("inputs"), nb::arg("parameters"),
          "Runs the registered operator and records the call. Keywords are those of vkML's "
          "function "
          "of that name.")
      .def_prop_ro("nodes", &ComputationGraph::nodes, "The nodes so far, as a list.")
      .def(
          "grad_fn_index",
          [](const ComputationGraph& self, const Tensor& tensor) {
            return self.grad_fn_index(tensor.value());
          },
          nb::arg("tensor"), "The position of the node that made a tensor, or -1.")
      .def(
          "backward",
          [](ComputationGraph& self, const Tensor& output, const std::optional<Tensor>& gradient,
             bool create_graph) {
            const nb::gil_scoped_release release;
            backward(self, output, gradient.value_or(Tensor()), create_graph);
          },
          nb::arg("output"), nb::arg("gradient") = nb::none(), nb::arg("create_graph") = false,
          "Gives every ancestor of `output` its gradient, the other nodes zeros, and adds to the "
          "leaves' grad.")
      .def("__len__", &ComputationGraph::size)
      .def("__repr__", &ComputationGraph::to_string);

  m.def(
      "_topological_backward_order",
      [](const ComputationGraph& graph, std::optional<Tensor> output) {
        const nb::gil_scoped_release release;
        return output ? topological_backward_order(graph, *output)
                      : autograd::topological_backward_order(graph);
      },
      nb::arg("graph"), nb::arg("output") = nb::none());
}

}  // namespace

void bind_autograd(nb::module_& m, nb::class_<Tensor>& tensor) {
  share_interpreter();
  bind_registry(m);
  bind_graph(m);
  nb::class_<HookHandle>(m, "HookHandle", "Stands for one hook, until it is removed.")
      .def("remove", &HookHandle::remove, "Removes the hook; a second time nothing happens.");
  tensor.def_prop_ro("grad_fn_index", &grad_fn_index,
                     "The position of the node that made this tensor, in the living "
                     "ComputationGraph that recorded it last, or -1.");
  tensor.def(
      "register_hook",
      [](const Tensor& self, nb::object hook) {
        const PythonReference function(std::move(hook));
        return register_hook(self, [function](const Tensor& gradient) {
          const nb::gil_scoped_acquire held;
          return gradient_from(function.get()(gradient), "register_hook");
        });
      },
      nb::arg("hook"),
      "Calls hook(gradient) in every backward pass with this tensor's whole gradient; what it "
      "returns, unless None, goes on instead. Returns a handle with remove().");
  tensor.def("retain_grad", &retain_grad,
             "Keeps the gradients of backward passes in grad, though operators made this tensor.");
  tensor.def_prop_ro("retains_grad", &retains_grad, "Whether retain_grad() was called.");
  m.def(
      "_apply_operator",
      [](const std::string& name, nb::handle inputs, const OpRegistry& registry) {
        const std::vector<Tensor> operands = operands_from(name.c_str(), inputs);
        const nb::gil_scoped_release release;
        return apply(name, operands, registry);
      },
      nb::arg("name"), nb::arg("inputs"), nb::arg("registry"));
  m.def(
      "_with_pullback",
      [](const std::string& name, const Tensor& value, const std::vector<Tensor>& inputs,
         nb::object pullback) {
        const PythonReference function(std::move(pullback));
        const nb::gil_scoped_release release;
        return with_pullback(
            name, value, inputs, [function, name](const Tensor& gradient, const Tensor& output) {
              const nb::gil_scoped_acquire held;
              return gradients_from(function.get()(gradient, output), name.c_str());
            });
      },
      nb::arg("name"), nb::arg("value"), nb::arg("inputs"), nb::arg("pullback"));
  m.def("_set_detect_anomaly", &set_detect_anomaly, nb::arg("mode"), nb::arg("check_nan"),
        Release());
  m.def("is_anomaly_enabled", &is_detecting_anomaly, "Whether anomaly mode is on.");
  m.def("is_anomaly_check_nan_enabled", &is_checking_nan,
        "Whether anomaly mode looks for NaN gradients.");
  m.def(
      "_set_place_provider",
      [](nb::object place) {
        const PythonReference function(std::move(place));
        set_place_provider([function] {
          const nb::gil_scoped_acquire held;
          return nb::cast<std::string>(function.get()());
        });
      },
      nb::arg("place"));
  m.def("_pin", &pin, nb::arg("tensor"));
}

}  // namespace vkml::python
