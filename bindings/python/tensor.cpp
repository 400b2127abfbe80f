// The class Tensor: properties, autograd, indexing, assignment.

#include "common.h"

namespace vkml::python {
namespace {

nb::tuple tuple_of(std::span<const std::int64_t> values) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i) {
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  }
  return nb::borrow<nb::tuple>(tuple);
}

nb::object number_of(const Tensor& shown) {
  const Tensor tensor = shown.pinned();  // others may assign to the one that is shown
  const DType dtype = tensor.dtype();
  if (is_floating(dtype)) {
    double value = 0;
    {
      const nb::gil_scoped_release release;
      value = tensor.item();
    }
    return nb::float_(value);
  }
  std::int64_t value = 0;
  {
    const nb::gil_scoped_release release;
    value = tensor.item_integer();
  }
  if (dtype == DType::kBool) return nb::bool_(value != 0);
  return nb::int_(value);
}

Tensor get_item(const Tensor& self, nb::handle given) {
  if (!is_advanced_index(given)) {
    const Index index = index_from("getitem", given);
    const nb::gil_scoped_release release;
    return self.index(index);
  }
  const std::vector<AdvancedPart> index = advanced_index_from("getitem", given, self.device());
  const nb::gil_scoped_release release;
  return get_advanced(self, index);
}

void set_item(Tensor& self, nb::handle given, nb::handle value) {
  if (!is_advanced_index(given)) {
    const Index index = index_from("setitem", given);
    const Tensor element = operand_from(value, "setitem");
    const nb::gil_scoped_release release;
    self.index_put_(index, element);
    return;
  }
  const std::vector<AdvancedPart> index = advanced_index_from("setitem", given, self.device());
  const Tensor element = operand_from(value, "setitem");
  const nb::gil_scoped_release release;
  set_advanced(self, index, element);
}

void check_truth(const Tensor& self) {
  if (self.numel() == 1) return;
  throw ArgumentError("[bool] the truth value of a tensor of shape " + self.shape().to_string() +
                      " is ambiguous. Use any() or all()");
}

}  // namespace

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor> tensor(m, "Tensor", "A handle to a value in a lazy graph.",
                            nb::is_weak_referenceable(), nb::type_slots(operator_slots()));
  bind_operators(tensor);
  tensor
      .def(
          "__init__", [](Tensor* self, const Tensor& other) { new (self) Tensor(other); },
          nb::arg("other"), "Another name for the value of `other`.")
      .def_prop_ro(
          "shape", [](const Tensor& t) { return tuple_of(t.extents()); },
          "Extents, axis 0 outermost.")
      .def(
          "size",
          [](const Tensor& t, nb::handle dim) -> nb::object {
            if (dim.is_none()) return tuple_of(t.extents());
            return nb::int_(t.size(nb::cast<std::int64_t>(dim)));
          },
          nb::arg("dim") = nb::none(), "The shape, or one extent.")
      .def_prop_ro(
          "strides", [](const Tensor& t) { return tuple_of(t.shape().strides()); },
          "Bytes from one element to the next along each axis.")
      .def_prop_ro(
          "ndim", [](const Tensor& t) { return t.rank(); }, "Number of axes.")
      .def(
          "dim", [](const Tensor& t) { return t.rank(); }, "Number of axes.")
      .def(
          "numel", [](const Tensor& t) { return t.numel(); }, "Number of elements.")
      .def_prop_ro(
          "dtype", [](const Tensor& t) { return dtype_object(t.dtype()); }, "Type of the elements.")
      .def_prop_ro(
          "device", [](const Tensor& t) { return t.device(); }, "Where the value lives.")
      .def_prop_ro("is_computed", &Tensor::is_computed, "Whether the value is computed already.")
      .def("is_contiguous", &Tensor::is_contiguous,
           "Whether the elements lie densely in row-major order.")
      .def(
          "realize",
          [](nb::object self) {
            const Tensor& t = nb::cast<const Tensor&>(self);
            {
              const nb::gil_scoped_release release;
              t.realize();
            }
            return self;
          },
          "Computes the value now. Returns this tensor.")
      .def("item", &number_of, "The only element, as a Python number.")
      .def("__float__", [](const Tensor& t) { return nb::float_(number_of(t)); })
      .def("__int__", [](const Tensor& t) { return nb::int_(number_of(t)); })
      .def("__complex__",
           [](const Tensor& t) {
             return nb::module_::import_("builtins").attr("complex")(number_of(t));
           })
      .def(
          "__format__",
          [](nb::handle self, nb::handle specification) {
            const Tensor& t = nb::cast<const Tensor&>(self);
            const bool is_number = t.rank() == 0 && nb::len(specification) > 0;
            const nb::object shown = is_number ? number_of(t) : nb::object(nb::str(self));
            return nb::steal(PyObject_Format(shown.ptr(), specification.ptr()));
          },
          nb::arg("specification"))
      .def(
          "__round__",
          [](const Tensor& t, nb::handle digits) {
            return nb::module_::import_("builtins").attr("round")(number_of(t), digits);
          },
          nb::arg("digits") = nb::none())
      .def("__bool__",
           [](const Tensor& t) {
             check_truth(t);
             const nb::object number = number_of(t);
             return PyObject_IsTrue(number.ptr()) == 1;
           })
      .def("__index__",
           [](const Tensor& t) {
             if (is_floating(t.dtype()))
               throw DTypeError("[index] a tensor of " + std::string(name_of(t.dtype())) +
                                " cannot be an index. Use x.to(vkml.int64)");
             return nb::int_(number_of(t));
           })
      .def("__len__",
           [](const Tensor& t) {
             if (t.rank() == 0)
               throw DTypeError("[len] a tensor of rank 0 has no length. Use numel()");
             return t.shape()[0];
           })
      .def("__hash__",
           [](nb::handle self) { return reinterpret_cast<std::intptr_t>(self.ptr()) >> 4; })
      .def(
          "__repr__", [](const Tensor& t) { return t.to_string(); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("__getitem__", &get_item, nb::arg("index").none())
      .def("__setitem__", &set_item, nb::arg("index").none(), nb::arg("value").none())
      .def("__iter__",
           [](const Tensor& t) {
             if (t.rank() == 0)
               throw DTypeError("[iter] a tensor of rank 0 cannot be iterated over. Use item()");
             nb::list rows;
             for (std::int64_t i = 0; i < t.shape()[0]; ++i) rows.append(t.index({i}));
             return nb::iter(rows);
           })
      .def(
          "assign_",
          [](nb::object self, const Tensor& value) {
            {
              const nb::gil_scoped_release release;
              nb::inst_ptr<Tensor>(self)->assign_(value);
            }
            return self;
          },
          nb::arg("value"),
          "Replaces the value: every name of this tensor sees it, values recorded before keep the "
          "old one. Shape, dtype and device must match; this tensor must be contiguous.")
      .def(
          "copy_",
          [](nb::object self, nb::handle value, bool) {
            const Tensor given = operand_from(value, "copy_");
            {
              const nb::gil_scoped_release release;
              nb::inst_ptr<Tensor>(self)->copy_(given);
            }
            return self;
          },
          nb::arg("src"), nb::arg("non_blocking") = false,
          "assign_ with conversion of dtype and device, broadcasting, and views of any strides.")
      .def_prop_rw(
          "data", [](const Tensor& t) { return t.detach(); },
          [](Tensor& t, const Tensor& value) { t.set_data(value); },
          "The value without its graph. What is set may have another dtype or device.")
      // Autograd.
      .def_prop_rw(
          "requires_grad", &Tensor::requires_grad,
          [](Tensor& t, bool value) { t.requires_grad_(value); },
          "Whether operators on this tensor are recorded for backward().")
      .def(
          "requires_grad_",
          [](nb::object self, bool value) {
            nb::cast<Tensor&>(self).requires_grad_(value);
            return self;
          },
          nb::arg("requires_grad") = true,
          "Makes this tensor a leaf whose gradients collect in grad.")
      .def_prop_ro("is_leaf", &Tensor::is_leaf, "Whether no recorded operator made this tensor.")
      .def_prop_rw(
          "grad",
          [](const Tensor& t) -> std::optional<Tensor> {
            Tensor gradient = t.grad();
            if (!gradient.is_defined()) return std::nullopt;
            return gradient;
          },
          [](Tensor& t, const std::optional<Tensor>& gradient) {
            t.set_grad(gradient.value_or(Tensor()));
          },
          nb::arg("gradient").none(), "The collected gradient, or None.")
      .def(
          "_backward",
          [](const Tensor& t, const std::optional<Tensor>& gradient, bool retain_graph,
             bool create_graph) {
            const nb::gil_scoped_release release;
            t.backward(gradient.value_or(Tensor()), retain_graph, create_graph);
          },
          nb::arg("gradient") = nb::none(), nb::arg("retain_graph") = false,
          nb::arg("create_graph") = false,
          "Adds the gradient with respect to every leaf below to that leaf's grad.")
      .def("detach", &Tensor::detach,
           "The same value, with no gradient to this tensor. Of a leaf, or of what recorded no "
           "gradients, it is an alias: a change in place is seen by both.")
      .def("snapshot", &Tensor::snapshot,
           "The value of now, with no gradient to this tensor: what is assigned later to either is "
           "not seen by the other. Takes memory only once one of both changes.");
  tensor.attr("__array_priority__") = 1000;

  m.def(
      "realize",
      [](const std::vector<Tensor>& tensors) {
        const nb::gil_scoped_release release;
        realize(tensors);
      },
      nb::arg("tensors"), "Computes several tensors of one device as one graph.");
  m.def(
      "realize_by_device",
      [](const std::vector<Tensor>& tensors) {
        const nb::gil_scoped_release release;
        realize_by_device(tensors);
      },
      nb::arg("tensors"), "Computes several tensors, those of each device as one graph.");
  m.def(
      "_grad",
      [](const Tensor& outputs, nb::handle inputs, const std::optional<Tensor>& grad_outputs,
         bool retain_graph, bool create_graph) {
        std::vector<Tensor> wanted;
        if (nb::isinstance<Tensor>(inputs)) {
          wanted.push_back(nb::cast<Tensor>(inputs));
        } else {
          wanted = nb::cast<std::vector<Tensor>>(inputs);
        }
        std::vector<Tensor> found;
        {
          const nb::gil_scoped_release release;
          found = gradients(outputs, wanted, grad_outputs.value_or(Tensor()), retain_graph,
                            create_graph);
        }
        nb::list results;
        for (const Tensor& t : found) {
          if (t.is_defined()) {
            results.append(t);
          } else {
            results.append(nb::none());
          }
        }
        return nb::tuple(results);
      },
      nb::arg("outputs"), nb::arg("inputs"), nb::arg("grad_outputs") = nb::none(),
      nb::arg("retain_graph") = false, nb::arg("create_graph") = false,
      "Gradients of one output with respect to tensors, without touching their grad.");
  m.def("_live_nodes", &live_node_count, "Nodes alive now, for tests of memory.");

  bind_elementwise(m, tensor);
  bind_structure(m, tensor);
  bind_products(m, tensor);
  bind_arrangement(m, tensor);
  bind_ordering(m, tensor);
  bind_selection(m, tensor);
  bind_random(m, tensor);
  bind_interop(m, tensor);
  bind_dlpack(m, tensor);
  bind_autograd(m, tensor);
}

}  // namespace vkml::python
