// Each C++ error as a Python exception that is also the matching built-in one.

#include "common.h"

namespace vkml::python {
namespace {

struct Binding {
  const char* name;
  const char* documentation;
  PyObject* builtin;
  bool (*throws_as)(const std::exception_ptr& error, std::string& message);
  PyObject* type = nullptr;
};

template <typename E>
bool matches(const std::exception_ptr& error, std::string& message) {
  try {
    std::rethrow_exception(error);
  } catch (const E& e) {
    message = e.what();
    return true;
  } catch (...) {
    return false;
  }
}

/// Derived before base: the first that matches is raised.
std::vector<Binding>& bindings() {
  static std::vector<Binding> table;
  return table;
}

/// Raises a vkML error in Python; false for any other.
bool raise_in_python(const std::exception_ptr& error) {
  std::string message;
  for (const Binding& binding : bindings()) {
    if (!binding.throws_as(error, message)) continue;
    PyErr_SetString(binding.type, message.c_str());
    return true;
  }
  return false;
}

}  // namespace

void raise_current_exception() {
  if (raise_in_python(std::current_exception())) return;
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void bind_errors(nb::module_& m) {
  PyObject* base = PyErr_NewExceptionWithDoc("vkml.VkmlError", "Base of all vkML exceptions.",
                                             PyExc_Exception, nullptr);
  m.attr("VkmlError") = nb::borrow(base);
  bindings() = {
      {"ShapeError", "Shapes, ranks, axes or extents that do not fit.", PyExc_ValueError,
       matches<ShapeError>},
      {"DTypeError", "A dtype, or a type of argument, that the function does not take.",
       PyExc_TypeError, matches<DTypeError>},
      {"DeviceError", "A device that is missing, lost, or different from its partner's.",
       PyExc_RuntimeError, matches<DeviceError>},
      {"IndexError", "An index outside its axis.", PyExc_IndexError, matches<IndexError>},
      {"ArgumentError", "An argument with an impossible value.", PyExc_ValueError,
       matches<ArgumentError>},
      {"UnsupportedError", "An operator that this device cannot evaluate.",
       PyExc_NotImplementedError, matches<UnsupportedError>},
      {"OutOfMemoryError", "Memory that the device could not give.", PyExc_MemoryError,
       matches<OutOfMemoryError>},
      {"AutogradError", "A gradient that cannot be computed.", PyExc_RuntimeError,
       matches<AutogradError>},
      {"UnregisteredOpError", "A name that no registered operator has.", PyExc_KeyError,
       matches<UnregisteredOpError>},
      {"FileError", "A file that cannot be read, written or understood.", PyExc_OSError,
       matches<FileError>},
      {"InternalError", "A broken promise inside vkML: a bug worth reporting.", PyExc_RuntimeError,
       matches<InternalError>},
  };
  for (Binding& binding : bindings()) {
    const nb::object bases = nb::steal(PyTuple_Pack(2, base, binding.builtin));
    const std::string name = std::string("vkml.") + binding.name;
    binding.type =
        PyErr_NewExceptionWithDoc(name.c_str(), binding.documentation, bases.ptr(), nullptr);
    m.attr(binding.name) = nb::borrow(binding.type);
  }
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    if (!raise_in_python(error)) std::rethrow_exception(error);
  });
}

}  // namespace vkml::python
