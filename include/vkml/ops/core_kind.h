// Structural operators that have a kernel core of their own. Their attributes and shapes are
// documented beside dispatch::KernelKind, which lists the same cores in the same order.
#pragma once

#include "vkml/graph/op_info.h"

namespace vkml::ops {

enum class CoreKind : int {
  kMatmul,
  kConv2d,
  kConv2dInputGradient,
  kConv2dWeightGradient,
  kMaxPool2d,
  kMaxPool2dIndices,
  kMaxPool2dGradient,
  kAvgPool2d,
  kAvgPool2dGradient,
  kGather,
  kScatter,
  kScan,
  kArgSort,
  kSearchSorted,
};

/// Whether the operator checks indices at run time and may raise IndexError: the one list of those.
inline bool checks_indices(const graph::OpInfo& op) {
  return op.family == graph::Family::kCheck ||
         (op.family == graph::Family::kCore && (op.id == static_cast<int>(CoreKind::kGather) ||
                                                op.id == static_cast<int>(CoreKind::kScatter)));
}

/// What kScatter does with the elements of the source that meet at one element of the base.
enum class ScatterKind : int { kAdd, kReplace, kMultiply, kMax, kMin };

/// What kScan carries along its axis.
enum class ScanKind : int { kSum, kProduct, kLinear, kArgMax, kArgMin };

}  // namespace vkml::ops
