// How elements become what matrix units multiply: 16-bit ones as they are, f32 as bf16 parts that
// add up to it, eight of them in a vector of 16 bytes.
#pragma once

#include <array>
#include <vector>

#include "spirv/matrix.h"
#include "vkml/core/dtype.h"

namespace vkml::vulkan {

inline const spirv::Type kFloat4 = spirv::with_components(spirv::kFloat32, 4);

/// The edge of the matrices.
inline constexpr std::uint32_t kMatrixEdge = 16;
inline constexpr spirv::MatrixType kMatrixSums{
    spirv::MatrixScalar::kF32, spirv::MatrixUse::kAccumulator, kMatrixEdge, kMatrixEdge};

/// What the matrix units multiply.
struct MatrixFormat {
  spirv::MatrixScalar scalar = spirv::MatrixScalar::kBF16;
  std::uint32_t parts = 1;    // of an element: more than 1 for f32
  DType dtype = DType::kF32;  // in memory
};
MatrixFormat matrix_format(DType dtype, std::uint32_t parts);

using EightFloats = std::array<spirv::Value, 2>;  // vectors of four
using MatrixWords = std::vector<spirv::Value>;    // one vector of eight elements for each part

/// Cuts f32 into bf16 parts, the leading bits first, and leaves in `values` what the parts miss.
/// Three parts hold all 24 bits; the last of fewer is rounded.
MatrixWords cut(EightFloats& values, std::uint32_t parts);
/// The same with 0 for elements that are not finite.
MatrixWords cut_finite(const EightFloats& values, std::uint32_t parts);
/// Whether an element was not finite, from what a cut left, or a sum of such rests.
spirv::Value is_special(const EightFloats& rests);
/// What cut_finite() leaves out, for products of bf16 that follow IEEE 754: in one part the
/// elements that are not finite, in the other the signs (-1, 0, 1) of all; in which one depends on
/// the use.
MatrixWords special_parts(spirv::MatrixUse use, const EightFloats& values);

/// The products of the parts i + j < n of n, added from zero, the smallest first. The left operands
/// are listed by part, then by row; one result for each row.
std::vector<spirv::Matrix> products_of_parts(const std::vector<std::vector<spirv::Matrix>>& left,
                                             const std::vector<spirv::Matrix>& right);

/// Of four words that hold 16 bits each, the lower halves as two words.
std::array<spirv::Value, 2> lower_halves(const spirv::Value& words);

}  // namespace vkml::vulkan
