// The numbered stream of random draws.
#pragma once

#include <cstdint>

#include "vkml/ops/functions.h"

namespace vkml {
/// The key of the next draw: a function of the seed and of how many draws came before; or what this
/// thread's DrawTape says.
graph::RandomKey next_random_key();
/// The key of any draw of the stream.
graph::RandomKey random_key(std::uint64_t draw);
/// How many draws were made.
std::uint64_t draw_count();
/// Goes on in the stream as if so many draws had been made.
void set_draw_count(std::uint64_t count);
}  // namespace vkml
