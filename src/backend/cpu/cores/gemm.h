// Matrix product by packed panels: the plain blocked product that serves every type and stride.
#pragma once

#include <cstdint>

#include "vkml/core/dtype.h"

namespace vkml::cpu {

/// A matrix of any strides, in elements of `dtype`.
struct MatrixView {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

/// f32, f64, i32 or i64: the type that sums are kept in.
struct GemmTarget {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
  bool accumulates = false;  // adds to what is there
};

/// c (m, n) = a (m, k) @ b (k, n). `parallel`: may use every thread.
void gemm(const MatrixView& a, const MatrixView& b, const GemmTarget& c, std::int64_t m,
          std::int64_t n, std::int64_t k, bool parallel);

}  // namespace vkml::cpu
