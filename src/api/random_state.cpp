#include "random_state.h"

#include <mutex>

#include "vkml/api/context.h"

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

}  // namespace

graph::RandomKey next_random_key() {
  Stream& s = stream();
  const std::scoped_lock lock(s.mutex);
  const std::uint64_t word =
      mix(mix(s.seed + 0x9e3779b97f4a7c15u) + ++s.draws * 0x9e3779b97f4a7c15u);
  return {{static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)}};
}

void manual_seed(std::uint64_t seed) {
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
