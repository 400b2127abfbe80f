#include "cores.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention.h"
#include "ordering.h"
#include "pooling.h"
#include "vkml/core/error.h"
#include "vkml/ops/core_kind.h"

namespace vkml::reference {
namespace {

using dispatch::PlanNode;
using graph::Attributes;
using ops::CoreKind;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Sums and products of integers wrap: they are taken in the unsigned type.
double multiply_add(double sum, double a, double b) { return sum + a * b; }
std::int64_t multiply_add(std::int64_t sum, std::int64_t a, std::int64_t b) {
  using Unsigned = std::uint64_t;
  return static_cast<std::int64_t>(static_cast<Unsigned>(sum) +
                                   static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
}

template <typename T>
void matmul(const Array& a, const Array& b, Array& out) {
  const Extents strides_a = broadcast_strides(a.extents);
  const Extents strides_b = broadcast_strides(b.extents);
  const std::int64_t inner = a.extents[3];
  std::int64_t next = 0;
  for_each(out.extents, [&](const Extents& i) {
    T sum = 0;
    for (std::int64_t k = 0; k < inner; ++k) {
      sum = multiply_add(sum, a.values<T>()[at(position_of({i[0], i[1], i[2], k}, strides_a))],
                         b.values<T>()[at(position_of({i[0], i[1], k, i[3]}, strides_b))]);
    }
    out.values<T>()[at(next++)] = rounded(sum, out.dtype);
  });
}

/// Calls visit(input, weight, output) with the positions of every triple of elements that a
/// convolution multiplies and adds; the input's is -1 in the padding, which is 0.
template <typename Visit>
void for_each_product(const Extents& input, const Extents& weight, const Extents& output,
                      const Attributes& attributes, Visit visit) {
  const std::int64_t groups = attributes[6];
  const std::int64_t outputs_per_group = weight[0] / groups;
  const Extents input_strides = dense_strides(input);
  const Extents weight_strides = dense_strides(weight);
  const Extents output_strides = dense_strides(output);
  for_each(output, [&](const Extents& o) {
    const std::int64_t first_channel = o[1] / outputs_per_group * weight[1];
    for_each({1, weight[1], weight[2], weight[3]}, [&](const Extents& w) {
      const std::int64_t h = o[2] * attributes[0] - attributes[2] + w[2] * attributes[4];
      const std::int64_t v = o[3] * attributes[1] - attributes[3] + w[3] * attributes[5];
      const bool is_inside = h >= 0 && h < input[2] && v >= 0 && v < input[3];
      const Extents i{o[0], first_channel + w[1], h, v};
      visit(is_inside ? position_of(i, input_strides) : -1,
            position_of({o[1], w[1], w[2], w[3]}, weight_strides), position_of(o, output_strides));
    });
  });
}

/// The value of a convolution, or of one of its gradients: `target` says which of the three arrays
/// of each product is summed into.
enum class Target { kOutput, kInput, kWeight };
void convolve(const Array& first, const Array& second, const Attributes& attributes, Target target,
              Array& out) {
  std::vector<double> sums(out.floats.size());
  const auto add = [&](std::int64_t to, std::int64_t i, std::int64_t j) {
    if (to < 0) return;  // nobody asks for a gradient of the padding
    sums[at(to)] += (i < 0 ? 0.0 : first.floats[at(i)]) * second.floats[at(j)];
  };
  switch (target) {
    case Target::kOutput:
      for_each_product(first.extents, second.extents, out.extents, attributes,
                       [&](auto i, auto w, auto o) { add(o, i, w); });
      break;
    case Target::kInput:
      for_each_product(out.extents, second.extents, first.extents, attributes,
                       [&](auto i, auto w, auto o) { add(i, o, w); });
      break;
    case Target::kWeight:
      for_each_product(first.extents, out.extents, second.extents, attributes,
                       [&](auto i, auto w, auto o) { add(w, i, o); });
      break;
  }
  for (std::size_t k = 0; k < sums.size(); ++k) out.floats[k] = rounded(sums[k], out.dtype);
}

template <typename T>
void gather(const PlanNode& node, const Array& x, const Array& index, Array& out) {
  const int axis = static_cast<int>(node.attributes[0]) + kMaxDims - x.rank;
  const Extents strides = dense_strides(x.extents);
  std::int64_t next = 0;
  for_each(out.extents, [&](Extents i) {
    const std::int64_t chosen = index.integers[at(next)];
    check_index(node.op->name, chosen, x.extents[at(axis)]);
    i[at(axis)] = chosen;
    out.values<T>()[at(next++)] = x.values<T>()[at(position_of(i, strides))];
  });
}

/// Two elements that meet: NaN is the largest and the smallest.
template <typename T>
T combined(ops::ScatterKind kind, T held, T given) {
  const bool is_nan = held != held || given != given;
  switch (kind) {
    case ops::ScatterKind::kAdd:
      return multiply_add(held, given, T{1});
    case ops::ScatterKind::kReplace:
      return given;
    case ops::ScatterKind::kMultiply:
      return multiply_add(T{0}, held, given);
    case ops::ScatterKind::kMax:
      return is_nan ? held + given : std::max(held, given);
    case ops::ScatterKind::kMin:
      return is_nan ? held + given : std::min(held, given);
  }
  throw InternalError("[scatter] unknown kind in the reference");
}

template <typename T>
void scatter(const PlanNode& node, const Array& base, const Array& index, const Array& source,
             Array& out) {
  const int axis = static_cast<int>(node.attributes[0]) + kMaxDims - base.rank;
  const auto kind = static_cast<ops::ScatterKind>(node.attributes[1]);
  const Extents strides = dense_strides(base.extents);
  std::vector<T> sums(base.values<T>());
  std::int64_t next = 0;
  for_each(index.extents, [&](Extents i) {
    const std::int64_t chosen = index.integers[at(next)];
    check_index(node.op->name, chosen, base.extents[at(axis)]);
    i[at(axis)] = chosen;
    T& sum = sums[at(position_of(i, strides))];
    sum = combined(kind, sum, source.values<T>()[at(next++)]);
  });
  for (std::size_t k = 0; k < sums.size(); ++k) out.values<T>()[k] = rounded(sums[k], out.dtype);
}

}  // namespace

void check_index(const char* op, std::int64_t index, std::int64_t extent) {
  if (index >= 0 && index < extent) return;
  throw IndexError(
      fmt::format("[{}] index {} is out of bounds for an axis of extent {}", op, index, extent));
}

Array evaluate_core(const PlanNode& node, std::span<const Array* const> sources) {
  Array out(node.dtype, node.shape);
  const Array& first = *sources[0];
  switch (ops::core_of(*node.op)) {
    case CoreKind::kMatmul:
      with_type(node.dtype, [&]<typename T>(T) { matmul<T>(first, *sources[1], out); });
      return out;
    case CoreKind::kConv2d:
      convolve(first, *sources[1], node.attributes, Target::kOutput, out);
      return out;
    case CoreKind::kConv2dInputGradient:
      convolve(first, *sources[1], node.attributes, Target::kInput, out);
      return out;
    case CoreKind::kConv2dWeightGradient:
      convolve(first, *sources[1], node.attributes, Target::kWeight, out);
      return out;
    case CoreKind::kMaxPool2d:
      max_pool(first, node.attributes, out);
      return out;
    case CoreKind::kMaxPool2dIndices:
      max_pool_indices(first, node.attributes, out);
      return out;
    case CoreKind::kMaxPool2dGradient:
      max_pool_gradient(first, *sources[1], out);
      return out;
    case CoreKind::kAvgPool2d:
      average_pool(first, node.attributes, out);
      return out;
    case CoreKind::kAvgPool2dGradient:
      average_pool_gradient(first, node.attributes, out);
      return out;
    case CoreKind::kGather:
      with_type(node.dtype, [&]<typename T>(T) { gather<T>(node, first, *sources[1], out); });
      return out;
    case CoreKind::kScatter:
      with_type(node.dtype,
                [&]<typename T>(T) { scatter<T>(node, first, *sources[1], *sources[2], out); });
      return out;
    case CoreKind::kScan:
      scan(node, sources, out);
      return out;
    case CoreKind::kArgSort:
      argsort(node, first, out);
      return out;
    case CoreKind::kSearchSorted:
      search_sorted(node, first, *sources[1], out);
      return out;
    case CoreKind::kAttentionLogSumExp:
    case CoreKind::kAttention:
    case CoreKind::kAttentionQueryGradient:
    case CoreKind::kAttentionKeyGradient:
    case CoreKind::kAttentionValueGradient:
      attend(node, sources, out);
      return out;
    case CoreKind::kNone:
      break;
  }
  throw InternalError(fmt::format("[{}] has no definition in the reference", node.op->name));
}

}  // namespace vkml::reference
