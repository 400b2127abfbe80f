// Random values from a counter (Philox): element i of a draw depends on the draw's key and on i
// alone, so every device and every order of evaluation gives the same numbers.

#include "record.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {
namespace {

Value key_word(const RandomKey& key, int word, Device device) {
  const auto number = static_cast<std::int32_t>(key.words[word]);
  return with_origin(scalar(static_cast<std::int64_t>(number), DType::kI32, device),
                     {NumberSource::kDraw, static_cast<std::int64_t>(2 * key.draw) + word});
}

/// 0, 1, 2, ... in row-major order, as 32 bits: past 2^32 the numbers would be those of before.
Value linear_index(Axes extents, Device device) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count = multiply_or_throw("random", count, extent);
  if (count > std::int64_t{1} << 32) {
    throw ShapeError(fmt::format(
        "[random] {} numbers of one draw would repeat after 2^32. Draw them in parts", count));
  }
  const std::int64_t flat[] = {count};
  const Value index = cast(iota(flat, 0, device), DType::kI32);
  return reshape(index, extents);
}

}  // namespace

Value random_uniform(Axes extents, RandomKey key, Device device) {
  return random_uniform(linear_index(extents, device), key_word(key, 0, device),
                        key_word(key, 1, device));
}

Value random_normal(Axes extents, RandomKey key, Device device) {
  return random_normal(linear_index(extents, device), key_word(key, 0, device),
                       key_word(key, 1, device));
}

Value dropout(const Value& x, double probability, RandomKey key) {
  if (!(probability >= 0 && probability <= 1)) {
    throw ArgumentError(fmt::format("[dropout] probability {} is outside [0, 1]", probability));
  }
  if (probability == 1) return x * 0.0;
  const Value keep = random_uniform(x.shape().extents(), key, x.device()) >= probability;
  return where_else_zero(keep, x * (1.0 / (1.0 - probability)));
}

}  // namespace vkml::graph
