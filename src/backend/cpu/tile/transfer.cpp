#include "tile/transfer.h"

#include <algorithm>
#include <cstring>

#include "run_context.h"
#include "tile/loops.h"
#include "tile/region_program.h"
#include "vkml/core/half.h"

namespace vkml::cpu {
namespace {

using ConvertStrided = void (*)(void* target, const void* source, std::int64_t n,
                                std::int64_t stride);

// Memory type M and register type R of one dtype, with the conversions between their elements.
template <DType kDType>
struct Element;
template <>
struct Element<DType::kBool> {
  using M = std::uint8_t;
  using R = std::int32_t;
  static R load(M m) { return m != 0 ? -1 : 0; }
  static M store(R r) { return static_cast<M>(r & 1); }
};
template <>
struct Element<DType::kU8> {
  using M = std::uint8_t;
  using R = std::int32_t;
  static R load(M m) { return m; }
  static M store(R r) { return static_cast<M>(r); }
};
template <>
struct Element<DType::kF16> {
  using M = std::uint16_t;
  using R = float;
  static R load(M m) { return f16_to_f32(m); }
  static M store(R r) { return f32_to_f16(r); }
};
template <>
struct Element<DType::kBF16> {
  using M = std::uint16_t;
  using R = float;
  static R load(M m) { return bf16_to_f32(m); }
  static M store(R r) { return f32_to_bf16(r); }
};
// Elements whose register holds the same bits.
template <typename T>
struct SameElement {
  using M = T;
  using R = T;
  static R load(M m) { return m; }
  static M store(R r) { return r; }
};
template <>
struct Element<DType::kI32> : SameElement<std::int32_t> {};
template <>
struct Element<DType::kI64> : SameElement<std::int64_t> {};
template <>
struct Element<DType::kF32> : SameElement<float> {};
template <>
struct Element<DType::kF64> : SameElement<double> {};

template <DType kDType>
void load_strided(void* target, const void* source, std::int64_t n, std::int64_t stride) {
  using E = Element<kDType>;
  auto* r = static_cast<typename E::R*>(target);
  const auto* m = static_cast<const typename E::M*>(source);
  for (std::int64_t i = 0; i < n; ++i) r[i] = E::load(m[i * stride]);
}
template <DType kDType>
void store_strided(void* target, const void* source, std::int64_t n, std::int64_t stride) {
  using E = Element<kDType>;
  auto* m = static_cast<typename E::M*>(target);
  const auto* r = static_cast<const typename E::R*>(source);
  for (std::int64_t i = 0; i < n; ++i) m[i * stride] = E::store(r[i]);
}

// In the order of DType.
constexpr ConvertStrided kLoadStrided[] = {load_strided<DType::kBool>, load_strided<DType::kU8>,
                                           load_strided<DType::kI32>,  load_strided<DType::kI64>,
                                           load_strided<DType::kF16>,  load_strided<DType::kBF16>,
                                           load_strided<DType::kF32>,  load_strided<DType::kF64>};
constexpr ConvertStrided kStoreStrided[] = {
    store_strided<DType::kBool>, store_strided<DType::kU8>,  store_strided<DType::kI32>,
    store_strided<DType::kI64>,  store_strided<DType::kF16>, store_strided<DType::kBF16>,
    store_strided<DType::kF32>,  store_strided<DType::kF64>};
static_assert(std::size(kLoadStrided) == kDTypeCount && std::size(kStoreStrided) == kDTypeCount);

// The axes of a window along which there is more than one element, merged where they are dense.
struct Walk {
  struct Dimension {
    std::int64_t size = 1;
    std::int64_t stride = 0;
  };
  std::array<Dimension, kMaxDims> dimension{};
  std::size_t rank = 0;

  Walk(const Window& window, const PlannedOperand& operand) {
    for (std::size_t i = 0; i < window.size.size(); ++i) {
      if (window.size[i] == 1) continue;
      const Dimension next{window.size[i], operand.strides[i]};
      if (rank > 0 && dimension[rank - 1].stride == next.stride * next.size) {
        dimension[rank - 1] = {dimension[rank - 1].size * next.size, next.stride};
      } else {
        dimension[rank++] = next;
      }
    }
    if (rank == 0) dimension[rank++] = {1, 1};
  }
};

// Calls body(element of the register, element of memory) for each innermost part of the walk: the
// last `parts` dimensions.
template <typename Body>
void for_each_outer(const Walk& walk, std::size_t inner_rank, Body&& body) {
  const std::size_t outer = walk.rank - inner_rank;
  std::int64_t inner_size = 1;
  for (std::size_t i = outer; i < walk.rank; ++i) inner_size *= walk.dimension[i].size;
  std::array<std::int64_t, kMaxDims> at{};
  std::int64_t in_register = 0;
  std::int64_t in_memory = 0;
  for (;;) {
    body(in_register, in_memory);
    in_register += inner_size;
    std::size_t i = outer;
    for (; i > 0; --i) {
      const Walk::Dimension& dimension = walk.dimension[i - 1];
      in_memory += dimension.stride;
      if (++at[i - 1] < dimension.size) break;
      in_memory -= dimension.stride * dimension.size;
      at[i - 1] = 0;
    }
    if (i == 0) return;
  }
}

template <typename T>
void fill(std::byte* target, const std::byte* value, std::int64_t n) {
  T copy;
  std::memcpy(&copy, value, sizeof(T));
  std::fill_n(reinterpret_cast<T*>(target), n, copy);
}
void fill(std::byte* target, const std::byte* value, std::size_t bytes, std::int64_t n) {
  if (bytes == 4) {
    fill<std::uint32_t>(target, value, n);
  } else {
    fill<std::uint64_t>(target, value, n);
  }
}

std::size_t register_bytes_of(DType dtype) { return register_bytes(ops::compute_type(dtype)); }

// Memory runs along the window's rows: reads whole columns, writes them across the register.
template <typename T>
void load_transposed(std::byte* target, const std::byte* source, DType dtype, ConvertRow load,
                     std::int64_t m, std::int64_t n, std::int64_t column_stride) {
  constexpr std::int64_t kPiece = 64;
  alignas(64) std::array<T, kPiece> column;
  auto* tile = reinterpret_cast<T*>(target);
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (std::int64_t begin = 0; begin < m; begin += kPiece) {
    const std::int64_t rows = std::min(kPiece, m - begin);
    for (std::int64_t j = 0; j < n; ++j) {
      load(column.data(), source + (begin + j * column_stride) * bytes,
           static_cast<std::size_t>(rows));
      for (std::int64_t i = 0; i < rows; ++i) {
        tile[(begin + i) * n + j] = column[static_cast<std::size_t>(i)];
      }
    }
  }
}

std::byte* address(const PlannedOperand& operand, const Frame& frame) {
  return frame.run->buffers[operand.buffer] +
         operand.position(frame.window.start) * static_cast<std::int64_t>(size_of(operand.dtype));
}

const PlannedOperand& load_of(const Step& step, const Frame& frame) {
  return frame.program->plan.loads[static_cast<std::size_t>(step.immediate)];
}
const PlannedOperand& store_of(const Step& step, const Frame& frame) {
  return frame.program->plan.stores[static_cast<std::size_t>(step.immediate)];
}

}  // namespace

void load_elements(void* target, const std::byte* source, DType dtype, std::int64_t n,
                   std::int64_t stride) {
  if (stride == 1) {
    load_row(dtype)(target, source, static_cast<std::size_t>(n));
  } else {
    kLoadStrided[static_cast<std::size_t>(dtype)](target, source, n, stride);
  }
}

void store_elements(std::byte* target, const void* source, DType dtype, std::int64_t n) {
  store_row(dtype)(target, source, static_cast<std::size_t>(n));
}

void load_window(const Step& step, const Frame& frame) {
  const PlannedOperand& operand = load_of(step, frame);
  const Walk walk(frame.window, operand);
  const std::byte* source = address(operand, frame);
  std::byte* target = frame.slots[step.result];
  const auto memory_bytes = static_cast<std::int64_t>(size_of(operand.dtype));
  const auto bytes = static_cast<std::int64_t>(register_bytes_of(operand.dtype));
  const Walk::Dimension inner = walk.dimension[walk.rank - 1];
  const ConvertRow load = load_row(operand.dtype);
  if (inner.stride == 1) {
    for_each_outer(walk, 1, [&](std::int64_t in_register, std::int64_t in_memory) {
      load(target + in_register * bytes, source + in_memory * memory_bytes,
           static_cast<std::size_t>(inner.size));
    });
  } else if (inner.stride == 0) {
    for_each_outer(walk, 1, [&](std::int64_t in_register, std::int64_t in_memory) {
      alignas(8) std::array<std::byte, 8> value;
      load(value.data(), source + in_memory * memory_bytes, 1);
      fill(target + in_register * bytes, value.data(), static_cast<std::size_t>(bytes), inner.size);
    });
  } else if (walk.rank >= 2 && walk.dimension[walk.rank - 2].stride == 1) {
    const std::int64_t m = walk.dimension[walk.rank - 2].size;
    for_each_outer(walk, 2, [&](std::int64_t in_register, std::int64_t in_memory) {
      const auto transpose =
          bytes == 4 ? load_transposed<std::uint32_t> : load_transposed<std::uint64_t>;
      transpose(target + in_register * bytes, source + in_memory * memory_bytes, operand.dtype,
                load, m, inner.size, inner.stride);
    });
  } else {
    const ConvertStrided strided = kLoadStrided[static_cast<std::size_t>(operand.dtype)];
    for_each_outer(walk, 1, [&](std::int64_t in_register, std::int64_t in_memory) {
      strided(target + in_register * bytes, source + in_memory * memory_bytes, inner.size,
              inner.stride);
    });
  }
}

void store_window(const Step& step, const Frame& frame) {
  const PlannedOperand& operand = store_of(step, frame);
  const Walk walk(frame.window, operand);
  const std::byte* source = frame.slots[step.source[0]];
  std::byte* target = address(operand, frame);
  const auto memory_bytes = static_cast<std::int64_t>(size_of(operand.dtype));
  const auto bytes = static_cast<std::int64_t>(register_bytes_of(operand.dtype));
  const Walk::Dimension inner = walk.dimension[walk.rank - 1];
  const ConvertRow store = store_row(operand.dtype);
  const ConvertStrided strided = kStoreStrided[static_cast<std::size_t>(operand.dtype)];
  for_each_outer(walk, 1, [&](std::int64_t in_register, std::int64_t in_memory) {
    if (inner.stride == 1) {
      store(target + in_memory * memory_bytes, source + in_register * bytes,
            static_cast<std::size_t>(inner.size));
    } else {
      strided(target + in_memory * memory_bytes, source + in_register * bytes, inner.size,
              inner.stride);
    }
  });
}

void load_splat(const Step& step, const Frame& frame) {
  const PlannedOperand& operand = load_of(step, frame);
  alignas(8) std::array<std::byte, 8> value;
  load_row(operand.dtype)(value.data(), address(operand, frame), 1);
  fill(frame.slots[step.result], value.data(), register_bytes_of(operand.dtype), kLaneMultiple);
}

void aim_load(const Step& step, const Frame& frame) {
  const PlannedOperand& operand = load_of(step, frame);
  std::byte* source = address(operand, frame);
  if (frame.exact != frame.count) {
    std::byte* copy = frame.memory + frame.program->slots[step.result].offset;
    std::memcpy(copy, source, frame.exact * size_of(operand.dtype));
    source = copy;
  }
  frame.slots[step.result] = source;
}

void aim_store(const Step& step, const Frame& frame) {
  frame.slots[step.result] = frame.exact == frame.count
                                 ? address(store_of(step, frame), frame)
                                 : frame.memory + frame.program->slots[step.result].offset;
}

void finish_store(const Step& step, const Frame& frame) {
  if (frame.exact == frame.count) return;
  const PlannedOperand& operand = store_of(step, frame);
  std::memcpy(address(operand, frame), frame.slots[step.source[0]],
              frame.exact * size_of(operand.dtype));
}

template <std::size_t kBytes>
void load_scalar(const Step& step, const Frame& frame) {
  std::uint64_t bits = frame.run->scalars[step.immediate];
  fill(frame.slots[step.result], reinterpret_cast<const std::byte*>(&bits), kBytes, kLaneMultiple);
}
template void load_scalar<4>(const Step&, const Frame&);
template void load_scalar<8>(const Step&, const Frame&);

void load_boolean_scalar(const Step& step, const Frame& frame) {
  const std::int32_t mask = frame.run->scalars[step.immediate] != 0 ? -1 : 0;
  std::fill_n(result_of<std::int32_t>(step, frame), kLaneMultiple, mask);
}

template <typename T>
void iota(const Step& step, const Frame& frame) {
  const auto axis = static_cast<std::size_t>(step.immediate);
  const Window& window = frame.window;
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= window.size[i];
  for (std::size_t i = axis + 1; i < window.size.size(); ++i) inner *= window.size[i];
  T* r = result_of<T>(step, frame);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t k = 0; k < window.size[axis]; ++k, r += inner) {
      std::fill_n(r, inner, static_cast<T>(window.start[axis] + k));
    }
  }
  // A value that does not advance is read as a vector of copies.
  if (frame.exact == 1) std::fill_n(r, kLaneMultiple - 1, static_cast<T>(window.start[axis]));
}
template void iota<std::int32_t>(const Step&, const Frame&);
template void iota<std::int64_t>(const Step&, const Frame&);

template <std::size_t kBytes>
void expand_horizontal(const Step& step, const Frame& frame) {
  const std::byte* source = frame.slots[step.source[0]];
  std::byte* target = frame.slots[step.result];
  const auto bytes = static_cast<std::int64_t>(kBytes);
  for (std::int64_t row = 0; row < frame.rows; ++row) {
    fill(target + row * frame.length * bytes, source + row * bytes, kBytes, frame.length);
  }
}
template void expand_horizontal<4>(const Step&, const Frame&);
template void expand_horizontal<8>(const Step&, const Frame&);

template <std::size_t kBytes>
void expand_vertical(const Step& step, const Frame& frame) {
  const std::byte* source = frame.slots[step.source[0]];
  std::byte* target = frame.slots[step.result];
  const std::size_t bytes = static_cast<std::size_t>(frame.rows) * kBytes;
  for (std::int64_t i = 0; i < frame.length; ++i) {
    std::memcpy(target + static_cast<std::size_t>(i) * bytes, source, bytes);
  }
}
template void expand_vertical<4>(const Step&, const Frame&);
template void expand_vertical<8>(const Step&, const Frame&);

template <typename T>
void check_index(const Step& step, const Frame& frame) {
  const T* index = source_of<T>(step, frame, 0);
  const T* extent = source_of<T>(step, frame, 1);
  T* r = result_of<T>(step, frame);
  for (std::size_t i = 0; i < frame.count; ++i) {
    const T at = index[i & step.mask[0]];
    const T bound = extent[i & step.mask[1]];
    if (i < frame.exact && (at < 0 || at >= bound)) {
      frame.run->status->report(
          {step.immediate, at,
           frame.ordinal * frame.program->plan.tile_elements() + static_cast<std::int64_t>(i)});
    }
    r[i] = std::max<T>(0, std::min<T>(at, static_cast<T>(bound - 1)));
  }
}
template void check_index<std::int32_t>(const Step&, const Frame&);
template void check_index<std::int64_t>(const Step&, const Frame&);

}  // namespace vkml::cpu
