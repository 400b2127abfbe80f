// Hand-built kernels that walk along lines: reductions by scatter, scans, sorting, searching.
#pragma once

#include <algorithm>

#include "kernel_core_cases.h"

namespace vkml::oracle {

inline std::vector<KernelCase> scatter_cases() {
  using ops::ScatterKind;
  std::vector<KernelCase> cases;
  for (const ScatterKind kind : {ScatterKind::kAdd, ScatterKind::kReplace, ScatterKind::kMultiply,
                                 ScatterKind::kMax, ScatterKind::kMin}) {
    for (const bool is_shared : {false, true}) {
      cases.push_back(scatter_case(DType::kI32, 1, is_shared, {3, 4, 5, 6}, 7, kind));
      // So many that they are sorted first.
      cases.push_back(scatter_case(DType::kI64, 2, is_shared, {2, 1, 90, 9}, 700, kind));
    }
    cases.push_back(scatter_case(DType::kI32, 3, false, {1, 2, 3, 40}, 100, kind, DType::kI64));
    cases.push_back(scatter_case(DType::kI32, 3, false, {1, 2, 3, 40}, 100, kind, DType::kI32));
  }
  return cases;
}

/// NaN, infinities, both zeros and repeated values at some places of the first operand.
inline std::function<void(Memory&)> with_special_values(DType dtype) {
  return [dtype](Memory& memory) {
    const double specials[] = {std::nan(""), 1.0 / 0.0, -1.0 / 0.0, 0.0, -0.0, 1.0};
    auto& bytes = memory.buffers[0];
    const auto count = static_cast<std::int64_t>(bytes.size() / size_of(dtype));
    for (std::int64_t i = 0; i < count; i += 3) {
      const double value = specials[static_cast<std::size_t>(i / 3 % 6)];
      write_element(bytes, dtype, i, {value, i % 5});
    }
  };
}

inline KernelCase scan_case(ops::ScanKind kind, DType dtype, const Extents& space,
                            std::size_t axis) {
  using ops::ScanKind;
  KernelBuilder b(CoreKind::kScan, space);
  b.kernel.attributes = {static_cast<std::int64_t>(axis), static_cast<std::int64_t>(kind)};
  b.kernel.core_inputs = {b.dense(dtype, space)};
  if (kind == ScanKind::kLinear) b.kernel.core_inputs.push_back(b.dense(dtype, space));
  const bool gives_position = kind == ScanKind::kArgMax || kind == ScanKind::kArgMin;
  const DType result = gives_position ? DType::kI32 : dtype;
  b.result(result, b.core(ops::compute_type(result)));
  const auto prepare = [dtype](Memory& memory) {
    // Factors within [-1, 1], so that products stay in range.
    auto& bytes = memory.buffers[0];
    const auto count = static_cast<std::int64_t>(bytes.size() / size_of(dtype));
    for (std::int64_t i = 0; i < count; ++i) {
      Number value = read_element(bytes, dtype, i);
      value.f /= 4;
      write_element(bytes, dtype, i, value);
    }
  };
  const bool multiplies = kind == ScanKind::kProduct || kind == ScanKind::kLinear;
  return {"scan", b.finish(), gives_position ? 0 : 1e-5, gives_position ? 0 : 1e-4,
          gives_position ? with_special_values(dtype)
          : multiplies   ? std::function<void(Memory&)>(prepare)
                         : nullptr};
}

inline std::vector<KernelCase> scan_cases() {
  using ops::ScanKind;
  std::vector<KernelCase> cases;
  for (const ScanKind kind : {ScanKind::kSum, ScanKind::kProduct, ScanKind::kLinear,
                              ScanKind::kArgMax, ScanKind::kArgMin}) {
    for (std::size_t axis = 0; axis < kMaxDims; ++axis) {
      cases.push_back(scan_case(kind, DType::kF32, {2, 3, 4, 5}, axis));
    }
    cases.push_back(scan_case(kind, DType::kF32, {1, 1, 2, 700}, 3));
    for (const DType dtype : {DType::kI32, DType::kI64, DType::kF64}) {
      cases.push_back(scan_case(kind, dtype, {1, 2, 9, 3}, 2));
    }
  }
  return cases;
}

inline KernelCase sort_case(DType dtype, const Extents& space, std::size_t axis,
                            bool is_descending) {
  KernelBuilder b(CoreKind::kArgSort, space);
  b.kernel.attributes = {static_cast<std::int64_t>(axis), is_descending ? 1 : 0};
  b.kernel.core_inputs = {b.dense(dtype, space)};
  b.result(DType::kI32, b.core(ScalarType::kI32));
  return {"argsort", b.finish(), 0, 0, with_special_values(dtype)};
}

inline std::vector<KernelCase> sort_cases() {
  std::vector<KernelCase> cases;
  for (const bool is_descending : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kU8,
                              DType::kI32, DType::kI64}) {
      cases.push_back(sort_case(dtype, {1, 2, 3, 40}, 3, is_descending));
    }
    for (const std::int64_t length : {1, 2, 15, 16, 17, 33, 100, 257}) {
      cases.push_back(sort_case(DType::kF32, {1, 2, length, 2}, 2, is_descending));
    }
  }
  return cases;
}

inline KernelCase search_case(DType dtype, bool right, std::int64_t length) {
  const Extents space{1, 2, 3, 20};
  KernelBuilder b(CoreKind::kSearchSorted, space);
  b.kernel.attributes = {right ? 1 : 0};
  const Operand sorted = b.dense(dtype, {1, 2, 3, length});
  b.kernel.core_inputs = {sorted, b.dense(dtype, space)};
  b.result(DType::kI32, b.core(ScalarType::kI32));
  const auto prepare = [sorted, dtype, length](Memory& memory) {
    with_special_values(dtype)(memory);
    auto& bytes = memory.buffers[0];
    for (std::int64_t line = 0; line < 6; ++line) {
      std::vector<Number> values;
      for (std::int64_t i = 0; i < length; ++i) {
        values.push_back(read_element(bytes, dtype, line * length + i));
      }
      std::ranges::stable_sort(values, [&](Number x, Number y) { return is_below(sorted, x, y); });
      for (std::int64_t i = 0; i < length; ++i) {
        write_element(bytes, dtype, line * length + i, values[static_cast<std::size_t>(i)]);
      }
    }
  };
  return {"searchsorted", b.finish(), 0, 0, prepare};
}

inline std::vector<KernelCase> search_cases() {
  std::vector<KernelCase> cases;
  for (const bool right : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
      cases.push_back(search_case(dtype, right, 13));
    }
    cases.push_back(search_case(DType::kF32, right, 1));
    cases.push_back(search_case(DType::kF32, right, 200));
  }
  return cases;
}

}  // namespace vkml::oracle
