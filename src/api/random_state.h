// The numbered stream of random draws.
#pragma once

#include "vkml/ops/functions.h"

namespace vkml {
/// The key of the next draw: a function of the seed and of how many draws came before.
graph::RandomKey next_random_key();
}  // namespace vkml
