// Arguments that a bound function does not take. nanobind rejects them with Python's bare TypeError
// before any code of ours runs, and conversions inside a function fail in ways of their own. Here
// every function of the module gets a shell round its entry point that turns such failures into
// vkML's exceptions: they derive from VkmlError too, name the function and the values, and say what
// the function takes. A call that succeeds pays one more jump.
//
// An exception of vkML's own that names no operator, since it comes out of code that serves many,
// gets the name of the function too. One that Python code raised (a hook, a traced function) has a
// traceback and passes through as it is.

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "common.h"

namespace vkml::python {
namespace {

using EntryPoint = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);

// nanobind has half a dozen entry points for all functions.
constexpr std::size_t kMaxEntryPoints = 16;
std::array<EntryPoint, kMaxEntryPoints> originals{};

/// Getters and setters, which have no name of their own, and their properties'.
std::map<PyObject*, std::string> property_names;

// What nanobind calls this module in signatures.
constexpr std::string_view kModulePrefix = "vkml._vkml.";
constexpr std::string_view kDispatchFailure = "(): incompatible function arguments.";
constexpr std::string_view kSignaturesEnd = "\n\nInvoked with types: ";
constexpr Py_ssize_t kLongestValue = 60;
// The top bits of a count of arguments are flags: Python's, and some of nanobind's own.
constexpr std::size_t kCountBits = ~std::size_t{0} >> 8;

/// The built-in exceptions that are raised here for bad arguments, and ours that derive from them.
struct Replacement {
  PyObject* builtin;
  const char* ours;
};
std::array<Replacement, 3> replacements() {
  return {{{PyExc_TypeError, "DTypeError"},
           {PyExc_ValueError, "ArgumentError"},
           {PyExc_IndexError, "IndexError"}}};
}

std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (text.is_valid()) return nb::cast<std::string>(text);
  PyErr_Clear();
  return "?";
}

/// Values of Python's own simple types, the types of others: those may be long, or fail to print.
std::string described(nb::handle object) {
  const bool is_simple = object.is_none() || PyUnicode_Check(object.ptr()) ||
                         PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) ||
                         PyBytes_Check(object.ptr());
  const nb::object text = nb::steal(is_simple ? PyObject_Repr(object.ptr()) : nullptr);
  PyErr_Clear();
  if (text.is_valid() && PyUnicode_GetLength(text.ptr()) <= kLongestValue) {
    return nb::cast<std::string>(text);
  }
  return text_of(object.type().attr("__name__"));
}

std::string described_arguments(PyObject* const* arguments, std::size_t positional,
                                PyObject* names) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (std::size_t i = 0; i < positional; ++i) add(described(arguments[i]));
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    const nb::handle name = PyTuple_GetItem(names, i);
    add(text_of(name) + "=" + described(arguments[positional + static_cast<std::size_t>(i)]));
  }
  return text;
}

/// The signatures within nanobind's message, without the module's name.
std::string signatures_of(const std::string& message) {
  const std::size_t begin = message.find('\n');
  const std::size_t end = message.find(kSignaturesEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  std::string text = message.substr(begin, end - begin);
  for (std::size_t at = 0; (at = text.find(kModulePrefix, at)) != std::string::npos;) {
    text.erase(at, kModulePrefix.size());
  }
  return text;
}

/// A pending exception, taken out of the interpreter; `restore` puts it back.
class Pending {
 public:
  Pending() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    type_ = nb::steal(type);
    value_ = nb::steal(value);
    traceback_ = nb::steal(traceback);
  }
  void restore() {
    PyErr_Restore(type_.release().ptr(), value_.release().ptr(), traceback_.release().ptr());
  }
  /// The type to raise instead: ours for a built-in that native code raised, the same for ours;
  /// null for anything else.
  nb::object replacement() const {
    if (traceback_.is_valid()) return {};
    const nb::object module = nb::module_::import_("vkml._vkml");
    for (const Replacement& row : replacements()) {
      if (type_.ptr() == row.builtin) return module.attr(row.ours);
    }
    const nb::object base = module.attr("VkmlError");
    return PyObject_IsSubclass(type_.ptr(), base.ptr()) == 1 ? type_ : nb::object();
  }
  bool is_builtin() const {
    const auto rows = replacements();
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Replacement& row) { return type_.ptr() == row.builtin; });
  }
  std::string message() const { return text_of(value_); }

 private:
  nb::object type_, value_, traceback_;
};

/// Called with an exception pending; leaves ours pending where it was a built-in one.
PyObject* fail(PyObject* function, PyObject* const* arguments, std::size_t flagged_count,
               PyObject* names) noexcept {
  Pending pending;
  try {
    const nb::object type = pending.replacement();
    const std::string cause = type.is_valid() ? pending.message() : "";
    const bool names_operator = cause.starts_with('[');
    if (!type.is_valid() || (names_operator && !pending.is_builtin())) {
      pending.restore();
      return nullptr;
    }
    std::string name = text_of(nb::handle(function).attr("__name__"));
    std::size_t count = flagged_count & kCountBits;
    const auto property = property_names.find(function);
    if (count > 0 && (name == "__init__" || property != property_names.end())) {
      // Called by the name of what is to be made, or read or set.
      name = name == "__init__" ? text_of(nb::handle(arguments[0]).type().attr("__name__"))
                                : property->second;
      ++arguments;
      --count;
    }
    const std::string refusal =
        "[" + name + "] does not take (" + described_arguments(arguments, count, names) + ")";
    const bool is_rejected = cause.find(kDispatchFailure) != std::string::npos;
    const std::string message = is_rejected      ? refusal + ". It takes:" + signatures_of(cause)
                                : names_operator ? cause
                                : pending.is_builtin() ? refusal + ": " + cause
                                                       : "[" + name + "] " + cause;
    PyErr_SetString(type.ptr(), message.c_str());
  } catch (...) {
    // The first failure says more than one on the way to its text.
    pending.restore();
  }
  return nullptr;
}

template <std::size_t kIndex>
PyObject* enter(PyObject* function, PyObject* const* arguments, std::size_t flagged_count,
                PyObject* names) {
  PyObject* result = originals[kIndex](function, arguments, flagged_count, names);
  if (result != nullptr) [[likely]]
    return result;
  return fail(function, arguments, flagged_count, names);
}

template <std::size_t... kIndices>
constexpr std::array<EntryPoint, sizeof...(kIndices)> shells(std::index_sequence<kIndices...>) {
  return {&enter<kIndices>...};
}
constexpr auto kShells = shells(std::make_index_sequence<kMaxEntryPoints>());

/// Where a function of nanobind keeps its entry point.
EntryPoint& entry_point(nb::handle function) {
#ifdef Py_LIMITED_API
  constexpr std::size_t kOffset = sizeof(PyVarObject);  // its first field
#else
  const auto kOffset = static_cast<std::size_t>(Py_TYPE(function.ptr())->tp_vectorcall_offset);
#endif
  return *reinterpret_cast<EntryPoint*>(reinterpret_cast<std::byte*>(function.ptr()) + kOffset);
}

void put_shell_round(nb::handle function) {
  EntryPoint& entry = entry_point(function);
  for (std::size_t i = 0; i < kMaxEntryPoints; ++i) {
    if (entry == kShells[i]) return;  // another name of a function seen before
    if (originals[i] == nullptr) originals[i] = entry;
    if (originals[i] == entry) {
      entry = kShells[i];
      return;
    }
  }
  throw InternalError("[bindings] functions have more entry points than there are shells");
}

class Walk {
 public:
  explicit Walk(nb::module_& m)
      : function_(m.attr("devices").type()), method_(m.attr("Tensor").attr("realize").type()) {}

  void module(nb::module_& m) const {
    for (const nb::handle value : m.attr("__dict__").attr("values")()) {
      member(value);
      if (PyType_Check(value.ptr()) && nb::type_check(value)) {
        for (const nb::handle item : value.attr("__dict__").attr("items")()) {
          member(item[1]);
          name_property(item[0], item[1]);
        }
      }
    }
  }

 private:
  static void name_property(nb::handle name, nb::handle value) {
    if (Py_TYPE(value.ptr()) != &PyProperty_Type) return;
    for (const char* part : {"fget", "fset", "fdel"}) {
      const nb::object accessor = value.attr(part);
      if (!accessor.is_none()) property_names[accessor.ptr()] = text_of(name);
    }
  }

  void member(nb::handle value) const {
    if (value.type().is(function_) || value.type().is(method_)) put_shell_round(value);
    if (Py_TYPE(value.ptr()) != &PyProperty_Type) return;
    for (const char* part : {"fget", "fset", "fdel"}) {
      const nb::object accessor = value.attr(part);
      if (!accessor.is_none()) member(accessor);
    }
  }

  nb::handle function_, method_;
};

}  // namespace

void bind_argument_errors(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_cast&) {
      PyErr_SetString(PyExc_TypeError, "an argument has a type that does not fit");
    }
  });
  Walk(m).module(m);
}

}  // namespace vkml::python
