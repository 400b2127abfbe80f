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

/// Lets threads wait for a device, and compute, without the interpreter's lock.
void share_interpreter();

/// Calls drop(object) with the interpreter's lock at its next opportunity; from any thread, with or
/// without that lock.
void drop_later(void (*drop)(void*), void* object);
/// The same, but at once where this thread has the lock already.
void drop_with_interpreter(void (*drop)(void*), void* object);

class PythonReference {
 public:
  explicit PythonReference(nb::object object)
      : object_(object.release().ptr(), [](PyObject* held) {
          drop_later([](void* p) { Py_DECREF(static_cast<PyObject*>(p)); }, held);
        }) {}
  /// Borrowed; the interpreter's lock is held.
  nb::handle get() const { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

}  // namespace vkml::python
