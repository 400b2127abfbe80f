// The oracle: evaluates graphs from the definitions of their operators, in double precision.
#pragma once

#include <memory>

#include "vkml/dispatch/backend.h"

namespace vkml::reference {

/// Makes the reference what vkml.cpu means. VKML_REFERENCE=1 asks for it.
void register_reference_backend();

/// One of its own, for tests and verifiers that compare another backend with it.
std::unique_ptr<dispatch::Backend> make_reference_backend();

}  // namespace vkml::reference
