#include "python_reference.h"

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "vkml/dispatch/device_mutex.h"

#ifdef Py_LIMITED_API
// Exported by every CPython, and declared only outside the limited API.
extern "C" int PyGILState_Check(void);  // NOLINT(readability-identifier-naming)
#endif

namespace vkml::python {
namespace {

struct Dropped {
  std::mutex mutex;
  std::vector<std::pair<void (*)(void*), void*>> objects;
  bool is_scheduled = false;
};

Dropped& dropped() {
  static auto* all = new Dropped;
  return *all;
}

/// Runs in the interpreter. Finalizers may drop further objects, so the list is emptied first.
int drop_now(void*) {
  std::vector<std::pair<void (*)(void*), void*>> objects;
  {
    const std::scoped_lock lock(dropped().mutex);
    objects.swap(dropped().objects);
    dropped().is_scheduled = false;
  }
  for (const auto& [drop, object] : objects) drop(object);
  return 0;
}

/// A thread that waits for a device must not keep the interpreter from the thread that owns it,
/// whose backward pass may have come to a Python function; nor need one that computes.
void run_without_interpreter(const std::function<void()>& work) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) {
    work();
    return;
  }
  const nb::gil_scoped_release release;
  work();
}

}  // namespace

void share_interpreter() { dispatch::set_long_work_runner(&run_without_interpreter); }

void drop_later(void (*drop)(void*), void* object) {
  // An interpreter that is gone has taken its objects along.
  if (Py_IsInitialized() == 0) return;
  const std::scoped_lock lock(dropped().mutex);
  dropped().objects.emplace_back(drop, object);
  if (!dropped().is_scheduled) dropped().is_scheduled = Py_AddPendingCall(&drop_now, nullptr) == 0;
}

void drop_with_interpreter(void (*drop)(void*), void* object) {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) return drop(object);
  drop_later(drop, object);
}

}  // namespace vkml::python
