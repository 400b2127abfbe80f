// What a kernel of a plan does, by arithmetic: its name, and its ideal traffic and operations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vkml/core/dtype.h"
#include "vkml/core/shape.h"

namespace vkml::dispatch {

struct ExecutionGraph;
struct Kernel;

struct KernelCost {
  std::string name;                              // as explain() prints it
  std::array<std::int64_t, kMaxDims> extents{};  // of the iteration space
  /// Each element of memory that the kernel needs, once.
  std::int64_t bytes_read = 0, bytes_written = 0;
  /// Floating-point additions, subtractions, products, quotients, square roots, minima and maxima,
  /// a fused multiply-add being two; exp, tanh and so on count as what they are made of.
  double flops = 0;
  /// Of floating-point matrix products, convolutions and attention: the dtype of their operands.
  std::optional<DType> product;
};

/// "matmul add+relu": the core, then the operators that were fused into the kernel.
std::string name_of(const Kernel& kernel, const ExecutionGraph& graph);

KernelCost cost_of(const Kernel& kernel, const ExecutionGraph& graph);

/// Terms that the kernel's core combines over all of its results: for a product or a convolution
/// its multiply-adds, for attention those of all its products, for pooling the elements of all
/// windows. 0 of other cores.
double core_terms(const Kernel& kernel);

}  // namespace vkml::dispatch
