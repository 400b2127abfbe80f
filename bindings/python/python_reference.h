// References to Python objects that C++ keeps: operators, hooks, gradients of single calls.
//
// They are dropped wherever the last node that needs them goes, perhaps by a thread that holds a
// device's lock and not the interpreter's. To wait for the interpreter there could be to wait for
// ever, so the object is handed to the interpreter, which drops it at its next opportunity.
#pragma once

#include <memory>
#include <utility>

#include "common.h"

namespace vkml::python {

/// Lets threads that wait for a device do so without the interpreter's lock.
void share_interpreter();

/// Takes over one reference; from any thread, with or without the interpreter's lock.
void drop_later(PyObject* object);

class PythonReference {
 public:
  explicit PythonReference(nb::object object)
      : object_(object.release().ptr(), [](PyObject* held) { drop_later(held); }) {}
  /// Borrowed; the interpreter's lock is held.
  nb::handle get() const { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

}  // namespace vkml::python
