// Distributions as expressions of uniform and normal draws, so that a draw is part of the kernel
// that uses it. What rejection would need is proposed a fixed number of times.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "random_state.h"
#include "record_tensor.h"
#include "vkml/api/context.h"
#include "vkml/api/random.h"
#include "vkml/api/structure.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/ordering.h"

namespace vkml::random {
namespace {

using graph::Value;

Device chosen(const std::optional<Device>& device) { return device.value_or(default_device()); }

Value unit(const Extents& extents, Device device) {
  return graph::random_uniform(extents, next_random_key(), device);
}

/// Uniform in (0, 1): 0, of the draws of 24 bits, becomes half of a step, so that logarithms are
/// finite.
Value open_unit(const Extents& extents, Device device) {
  return graph::maximum(unit(extents, device), graph::weak_scalar(0x1p-25, device));
}

Tensor finished(const Value& value, DType dtype) { return record(graph::cast(value, dtype)); }

void check_floating(const char* op, DType dtype) {
  if (is_floating(dtype)) return;
  throw DTypeError(fmt::format("[{}] draws floats, not {}", op, name_of(dtype)));
}

/// The normal distribution function.
double normal_distribution(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }

/// The largest number of a floating dtype below a limit that the dtype reaches.
double largest_below(double limit, DType dtype) {
  struct Format {
    int digits, least_exponent;
  };
  const auto [digits, least_exponent] = [&]() -> Format {
    switch (dtype) {
      case DType::kF16:
        return {11, -14};
      case DType::kBF16:
        return {8, -126};
      case DType::kF64:
        return {53, -1022};
      default:
        return {24, -126};
    }
  }();
  const double below = std::nextafter(limit, -std::numeric_limits<double>::infinity());
  const int exponent = std::max(below == 0 ? least_exponent : std::ilogb(below), least_exponent);
  const double step = std::ldexp(1.0, exponent - digits + 1);
  return std::floor(below / step) * step;
}

}  // namespace

Tensor uniform(const Extents& extents, double low, double high, DType dtype,
               std::optional<Device> device) {
  check_floating("uniform", dtype);
  const Value draw = unit(extents, chosen(device)) * (high - low) + low;
  if (!(low < high)) return finished(draw, dtype);
  const Value last = graph::weak_scalar(largest_below(high, dtype), draw.device());
  return finished(graph::minimum(draw, last), dtype);
}

Tensor normal(const Extents& extents, double mean, double deviation, DType dtype,
              std::optional<Device> device) {
  check_floating("normal", dtype);
  if (deviation < 0) {
    throw ArgumentError(fmt::format("[normal] the deviation {} is negative", deviation));
  }
  const Value draw = graph::random_normal(extents, next_random_key(), chosen(device));
  return finished(draw * deviation + mean, dtype);
}

Tensor truncated_normal(const Extents& extents, double mean, double deviation, double low,
                        double high, DType dtype, std::optional<Device> device) {
  check_floating("truncated_normal", dtype);
  if (!(low < high) || !(deviation > 0)) {
    throw ArgumentError(
        fmt::format("[truncated_normal] deviation {} on [{}, {}]", deviation, low, high));
  }
  const double first = 2 * normal_distribution((low - mean) / deviation) - 1;
  const double last = 2 * normal_distribution((high - mean) / deviation) - 1;
  const Value place = open_unit(extents, chosen(device)) * (last - first) + first;
  const Value draw = graph::erfinv(place) * (deviation * std::numbers::sqrt2) + mean;
  const Device where = draw.device();
  return finished(graph::minimum(graph::maximum(draw, graph::weak_scalar(low, where)),
                                 graph::weak_scalar(high, where)),
                  dtype);
}

Tensor exponential(const Extents& extents, double rate, DType dtype, std::optional<Device> device) {
  check_floating("exponential", dtype);
  if (!(rate > 0)) {
    throw ArgumentError(fmt::format("[exponential] the rate {} is not positive", rate));
  }
  return finished(graph::log(open_unit(extents, chosen(device))) * (-1.0 / rate), dtype);
}

Tensor gumbel(const Extents& extents, double location, double scale, DType dtype,
              std::optional<Device> device) {
  check_floating("gumbel", dtype);
  const Value draw = graph::log(-graph::log(open_unit(extents, chosen(device))));
  return finished(draw * -scale + location, dtype);
}

Tensor gamma(const Tensor& concentration) {
  const Value given = graph::detach(concentration.value());
  check_floating("gamma", given.dtype());
  const Extents extents = concentration.extents();
  const Device device = given.device();
  const Value shape = graph::cast(given, DType::kF32);
  // Shapes below 1 are drawn one higher and scaled by u^(1 / shape).
  const Value is_small = shape < 1.0;
  const Value boosted = graph::where(is_small, shape + 1.0, shape);
  const Value d = boosted - 1.0 / 3.0;
  const Value c = graph::rsqrt(d * 9.0);
  // A proposal is taken with probability above 0.95: all of these fail once in 10^10 draws.
  constexpr int kProposals = 8;
  Value draw = d;
  for (int i = 0; i < kProposals; ++i) {
    const Value x = graph::random_normal(extents, next_random_key(), device);
    const Value root = x * c + 1.0;
    const Value v = root * root * root;
    const Value is_positive = v > 0.0;
    const Value safe = graph::where(is_positive, v, graph::weak_scalar(1.0, device));
    const Value bound = x * x * 0.5 + d - d * v + d * graph::log(safe);
    const Value u = graph::log(open_unit(extents, device));
    draw = graph::where(graph::logical_and(is_positive, graph::lt(u, bound)), d * v, draw);
  }
  const Value u = open_unit(extents, device);
  const Value scaled = draw * graph::exp(graph::log(u) / shape);
  return finished(graph::where(is_small, scaled, draw), given.dtype());
}

Tensor bernoulli(const Tensor& probability) {
  const Value p = probability.value();
  check_floating("bernoulli", p.dtype());
  const Value draw = unit(probability.extents(), p.device());
  return finished(graph::lt(draw, graph::cast(graph::detach(p), DType::kF32)), p.dtype());
}

Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement) {
  const Value given = graph::detach(weights.value());
  check_floating("multinomial", given.dtype());
  if (given.rank() != 1 && given.rank() != 2) {
    throw ShapeError(fmt::format("[multinomial] needs weights (N) or (rows, N), not {}",
                                 given.shape().to_string()));
  }
  const std::int64_t classes = given.shape()[given.rank() - 1];
  if (count < 1 || (!replacement && count > classes)) {
    throw ArgumentError(fmt::format(
        "[multinomial] {} draws from {} classes. Use replacement=True, or fewer", count, classes));
  }
  const Value w = graph::cast(given, DType::kF32);
  if (!replacement) {
    const Value score =
        graph::log(w) + gumbel(weights.extents(), 0, 1, DType::kF32, w.device()).value();
    const Value order = graph::argsort(score, -1, true);
    return finished(graph::slice(order, -1, 0, count, 1), DType::kI64);
  }
  const Value sums = graph::cumsum(w, -1);
  const Value total = graph::slice(sums, -1, classes - 1, classes, 1);
  Extents extents = weights.extents();
  extents.back() = count;
  const Value place = unit(extents, w.device()) * total;
  const Value drawn = graph::search_sorted(sums, place, true);
  const Value last = graph::weak_scalar(classes - 1, w.device());
  return finished(graph::minimum(drawn, last), DType::kI64);
}

Tensor permutation(std::int64_t count, DType dtype, std::optional<Device> device) {
  if (count < 0) throw ArgumentError(fmt::format("[randperm] the count {} is negative", count));
  const Device where = chosen(device);
  const Extents extents{count};
  const auto order = [&] { return graph::argsort(unit(extents, where), 0, false); };
  // Draws of 24 bits tie, and ties keep their order: a second shuffle hides which did.
  return finished(graph::gather(order(), 0, order()), dtype);
}

}  // namespace vkml::random
