#include "attention.h"

#include <bit>
#include <cmath>
#include <limits>

#include "vkml/core/error.h"
#include "vkml/ops/core_kind.h"

namespace vkml::reference {
namespace {

using dispatch::PlanNode;
using ops::CoreKind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

double element(const Array& array, const Extents& index) {
  const std::size_t position = at(position_of(index, dense_strides(array.extents)));
  return is_floating(array.dtype) ? array.floats[position]
                                  : static_cast<double>(array.integers[position]);
}

/// Query, key and mask of one call.
class Scores {
 public:
  Scores(const PlanNode& node, const Array& query, const Array& key, const Array* mask)
      : query_(query),
        key_(key),
        mask_(mask),
        scale_(std::bit_cast<double>(node.attributes[0])),
        causal_(node.attributes[1] != 0) {}

  const Extents& query() const { return query_.extents; }
  const Extents& key() const { return key_.extents; }
  double scale() const { return scale_; }
  bool has_mask() const { return mask_ != nullptr; }
  /// The head of keys and values that a head of the queries meets.
  std::int64_t shared(std::int64_t head) const {
    return head / (query_.extents[1] / key_.extents[1]);
  }

  double score(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s) const {
    if (causal_ && s > t) return -kInfinity;
    double dot = 0;
    for (std::int64_t d = 0; d < query_.extents[3]; ++d) {
      dot += element(query_, {b, h, t, d}) * element(key_, {b, shared(h), s, d});
    }
    dot *= scale_;
    if (mask_ == nullptr) return dot;
    const double mask = element(*mask_, {b, h, t, s});
    if (mask_->dtype == DType::kBool) return mask != 0 ? dot : -kInfinity;
    return dot + mask;
  }

 private:
  const Array& query_;
  const Array& key_;
  const Array* mask_;
  double scale_;
  bool causal_;
};

double log_sum_exp(const Scores& scores, std::int64_t b, std::int64_t h, std::int64_t t) {
  double top = -kInfinity;
  for (std::int64_t s = 0; s < scores.key()[2]; ++s) {
    top = std::fmax(top, scores.score(b, h, t, s));
  }
  if (top == -kInfinity) return scores.has_mask() ? kInfinity : kInfinity - kInfinity;
  double sum = 0;
  for (std::int64_t s = 0; s < scores.key()[2]; ++s)
    sum += std::exp(scores.score(b, h, t, s) - top);
  return top + std::log(sum);
}

void weighted_values(const Scores& scores, const Array& value, Array& out) {
  const std::int64_t keys = scores.key()[2];
  std::size_t next = 0;
  for_each({out.extents[0], out.extents[1], out.extents[2], 1}, [&](const Extents& i) {
    const double lse = log_sum_exp(scores, i[0], i[1], i[2]);
    std::vector<double> sums(at(out.extents[3]));
    for (std::int64_t s = 0; s < keys; ++s) {
      const double weight = std::exp(scores.score(i[0], i[1], i[2], s) - lse);
      for (std::int64_t d = 0; d < out.extents[3]; ++d) {
        sums[at(d)] += weight * element(value, {i[0], scores.shared(i[1]), s, d});
      }
    }
    for (const double sum : sums) out.floats[next++] = rounded(sum, out.dtype);
  });
}

/// The sources that a gradient's node has beside query, key and mask.
struct Upstream {
  const Array* value = nullptr;
  const Array* gradient = nullptr;
  const Array* lse = nullptr;
  const Array* delta = nullptr;
};

/// Adds to `out`, through every pair of a query and a key, what its gradient gets.
void add_gradient(const Scores& scores, const Upstream& upstream, const Array& query,
                  const Array& key, CoreKind kind, Array& out) {
  std::vector<double> sums(out.floats.size());
  const Extents strides = dense_strides(out.extents);
  const std::int64_t width = upstream.gradient->extents[3];
  for_each({scores.query()[0], scores.query()[1], scores.query()[2], scores.key()[2]},
           [&](const Extents& i) {
             const auto [b, h, t, s] = i;
             const std::int64_t shared = scores.shared(h);
             const double weight =
                 std::exp(scores.score(b, h, t, s) - element(*upstream.lse, {b, h, t, 0}));
             if (kind == CoreKind::kAttentionValueGradient) {
               for (std::int64_t d = 0; d < width; ++d) {
                 sums[at(position_of({b, shared, s, d}, strides))] +=
                     weight * element(*upstream.gradient, {b, h, t, d});
               }
               return;
             }
             double difference = -element(*upstream.delta, {b, h, t, 0});
             for (std::int64_t d = 0; d < width; ++d) {
               difference += element(*upstream.gradient, {b, h, t, d}) *
                             element(*upstream.value, {b, shared, s, d});
             }
             const double factor = weight * difference * scores.scale();
             for (std::int64_t d = 0; d < out.extents[3]; ++d) {
               if (kind == CoreKind::kAttentionQueryGradient) {
                 sums[at(position_of({b, h, t, d}, strides))] +=
                     factor * element(key, {b, shared, s, d});
               } else {
                 sums[at(position_of({b, shared, s, d}, strides))] +=
                     factor * element(query, {b, h, t, d});
               }
             }
           });
  for (std::size_t i = 0; i < sums.size(); ++i) out.floats[i] = rounded(sums[i], out.dtype);
}

}  // namespace

void attend(const PlanNode& node, std::span<const Array* const> sources, Array& out) {
  const CoreKind kind = ops::core_of(*node.op);
  const Array& query = *sources[0];
  const Array& key = *sources[1];
  const auto scores_with_mask = [&](std::size_t mask) {
    return Scores(node, query, key, mask < sources.size() ? sources[mask] : nullptr);
  };
  switch (kind) {
    case CoreKind::kAttentionLogSumExp: {
      const Scores scores = scores_with_mask(2);
      std::size_t next = 0;
      for_each(out.extents, [&](const Extents& i) {
        out.floats[next++] = rounded(log_sum_exp(scores, i[0], i[1], i[2]), out.dtype);
      });
      return;
    }
    case CoreKind::kAttention:
      weighted_values(scores_with_mask(4), *sources[2], out);
      return;
    case CoreKind::kAttentionQueryGradient:
    case CoreKind::kAttentionKeyGradient: {
      const std::size_t mask = kind == CoreKind::kAttentionQueryGradient ? 6 : 7;
      const Upstream upstream{sources[2], sources[3], sources[4], sources[5]};
      add_gradient(scores_with_mask(mask), upstream, query, key, kind, out);
      return;
    }
    case CoreKind::kAttentionValueGradient: {
      const Upstream upstream{nullptr, sources[2], sources[3], nullptr};
      add_gradient(scores_with_mask(4), upstream, query, key, kind, out);
      return;
    }
    default:
      throw InternalError("attention of another kind");
  }
}

}  // namespace vkml::reference
