#include "pooling.h"

#include <algorithm>
#include <cmath>

namespace vkml::reference {
namespace {

using graph::Attributes;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Calls visit(position) for the elements of a (N, C, H, W) array that the window of output element
/// `o` covers, padding left out.
template <typename Visit>
void for_each_in_window(const Extents& input, const Attributes& attributes, const Extents& o,
                        Visit visit) {
  const bool dilated = attributes.size() == 9;
  const Extents strides = dense_strides(input);
  for (std::int64_t kh = 0; kh < attributes[0]; ++kh) {
    for (std::int64_t kw = 0; kw < attributes[1]; ++kw) {
      const std::int64_t h =
          o[2] * attributes[2] - attributes[4] + kh * (dilated ? attributes[6] : 1);
      const std::int64_t w =
          o[3] * attributes[3] - attributes[5] + kw * (dilated ? attributes[7] : 1);
      if (h < 0 || h >= input[2] || w < 0 || w >= input[3]) continue;
      visit(position_of({o[0], o[1], h, w}, strides));
    }
  }
}

bool is_nan(double x) { return std::isnan(x); }
bool is_nan(std::int64_t) { return false; }

/// The position of each window's first maximum; a NaN is larger than any number.
template <typename T>
std::vector<std::int64_t> maxima(const Array& x, const Attributes& attributes,
                                 const Extents& output) {
  const auto& values = x.values<T>();
  std::vector<std::int64_t> positions;
  for_each(output, [&](const Extents& o) {
    std::int64_t best = -1;
    for_each_in_window(x.extents, attributes, o, [&](std::int64_t position) {
      if (best >= 0 && is_nan(values[at(best)])) return;
      const T value = values[at(position)];
      if (best < 0 || is_nan(value) || value > values[at(best)]) best = position;
    });
    positions.push_back(best);
  });
  return positions;
}

std::int64_t elements_in_window(const Extents& input, const Attributes& attributes,
                                const Extents& o) {
  if (attributes[6] != 0) {
    // A window may reach past the padding, where nothing counts.
    const auto along = [&](int i) {
      const std::int64_t first = o[at(i + 2)] * attributes[i + 2] - attributes[i + 4];
      return std::min(attributes[i], input[at(i + 2)] + attributes[i + 4] - first);
    };
    return along(0) * along(1);
  }
  std::int64_t count = 0;
  for_each_in_window(input, attributes, o, [&](std::int64_t) { ++count; });
  return count;
}

}  // namespace

void max_pool(const Array& x, const Attributes& attributes, Array& out) {
  with_type(x.dtype, [&]<typename T>(T) {
    const std::vector<std::int64_t> positions = maxima<T>(x, attributes, out.extents);
    for (std::size_t k = 0; k < positions.size(); ++k) {
      out.values<T>()[k] = x.values<T>()[at(positions[k])];
    }
  });
}

void max_pool_indices(const Array& x, const Attributes& attributes, Array& out) {
  const std::int64_t plane = x.extents[2] * x.extents[3];
  with_type(x.dtype, [&]<typename T>(T) {
    const std::vector<std::int64_t> positions = maxima<T>(x, attributes, out.extents);
    for (std::size_t k = 0; k < positions.size(); ++k) out.integers[k] = positions[k] % plane;
  });
}

void max_pool_gradient(const Array& gradient, const Array& indices, Array& out) {
  const std::int64_t plane = out.extents[2] * out.extents[3];
  const std::int64_t windows = gradient.extents[2] * gradient.extents[3];
  std::vector<double> sums(out.floats.size());
  for (std::int64_t k = 0; k < gradient.numel(); ++k) {
    sums[at(k / windows * plane + indices.integers[at(k)])] += gradient.floats[at(k)];
  }
  for (std::size_t k = 0; k < sums.size(); ++k) out.floats[k] = rounded(sums[k], out.dtype);
}

void average_pool(const Array& x, const Attributes& attributes, Array& out) {
  std::size_t next = 0;
  for_each(out.extents, [&](const Extents& o) {
    double sum = 0;
    for_each_in_window(x.extents, attributes, o,
                       [&](std::int64_t position) { sum += x.floats[at(position)]; });
    const auto count = static_cast<double>(elements_in_window(x.extents, attributes, o));
    out.floats[next++] = rounded(sum / count, out.dtype);
  });
}

void average_pool_gradient(const Array& gradient, const Attributes& attributes, Array& out) {
  std::vector<double> sums(out.floats.size());
  std::size_t next = 0;
  for_each(gradient.extents, [&](const Extents& o) {
    const auto count = static_cast<double>(elements_in_window(out.extents, attributes, o));
    const double share = gradient.floats[next++] / count;
    for_each_in_window(out.extents, attributes, o,
                       [&](std::int64_t position) { sums[at(position)] += share; });
  });
  for (std::size_t k = 0; k < sums.size(); ++k) out.floats[k] = rounded(sums[k], out.dtype);
}

}  // namespace vkml::reference
