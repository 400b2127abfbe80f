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
#include "vkml/ops/value_check.h"

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

/// The parameters of a draw, float32, checked when it is computed.
Value checked(const graph::OpInfo& check, const Value& x) {
  return graph::check_values(check, graph::cast(graph::detach(x), DType::kF32));
}

/// The normal distribution function.
double normal_distribution(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }

/// Standard normal draws from [low, high] with low + high <= 0: by the inverse of the distribution
/// function, whose values near 0 keep their digits, or of 2 * that - 1 for both tails.
Value draw_between(const Extents& extents, double low, double high, Device device) {
  const double first = normal_distribution(low);
  const double share = normal_distribution(high) - first;
  const Value u = open_unit(extents, device);
  if (high <= 0.5) return graph::ndtri(u * share + first);
  return graph::erfinv(u * (2 * share) + (2 * first - 1)) * std::numbers::sqrt2;
}

/// How far standard normal draws from [start, start + width] lie past start, which is far out: the
/// density of the distance s is exp(-start s - s^2 / 2). With the factor 1 + s / start its
/// distribution has an inverse, whose draws are taken with the probability of the inverse factor
/// (Marsaglia, "Generating a variable from the tail of the normal distribution", 1964).
Value draw_past(const Extents& extents, double start, double width, Device device) {
  // Past 5 a proposal is taken with probability above 0.96: all of these fail once in 10^11 draws.
  constexpr int kProposals = 8;
  const double reach = std::expm1(-(start * width + width * width / 2));
  Value draw;
  for (int i = 0; i < kProposals; ++i) {
    const Value exponent = graph::log1p(open_unit(extents, device) * reach) * -2.0;
    const Value end = graph::sqrt(exponent + start * start);
    const Value distance = exponent / (end + start);
    const Value is_taken = unit(extents, device) * end < start;
    draw = draw ? graph::where(is_taken, distance, draw) : distance;
  }
  return draw;
}

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
  check_draw("uniform", extents, dtype);
  if (!(low <= high)) {
    throw ArgumentError(fmt::format("[uniform] low {} is above high {}", low, high));
  }
  const Value draw = unit(extents, chosen(device)) * (high - low) + low;
  if (!(low < high)) return finished(draw, dtype);
  const Value last = graph::weak_scalar(largest_below(high, dtype), draw.device());
  return finished(graph::minimum(draw, last), dtype);
}

Tensor normal(const Extents& extents, double mean, double deviation, DType dtype,
              std::optional<Device> device) {
  check_draw("normal", extents, dtype);
  if (!(deviation >= 0)) {
    throw ArgumentError(fmt::format("[normal] the deviation {} is not 0 or above", deviation));
  }
  const Value draw = graph::random_normal(extents, next_random_key(), chosen(device));
  return finished(draw * deviation + mean, dtype);
}

Tensor truncated_normal(const Extents& extents, double mean, double deviation, double low,
                        double high, DType dtype, std::optional<Device> device) {
  check_draw("truncated_normal", extents, dtype);
  if (!(low < high) || !(deviation > 0)) {
    throw ArgumentError(
        fmt::format("[truncated_normal] deviation {} on [{}, {}]", deviation, low, high));
  }
  const Device where = chosen(device);
  const double first = (low - mean) / deviation;
  const double last = (high - mean) / deviation;
  // The mirror image, if that is where probabilities are small, and keep their digits.
  const bool is_mirrored = first + last > 0;
  const double start = is_mirrored ? -last : first;
  const double end = is_mirrored ? -first : last;
  const double scale = is_mirrored ? -deviation : deviation;
  constexpr double kFarOut = 5;
  const Value draw = end <= -kFarOut ? draw_past(extents, -end, end - start, where) * -scale +
                                           (is_mirrored ? low : high)
                                     : draw_between(extents, start, end, where) * scale + mean;
  return finished(graph::minimum(graph::maximum(draw, graph::weak_scalar(low, where)),
                                 graph::weak_scalar(high, where)),
                  dtype);
}

Tensor exponential(const Extents& extents, double rate, DType dtype, std::optional<Device> device) {
  check_draw("exponential", extents, dtype);
  if (!(rate > 0)) {
    throw ArgumentError(fmt::format("[exponential] the rate {} is not positive", rate));
  }
  return finished(graph::log(open_unit(extents, chosen(device))) * (-1.0 / rate), dtype);
}

Tensor gumbel(const Extents& extents, double location, double scale, DType dtype,
              std::optional<Device> device) {
  check_draw("gumbel", extents, dtype);
  const Value draw = graph::log(-graph::log(open_unit(extents, chosen(device))));
  return finished(draw * -scale + location, dtype);
}

Tensor gamma(const Tensor& concentration) {
  const Value given = graph::detach(concentration.value());
  check_draw("gamma", concentration.extents(), given.dtype());
  const Extents extents = concentration.extents();
  const Device device = given.device();
  static constexpr graph::OpInfo kCheck =
      ops::value_check("gamma", ops::ValueCheck::kConcentration);
  const Value shape = checked(kCheck, given);
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
  check_draw("bernoulli", probability.extents(), p.dtype());
  static constexpr graph::OpInfo kCheck =
      ops::value_check("bernoulli", ops::ValueCheck::kProbability);
  const Value draw = unit(probability.extents(), p.device());
  return finished(graph::lt(draw, checked(kCheck, p)), p.dtype());
}

Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement) {
  const Value given = graph::detach(weights.value());
  check_draw("multinomial", weights.extents(), given.dtype());
  if (given.rank() != 1 && given.rank() != 2) {
    throw ShapeError(fmt::format("[multinomial] needs weights (N) or (rows, N), not {}",
                                 given.shape().to_string()));
  }
  const std::int64_t classes = given.shape()[given.rank() - 1];
  if (count < 1 || (!replacement && count > classes)) {
    throw ArgumentError(fmt::format(
        "[multinomial] {} draws from {} classes. Use replacement=True, or fewer", count, classes));
  }
  static constexpr graph::OpInfo kEach = ops::value_check("multinomial", ops::ValueCheck::kWeight);
  static constexpr graph::OpInfo kSum =
      ops::value_check("multinomial", ops::ValueCheck::kSumOfWeights);
  const Value w = checked(kEach, given);
  if (!replacement) {
    const std::int64_t last_axis[] = {-1};
    const Value total = graph::check_values(kSum, graph::sum(w, last_axis, true));
    const Value score = graph::log(w) - graph::log(total) +
                        gumbel(weights.extents(), 0, 1, DType::kF32, w.device()).value();
    const Value order = graph::argsort(score, -1, true);
    return finished(graph::slice(order, -1, 0, count, 1), DType::kI64);
  }
  const Value sums = graph::cumsum(w, -1);
  const Value total = graph::check_values(kSum, graph::slice(sums, -1, classes - 1, classes, 1));
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
