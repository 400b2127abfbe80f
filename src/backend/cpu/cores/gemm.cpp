// Blocks of A (kRows x kDepth) and B (kDepth x columns) are copied into panels in which the inner
// loop reads memory in order; the copy also takes any stride and storage type. The inner loop keeps
// a tile of kTileRows x two vectors of C in registers. Bound: arithmetic, once k is past a few
// tens.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cores/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "cores/gemm.h"
#include "scratch.h"
#include "threads.h"
#include "vkml/core/error.h"
#include "vkml/core/half.h"

#ifndef VKML_BACKEND_CPU_CORES_GEMM_ONCE
#define VKML_BACKEND_CPU_CORES_GEMM_ONCE
namespace vkml::cpu {

// A panel of A fits the second-level cache, one of B the third; a tile's share of both the first.
inline constexpr std::int64_t kDepth = 256;
inline constexpr std::int64_t kRows = 96;
inline constexpr std::int64_t kColumns = 2048;

struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

// Reads one element of any storage type as T.
template <typename T>
using ReadElement = T (*)(const std::byte* memory);

}  // namespace vkml::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr std::int64_t kTileRows = 12;  // 32 vector registers
#else
inline constexpr std::int64_t kTileRows = 6;
#endif
inline constexpr std::int64_t kTileVectors = 2;

template <typename T>
using D = hn::CappedTag<T, 16>;

template <typename T>
std::int64_t tile_columns() {
  return kTileVectors * static_cast<std::int64_t>(hn::Lanes(D<T>()));
}

template <class V>
HWY_INLINE V multiply_add(V a, V b, V c) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::MulAdd(a, b, c);
  } else {
    return hn::Add(hn::Mul(a, b), c);
  }
}

// acc (kTileRows x tile_columns) = panel of a @ panel of b.
template <typename T>
void multiply_tile(const T* a, const T* b, std::int64_t k, T* out) {
  const D<T> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D<T>> acc[kTileRows][kTileVectors];
  for (auto& row : acc) {
    for (auto& vector : row) vector = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < k; ++p) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    b += 2 * lanes;
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      const auto value = hn::Set(d, a[i]);
      acc[i][0] = multiply_add(value, b0, acc[i][0]);
      acc[i][1] = multiply_add(value, b1, acc[i][1]);
    }
    a += kTileRows;
  }
  for (const auto& row : acc) {
    hn::StoreU(row[0], d, out);
    hn::StoreU(row[1], d, out + lanes);
    out += 2 * lanes;
  }
}

// Panels of `width` rows (or columns): element p of row i at panel[p * width + i], zeros past
// `count`.
template <typename T>
void pack(T* panel, const MatrixView& view, ReadElement<T> read, std::int64_t along_stride,
          std::int64_t depth_stride, std::int64_t count, std::int64_t depth, std::int64_t width) {
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  const bool plain =
      size_of(view.dtype) == sizeof(T) && is_floating(view.dtype) == std::is_floating_point_v<T>;
  for (std::int64_t begin = 0; begin < count; begin += width, panel += depth * width) {
    const std::int64_t valid = std::min(width, count - begin);
    if (valid < width) std::fill_n(panel, depth * width, T{0});
    const std::byte* source = view.data + begin * along_stride * bytes;
    if (plain && along_stride == 1) {
      for (std::int64_t p = 0; p < depth; ++p) {
        std::memcpy(panel + p * width, source + p * depth_stride * bytes,
                    static_cast<std::size_t>(valid) * sizeof(T));
      }
    } else if (plain) {
      const T* typed = reinterpret_cast<const T*>(source);
      for (std::int64_t i = 0; i < valid; ++i) {
        for (std::int64_t p = 0; p < depth; ++p) {
          panel[p * width + i] = typed[i * along_stride + p * depth_stride];
        }
      }
    } else {
      for (std::int64_t i = 0; i < valid; ++i) {
        for (std::int64_t p = 0; p < depth; ++p) {
          panel[p * width + i] = read(source + (i * along_stride + p * depth_stride) * bytes);
        }
      }
    }
  }
}

// One block of C from packed panels; `first` replaces, later blocks of k add.
template <typename T>
void multiply_block(const T* packed_a, const T* packed_b, const GemmTarget& c, std::int64_t m,
                    std::int64_t n, std::int64_t k, bool first) {
  const std::int64_t columns = tile_columns<T>();
  alignas(64) T tile[static_cast<std::size_t>(kTileRows * kTileVectors) * 16];
  T* out = reinterpret_cast<T*>(c.data);
  for (std::int64_t j = 0; j < n; j += columns) {
    const std::int64_t valid_n = std::min(columns, n - j);
    for (std::int64_t i = 0; i < m; i += kTileRows) {
      const std::int64_t valid_m = std::min(kTileRows, m - i);
      multiply_tile<T>(packed_a + i * k, packed_b + j * k, k, tile);
      for (std::int64_t r = 0; r < valid_m; ++r) {
        T* row = out + (i + r) * c.row_stride + j * c.column_stride;
        const T* sum = tile + r * columns;
        for (std::int64_t q = 0; q < valid_n; ++q) {
          T& element = row[q * c.column_stride];
          element = first ? sum[q] : static_cast<T>(element + sum[q]);
        }
      }
    }
  }
}

template <typename T>
void gemm_serial(const MatrixView& a, const MatrixView& b, const GemmTarget& c,
                 const GemmShape& shape, ReadElement<T> read_a, ReadElement<T> read_b) {
  const auto bytes_a = static_cast<std::int64_t>(size_of(a.dtype));
  const auto bytes_b = static_cast<std::int64_t>(size_of(b.dtype));
  const auto padded = [](std::int64_t count, std::int64_t width) {
    return (count + width - 1) / width * width;
  };
  const std::int64_t depth = std::min(kDepth, shape.k);
  const std::int64_t columns = tile_columns<T>();
  const std::int64_t block_n = padded(std::min(kColumns, shape.n), columns);
  const std::int64_t block_m = padded(std::min(kRows, shape.m), kTileRows);
  T* packed_a = reinterpret_cast<T*>(thread_scratch(
      ScratchPurpose::kPanelA, static_cast<std::size_t>(block_m * depth) * sizeof(T)));
  T* packed_b = reinterpret_cast<T*>(thread_scratch(
      ScratchPurpose::kPanelB, static_cast<std::size_t>(block_n * depth) * sizeof(T)));
  for (std::int64_t j = 0; j < shape.n; j += kColumns) {
    const std::int64_t n = std::min(kColumns, shape.n - j);
    for (std::int64_t p = 0; p < shape.k; p += kDepth) {
      const std::int64_t k = std::min(kDepth, shape.k - p);
      MatrixView part_b = b;
      part_b.data += (p * b.row_stride + j * b.column_stride) * bytes_b;
      pack<T>(packed_b, part_b, read_b, b.column_stride, b.row_stride, n, k, columns);
      for (std::int64_t i = 0; i < shape.m; i += kRows) {
        const std::int64_t m = std::min(kRows, shape.m - i);
        MatrixView part_a = a;
        part_a.data += (i * a.row_stride + p * a.column_stride) * bytes_a;
        pack<T>(packed_a, part_a, read_a, a.row_stride, a.column_stride, m, k, kTileRows);
        GemmTarget part_c = c;
        part_c.data +=
            (i * c.row_stride + j * c.column_stride) * static_cast<std::int64_t>(sizeof(T));
        multiply_block<T>(packed_a, packed_b, part_c, m, n, k, p == 0 && !c.accumulates);
      }
    }
  }
}

void gemm_f32(const MatrixView& a, const MatrixView& b, const GemmTarget& c, const GemmShape& shape,
              ReadElement<float> read_a, ReadElement<float> read_b) {
  gemm_serial<float>(a, b, c, shape, read_a, read_b);
}
void gemm_f64(const MatrixView& a, const MatrixView& b, const GemmTarget& c, const GemmShape& shape,
              ReadElement<double> read_a, ReadElement<double> read_b) {
  gemm_serial<double>(a, b, c, shape, read_a, read_b);
}
void gemm_i32(const MatrixView& a, const MatrixView& b, const GemmTarget& c, const GemmShape& shape,
              ReadElement<std::int32_t> read_a, ReadElement<std::int32_t> read_b) {
  gemm_serial<std::int32_t>(a, b, c, shape, read_a, read_b);
}

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {
namespace {

template <typename M>
M read_memory(const std::byte* memory) {
  M value;
  std::memcpy(&value, memory, sizeof(M));
  return value;
}

template <typename T>
ReadElement<T> reader(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return [](const std::byte* m) { return static_cast<T>(read_memory<std::uint8_t>(m) != 0); };
    case DType::kU8:
      return [](const std::byte* m) { return static_cast<T>(read_memory<std::uint8_t>(m)); };
    case DType::kI32:
      return [](const std::byte* m) { return static_cast<T>(read_memory<std::int32_t>(m)); };
    case DType::kI64:
      return [](const std::byte* m) { return static_cast<T>(read_memory<std::int64_t>(m)); };
    case DType::kF16:
      return [](const std::byte* m) {
        return static_cast<T>(f16_to_f32(read_memory<std::uint16_t>(m)));
      };
    case DType::kBF16:
      return [](const std::byte* m) {
        return static_cast<T>(bf16_to_f32(read_memory<std::uint16_t>(m)));
      };
    case DType::kF32:
      return [](const std::byte* m) { return static_cast<T>(read_memory<float>(m)); };
    case DType::kF64:
      return [](const std::byte* m) { return static_cast<T>(read_memory<double>(m)); };
  }
  throw InternalError("unknown dtype");
}

// No vector unit multiplies 64-bit integers well.
void gemm_i64(const MatrixView& a, const MatrixView& b, const GemmTarget& c,
              const GemmShape& shape) {
  const auto read_a = reader<std::int64_t>(a.dtype);
  const auto read_b = reader<std::int64_t>(b.dtype);
  const auto bytes_a = static_cast<std::int64_t>(size_of(a.dtype));
  const auto bytes_b = static_cast<std::int64_t>(size_of(b.dtype));
  auto* out = reinterpret_cast<std::int64_t*>(c.data);
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      std::uint64_t sum = 0;
      for (std::int64_t p = 0; p < shape.k; ++p) {
        const std::int64_t x = read_a(a.data + (i * a.row_stride + p * a.column_stride) * bytes_a);
        const std::int64_t y = read_b(b.data + (p * b.row_stride + j * b.column_stride) * bytes_b);
        sum += static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y);
      }
      std::int64_t& element = out[i * c.row_stride + j * c.column_stride];
      if (c.accumulates) sum += static_cast<std::uint64_t>(element);
      element = static_cast<std::int64_t>(sum);
    }
  }
}

HWY_EXPORT(gemm_f32);
HWY_EXPORT(gemm_f64);
HWY_EXPORT(gemm_i32);

void gemm_part(const MatrixView& a, const MatrixView& b, const GemmTarget& c,
               const GemmShape& shape) {
  switch (c.dtype) {
    case DType::kF32:
      HWY_DYNAMIC_DISPATCH(gemm_f32)
      (a, b, c, shape, reader<float>(a.dtype), reader<float>(b.dtype));
      return;
    case DType::kF64:
      HWY_DYNAMIC_DISPATCH(gemm_f64)
      (a, b, c, shape, reader<double>(a.dtype), reader<double>(b.dtype));
      return;
    case DType::kI32:
      HWY_DYNAMIC_DISPATCH(gemm_i32)
      (a, b, c, shape, reader<std::int32_t>(a.dtype), reader<std::int32_t>(b.dtype));
      return;
    case DType::kI64:
      gemm_i64(a, b, c, shape);
      return;
    default:
      throw InternalError("a matrix product sums in f32, f64, i32 or i64");
  }
}

void clear(const GemmTarget& c, const GemmShape& shape) {
  const std::size_t bytes = size_of(c.dtype);
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      std::memset(
          c.data + (i * c.row_stride + j * c.column_stride) * static_cast<std::int64_t>(bytes), 0,
          bytes);
    }
  }
}

}  // namespace

void gemm(const MatrixView& a, const MatrixView& b, const GemmTarget& c, std::int64_t m,
          std::int64_t n, std::int64_t k, bool parallel) {
  if (k == 0) {
    if (c.accumulates) return;
    clear(c, {m, n, k});
    return;
  }
  // Each thread takes a band of the longer side, in units that keep tiles whole.
  constexpr std::int64_t kUnit = 48;
  constexpr double kNanosecondsPerProduct = 0.04;
  const bool by_rows = m >= n;
  const std::int64_t units = ((by_rows ? m : n) + kUnit - 1) / kUnit;
  const double cost = kNanosecondsPerProduct * static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(k);
  parallel_shares(
      units, parallel && worth_threads(cost), [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t first = begin * kUnit;
        const std::int64_t last = std::min(end * kUnit, by_rows ? m : n);
        MatrixView part_a = a;
        MatrixView part_b = b;
        GemmTarget part_c = c;
        const auto bytes_c = static_cast<std::int64_t>(size_of(c.dtype));
        if (by_rows) {
          part_a.data += first * a.row_stride * static_cast<std::int64_t>(size_of(a.dtype));
          part_c.data += first * c.row_stride * bytes_c;
          gemm_part(part_a, part_b, part_c, {last - first, n, k});
        } else {
          part_b.data += first * b.column_stride * static_cast<std::int64_t>(size_of(b.dtype));
          part_c.data += first * c.column_stride * bytes_c;
          gemm_part(part_a, part_b, part_c, {m, last - first, k});
        }
      });
}

}  // namespace vkml::cpu
#endif
