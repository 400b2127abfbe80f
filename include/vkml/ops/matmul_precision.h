// How exact matrix products of float32 are: a setting of the process.
#pragma once

#include <cstdint>

namespace vkml::graph {

/// How f32 products may be rounded on the way: within f32's own rounding of each sum, or to about
/// 16 bits, where the device is faster for it. Other types do not change.
enum class MatmulPrecision : std::uint8_t { kHighest, kHigh };
/// For products recorded from now on, in every thread; gradients are as precise as their product.
void set_matmul_precision(MatmulPrecision precision);
MatmulPrecision matmul_precision();

}  // namespace vkml::graph
