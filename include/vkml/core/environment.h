// The one reader of environment variables. docs/environment.md lists them.
#pragma once

#include <string>

namespace vkml {

/// The variable's value; empty when it is not set.
std::string environment_text(const char* name);

/// A switch: on when it holds anything but "0", `fallback` when it is not set or empty.
bool environment_switch(const char* name, bool fallback = false);

/// VKML_DEBUG: 0 when it is off, its number when it is one, 1 for anything else.
int debug_level();

}  // namespace vkml
