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

}  // namespace vkml
