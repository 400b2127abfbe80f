// Everything a C++ user needs.
#pragma once

#include "vkml/api/context.h"    // IWYU pragma: export
#include "vkml/api/functions.h"  // IWYU pragma: export
#include "vkml/api/jit.h"        // IWYU pragma: export
#include "vkml/api/profile.h"    // IWYU pragma: export
#include "vkml/api/random.h"     // IWYU pragma: export
#include "vkml/api/structure.h"  // IWYU pragma: export
#include "vkml/api/tensor.h"     // IWYU pragma: export
