// Makes the CPU backend.
#pragma once

#include <memory>

#include "vkml/dispatch/backend.h"

namespace vkml::cpu {

std::unique_ptr<dispatch::Backend> make_cpu_backend();

}  // namespace vkml::cpu
