#include "machine.h"

#include <unistd.h>

#include <hwy/targets.h>
#include <algorithm>
#include <fstream>
#include <limits>

namespace vkml::cpu {
namespace {

// A control group writes "max" where there is no limit.
std::int64_t control_group_limit() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    std::int64_t bytes = 0;
    if (file >> bytes && bytes > 0) return bytes;
  }
  return std::numeric_limits<std::int64_t>::max();
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
#if defined(__aarch64__)
  return "AArch64";
#elif defined(__x86_64__)
  return "x86-64";
#else
  return "CPU";
#endif
}

std::int64_t memory_bytes() {
  static const std::int64_t bytes =
      std::min<std::int64_t>(static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
                                 static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE)),
                             control_group_limit());
  return bytes;
}

std::string instruction_set() {
  // The best target has the lowest bit, among those the loops are compiled for.
  const std::int64_t supported = static_cast<std::int64_t>(hwy::SupportedTargets()) & HWY_TARGETS;
  return hwy::TargetName(supported & -supported);
}

}  // namespace vkml::cpu
