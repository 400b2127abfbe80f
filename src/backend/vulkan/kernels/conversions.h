// Between the bits of the narrow storage types and the types that arithmetic exists in. Written on
// bits, save where the device's float controls promise the same: otherwise Vulkan leaves the
// rounding of conversions, and their denormals, open.
#pragma once

#include "spirv/builder.h"
#include "vkml/core/dtype.h"
#include "vkml/ops/scalar_program.h"

namespace vkml::vulkan {

/// The SPIR-V type in which values of a program's type are held.
spirv::Type value_type(ops::ScalarType type, int components = 1);

/// From the low 16 bits of u32 to f32, and back, rounding to nearest even.
spirv::Value f16_to_f32(spirv::Value bits);
spirv::Value f32_to_f16(spirv::Value value);
spirv::Value bf16_to_f32(spirv::Value bits);
spirv::Value f32_to_bf16(spirv::Value value);

/// From stored bits of a type of at most 4 bytes, in the low bits of u32, to the value, and back.
spirv::Value value_of_bits(DType dtype, spirv::Value bits);
spirv::Value bits_of_value(DType dtype, spirv::Value value);

}  // namespace vkml::vulkan
