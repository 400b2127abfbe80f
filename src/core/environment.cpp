#include "vkml/core/environment.h"

#include <cstdlib>

namespace vkml {

std::string environment_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool environment_switch(const char* name, bool fallback) {
  const std::string value = environment_text(name);
  return value.empty() ? fallback : value != "0";
}

int debug_level() {
  const std::string value = environment_text("VKML_DEBUG");
  if (value.empty()) return 0;
  char* end = nullptr;
  const long level = std::strtol(value.c_str(), &end, 10);
  return *end == '\0' && level >= 0 && level <= 9 ? static_cast<int>(level) : 1;
}

}  // namespace vkml
