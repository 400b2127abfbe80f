// Factorisations of small dense matrices in double precision, on the host.
#pragma once

#include <cstdint>
#include <vector>

namespace vkml {

/// Row-major.
struct SmallMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> values;

  SmallMatrix(std::int64_t row_count, std::int64_t column_count)
      : rows(row_count),
        columns(column_count),
        values(static_cast<std::size_t>(row_count * column_count)) {}
  double& operator()(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
  double operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

SmallMatrix identity_matrix(std::int64_t n);
SmallMatrix transposed(const SmallMatrix& a);

/// P A = L U with partial pivoting.
struct LuFactors {
  SmallMatrix lu;                   // L below the diagonal, which is 1; U on and above it
  std::vector<std::int64_t> order;  // row of A in each row of P A
  int sign = 1;                     // determinant of P
  bool is_singular = false;         // a pivot is 0
};
LuFactors factor_lu(SmallMatrix a);
/// x of A x = b, for a matrix that is not singular.
SmallMatrix solve_lu(const LuFactors& factors, const SmallMatrix& b);

/// x of T x = b by substitution; `unit` takes the diagonal as 1.
SmallMatrix solve_triangular(const SmallMatrix& t, SmallMatrix b, bool upper, bool unit);

/// L of A = L L^T; false where A is not positive definite. Reads the lower triangle.
bool factor_cholesky(SmallMatrix& a);

/// A = Q R by Householder reflections, Q (rows, k), R (k, columns), k the smaller extent, or the
/// number of rows for the complete factors.
struct QrFactors {
  SmallMatrix q, r;
};
QrFactors factor_qr(const SmallMatrix& a, bool complete = false);

/// A = V diag(w) V^T of a symmetric matrix, w ascending, by Jacobi's rotations.
struct EigenFactors {
  std::vector<double> w;
  SmallMatrix v;
};
EigenFactors factor_symmetric(SmallMatrix a);

/// A = U diag(s) V^T, s descending, U (rows, k), V (columns, k), by one-sided Jacobi rotations.
struct SvdFactors {
  SmallMatrix u;
  std::vector<double> s;
  SmallMatrix v;
};
SvdFactors factor_svd(const SmallMatrix& a);

/// The pseudo-inverse; singular values up to a limit count as 0.
SmallMatrix pseudo_inverse(const SmallMatrix& a, double limit);

double determinant(const SmallMatrix& a);
/// The gradient of the determinant: the transposed adjugate, which singular matrices have too.
SmallMatrix cofactors(const SmallMatrix& a);
/// How the cofactors change along a direction.
SmallMatrix cofactors_along(const SmallMatrix& a, const SmallMatrix& direction);

}  // namespace vkml
