#include "python_reference.h"

#include <mutex>
#include <vector>

namespace vkml::python {
namespace {

struct Dropped {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  bool is_scheduled = false;
};

Dropped& dropped() {
  static auto* all = new Dropped;
  return *all;
}

/// Runs in the interpreter. Finalizers may drop further objects, so the list is emptied first.
int drop_now(void*) {
  std::vector<PyObject*> objects;
  {
    const std::scoped_lock lock(dropped().mutex);
    objects.swap(dropped().objects);
    dropped().is_scheduled = false;
  }
  for (PyObject* object : objects) Py_DECREF(object);
  return 0;
}

}  // namespace

void drop_later(PyObject* object) {
  // An interpreter that is gone has taken its objects along.
  if (Py_IsInitialized() == 0) return;
  const std::scoped_lock lock(dropped().mutex);
  dropped().objects.push_back(object);
  if (!dropped().is_scheduled) dropped().is_scheduled = Py_AddPendingCall(&drop_now, nullptr) == 0;
}

}  // namespace vkml::python
