// The cores of the oracle that are sums of products, or go through windows: matrix products,
// convolution, pooling. Included by kernel_oracle.h, which declares them.
#pragma once

#include "kernel_oracle.h"
#include "vkml/ops/core_kind.h"

namespace vkml::oracle {

inline Number Interpreter::matmul(const Extents& at) {
  Number sum;
  for (std::int64_t k = 0; k < kernel_.core_inputs[0].extents[3]; ++k) {
    const Number a = element(kernel_.core_inputs[0], {at[0], at[1], at[2], k});
    const Number b = element(kernel_.core_inputs[1], {at[0], at[1], k, at[3]});
    sum = {sum.f + a.f * b.f, wrap_add(sum.i, wrap_multiply(a.i, b.i))};
  }
  return sum;
}

/// Every term of the forward sum, seen from its output, its input or its weight.
inline Number Interpreter::convolve(const Extents& at) {
  const auto& a = kernel_.attributes;
  const std::int64_t groups = a[6];
  const auto row = [&](std::int64_t out, std::int64_t tap) {
    return out * a[0] - a[2] + tap * a[4];
  };
  const auto column = [&](std::int64_t out, std::int64_t tap) {
    return out * a[1] - a[3] + tap * a[5];
  };
  Number sum;
  const auto add = [&](Number x, Number y) {
    sum = {sum.f + x.f * y.f, wrap_add(sum.i, wrap_multiply(x.i, y.i))};
  };
  const Operand& first = kernel_.core_inputs[0];
  const Operand& second = kernel_.core_inputs[1];
  if (kernel_.kind == CoreKind::kConv2d) {
    const std::int64_t per_group = second.extents[0] / groups;
    for (std::int64_t c = 0; c < second.extents[1]; ++c)
      for (std::int64_t y = 0; y < second.extents[2]; ++y)
        for (std::int64_t x = 0; x < second.extents[3]; ++x) {
          const std::int64_t h = row(at[2], y), w = column(at[3], x);
          if (h < 0 || w < 0 || h >= first.extents[2] || w >= first.extents[3]) continue;
          const std::int64_t channel = at[1] / per_group * second.extents[1] + c;
          add(element(first, {at[0], channel, h, w}), element(second, {at[1], c, y, x}));
        }
  } else if (kernel_.kind == CoreKind::kConv2dInputGradient) {
    const std::int64_t per_group = second.extents[0] / groups;
    const std::int64_t group = at[1] / second.extents[1], c = at[1] % second.extents[1];
    for (std::int64_t o = group * per_group; o < (group + 1) * per_group; ++o)
      for (std::int64_t oh = 0; oh < first.extents[2]; ++oh)
        for (std::int64_t ow = 0; ow < first.extents[3]; ++ow)
          for (std::int64_t y = 0; y < second.extents[2]; ++y)
            for (std::int64_t x = 0; x < second.extents[3]; ++x) {
              if (row(oh, y) != at[2] || column(ow, x) != at[3]) continue;
              add(element(first, {at[0], o, oh, ow}), element(second, {o, c, y, x}));
            }
  } else {
    const std::int64_t per_group = kernel_.space[0] / groups;
    const std::int64_t channel = at[0] / per_group * kernel_.space[1] + at[1];
    for (std::int64_t n = 0; n < second.extents[0]; ++n)
      for (std::int64_t oh = 0; oh < second.extents[2]; ++oh)
        for (std::int64_t ow = 0; ow < second.extents[3]; ++ow) {
          const std::int64_t h = row(oh, at[2]), w = column(ow, at[3]);
          if (h < 0 || w < 0 || h >= first.extents[2] || w >= first.extents[3]) continue;
          add(element(first, {n, channel, h, w}), element(second, {n, at[0], oh, ow}));
        }
  }
  return sum;
}

inline Number Interpreter::pool(const Extents& at) {
  const auto& a = kernel_.attributes;
  const Operand& input = kernel_.core_inputs[0];
  const bool is_average =
      kernel_.kind == CoreKind::kAvgPool2d || kernel_.kind == CoreKind::kAvgPool2dGradient;
  const std::int64_t dilation_h = is_average ? 1 : a[6], dilation_w = is_average ? 1 : a[7];
  const std::int64_t height =
      kernel_.kind == CoreKind::kAvgPool2dGradient ? kernel_.space[2] : input.extents[2];
  const std::int64_t width =
      kernel_.kind == CoreKind::kAvgPool2dGradient ? kernel_.space[3] : input.extents[3];
  const auto divisor = [&](std::int64_t oh, std::int64_t ow) {
    std::int64_t count = 0;
    for (std::int64_t y = 0; y < a[0]; ++y)
      for (std::int64_t x = 0; x < a[1]; ++x) {
        const std::int64_t h = oh * a[2] - a[4] + y, w = ow * a[3] - a[5] + x;
        if (a[6] != 0) {
          count += h < height + a[4] && w < width + a[5];
        } else {
          count += h >= 0 && w >= 0 && h < height && w < width;
        }
      }
    return static_cast<double>(count);
  };
  if (kernel_.kind == CoreKind::kMaxPool2dGradient) {
    Number sum;
    const Operand& indices = kernel_.core_inputs[1];
    for (std::int64_t oh = 0; oh < input.extents[2]; ++oh)
      for (std::int64_t ow = 0; ow < input.extents[3]; ++ow) {
        const std::int64_t winner = element(indices, {at[0], at[1], oh, ow}).i;
        if (winner != at[2] * kernel_.space[3] + at[3]) continue;
        sum.f += element(input, {at[0], at[1], oh, ow}).f;
      }
    return sum;
  }
  if (kernel_.kind == CoreKind::kAvgPool2dGradient) {
    Number sum;
    for (std::int64_t oh = 0; oh < input.extents[2]; ++oh)
      for (std::int64_t ow = 0; ow < input.extents[3]; ++ow) {
        const std::int64_t y = at[2] - (oh * a[2] - a[4]), x = at[3] - (ow * a[3] - a[5]);
        if (y < 0 || x < 0 || y >= a[0] || x >= a[1]) continue;
        sum.f += element(input, {at[0], at[1], oh, ow}).f / divisor(oh, ow);
      }
    return sum;
  }
  Number best, sum;
  std::int64_t winner = 0;
  bool found = false;
  for (std::int64_t y = 0; y < a[0]; ++y)
    for (std::int64_t x = 0; x < a[1]; ++x) {
      const std::int64_t h = at[2] * a[2] - a[4] + y * dilation_h;
      const std::int64_t w = at[3] * a[3] - a[5] + x * dilation_w;
      if (h < 0 || w < 0 || h >= height || w >= width) continue;
      const Number value = element(input, {at[0], at[1], h, w});
      sum.f += value.f;
      const bool wins = ops::is_floating(ops::compute_type(input.dtype))
                            ? !std::isnan(best.f) && (std::isnan(value.f) || value.f > best.f)
                            : value.i > best.i;
      if (!found || wins) {
        best = value;
        winner = h * width + w;
        found = true;
      }
    }
  if (kernel_.kind == CoreKind::kAvgPool2d) return {sum.f / divisor(at[2], at[3]), 0};
  return kernel_.kind == CoreKind::kMaxPool2d ? best : Number{0, winner};
}

}  // namespace vkml::oracle
