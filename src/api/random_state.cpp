#include "random_state.h"

#include <mutex>

#include "slot.h"
#include "vkml/api/context.h"
#include "vkml/core/error.h"

namespace vkml {
namespace {

struct Stream {
  std::mutex mutex;
  std::uint64_t seed = 0x853c49e6748fea9b;
  std::uint64_t draws = 0;
};
Stream& stream() {
  static Stream instance;
  return instance;
}

/// SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

graph::RandomKey key_of(std::uint64_t seed, std::uint64_t draw) {
  const std::uint64_t word =
      mix(mix(seed + 0x9e3779b97f4a7c15u) + (draw + 1) * 0x9e3779b97f4a7c15u);
  return {{static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)}, draw};
}

}  // namespace

graph::RandomKey next_random_key() {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  return key_of(s.seed, s.draws++);
}

graph::RandomKey random_key(std::uint64_t draw) {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  return key_of(s.seed, draw);
}

std::uint64_t draw_count() {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  return s.draws;
}

void set_draw_count(std::uint64_t count) {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  s.draws = count;
}

void manual_seed(std::uint64_t seed) {
  if (RecordingMark::current() != 0) {
    throw ArgumentError(
        "[manual_seed] a function that is recorded cannot seed the stream. Seed it outside");
  }
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  s.seed = seed;
  s.draws = 0;
}

std::uint64_t initial_seed() {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  return s.seed;
}

}  // namespace vkml
