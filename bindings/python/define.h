// How the files of the native module define what exists as a function and as a method.
#pragma once

#include "common.h"

namespace vkml::python {

/// Defines a function and the method of the same name from one callable whose first argument is the
/// tensor.
template <typename Function, typename... Extra>
void def_both(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, Function function,
              const Extra&... extra) {
  m.def(name, function, nb::arg("input"), extra...);
  tensor.def(name, function, extra...);
}

/// The one axis that `dim` or `axis` names, or `fallback` where both are None.
inline std::int64_t axis_from(const char* op, nb::handle dim, nb::handle axis,
                              std::int64_t fallback) {
  const Extents axes = axes_from(op, dim, axis);
  if (axes.empty()) return fallback;
  if (axes.size() != 1) throw ArgumentError(std::string("[") + op + "] takes one axis");
  return axes[0];
}

/// (values, indices) as a named tuple of the operator.
inline nb::object ranked_tuple(const char* op, const Ranked& ranked) {
  const nb::object type = nb::module_::import_("vkml._results").attr("ranked")(op);
  return type(ranked.values, ranked.indices);
}

}  // namespace vkml::python
