// Linear algebra of small matrices, on the CPU: the operands are computed, factored in double
// precision on the host, and the results are tensors with gradients. The last two axes are the
// matrix, those before it a batch. On other devices: UnsupportedError.
#pragma once

#include <cstdint>
#include <tuple>

#include "vkml/api/tensor.h"

namespace vkml::linalg {

/// x of A x = B; B is (.., n, k), or (n) for one matrix. Throws ArgumentError for a singular A.
Tensor solve(const Tensor& a, const Tensor& b);
/// x of T x = B for a triangular T; `unit` takes its diagonal as 1.
Tensor solve_triangular(const Tensor& t, const Tensor& b, bool upper, bool unit = false);
Tensor inverse(const Tensor& a);
/// The pseudo-inverse: singular values up to `limit` count as 0, which is one number, or one for
/// each matrix. The gradient takes the rank as constant.
Tensor pseudo_inverse(const Tensor& a, const Tensor& limit);
/// Singular matrices have two derivatives, others all.
Tensor determinant(const Tensor& a);
/// (sign, log |det|). The gradient at a singular matrix is infinite, or NaN where its cofactor is
/// 0.
std::tuple<Tensor, Tensor> slogdet(const Tensor& a);
/// L of A = L L^T. Throws ArgumentError unless A is positive definite; reads the lower triangle.
Tensor cholesky(const Tensor& a);
/// Q (.., m, k) and R (.., k, n) with k = min(m, n). The gradient throws AutogradError unless the
/// first k columns are linearly independent.
std::tuple<Tensor, Tensor> qr(const Tensor& a);
/// The (.., m, m - k) orthonormal columns that complete the k of q to a basis; without a gradient.
Tensor complement(const Tensor& q);
/// Eigenvalues, ascending, and eigenvectors as columns, of a symmetric matrix. Gradients of
/// vectors need distinct values.
std::tuple<Tensor, Tensor> eigh(const Tensor& a);
/// U (.., m, k), the singular values, descending, and V^T (.., k, n). Gradients of U and V^T need
/// distinct values.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a);

}  // namespace vkml::linalg
