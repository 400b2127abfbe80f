#include "vkml/backend/cpu/register.h"

#include "cpu_backend.h"

namespace vkml::cpu {

void register_cpu_backend() {
  dispatch::register_backend(
      DeviceKind::kCpu, [](int) { return make_cpu_backend(); }, [] { return 1; });
}

}  // namespace vkml::cpu
