// How the files of the native module define what exists as a function and as a method.
#pragma once

#include <deque>
#include <string>
#include <type_traits>

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

/// The name of the method that changes the tensor. nanobind's names must outlive the module.
inline const char* in_place(const char* name) {
  static std::deque<std::string> names;
  return names.emplace_back(std::string(name) + "_").c_str();
}

template <typename... Arguments, typename Function, typename... Extra>
void def_inplace_of(nb::class_<Tensor>& tensor, const char* name, Function function,
                    const Extra&... extra) {
  tensor.def(
      name,
      [function](nb::object self, Arguments... arguments) {
        Tensor& x = nb::cast<Tensor&>(self);
        if constexpr (std::is_invocable_v<Function, Tensor&, Arguments...>) {
          x.update_(function(x, arguments...));
        } else {
          x.update_(function(nb::handle(self), arguments...));
        }
        return self;
      },
      extra...);
}

template <typename Function, typename Return, typename First, typename... Arguments,
          typename... Extra>
void def_inplace_as(nb::class_<Tensor>& tensor, const char* name, const Function& function,
                    Return (Function::*)(First, Arguments...) const, const Extra&... extra) {
  def_inplace_of<Arguments...>(tensor, name, function, extra...);
}

/// Defines a method that gives the tensor what a callable makes of it.
template <typename Function, typename... Extra>
void def_inplace(nb::class_<Tensor>& tensor, const char* name, const Function& function,
                 const Extra&... extra) {
  def_inplace_as(tensor, name, function, &Function::operator(), extra...);
}

template <typename Return, typename First, typename... Arguments, typename... Extra>
void def_inplace(nb::class_<Tensor>& tensor, const char* name,
                 Return (*function)(First, Arguments...), const Extra&... extra) {
  def_inplace_of<Arguments...>(tensor, name, function, extra...);
}

/// Defines name(...), its method, and name_(...), which changes the tensor in place.
template <typename Function, typename... Extra>
void def_with_inplace(nb::module_& m, nb::class_<Tensor>& tensor, const char* name,
                      const char* inplace_name, Function function, const Extra&... extra) {
  def_both(m, tensor, name, function, extra...);
  def_inplace(tensor, inplace_name, function, extra...);
}

/// Nothing is lost in silence: 2.9 does not become 2 on its way into an integer tensor.
inline const Tensor& of_same_dtype(const char* op, const Tensor& x, const Tensor& source) {
  if (source.dtype() == x.dtype()) return source;
  const std::string wanted(name_of(x.dtype()));
  throw DTypeError(std::string("[") + op + "] the tensor is " + wanted + ", the source " +
                   std::string(name_of(source.dtype())) + ". Convert it: source.to(vkml." + wanted +
                   ")");
}

/// Axes to reduce. Of a tensor without axes 0 and -1 name all there is, as in PyTorch.
inline Extents axes_of(const char* op, const Tensor& x, nb::handle dim, nb::handle axis) {
  Extents axes = axes_from(op, dim, axis);
  if (x.rank() > 0) return axes;
  for (const std::int64_t each : axes) normalize_axis(op, each, 1);
  return {};
}

/// What an operator along axes makes of a tensor. One without axes counts as a vector of one
/// element, so that its axis is 0 or -1, as in PyTorch.
template <typename Operator>
Tensor on_axes(const Tensor& x, Operator op) {
  return x.rank() > 0 ? op(x) : reshape(op(reshape(x, {1})), {});
}
template <typename Operator>
Ranked ranked_on_axes(const Tensor& x, Operator op) {
  if (x.rank() > 0) return op(x);
  const Ranked found = op(reshape(x, {1}));
  return {reshape(found.values, {}), reshape(found.indices, {})};
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
