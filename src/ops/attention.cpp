// Attention as nodes that never hold the scores: the result, the log-sum-exp of each query's
// scores, and the gradients of query, key and value, which form the weights again from it
// (FlashAttention-2, Dao, arXiv:2307.08691). A recorded gradient keeps query, key, value, result
// and log-sum-exp.
//
// With P the weights, g the gradient of the result, delta = sum(g * result) over its last axis:
//   dV = P^T g,  dS = P * (g V^T - delta),  dQ = scale dS K,  dK = scale dS^T Q.
// The gradients of these, second derivatives, are expressions that do hold the scores.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "record.h"
#include "vkml/ops/autocast.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/functions.h"

namespace vkml::graph {
namespace {

using ops::CoreKind;

constexpr const char* kName = "scaled_dot_product_attention";

// attributes: bits of the scale, causal.
double scale_of(const Attributes& attributes) { return std::bit_cast<double>(attributes[0]); }
bool is_causal(const Attributes& attributes) { return attributes[1] != 0; }

/// What every node of this file has among its sources; an undefined mask stands for none.
struct Operands {
  Value query, key, value, mask;
};

Value source_or_none(const Value& node, std::size_t index) {
  const auto sources = node->sources();
  return index < sources.size() ? Value(sources[index]) : Value();
}

/// The last source of a node may be missing.
SourceList with_mask(SourceList sources, const Value& mask) {
  if (mask) sources.push_back(mask.node());
  return sources;
}

Value query_gradient(const Operands& x, const Value& g, const Value& lse, const Value& delta,
                     const Attributes& attributes);
Value key_gradient(const Operands& x, const Value& g, const Value& lse, const Value& delta,
                   const Value& of_value, const Attributes& attributes);
Value value_gradient(const Operands& x, const Value& g, const Value& lse,
                     const Attributes& attributes);

// Expressions that hold the scores, in f32.

Value wide(const Value& x) { return cast(x, DType::kF32); }
Value transposed(const Value& x) { return transpose(x, -1, -2); }
Value row_sum(const Value& x) {
  const std::int64_t last[] = {-1};
  return sum(x, last, true);
}

std::int64_t heads_of(const Value& x) { return x.rank() < 3 ? 1 : x.shape()[x.rank() - 3]; }

/// Keys or values once for each head of the queries.
Value for_heads(const Value& shared, std::int64_t heads) {
  const std::int64_t own = heads_of(shared);
  return own == heads ? shared : repeat_interleave(shared, heads / own, shared.rank() - 3);
}

/// The sum over the heads that share a key or value.
Value over_heads(const Value& each, std::int64_t shared) {
  const std::int64_t heads = heads_of(each);
  if (heads == shared) return each;
  const Shape& shape = each.shape();
  const int rank = each.rank();
  const std::int64_t outer = rank == 4 ? shape[0] : 1;
  const std::int64_t rows = shape[rank - 2] * shape[rank - 1];
  const std::int64_t axis[] = {1};
  ExtentList extents(shape.extents());
  extents[rank - 3] = shared;
  const Value grouped = reshape(each, as_span({outer * shared, heads / shared, rows}));
  return reshape(sum(grouped, axis, false), extents.span());
}

/// Where query i sees key j.
Value causal_mask(std::int64_t queries, std::int64_t keys, Device device) {
  const std::int64_t extents[] = {queries, keys};
  return le(iota(extents, 1, device), iota(extents, 0, device));
}

Value hide(const Value& visible, const Value& scores) {
  const double hidden = -std::numeric_limits<double>::infinity();
  return where(visible, scores, weak_scalar(hidden, scores.device()));
}

/// Everything that the rules of this file are made of, for each head of the queries.
struct Dense {
  Value query, key, weights;
  double scale = 1;
  std::int64_t shared_heads = 1;

  Dense(const Operands& x, const Value& lse, const Attributes& attributes)
      : query(wide(x.query)),
        key(for_heads(wide(x.key), heads_of(x.query))),
        scale(scale_of(attributes)),
        shared_heads(heads_of(x.key)) {
    Value scores = matmul(query, transposed(key)) * scale;
    if (x.mask) {
      scores = x.mask.dtype() == DType::kBool ? hide(x.mask, scores) : scores + wide(x.mask);
    }
    if (is_causal(attributes)) {
      const Shape& shape = scores.shape();
      const int rank = scores.rank();
      scores = hide(causal_mask(shape[rank - 2], shape[rank - 1], scores.device()), scores);
    }
    weights = exp(scores - lse);
  }

  Value shared(const Value& each) const { return over_heads(each, shared_heads); }
  Value to_query(const Value& of_scores) const { return matmul(of_scores, key) * scale; }
  Value to_key(const Value& of_scores) const {
    return shared(matmul(transposed(of_scores), query)) * scale;
  }
};

/// Sums gradients that reach a source by several ways, and rounds them to its dtype.
class Gradients {
 public:
  Gradients(const Value& output, std::span<Value> gradients)
      : output_(output), gradients_(gradients) {}
  void add(std::size_t source, const Value& part) {
    Value& sum = gradients_[source];
    sum = sum ? sum + part : part;
  }
  /// To the sources' dtypes.
  void round() {
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      if (gradients_[i]) gradients_[i] = cast(gradients_[i], output_->sources()[i]->dtype());
    }
  }

 private:
  const Value& output_;
  std::span<Value> gradients_;
};

// Gradient rules.

/// Sources: query, key, mask.
void log_sum_exp_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Operands x{
      Value(output->source(0)), Value(output->source(1)), {}, source_or_none(output, 2)};
  const Dense dense(x, output, output->attributes());
  const Value of_scores = dense.weights * gradient;
  Gradients found(output, gradients);
  found.add(0, dense.to_query(of_scores));
  found.add(1, dense.to_key(of_scores));
  found.round();
}

/// Sources: query, key, value, log-sum-exp, mask. The log-sum-exp follows from query and key: their
/// gradients are whole without it.
void attention_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Operands x{Value(output->source(0)), Value(output->source(1)), Value(output->source(2)),
                   source_or_none(output, 4)};
  const Value lse(output->source(3));
  const Value delta = row_sum(wide(gradient) * wide(output));
  const Attributes& attributes = output->attributes();
  const Value of_value = value_gradient(x, gradient, lse, attributes);
  gradients[0] = query_gradient(x, gradient, lse, delta, attributes);
  gradients[1] = key_gradient(x, gradient, lse, delta, of_value, attributes);
  gradients[2] = of_value;
}

/// Sources of the gradients of query and key: query, key, value, g, log-sum-exp, delta, then for
/// the key that of the value, which it does not read, and the mask.
enum Source : std::size_t { kQuery, kKey, kValue, kGradient, kLogSumExp, kDelta };

class ScoreGradient {
 public:
  ScoreGradient(const Value& output, std::size_t mask)
      : x_{Value(output->source(kQuery)), Value(output->source(kKey)),
           Value(output->source(kValue)), source_or_none(output, mask)},
        dense_(x_, Value(output->source(kLogSumExp)), output->attributes()),
        g_(wide(Value(output->source(kGradient)))),
        value_(for_heads(wide(x_.value), heads_of(x_.query))),
        to_weights_(matmul(g_, transposed(value_)) - Value(output->source(kDelta))) {}

  const Dense& dense() const { return dense_; }
  std::int64_t heads() const { return heads_of(x_.query); }
  /// dS itself.
  Value value() const { return dense_.weights * to_weights_; }

  /// The way back through dS = P * (g V^T - delta), from the gradient of dS.
  void add(Gradients& found, const Value& of_ds) const {
    const Value of_product = of_ds * dense_.weights;
    const Value of_scores = of_product * to_weights_;
    found.add(kQuery, dense_.to_query(of_scores));
    found.add(kKey, dense_.to_key(of_scores));
    found.add(kValue, over_heads(matmul(transposed(of_product), g_), heads_of(x_.value)));
    found.add(kGradient, matmul(of_product, value_));
    found.add(kLogSumExp, -row_sum(of_scores));
    found.add(kDelta, -row_sum(of_product));
  }

 private:
  Operands x_;
  Dense dense_;
  Value g_, value_, to_weights_;
};

void query_gradient_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const ScoreGradient ds(output, 6);
  const Dense& dense = ds.dense();
  const Value upstream = wide(gradient);
  Gradients found(output, gradients);
  found.add(kKey, dense.shared(matmul(transposed(ds.value()), upstream)) * dense.scale);
  ds.add(found, matmul(upstream, transposed(dense.key)) * dense.scale);
  found.round();
}

void key_gradient_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const ScoreGradient ds(output, 7);
  const Dense& dense = ds.dense();
  const Value upstream = for_heads(wide(gradient), ds.heads());
  Gradients found(output, gradients);
  found.add(kQuery, matmul(ds.value(), upstream) * dense.scale);
  ds.add(found, matmul(dense.query, transposed(upstream)) * dense.scale);
  found.round();
}

/// Sources: query, key, g, log-sum-exp, mask.
void value_gradient_rule(const Value& output, const Value& gradient, std::span<Value> gradients) {
  const Operands x{
      Value(output->source(0)), Value(output->source(1)), {}, source_or_none(output, 4)};
  const Value g = wide(Value(output->source(2)));
  const Dense dense(x, Value(output->source(3)), output->attributes());
  const Value upstream = for_heads(wide(gradient), heads_of(x.query));
  const Value of_scores = matmul(g, transposed(upstream)) * dense.weights;
  Gradients found(output, gradients);
  found.add(0, dense.to_query(of_scores));
  found.add(1, dense.to_key(of_scores));
  found.add(2, matmul(dense.weights, upstream));
  found.add(3, -row_sum(of_scores));
  found.round();
}

constexpr OpInfo kLogSumExpOp =
    ops::core_op("attention_log_sum_exp", CoreKind::kAttentionLogSumExp, &log_sum_exp_rule,
                 {.operands = 0b111, .output = true});
constexpr OpInfo kAttentionOp = ops::core_op(kName, CoreKind::kAttention, &attention_rule,
                                             {.operands = 0b11111, .output = true});
constexpr OpInfo kQueryGradientOp =
    ops::core_op("attention_query_gradient", CoreKind::kAttentionQueryGradient,
                 &query_gradient_rule, {.operands = 0b1111111});
constexpr OpInfo kKeyGradientOp =
    ops::core_op("attention_key_gradient", CoreKind::kAttentionKeyGradient, &key_gradient_rule,
                 {.operands = 0b10111111});
constexpr OpInfo kValueGradientOp =
    ops::core_op("attention_value_gradient", CoreKind::kAttentionValueGradient,
                 &value_gradient_rule, {.operands = 0b11111});

Value query_gradient(const Operands& x, const Value& g, const Value& lse, const Value& delta,
                     const Attributes& attributes) {
  return record(
      kQueryGradientOp,
      with_mask({x.query.node(), x.key.node(), x.value.node(), g.node(), lse.node(), delta.node()},
                x.mask),
      x.query.shape().extents(), x.query.dtype(), x.query.device(), attributes);
}
Value key_gradient(const Operands& x, const Value& g, const Value& lse, const Value& delta,
                   const Value& of_value, const Attributes& attributes) {
  return record(kKeyGradientOp,
                with_mask({x.query.node(), x.key.node(), x.value.node(), g.node(), lse.node(),
                           delta.node(), of_value.node()},
                          x.mask),
                x.key.shape().extents(), x.key.dtype(), x.key.device(), attributes);
}
Value value_gradient(const Operands& x, const Value& g, const Value& lse,
                     const Attributes& attributes) {
  return record(kValueGradientOp,
                with_mask({x.query.node(), x.key.node(), g.node(), lse.node()}, x.mask),
                x.value.shape().extents(), x.value.dtype(), x.value.device(), attributes);
}

// The operator.

std::string shapes_of(const Operands& x) {
  return fmt::format("query {}, key {}, value {}", x.query.shape().to_string(),
                     x.key.shape().to_string(), x.value.shape().to_string());
}

void check_operands(const Operands& x, const AttentionOptions& options) {
  for (const Value* operand : {&x.query, &x.key, &x.value}) {
    if (!is_floating(operand->dtype())) {
      throw DTypeError(fmt::format("[{}] takes floats, not {}", kName, name_of(operand->dtype())));
    }
    if (operand->rank() < 2) {
      throw ShapeError(
          fmt::format("[{}] needs (..., queries, width), (..., keys, width) and "
                      "(..., keys, value width): {}",
                      kName, shapes_of(x)));
    }
  }
  const auto from_end = [](const Value& value, int axis) {
    return value.shape()[value.rank() - axis];
  };
  if (from_end(x.query, 1) != from_end(x.key, 1) || from_end(x.key, 2) != from_end(x.value, 2)) {
    throw ShapeError(
        fmt::format("[{}] widths of query and key, or numbers of keys and values, "
                    "differ: {}",
                    kName, shapes_of(x)));
  }
  if (options.shares_heads && heads_of(x.query) % std::max<std::int64_t>(heads_of(x.key), 1) != 0) {
    throw ShapeError(fmt::format("[{}] {} heads of the query do not share {} heads of the key",
                                 kName, heads_of(x.query), heads_of(x.key)));
  }
  if (x.mask && x.mask.dtype() != DType::kBool && !is_floating(x.mask.dtype())) {
    throw DTypeError(fmt::format("[{}] a mask is bool, or floats to add to the scores, not {}",
                                 kName, name_of(x.mask.dtype())));
  }
}

double scale_for(const Value& query, const AttentionOptions& options) {
  const auto width = static_cast<double>(query.shape()[query.rank() - 1]);
  return options.scale.value_or(1.0 / std::sqrt(width));
}

/// What the kernels are made for; the rest is an expression.
bool has_kernel(const Operands& x) {
  const DType dtype = x.query.dtype();
  const std::int64_t width = x.query.shape()[x.query.rank() - 1];
  const std::int64_t value_width = x.value.shape()[x.value.rank() - 1];
  const bool is_learned = x.mask && x.mask->requires_grad() && grad_enabled();
  return dtype != DType::kF64 && std::max(width, value_width) <= kMaxAttentionWidth &&
         !is_learned && x.query->numel() > 0 && x.key->numel() > 0 && x.value->numel() > 0;
}

/// One rank and one batch; heads of key and value divide those of the query.
Operands aligned(const Operands& x, const AttentionOptions& options) {
  const int rank = std::max({x.query.rank(), x.key.rank(), x.value.rank()});
  std::int64_t batch = 1;
  std::int64_t shared = 1;
  const auto extent = [&](const Value& value, int axis) {
    const int own = axis - (rank - value.rank());
    return own < 0 ? 1 : value.shape()[own];
  };
  const auto join = [&](std::int64_t& common, std::int64_t next) {
    if (next == common || next == 1) return;
    if (common != 1) {
      throw ShapeError(fmt::format("[{}] batches do not broadcast: {}", kName, shapes_of(x)));
    }
    common = next;
  };
  for (const Value* operand : {&x.query, &x.key, &x.value}) {
    if (rank == 4) join(batch, extent(*operand, 0));
    if (rank >= 3 && operand != &x.query) join(shared, extent(*operand, rank - 3));
  }
  std::int64_t heads = rank >= 3 ? extent(x.query, rank - 3) : 1;
  if (!options.shares_heads || heads == 1) join(heads, shared);
  const auto broadcast = [&](const Value& value, std::int64_t own_heads) {
    ExtentList extents;
    for (int axis = 0; axis < rank; ++axis) extents.push_back(extent(value, axis));
    if (rank == 4) extents[0] = batch;
    if (rank >= 3) extents[rank - 3] = own_heads;
    return broadcast_to(value, extents.span());
  };
  Operands result{
      broadcast(x.query, heads), broadcast(x.key, shared), broadcast(x.value, shared), {}};
  if (x.mask) {
    ExtentList extents(result.query.shape().extents());
    extents[rank - 1] = result.key.shape()[rank - 2];
    const bool is_f64 = x.mask.dtype() == DType::kF64;
    result.mask = broadcast_to(is_f64 ? wide(x.mask) : x.mask, extents.span());
  }
  return result;
}

}  // namespace

Value attention_weights(const Value& query, const Value& key, const Value& mask,
                        const AttentionOptions& options) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Value each_key = options.shares_heads ? for_heads(key, heads_of(query)) : key;
  Value scores = matmul(query * scale_for(query, options), transposed(each_key));
  const int rank = scores.rank();
  if (options.is_causal) {
    scores = hide(causal_mask(scores.shape()[rank - 2], scores.shape()[rank - 1], scores.device()),
                  scores);
  }
  if (!mask) return softmax(scores, -1);
  scores = mask.dtype() == DType::kBool ? hide(mask, scores) : scores + mask;
  if (scores->numel() == 0) return softmax(scores, -1);
  const std::int64_t last[] = {-1};
  const Value sees_nothing = eq(max(detach(scores), last, true), -infinity);
  const Value sees = logical_not(sees_nothing);
  return where_else_zero(sees, softmax(where_else_zero(sees, scores), -1));
}

Value scaled_dot_product_attention(const Value& query, const Value& key, const Value& value,
                                   const Value& mask, const AttentionOptions& options) {
  Operands given{query, key, value, mask};
  check_same_device(kName, std::array<Value, 3>{query, key, value});
  if (mask) check_same_device(kName, query, mask);
  check_operands(given, options);
  const auto operands = {&given.query, &given.key, &given.value};
  for (Value* operand : operands) *operand = as_product_operand(*operand);
  const DType dtype = promote(promote(given.query.dtype(), given.key.dtype()), given.value.dtype());
  for (Value* operand : operands) *operand = cast(*operand, dtype);
  if (!has_kernel(given)) {
    const Value each_value =
        options.shares_heads ? for_heads(given.value, heads_of(query)) : given.value;
    return matmul(attention_weights(given.query, given.key, mask, options), each_value);
  }
  const Operands x = aligned(given, options);
  const Attributes attributes{std::bit_cast<std::int64_t>(scale_for(query, options)),
                              options.is_causal ? 1 : 0};
  ExtentList extents(x.query.shape().extents());
  extents[extents.rank - 1] = 1;
  const Value lse = record(kLogSumExpOp, with_mask({x.query.node(), x.key.node()}, x.mask),
                           extents.span(), DType::kF32, query.device(), attributes);
  extents[extents.rank - 1] = x.value.shape()[x.value.rank() - 1];
  return record(kAttentionOp,
                with_mask({x.query.node(), x.key.node(), x.value.node(), lse.node()}, x.mask),
                extents.span(), dtype, query.device(), attributes);
}

}  // namespace vkml::graph
