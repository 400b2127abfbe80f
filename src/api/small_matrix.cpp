// The algorithms of Golub and Van Loan, "Matrix Computations" (4th edition, 2013): LU 3.4, Cholesky
// 4.2, Householder QR 5.2, cyclic Jacobi 8.5, one-sided Jacobi 8.6. Bound: n^3 operations each, a
// few times that for the iterative ones; meant for matrices of up to some hundred rows.
#include "small_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace vkml {
namespace {

constexpr int kMaxSweeps = 60;
constexpr double kPrecision = std::numeric_limits<double>::epsilon();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Cosine and sine of the rotation that makes [[a, c], [c, b]] diagonal.
struct Rotation {
  double cosine = 1;
  double sine = 0;
};
Rotation diagonalizing(double a, double b, double c) {
  if (c == 0) return {};
  const double tau = (b - a) / (2 * c);
  const double t = std::copysign(1.0, tau) / (std::abs(tau) + std::hypot(1.0, tau));
  const double cosine = 1 / std::hypot(1.0, t);
  return {cosine, t * cosine};
}

void rotate_columns(SmallMatrix& m, std::int64_t p, std::int64_t q, const Rotation& r) {
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const double x = m(i, p);
    const double y = m(i, q);
    m(i, p) = r.cosine * x - r.sine * y;
    m(i, q) = r.sine * x + r.cosine * y;
  }
}

void rotate_rows(SmallMatrix& m, std::int64_t p, std::int64_t q, const Rotation& r) {
  for (std::int64_t j = 0; j < m.columns; ++j) {
    const double x = m(p, j);
    const double y = m(q, j);
    m(p, j) = r.cosine * x - r.sine * y;
    m(q, j) = r.sine * x + r.cosine * y;
  }
}

double column_product(const SmallMatrix& m, std::int64_t p, std::int64_t q) {
  double sum = 0;
  for (std::int64_t i = 0; i < m.rows; ++i) sum += m(i, p) * m(i, q);
  return sum;
}

SmallMatrix with_columns(const SmallMatrix& m, const std::vector<std::int64_t>& order) {
  SmallMatrix result(m.rows, static_cast<std::int64_t>(order.size()));
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = 0; j < result.columns; ++j) result(i, j) = m(i, order[at(j)]);
  }
  return result;
}

std::vector<std::int64_t> sorted_order(const std::vector<double>& values, bool descending) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
    return descending ? values[at(b)] < values[at(a)] : values[at(a)] < values[at(b)];
  });
  return order;
}

/// Columns of U where the singular value is 0 are any that complete the others.
void complete_columns(SmallMatrix& u, const std::vector<double>& s) {
  for (std::int64_t j = 0; j < u.columns; ++j) {
    if (s[at(j)] > 0) continue;
    for (std::int64_t axis = 0; axis < u.rows; ++axis) {
      for (std::int64_t i = 0; i < u.rows; ++i) u(i, j) = i == axis ? 1 : 0;
      for (int pass = 0; pass < 2; ++pass) {
        for (std::int64_t k = 0; k < u.columns; ++k) {
          if (k == j || (k > j && !(s[at(k)] > 0))) continue;
          const double along = column_product(u, k, j);
          for (std::int64_t i = 0; i < u.rows; ++i) u(i, j) -= along * u(i, k);
        }
      }
      const double length = std::sqrt(column_product(u, j, j));
      if (length < 0.1 / std::sqrt(static_cast<double>(u.rows))) continue;
      for (std::int64_t i = 0; i < u.rows; ++i) u(i, j) /= length;
      break;
    }
  }
}

/// Of a matrix with at least as many rows as columns.
SvdFactors factor_tall(const SmallMatrix& a) {
  SmallMatrix u = a;
  SmallMatrix v = identity_matrix(a.columns);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool is_done = true;
    for (std::int64_t p = 0; p + 1 < a.columns; ++p) {
      for (std::int64_t q = p + 1; q < a.columns; ++q) {
        const double pp = column_product(u, p, p);
        const double qq = column_product(u, q, q);
        const double pq = column_product(u, p, q);
        if (std::abs(pq) <= kPrecision * std::sqrt(pp * qq)) continue;
        is_done = false;
        const Rotation rotation = diagonalizing(pp, qq, pq);
        rotate_columns(u, p, q, rotation);
        rotate_columns(v, p, q, rotation);
      }
    }
    if (is_done) break;
  }
  std::vector<double> lengths;
  for (std::int64_t j = 0; j < a.columns; ++j)
    lengths.push_back(std::sqrt(column_product(u, j, j)));
  const std::vector<std::int64_t> order = sorted_order(lengths, true);
  SvdFactors factors{with_columns(u, order), {}, with_columns(v, order)};
  const double largest = order.empty() ? 0 : lengths[at(order[0])];
  for (std::int64_t j = 0; j < a.columns; ++j) {
    const double length = lengths[at(order[at(j)])];
    const bool is_zero = length <= largest * kPrecision * static_cast<double>(a.rows);
    factors.s.push_back(is_zero ? 0 : length);
    for (std::int64_t i = 0; i < a.rows && !is_zero; ++i) factors.u(i, j) /= length;
  }
  complete_columns(factors.u, factors.s);
  return factors;
}

}  // namespace

SmallMatrix identity_matrix(std::int64_t n) {
  SmallMatrix result(n, n);
  for (std::int64_t i = 0; i < n; ++i) result(i, i) = 1;
  return result;
}

SmallMatrix transposed(const SmallMatrix& a) {
  SmallMatrix result(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.columns; ++j) result(j, i) = a(i, j);
  }
  return result;
}

LuFactors factor_lu(SmallMatrix a) {
  LuFactors factors{std::move(a), {}, 1, false};
  SmallMatrix& lu = factors.lu;
  const std::int64_t n = lu.rows;
  factors.order.resize(at(n));
  std::iota(factors.order.begin(), factors.order.end(), 0);
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i) {
      if (std::abs(lu(i, k)) > std::abs(lu(pivot, k))) pivot = i;
    }
    if (lu(pivot, k) == 0) {
      factors.is_singular = true;
      continue;
    }
    if (pivot != k) {
      for (std::int64_t j = 0; j < n; ++j) std::swap(lu(k, j), lu(pivot, j));
      std::swap(factors.order[at(k)], factors.order[at(pivot)]);
      factors.sign = -factors.sign;
    }
    for (std::int64_t i = k + 1; i < n; ++i) {
      lu(i, k) /= lu(k, k);
      for (std::int64_t j = k + 1; j < n; ++j) lu(i, j) -= lu(i, k) * lu(k, j);
    }
  }
  return factors;
}

SmallMatrix solve_lu(const LuFactors& factors, const SmallMatrix& b) {
  SmallMatrix x(b.rows, b.columns);
  for (std::int64_t i = 0; i < b.rows; ++i) {
    for (std::int64_t j = 0; j < b.columns; ++j) x(i, j) = b(factors.order[at(i)], j);
  }
  return solve_triangular(factors.lu, solve_triangular(factors.lu, std::move(x), false, true), true,
                          false);
}

SmallMatrix solve_triangular(const SmallMatrix& t, SmallMatrix b, bool upper, bool unit) {
  const std::int64_t n = t.rows;
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = upper ? n - 1 - step : step;
    const std::int64_t begin = upper ? i + 1 : 0;
    const std::int64_t end = upper ? n : i;
    for (std::int64_t j = 0; j < b.columns; ++j) {
      double sum = b(i, j);
      for (std::int64_t k = begin; k < end; ++k) sum -= t(i, k) * b(k, j);
      b(i, j) = unit ? sum : sum / t(i, i);
    }
  }
  return b;
}

bool factor_cholesky(SmallMatrix& a) {
  for (std::int64_t j = 0; j < a.rows; ++j) {
    double rest = a(j, j);
    for (std::int64_t k = 0; k < j; ++k) rest -= a(j, k) * a(j, k);
    if (!(rest > 0)) return false;
    a(j, j) = std::sqrt(rest);
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      double sum = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= a(i, k) * a(j, k);
      a(i, j) = sum / a(j, j);
    }
    for (std::int64_t i = 0; i < j; ++i) a(i, j) = 0;
  }
  return true;
}

QrFactors factor_qr(const SmallMatrix& a, bool complete) {
  SmallMatrix r = a;
  SmallMatrix q = identity_matrix(a.rows);
  const std::int64_t k = std::min(a.rows, a.columns);
  std::vector<double> v(at(a.rows));
  for (std::int64_t j = 0; j < k; ++j) {
    double length = 0;
    for (std::int64_t i = j; i < a.rows; ++i) length = std::hypot(length, r(i, j));
    if (length == 0) continue;
    double squares = 0;
    for (std::int64_t i = j; i < a.rows; ++i) {
      v[at(i)] = r(i, j) + (i == j ? std::copysign(length, r(j, j)) : 0);
      squares += v[at(i)] * v[at(i)];
    }
    const auto reflect = [&](SmallMatrix& m, bool from_right) {
      for (std::int64_t line = 0; line < (from_right ? m.rows : m.columns); ++line) {
        const auto element = [&](std::int64_t i) -> double& {
          return from_right ? m(line, i) : m(i, line);
        };
        double along = 0;
        for (std::int64_t i = j; i < a.rows; ++i) along += v[at(i)] * element(i);
        for (std::int64_t i = j; i < a.rows; ++i) element(i) -= 2 * along / squares * v[at(i)];
      }
    };
    reflect(r, false);
    reflect(q, true);
  }
  const std::int64_t kept = complete ? a.rows : k;
  QrFactors factors{SmallMatrix(a.rows, kept), SmallMatrix(kept, a.columns)};
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < kept; ++j) factors.q(i, j) = q(i, j);
  }
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = i; j < a.columns; ++j) factors.r(i, j) = r(i, j);
  }
  return factors;
}

EigenFactors factor_symmetric(SmallMatrix a) {
  const std::int64_t n = a.rows;
  SmallMatrix v = identity_matrix(n);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool is_done = true;
    for (std::int64_t p = 0; p + 1 < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) {
        const double scale = std::sqrt(std::abs(a(p, p) * a(q, q)));
        if (std::abs(a(p, q)) <= kPrecision * scale ||
            std::abs(a(p, q)) < std::numeric_limits<double>::min()) {
          continue;
        }
        is_done = false;
        const Rotation rotation = diagonalizing(a(p, p), a(q, q), a(p, q));
        rotate_columns(a, p, q, rotation);
        rotate_rows(a, p, q, rotation);
        rotate_columns(v, p, q, rotation);
      }
    }
    if (is_done) break;
  }
  std::vector<double> diagonal;
  for (std::int64_t i = 0; i < n; ++i) diagonal.push_back(a(i, i));
  const std::vector<std::int64_t> order = sorted_order(diagonal, false);
  EigenFactors factors{{}, with_columns(v, order)};
  for (const std::int64_t i : order) factors.w.push_back(diagonal[at(i)]);
  return factors;
}

SvdFactors factor_svd(const SmallMatrix& a) {
  if (a.rows >= a.columns) return factor_tall(a);
  SvdFactors factors = factor_tall(transposed(a));
  std::swap(factors.u, factors.v);
  return factors;
}

namespace {

SmallMatrix product(const SmallMatrix& a, const SmallMatrix& b) {
  SmallMatrix result(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      for (std::int64_t j = 0; j < b.columns; ++j) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

/// left diag(scales) right^T.
SmallMatrix between(const SmallMatrix& left, const std::vector<double>& scales,
                    const SmallMatrix& right) {
  SmallMatrix scaled = left;
  for (std::int64_t i = 0; i < left.rows; ++i) {
    for (std::int64_t j = 0; j < left.columns; ++j) {
      scaled(i, j) *= scales[static_cast<std::size_t>(j)];
    }
  }
  return product(scaled, transposed(right));
}

/// det A is `orientation`, which is 1 or -1, times the product of s: products of some of s then
/// give minors without a division, also of singular matrices.
struct OrientedSvd {
  explicit OrientedSvd(const SmallMatrix& a)
      : factors(factor_svd(a)),
        orientation(std::copysign(1.0, determinant(factors.u) * determinant(factors.v))) {}

  /// The product of the singular values but for two, which may be the same one.
  double product_without(std::int64_t i, std::int64_t j) const {
    double result = orientation;
    for (std::int64_t k = 0; k < factors.u.columns; ++k) {
      if (k != i && k != j) result *= factors.s[static_cast<std::size_t>(k)];
    }
    return result;
  }

  SvdFactors factors;
  double orientation;
};

}  // namespace

SmallMatrix pseudo_inverse(const SmallMatrix& a, double limit) {
  const SvdFactors factors = factor_svd(a);
  std::vector<double> scales;
  for (const double s : factors.s) scales.push_back(s > limit ? 1 / s : 0);
  return between(factors.v, scales, factors.u);
}

double determinant(const SmallMatrix& a) {
  const LuFactors factors = factor_lu(a);
  double result = factors.sign;
  for (std::int64_t i = 0; i < a.rows; ++i) result *= factors.lu(i, i);
  return result;
}

SmallMatrix cofactors(const SmallMatrix& a) {
  const OrientedSvd svd(a);
  std::vector<double> scales;
  for (std::int64_t i = 0; i < a.rows; ++i) scales.push_back(svd.product_without(i, i));
  return between(svd.factors.u, scales, svd.factors.v);
}

SmallMatrix cofactors_along(const SmallMatrix& a, const SmallMatrix& direction) {
  // Between the singular vectors the matrix is diagonal: its cofactor (i, i) changes with each
  // other element (j, j), and (i, j) with (j, i), by the product of the values but for i and j.
  const OrientedSvd svd(a);
  const auto& [u, s, v] = svd.factors;
  const SmallMatrix along = product(product(transposed(u), direction), v);
  SmallMatrix change(a.rows, a.columns);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.columns; ++j) {
      if (i == j) continue;
      const double rest = svd.product_without(i, j);
      change(i, j) -= rest * along(j, i);
      change(i, i) += rest * along(j, j);
    }
  }
  return product(product(u, change), transposed(v));
}

}  // namespace vkml
