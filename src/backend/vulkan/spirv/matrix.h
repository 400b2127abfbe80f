// Cooperative matrices (SPV_KHR_cooperative_matrix): small matrices that a subgroup holds together
// and multiplies at once. Which elements one invocation holds is the device's own business: they
// come from shared memory and go back there, and what is done to one is done to all.
#pragma once

#include "spirv/builder.h"

namespace vkml::vulkan::spirv {

enum class MatrixScalar : std::uint8_t { kF16, kBF16, kF32 };
/// In A * B + C: what a matrix may be is part of its type.
enum class MatrixUse : std::uint8_t { kA, kB, kAccumulator };
enum class MatrixLayout : std::uint8_t { kRowMajor, kColumnMajor };

struct MatrixType {
  MatrixScalar scalar = MatrixScalar::kF32;
  MatrixUse use = MatrixUse::kAccumulator;
  std::uint32_t rows = 16, columns = 16;
};

/// The result of an instruction.
struct Matrix {
  Builder* builder = nullptr;
  Id id = 0;
  MatrixType type;
};

/// A function-local variable, held in registers.
class MatrixVariable {
 public:
  MatrixVariable(Builder& builder, MatrixType type);
  Matrix load() const;
  void store(Matrix value) const;
  /// Of f32: one of the elements that each invocation holds, by its number there.
  Value element(std::uint32_t number) const;
  void set_element(std::uint32_t number, Value value) const;

 private:
  Id element_pointer(std::uint32_t number) const;

  Builder* builder_;
  MatrixType type_;
  Id pointer_;
};

/// Every element `value`. Of f32 alone.
Matrix constant_matrix(Builder& builder, MatrixType type, float value);
Matrix zero_matrix(Builder& builder, MatrixType type);
/// Shared memory holds whole vectors of matrix elements: `first` and `stride` (between rows, or
/// columns of a column-major matrix) count those.
Matrix load_matrix(const SharedArray& memory, MatrixType type, Value first, std::uint32_t stride,
                   MatrixLayout layout);
/// Row-major.
void store_matrix(const SharedArray& memory, Matrix matrix, Value first, std::uint32_t stride);
/// a * b + sum. Devices add the products in an order, and with a rounding, of their own.
Matrix multiply_add(Matrix a, Matrix b, Matrix sum);
/// Element by element, rounded to nearest.
Matrix operator+(Matrix a, Matrix b);

// SPV_NV_cooperative_matrix2

/// A sum of f32 as an operand of another type.
Matrix convert(Matrix sum, MatrixType type);
enum class MatrixReduction : std::uint8_t { kSum, kMax };
/// Every element becomes the sum, or the largest, of its row. Of f32.
Matrix reduce_rows(Matrix matrix, MatrixReduction reduction);

}  // namespace vkml::vulkan::spirv
