// Matrix products: 1-D to batched 4-D, batches broadcast, any strides (a transpose costs nothing).

#include <algorithm>
#include <atomic>

#include "record.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {
namespace {

std::atomic<MatmulPrecision> precision_now{MatmulPrecision::kHighest};

Value matmul_at(const Value& left, const Value& right, MatmulPrecision precision);

/// The only attribute; the usual precision has none.
Attributes attributes_of(MatmulPrecision precision, DType dtype) {
  if (precision == MatmulPrecision::kHighest || dtype != DType::kF32) return {};
  return {static_cast<std::int64_t>(precision)};
}
MatmulPrecision precision_of(const Attributes& attributes) {
  return attributes.size() == 0 ? MatmulPrecision::kHighest
                                : static_cast<MatmulPrecision>(attributes[0]);
}

/// Whether columns lie densely and rows do not.
bool is_transposed(const Value& matrix) {
  const auto element = static_cast<std::int64_t>(size_of(matrix.dtype()));
  const int rank = matrix.rank();
  return matrix.shape().stride(rank - 2) == element && matrix.shape().stride(rank - 1) != element;
}

void matmul_gradient(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Value a(output->source(0));
  const Value b(output->source(1));
  const MatmulPrecision precision = precision_of(output->attributes());
  const auto product = [&](const Value& left, const Value& right) {
    return matmul_at(left, right, precision);
  };
  const Value g_t = transpose(gradient, -1, -2);
  // The gradient of a transposed weight comes out transposed too: dense in the weight's own layout.
  const Value of_a = is_transposed(a) ? transpose(product(b, g_t), -1, -2)
                                      : product(gradient, transpose(b, -1, -2));
  const Value of_b = is_transposed(b) ? transpose(product(g_t, a), -1, -2)
                                      : product(transpose(a, -1, -2), gradient);
  gradients[0] = sum_to(of_a, a.shape());
  gradients[1] = sum_to(of_b, b.shape());
}
constexpr OpInfo kMatmulOp =
    ops::core_op("matmul", ops::CoreKind::kMatmul, &matmul_gradient, {.operands = 0b11});

/// Both operands of rank 2 or more.
Value matrix_product(const Value& a, const Value& b, MatmulPrecision precision) {
  const int rank_a = a.rank();
  const int rank_b = b.rank();
  const std::int64_t inner_a = a.shape()[rank_a - 1];
  const std::int64_t inner_b = b.shape()[rank_b - 2];
  if (inner_a != inner_b) {
    const bool transposed = b.shape()[rank_b - 1] == inner_a;
    throw ShapeError(fmt::format("[matmul] inner extents differ: {} @ {}.{}", a.shape().to_string(),
                                 b.shape().to_string(),
                                 transposed ? " Did you mean b.transpose(-1, -2)?" : ""));
  }
  const Shape batch_a(a.shape().extents().first(static_cast<std::size_t>(rank_a - 2)), a.dtype());
  const Shape batch_b(b.shape().extents().first(static_cast<std::size_t>(rank_b - 2)), b.dtype());
  const Shape batch = broadcast_extents("matmul", batch_a, batch_b, a.dtype());
  ExtentList extents(batch.extents());
  extents.push_back(a.shape()[rank_a - 2]);
  extents.push_back(b.shape()[rank_b - 1]);
  return record(kMatmulOp, {a.node(), b.node()}, extents.span(), a.dtype(), a.device(),
                attributes_of(precision, a.dtype()));
}

/// One matrix for every row of a batch is one larger product, and its gradient one product instead
/// of a sum over the batch. Rows that do not lie behind each other are copied where the product is
/// long enough to hide that.
bool folds_into_rows(const Value& a, const Value& b) {
  constexpr std::int64_t kColumnsWorthACopy = 64;
  return a.rank() > 2 && b.rank() == 2 &&
         (a.shape().is_contiguous(size_of(a.dtype())) || b.shape()[1] >= kColumnsWorthACopy);
}

Value matmul_at(const Value& left, const Value& right, MatmulPrecision precision) {
  if (left.rank() == 0 || right.rank() == 0) {
    throw ShapeError(fmt::format("[matmul] operands need at least one axis: {} @ {}",
                                 left.shape().to_string(), right.shape().to_string()));
  }
  check_same_device("matmul", left, right);
  const DType dtype = promote(left.dtype(), right.dtype());
  if (dtype == DType::kBool) {
    throw DTypeError("[matmul] takes numbers, not bool. Use a.to(vkml.int32)");
  }
  Value a = cast(left, dtype);
  Value b = cast(right, dtype);
  const bool vector_a = a.rank() == 1;
  const bool vector_b = b.rank() == 1;
  if (vector_a) a = unsqueeze(a, 0);
  if (vector_b) b = unsqueeze(b, 1);
  Value result;
  if (folds_into_rows(a, b)) {
    ExtentList extents(a.shape().extents());
    extents[a.rank() - 1] = b.shape()[1];
    const std::int64_t rows_by_inner[] = {
        a->numel() / std::max<std::int64_t>(a.shape()[a.rank() - 1], 1), a.shape()[a.rank() - 1]};
    result = a->numel() == 0
                 ? matrix_product(a, b, precision)
                 : reshape(matrix_product(reshape(a, rows_by_inner), b, precision), extents.span());
  } else {
    result = matrix_product(a, b, precision);
  }
  if (vector_b) result = squeeze(result, -1);
  if (vector_a) result = squeeze(result, vector_b ? -1 : -2);
  return result;
}

}  // namespace

void set_matmul_precision(MatmulPrecision precision) {
  precision_now.store(precision, std::memory_order_relaxed);
}
MatmulPrecision matmul_precision() { return precision_now.load(std::memory_order_relaxed); }

MatmulPrecision precision_of_product(const Node& node) { return precision_of(node.attributes()); }

Value matmul(const Value& left, const Value& right, MatmulPrecision precision) {
  return matmul_at(left, right, precision);
}

Value matmul(const Value& left, const Value& right) {
  return matmul_at(as_product_operand(left), as_product_operand(right), matmul_precision());
}

}  // namespace vkml::graph
