// Draws from distributions: functions of the numbered stream that manual_seed() starts, the same on
// every device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "vkml/api/tensor.h"

namespace vkml {

/// A stream of its own: its draws depend on its seed and on how many it has given, only.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint64_t draws = 0;
};
/// From now on the draws that this thread records are those of `stream`, and manual_seed()'s stream
/// stays where it is. ArgumentError in a function that is recorded, which draws anew each time.
void begin_draws(std::shared_ptr<RandomStream> stream);

/// The random draws of one call of a function, to be made again by another call of it.
struct DrawTape {
  struct Draw {
    std::uint64_t key, number;
  };
  std::vector<Draw> draws;
};
/// From now on the draws that this thread records are noted on the tape, or, with `replay`, are
/// those of the tape from its start: AutogradError when there are not enough. Calls nest.
void begin_draws(std::shared_ptr<DrawTape> tape, bool replay);
/// Ends what the last begin_draws() began.
void end_draws();

}  // namespace vkml

namespace vkml::random {

/// On [low, high).
Tensor uniform(const Extents& extents, double low = 0, double high = 1, DType dtype = kDefaultFloat,
               std::optional<Device> device = {});
Tensor normal(const Extents& extents, double mean = 0, double deviation = 1,
              DType dtype = kDefaultFloat, std::optional<Device> device = {});
/// Normal, conditioned on [low, high], by the inverse of the distribution function.
Tensor truncated_normal(const Extents& extents, double mean = 0, double deviation = 1,
                        double low = -2, double high = 2, DType dtype = kDefaultFloat,
                        std::optional<Device> device = {});
/// Density rate * exp(-rate * x).
Tensor exponential(const Extents& extents, double rate = 1, DType dtype = kDefaultFloat,
                   std::optional<Device> device = {});
/// -log(-log(u)): the largest of many; argmax(log(p) + gumbel) draws from p.
Tensor gumbel(const Extents& extents, double location = 0, double scale = 1,
              DType dtype = kDefaultFloat, std::optional<Device> device = {});
/// Gamma with a shape parameter for each element, and rate 1 (Marsaglia and Tsang, ACM TOMS 26,
/// 2000). Not differentiable.
Tensor gamma(const Tensor& concentration);
/// 1 with the probability that each element gives, else 0, in its dtype.
Tensor bernoulli(const Tensor& probability);
/// Positions (i64) drawn from the last axis of non-negative weights (N) or (rows, N), with the
/// probabilities in their proportion. Without replacement by the largest log(w) + gumbel.
Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement = false);
/// 0 to count - 1 in a random order; i64 by default.
Tensor permutation(std::int64_t count, DType dtype = DType::kI64,
                   std::optional<Device> device = {});

}  // namespace vkml::random
