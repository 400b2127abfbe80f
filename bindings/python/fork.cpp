// Forks of an interpreter whose threads compute. A fork waits for devices
// (dispatch/device_state.cpp), and whoever waits for one gives up the interpreter: not in the
// middle of a fork, where it holds locks of the interpreter's own, but before.

#include <memory>

#include "common.h"
#include "vkml/dispatch/device_mutex.h"

namespace vkml::python {
namespace {

/// Held by the one thread that forks.
std::unique_ptr<dispatch::GraphLock> held;

}  // namespace

void watch_forks() {
  const nb::module_ os = nb::module_::import_("os");
  if (!nb::hasattr(os, "register_at_fork")) return;
  os.attr("register_at_fork")(
      nb::arg("before") =
          nb::cpp_function([] { held = std::make_unique<dispatch::GraphLock>(default_device()); }),
      nb::arg("after_in_parent") = nb::cpp_function([] { held.reset(); }),
      // The child's locks are new ones.
      nb::arg("after_in_child") = nb::cpp_function([] { static_cast<void>(held.release()); }));
}

}  // namespace vkml::python
