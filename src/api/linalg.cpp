// Each operator factors on the host and states its gradient by products, so that derivatives of any
// order follow, but for the determinant of singular matrices, which has two. Several results of one
// factorisation are parts of one packed value, which carries the rule. Rules: Giles, "Collected
// matrix derivative results for forward and reverse mode algorithmic differentiation" (2008); QR:
// Walter and Lehmann (2018), and Roberts and Roberts (2020) for wide matrices; the pseudo-inverse:
// Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973).

#include "vkml/api/linalg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "record_tensor.h"
#include "small_matrix.h"
#include "vkml/ops/composites.h"

namespace vkml::linalg {
namespace {

using graph::Value;

Extents extents_of(const Value& x) {
  return Extents(x.shape().extents().begin(), x.shape().extents().end());
}

void check_operand(const char* op, const Tensor& x, bool is_square) {
  if (x.device() != kCpu) {
    throw UnsupportedError(
        fmt::format("[{}] is not available on {}. Compute it on the CPU: vkml.tensor(t.numpy(), "
                    "device=vkml.cpu)",
                    op, to_string(x.device())));
  }
  if (x.dtype() != DType::kF32 && x.dtype() != DType::kF64) {
    throw DTypeError(fmt::format("[{}] takes float32 and float64, not {}. Use x.to(vkml.float32)",
                                 op, name_of(x.dtype())));
  }
  const bool fits = x.rank() >= 2 && (!is_square || x.size(-1) == x.size(-2));
  if (!fits) {
    throw ShapeError(fmt::format("[{}] needs {} in the last two axes, not shape {}", op,
                                 is_square ? "square matrices" : "matrices",
                                 x.shape().to_string()));
  }
}

/// The matrices of a batch, computed and widened.
std::vector<SmallMatrix> matrices_of(const Tensor& x) {
  const Tensor wide(graph::cast(graph::detach(x.value()), DType::kF64));
  const std::vector<std::byte> bytes = wide.to_host();
  const std::int64_t rows = x.size(-2);
  const std::int64_t columns = x.size(-1);
  std::int64_t count = 1;
  for (int axis = 0; axis < x.rank() - 2; ++axis) count *= x.shape()[axis];
  std::vector<SmallMatrix> matrices;
  for (std::int64_t i = 0; i < count; ++i) {
    SmallMatrix& matrix = matrices.emplace_back(rows, columns);
    if (matrix.values.empty()) continue;
    std::memcpy(matrix.values.data(),
                bytes.data() + static_cast<std::size_t>(i) * matrix.values.size() * sizeof(double),
                matrix.values.size() * sizeof(double));
  }
  return matrices;
}

/// A computed value of x's dtype from numbers in row-major order.
Value value_from(const std::vector<double>& numbers, const Extents& extents, DType dtype) {
  const Tensor wide =
      Tensor::from_host(std::as_bytes(std::span(numbers)), extents, DType::kF64, kCpu);
  return graph::cast(wide.value(), dtype);
}

Value transposed(const Value& x) { return graph::transpose(x, -1, -2); }
Value product(const Value& a, const Value& b) { return graph::matmul(a, b); }

/// Rows of a packed value as matrices of a shape, with the batch of `like` in front.
Value part_of(const Value& packed, const Value& like, std::int64_t start, std::int64_t rows,
              std::int64_t columns) {
  Extents extents = extents_of(like);
  extents[extents.size() - 2] = rows;
  extents[extents.size() - 1] = columns;
  return graph::reshape(graph::slice(packed, -1, start, start + rows * columns, 1), extents);
}

/// Results of one factorisation side by side, (batch, all their elements).
Value packed_results(const std::vector<std::vector<double>>& rows, std::int64_t width,
                     DType dtype) {
  std::vector<double> numbers;
  for (const std::vector<double>& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
  return value_from(numbers, {static_cast<std::int64_t>(rows.size()), width}, dtype);
}

void append(std::vector<double>& row, const std::vector<double>& values) {
  row.insert(row.end(), values.begin(), values.end());
}

/// a / b, and 0 where b is 0 and the quotient is not needed.
Value needed_quotient(const Value& a, const Value& b, const Value& is_needed) {
  const Value divides = graph::logical_or(graph::ne(b, 0.0), is_needed);
  const Value one = graph::weak_scalar(1.0, b.device());
  return graph::where_else_zero(divides, a / graph::where(divides, b, one));
}

/// Whether a gradient arrives at any element along an axis.
Value arrives(const Value& gradient, std::int64_t axis) {
  const std::int64_t axes[] = {axis};
  return graph::any(graph::ne(gradient, 0.0), axes, false);
}

/// How vectors turn into each other: 1 / (values_j - values_i), and 0 on the diagonal. Vectors of
/// equal values turn by any amount; that is infinite, but for pairs at which no gradient arrives:
/// gradients of values alone ask for none of it.
Value inverse_differences(const Value& values, const Value& is_needed) {
  const Value difference = graph::unsqueeze(values, -2) - graph::unsqueeze(values, -1);
  const std::int64_t n = values.shape()[values.rank() - 1];
  const Value is_beside = graph::logical_not(graph::eye(n, n, 0, DType::kBool, values.device()));
  const Value in_pair =
      graph::logical_or(graph::unsqueeze(is_needed, -2), graph::unsqueeze(is_needed, -1));
  const Value one = graph::weak_scalar(1.0, values.device());
  return needed_quotient(one, difference, graph::logical_and(in_pair, is_beside));
}

// Rules; source 0 is the value, source 1 the operand.

void inverse_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value y = transposed(output);
  gradients[1] = -product(product(y, gradient), y);
}
constexpr graph::OpInfo kInverse{"inv", graph::Family::kCustom, 0, &inverse_rule, {.output = true}};

void pseudo_inverse_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value a(output->source(1));
  const Value& p = output;
  const Value outer = transposed(p);
  const Value g = transposed(gradient);
  // I - A P and I - P A times g: what A does not reach, and what it sends to 0.
  const Value beside_range = g - product(a, product(p, g));
  const Value in_kernel = g - product(product(g, p), a);
  gradients[1] = product(beside_range, product(p, outer)) + product(product(outer, p), in_kernel) -
                 product(product(outer, gradient), outer);
}
constexpr graph::OpInfo kPseudoInverse{
    "pinv", graph::Family::kCustom, 0, &pseudo_inverse_rule, {.operands = 0b10, .output = true}};

Value inverse_for(const char* op, const Tensor& a);
Value cofactors(const Value& a);
Value second_cofactors(const Value& a, const Value& direction);
bool is_well_conditioned(const Value& a);
bool is_any_singular(const Value& a);
bool has_dependent_columns(const Value& triangle);

void determinant_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value scale = graph::unsqueeze(graph::unsqueeze(gradient, -1), -1);
  gradients[1] = scale * cofactors(Value(output->source(1)));
}
constexpr graph::OpInfo kDeterminant{
    "det", graph::Family::kCustom, 0, &determinant_rule, {.operands = 0b10}};

void cofactors_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value a(output->source(1));
  if (!is_well_conditioned(a)) {
    gradients[1] = second_cofactors(a, gradient);
    return;
  }
  const Value b = transposed(inverse_for("det", Tensor(a)));
  const std::int64_t axes[] = {-2, -1};
  const Value scale = graph::sum(gradient * output, axes, true);
  gradients[1] = scale * b - product(product(b, transposed(gradient)), output);
}
constexpr graph::OpInfo kCofactors{
    "det", graph::Family::kCustom, 0, &cofactors_rule, {.operands = 0b10, .output = true}};

void second_cofactors_rule(const Value&, const Value&, std::span<Value>) {
  throw AutogradError(
      "[det] the third derivative needs a matrix that is not singular, nor within rounding of it");
}
constexpr graph::OpInfo kSecondCofactors{"det", graph::Family::kCustom, 0, &second_cofactors_rule};

// Where the determinant is 0 its logarithm has an infinite slope in every entry whose cofactor is
// none.
void log_determinant_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value a(output->source(1));
  const auto as_matrix = [](const Value& x) {
    return graph::unsqueeze(graph::unsqueeze(x, -1), -1);
  };
  const Value adjoint = is_any_singular(a)
                            ? cofactors(a) / as_matrix(determinant(Tensor(a)).value())
                            : transposed(inverse_for("slogdet", Tensor(a)));
  gradients[1] = as_matrix(gradient) * adjoint;
}
constexpr graph::OpInfo kLogDeterminant{
    "slogdet", graph::Family::kCustom, 0, &log_determinant_rule, {.operands = 0b10}};

void solve_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value a(output->source(1));
  const Value b = solve(Tensor(transposed(a)), Tensor(gradient)).value();
  gradients[1] = -product(b, transposed(output));
  gradients[2] = b;
}
constexpr graph::OpInfo kSolve{
    "solve", graph::Family::kCustom, 0, &solve_rule, {.operands = 0b10, .output = true}};

// attributes: upper, unit.
void solve_triangular_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value t(output->source(1));
  const bool upper = output->attributes()[0] != 0;
  const bool unit = output->attributes()[1] != 0;
  const Value b = solve_triangular(Tensor(transposed(t)), Tensor(gradient), !upper, unit).value();
  const std::int64_t offset = !unit ? 0 : upper ? 1 : -1;
  gradients[1] = graph::triangle(-product(b, transposed(output)), offset, upper);
  gradients[2] = b;
}
constexpr graph::OpInfo kSolveTriangular{"solve_triangular",
                                         graph::Family::kCustom,
                                         0,
                                         &solve_triangular_rule,
                                         {.operands = 0b10, .output = true}};

/// The lower triangle with half of the diagonal.
Value half_lower(const Value& x) {
  return (graph::triangle(x, 0, false) + graph::triangle(x, -1, false)) * 0.5;
}

void cholesky_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value y = inverse(Tensor(output)).value();
  const Value inner = half_lower(product(transposed(output), graph::triangle(gradient, 0, false)));
  const Value whole = product(product(transposed(y), inner), y);
  gradients[1] = (whole + transposed(whole)) * 0.5;
}
constexpr graph::OpInfo kCholesky{
    "cholesky", graph::Family::kCustom, 0, &cholesky_rule, {.output = true}};

/// Of a matrix with at least as many rows as columns.
Value tall_qr_gradient(const Value& q, const Value& r, const Value& gq, const Value& gr) {
  const Value inner = product(r, transposed(gr)) - product(transposed(gq), q);
  const Value lower = graph::triangle(inner, -1, false);
  const Value symmetric = graph::triangle(inner, 0, false) + transposed(lower);
  if (has_dependent_columns(r)) {
    throw AutogradError(fmt::format(
        "[qr] the gradient needs linearly independent columns, and of the first {} some "
        "depend on others: any vector beside theirs will do there, so that Q has no "
        "derivative. Factor a matrix of full rank, or use svdvals or pinv",
        r.shape()[r.rank() - 1]));
  }
  return product(gq + product(q, symmetric), transposed(inverse_for("qr", Tensor(r))));
}

// output: q, r.
void qr_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value a(output->source(1));
  const std::int64_t m = a.shape()[a.rank() - 2];
  const std::int64_t n = a.shape()[a.rank() - 1];
  const std::int64_t k = std::min(m, n);
  const Value q = part_of(output, a, 0, m, k);
  const Value r = part_of(output, a, m * k, k, n);
  const Value gq = part_of(gradient, a, 0, m, k);
  const Value gr = part_of(gradient, a, m * k, k, n);
  if (m >= n) {
    gradients[1] = tall_qr_gradient(q, r, gq, gr);
    return;
  }
  // The first m columns alone make q; the rest of a is q times the rest of r.
  const auto first = [&](const Value& x) { return graph::slice(x, -1, 0, m, 1); };
  const auto rest = [&](const Value& x) { return graph::slice(x, -1, m, n, 1); };
  const Value through_q = gq + product(product(q, rest(r)), transposed(rest(gr)));
  const Value parts[] = {tall_qr_gradient(q, first(r), through_q, first(gr)), product(q, rest(gr))};
  gradients[1] = graph::concat(parts, -1);
}
constexpr graph::OpInfo kQr{"qr", graph::Family::kCustom, 0, &qr_rule, {.output = true}};

void complement_rule(const Value& output, const Value&, std::span<Value>) {
  throw AutogradError(
      fmt::format("[{}] any basis of the complement will do, so that it has no gradient. Factor "
                  "without it: mode='reduced', full_matrices=False",
                  output->op().name));
}
constexpr graph::OpInfo kComplement{"complement", graph::Family::kCustom, 0, &complement_rule};

// output: eigenvalues, eigenvectors.
void eigh_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value a(output->source(1));
  const std::int64_t n = a.shape()[a.rank() - 1];
  const Value w = graph::squeeze(part_of(output, a, 0, 1, n), -2);
  const Value v = part_of(output, a, n, n, n);
  const Value gw = part_of(gradient, a, 0, 1, n);
  const Value gv = part_of(gradient, a, n, n, n);
  const Value inner = inverse_differences(w, arrives(gv, -2)) * product(transposed(v), gv);
  const Value diagonal = graph::eye(n, n, 0, DType::kBool, a.device());
  const Value middle =
      inner + graph::where_else_zero(diagonal, graph::broadcast_to(gw, inner.shape().extents()));
  const Value whole = product(product(v, middle), transposed(v));
  gradients[1] = (whole + transposed(whole)) * 0.5;
}
constexpr graph::OpInfo kEigh{"eigh", graph::Family::kCustom, 0, &eigh_rule, {.output = true}};

// output: u, singular values, v^T.
void svd_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value a(output->source(1));
  const std::int64_t m = a.shape()[a.rank() - 2];
  const std::int64_t n = a.shape()[a.rank() - 1];
  const std::int64_t k = std::min(m, n);
  const auto parts = [&](const Value& packed) {
    return std::array<Value, 3>{part_of(packed, a, 0, m, k), part_of(packed, a, m * k, 1, k),
                                part_of(packed, a, m * k + k, k, n)};
  };
  const auto [u, row, vt] = parts(output);
  const auto [gu, gs, gvt] = parts(gradient);
  const Value v = transposed(vt);
  const Value gv = transposed(gvt);
  const Value s = graph::squeeze(row, -2);
  const Value at_u = arrives(gu, -2);
  const Value at_v = arrives(gv, -2);
  const Value f = inverse_differences(s * s, graph::logical_or(at_u, at_v));
  const Value column = transposed(row);
  const auto skew = [&](const Value& x) { return f * (x - transposed(x)); };
  const Value diagonal = graph::eye(k, k, 0, DType::kBool, a.device());
  const Value of_u = product(transposed(u), gu);
  const Value of_v = product(transposed(v), gv);
  const Value middle =
      skew(of_u) * row + column * skew(of_v) +
      graph::where_else_zero(diagonal, graph::broadcast_to(gs, of_u.shape().extents()));
  Value whole = product(product(u, middle), vt);
  if (m > k) {
    const Value beside = gu - product(u, of_u);
    whole = whole + product(needed_quotient(beside, row, graph::unsqueeze(at_u, -2)), vt);
  }
  if (n > k) {
    const Value beside = gv - product(v, of_v);
    const Value scaled = needed_quotient(beside, row, graph::unsqueeze(at_v, -2));
    whole = whole + product(u, transposed(scaled));
  }
  gradients[1] = whole;
}
constexpr graph::OpInfo kSvd{"svd", graph::Family::kCustom, 0, &svd_rule, {.output = true}};

Value with_rule(const graph::OpInfo& op, const Value& value, std::initializer_list<Value> inputs,
                const graph::Attributes& attributes = {}) {
  return graph::with_gradient(op, value, std::span(inputs.begin(), inputs.size()), attributes);
}

/// One number for each matrix.
Value per_matrix(const Tensor& a, const std::function<double(const SmallMatrix&)>& number) {
  std::vector<double> numbers;
  for (const SmallMatrix& matrix : matrices_of(a)) numbers.push_back(number(matrix));
  Extents extents = extents_of(a.value());
  extents.resize(extents.size() - 2);
  return value_from(numbers, extents, a.dtype());
}

/// One matrix for each of a and the one of b beside it.
Value matrix_by_matrix(
    const Tensor& a, const Tensor& b, const Extents& extents,
    const std::function<SmallMatrix(const SmallMatrix&, const SmallMatrix&)>& function) {
  const std::vector<SmallMatrix> left = matrices_of(a);
  const std::vector<SmallMatrix> right = matrices_of(b);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
    append(numbers, function(left[i], right[i]).values);
  }
  return value_from(numbers, extents, a.dtype());
}

/// a and b with one batch; a vector b is one column.
struct System {
  Tensor a, b;
  bool is_vector = false;
};
System system_of(const char* op, const Tensor& a, const Tensor& b) {
  check_operand(op, a, true);
  System system{a, b, b.rank() == 1};
  Value right = graph::cast(b.value(), a.dtype());
  if (system.is_vector) right = graph::unsqueeze(right, 1);
  const std::int64_t n = a.size(-1);
  if (right.rank() < 2 || right.shape()[right.rank() - 2] != n) {
    throw ShapeError(fmt::format("[{}] a is {}, b is {}. b needs {} rows", op,
                                 a.shape().to_string(), b.shape().to_string(), n));
  }
  const auto batch_of = [](const Value& x) {
    return Shape(x.shape().extents().first(static_cast<std::size_t>(x.rank() - 2)), x.dtype());
  };
  const Shape batch = broadcast_extents(op, batch_of(a.value()), batch_of(right), a.dtype());
  const auto spread = [&](const Value& x) {
    Extents extents(batch.extents().begin(), batch.extents().end());
    extents.push_back(x.shape()[x.rank() - 2]);
    extents.push_back(x.shape()[x.rank() - 1]);
    return Tensor(graph::broadcast_to(x, extents));
  };
  system.a = spread(a.value());
  system.b = spread(right);
  check_operand(op, system.b, false);
  return system;
}

Tensor solution(const System& system, const Value& x) {
  return record(system.is_vector ? graph::squeeze(x, -1) : x);
}

LuFactors factor_or_throw(const char* op, const SmallMatrix& a) {
  LuFactors factors = factor_lu(a);
  if (factors.is_singular) throw ArgumentError(fmt::format("[{}] the matrix is singular", op));
  return factors;
}

/// The inverse in the name of the operator that needs it.
Value inverse_for(const char* op, const Tensor& a) {
  check_operand(op, a, true);
  std::vector<double> numbers;
  for (const SmallMatrix& matrix : matrices_of(a)) {
    append(numbers, solve_lu(factor_or_throw(op, matrix), identity_matrix(matrix.rows)).values);
  }
  return with_rule(kInverse, value_from(numbers, extents_of(a.value()), a.dtype()), {a.value()});
}

/// The gradient of the determinant.
Value cofactors(const Value& a) {
  std::vector<double> numbers;
  for (const SmallMatrix& matrix : matrices_of(Tensor(a))) {
    append(numbers, cofactors(matrix).values);
  }
  return with_rule(kCofactors, value_from(numbers, extents_of(a), a.dtype()), {a});
}

/// The second derivative of the determinant along a direction.
Value second_cofactors(const Value& a, const Value& direction) {
  const Value y = matrix_by_matrix(
      Tensor(a), Tensor(direction), extents_of(a),
      [](const SmallMatrix& matrix, const SmallMatrix& d) { return cofactors_along(matrix, d); });
  return with_rule(kSecondCofactors, y, {a, direction});
}

bool is_any_singular(const Value& a) {
  return std::ranges::any_of(matrices_of(Tensor(a)), [](const SmallMatrix& matrix) {
    return factor_lu(matrix).is_singular;
  });
}

/// Whether a diagonal of R ends within the rounding of its largest element.
bool has_dependent_columns(const Value& triangle) {
  const double step = triangle.dtype() == DType::kF64 ? 0x1p-52 : 0x1p-23;
  return std::ranges::any_of(matrices_of(Tensor(triangle)), [step](const SmallMatrix& r) {
    double least = std::numeric_limits<double>::infinity();
    double largest = 0;
    for (std::int64_t i = 0; i < r.rows; ++i) {
      least = std::min(least, std::abs(r(i, i)));
      largest = std::max(largest, std::abs(r(i, i)));
    }
    return least <= step * static_cast<double>(r.rows) * largest;
  });
}

/// Whether the inverse of each matrix has some right digits.
bool is_well_conditioned(const Value& a) {
  constexpr double kLeastShare = 1e-6;
  const std::vector<SmallMatrix> matrices = matrices_of(Tensor(a));
  return std::ranges::all_of(matrices, [](const SmallMatrix& matrix) {
    const std::vector<double> s = factor_svd(matrix).s;
    return s.empty() || s.back() > kLeastShare * s.front();
  });
}

}  // namespace

Tensor solve(const Tensor& a, const Tensor& b) {
  const System system = system_of("solve", a, b);
  const Value x = matrix_by_matrix(system.a, system.b, extents_of(system.b.value()),
                                   [](const SmallMatrix& left, const SmallMatrix& right) {
                                     return solve_lu(factor_or_throw("solve", left), right);
                                   });
  return solution(system, with_rule(kSolve, x, {system.a.value(), system.b.value()}));
}

Tensor solve_triangular(const Tensor& t, const Tensor& b, bool upper, bool unit) {
  const System system = system_of("solve_triangular", t, b);
  const Value x = matrix_by_matrix(system.a, system.b, extents_of(system.b.value()),
                                   [&](const SmallMatrix& left, const SmallMatrix& right) {
                                     return vkml::solve_triangular(left, right, upper, unit);
                                   });
  return solution(system, with_rule(kSolveTriangular, x, {system.a.value(), system.b.value()},
                                    {upper ? 1 : 0, unit ? 1 : 0}));
}

Tensor inverse(const Tensor& a) { return record(inverse_for("inv", a)); }

Tensor pseudo_inverse(const Tensor& a, const Tensor& limit) {
  check_operand("pinv", a, false);
  const std::vector<SmallMatrix> matrices = matrices_of(a);
  const Extents extents = extents_of(a.value());
  const Extents batch(extents.begin(), extents.end() - 2);
  const Tensor wide(
      graph::broadcast_to(graph::cast(graph::detach(limit.value()), DType::kF64), batch));
  const std::vector<std::byte> bytes = wide.to_host();
  std::vector<double> limits(matrices.size());
  if (!limits.empty()) std::memcpy(limits.data(), bytes.data(), bytes.size());
  std::vector<double> numbers;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    append(numbers, vkml::pseudo_inverse(matrices[i], limits[i]).values);
  }
  Extents turned = extents;
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  return record(with_rule(kPseudoInverse, value_from(numbers, turned, a.dtype()), {a.value()}));
}

Tensor determinant(const Tensor& a) {
  check_operand("det", a, true);
  return record(with_rule(kDeterminant, per_matrix(a, &vkml::determinant), {a.value()}));
}

std::tuple<Tensor, Tensor> slogdet(const Tensor& a) {
  check_operand("slogdet", a, true);
  const Value sign = per_matrix(a, [](const SmallMatrix& matrix) {
    const LuFactors factors = factor_lu(matrix);
    if (factors.is_singular) return 0.0;
    double result = factors.sign;
    for (std::int64_t i = 0; i < matrix.rows; ++i) result *= factors.lu(i, i) < 0 ? -1 : 1;
    return result;
  });
  const Value logarithm = per_matrix(a, [](const SmallMatrix& matrix) {
    const LuFactors factors = factor_lu(matrix);
    double result = 0;
    for (std::int64_t i = 0; i < matrix.rows; ++i) result += std::log(std::abs(factors.lu(i, i)));
    return result;
  });
  return {record(sign), record(with_rule(kLogDeterminant, logarithm, {a.value()}))};
}

Tensor cholesky(const Tensor& a) {
  check_operand("cholesky", a, true);
  std::vector<double> numbers;
  for (SmallMatrix& matrix : matrices_of(a)) {
    if (!factor_cholesky(matrix)) {
      throw ArgumentError("[cholesky] the matrix is not positive definite");
    }
    append(numbers, matrix.values);
  }
  const Value l = value_from(numbers, extents_of(a.value()), a.dtype());
  return record(with_rule(kCholesky, l, {a.value()}));
}

std::tuple<Tensor, Tensor> qr(const Tensor& a) {
  check_operand("qr", a, false);
  const std::int64_t m = a.size(-2);
  const std::int64_t n = a.size(-1);
  const std::int64_t k = std::min(m, n);
  std::vector<std::vector<double>> rows;
  for (const SmallMatrix& matrix : matrices_of(a)) {
    const QrFactors factors = factor_qr(matrix);
    append(rows.emplace_back(), factors.q.values);
    append(rows.back(), factors.r.values);
  }
  const Value packed = with_rule(kQr, packed_results(rows, m * k + k * n, a.dtype()), {a.value()});
  return {record(part_of(packed, a.value(), 0, m, k)),
          record(part_of(packed, a.value(), m * k, k, n))};
}

Tensor complement(const Tensor& q) {
  check_operand("complement", q, false);
  const std::int64_t m = q.size(-2);
  const std::int64_t k = q.size(-1);
  std::vector<double> numbers;
  for (const SmallMatrix& matrix : matrices_of(q)) {
    const SmallMatrix whole = factor_qr(matrix, /*complete=*/true).q;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = k; j < m; ++j) numbers.push_back(whole(i, j));
    }
  }
  Extents extents = extents_of(q.value());
  extents.back() = std::max<std::int64_t>(m - k, 0);
  return record(with_rule(kComplement, value_from(numbers, extents, q.dtype()), {q.value()}));
}

std::tuple<Tensor, Tensor> eigh(const Tensor& a) {
  check_operand("eigh", a, true);
  const std::int64_t n = a.size(-1);
  std::vector<std::vector<double>> rows;
  for (SmallMatrix& matrix : matrices_of(a)) {
    // The lower triangle counts.
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = i + 1; j < n; ++j) matrix(i, j) = matrix(j, i);
    }
    const EigenFactors factors = factor_symmetric(std::move(matrix));
    append(rows.emplace_back(), factors.w);
    append(rows.back(), factors.v.values);
  }
  const Value packed = with_rule(kEigh, packed_results(rows, n + n * n, a.dtype()), {a.value()});
  return {record(graph::squeeze(part_of(packed, a.value(), 0, 1, n), -2)),
          record(part_of(packed, a.value(), n, n, n))};
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a) {
  check_operand("svd", a, false);
  const std::int64_t m = a.size(-2);
  const std::int64_t n = a.size(-1);
  const std::int64_t k = std::min(m, n);
  std::vector<std::vector<double>> rows;
  for (const SmallMatrix& matrix : matrices_of(a)) {
    const SvdFactors factors = factor_svd(matrix);
    append(rows.emplace_back(), factors.u.values);
    append(rows.back(), factors.s);
    append(rows.back(), transposed(factors.v).values);
  }
  const Value packed =
      with_rule(kSvd, packed_results(rows, m * k + k + k * n, a.dtype()), {a.value()});
  return {record(part_of(packed, a.value(), 0, m, k)),
          record(graph::squeeze(part_of(packed, a.value(), m * k, 1, k), -2)),
          record(part_of(packed, a.value(), m * k + k, k, n))};
}

}  // namespace vkml::linalg
