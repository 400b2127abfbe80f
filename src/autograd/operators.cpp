// vkML's own operators under their names. Their nodes know their gradients; backward() here serves
// those who ask an operator by itself. An output that was computed with gradients on may have any
// parameters (sum along one axis); one without that history is what forward() gives.

#include <fmt/format.h>

#include <algorithm>

#include "vkml/autograd/backward.h"
#include "vkml/autograd/tape.h"
#include "vkml/core/error.h"
#include "vkml/ops/composites.h"
#include "vkml/ops/functions.h"
#include "vkml/ops/ordering.h"

namespace vkml::autograd {
namespace {

using graph::Value;
using Inputs = std::span<const Value>;

/// Whether the output is one recorded node over exactly these inputs.
bool is_direct(Inputs inputs, const Value& output) {
  const auto sources = output->sources();
  return output->op().gradient != nullptr &&
         std::ranges::equal(sources, inputs, {}, {}, &Value::node);
}

bool are_distinct(Inputs inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (inputs[i].node() == inputs[k].node()) return false;
    }
  }
  return true;
}

class ExpressionOperator final : public Differentiable {
 public:
  ExpressionOperator(std::string name, int arity, Expression expression)
      : name_(std::move(name)), arity_(arity), expression_(std::move(expression)) {}

  Value forward(Inputs inputs) const override {
    if (arity_ != kAnyArity && static_cast<std::size_t>(arity_) != inputs.size()) {
      throw ArgumentError(
          fmt::format("[{}] takes {} inputs, not {}", name_, arity_, inputs.size()));
    }
    if (!expression_) {
      throw ArgumentError(
          fmt::format("[{0}] has parameters without defaults: call {0} with them, and record its "
                      "output",
                      name_));
    }
    return expression_(inputs);
  }

  std::vector<Value> backward(const Value& output_gradient, Inputs inputs,
                              const Value& output) const override {
    std::vector<Value> gradients(inputs.size());
    if (is_direct(inputs, output)) {
      output->op().gradient(output, output_gradient, gradients);
      return gradients;
    }
    const auto is_traced = [](const Value& input) {
      return input->requires_grad() || !is_floating(input.dtype());
    };
    if (output->requires_grad() && are_distinct(inputs) && std::ranges::all_of(inputs, is_traced)) {
      return autograd::gradients(output, output_gradient, inputs, graph::grad_enabled());
    }
    return backward_again(output_gradient, inputs, output);
  }

  bool records_gradients() const override { return true; }

 private:
  /// Through the expression once more, over stand-ins: one for each input, also where two are the
  /// same value or none requires a gradient.
  std::vector<Value> backward_again(const Value& output_gradient, Inputs inputs,
                                    const Value& output) const {
    const bool create_graph = graph::grad_enabled();
    const graph::GradientMode on(true);
    std::vector<Value> stand_ins;
    for (const Value& input : inputs) {
      if (!is_floating(input.dtype())) {
        stand_ins.push_back(input);
      } else if (input->requires_grad()) {
        stand_ins.push_back(graph::positive(input));
      } else {
        stand_ins.push_back(
            graph::alias(input, graph::kFlagRequiresGrad | graph::kFlagGradientStop));
      }
    }
    const Value repeated = forward(stand_ins);
    const bool same_parameters =
        &repeated->op() != &output->op() || repeated->attributes() == output->attributes();
    if (!same_parameters || !repeated.shape().same_extents(output.shape())) {
      throw AutogradError(
          fmt::format("[{}] the output has parameters of its own and no record of gradients. "
                      "Compute it with gradients on",
                      name_));
    }
    if (!repeated->requires_grad()) return std::vector<Value>(inputs.size());
    std::vector<Value> found =
        autograd::gradients(repeated, output_gradient, stand_ins, create_graph);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_floating(inputs[i].dtype())) found[i] = Value();
    }
    return found;
  }

  std::string name_;
  int arity_;
  Expression expression_;
};

void add_operator(OpRegistry& registry, const char* name, int arity, Expression expression) {
  registry.register_op(name, make_operator(name, arity, std::move(expression)));
}

void add_rows(OpRegistry& registry) {
  const auto rows = ops::elementwise_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ops::ElementwiseRow& row = rows[i];
    const auto expression = [which = static_cast<ops::Row>(i)](Inputs inputs) {
      return ops::apply_elementwise(which, inputs);
    };
    add_operator(registry, row.name, row.arity, expression);
    for (const char* alias : row.aliases) {
      if (alias != nullptr) add_operator(registry, alias, row.arity, expression);
    }
  }
}

void add_structural_families(OpRegistry& registry) {
  const auto unary = [&](const char* name, Value (*function)(const Value&)) {
    add_operator(registry, name, 1, [function](Inputs inputs) { return function(inputs[0]); });
  };
  using Reduction = Value (*)(const Value&, graph::Axes, bool);
  const auto reduction = [&](const char* name, Reduction function) {
    add_operator(registry, name, 1,
                 [function](Inputs inputs) { return function(inputs[0], {}, false); });
  };
  const auto last_axis = [&](const char* name, Value (*function)(const Value&, std::int64_t)) {
    add_operator(registry, name, 1, [function](Inputs inputs) { return function(inputs[0], -1); });
  };
  for (const auto& [name, function] :
       std::initializer_list<std::pair<const char*, Reduction>>{{"sum", &graph::sum},
                                                                {"mean", &graph::mean},
                                                                {"prod", &graph::prod},
                                                                {"max", &graph::max},
                                                                {"min", &graph::min},
                                                                {"argmax", &graph::argmax},
                                                                {"argmin", &graph::argmin},
                                                                {"any", &graph::any},
                                                                {"all", &graph::all},
                                                                {"logsumexp", &graph::logsumexp}}) {
    reduction(name, function);
  }
  last_axis("softmax", &graph::softmax);
  last_axis("log_softmax", &graph::log_softmax);
  last_axis("cumsum", &graph::cumsum);
  last_axis("cumprod", &graph::cumprod);
  last_axis("logcumsumexp", &graph::logcumsumexp);
  unary("contiguous", &graph::contiguous);
  unary("detach", &graph::detach);
  add_operator(registry, "var", 1,
               [](Inputs inputs) { return graph::variance(inputs[0], {}, false, 1); });
  add_operator(registry, "matmul", 2,
               [](Inputs inputs) { return graph::matmul(inputs[0], inputs[1]); });
  add_operator(registry, "conv2d", 2,
               [](Inputs inputs) { return graph::conv2d(inputs[0], inputs[1], {}); });
  add_operator(registry, "max_pool2d", 1,
               [](Inputs inputs) { return graph::max_pool2d(inputs[0], {}); });
  add_operator(registry, "avg_pool2d", 1,
               [](Inputs inputs) { return graph::avg_pool2d(inputs[0], {}); });
  add_operator(registry, "concat", kAnyArity,
               [](Inputs inputs) { return graph::concat(inputs, 0); });
  add_operator(registry, "std", 1,
               [](Inputs inputs) { return graph::standard_deviation(inputs[0], {}, false, 1); });
  add_operator(registry, "norm", 1,
               [](Inputs inputs) { return graph::norm(inputs[0], 2, {}, false); });
  add_operator(registry, "tril", 1,
               [](Inputs inputs) { return graph::triangle(inputs[0], 0, false); });
  add_operator(registry, "triu", 1,
               [](Inputs inputs) { return graph::triangle(inputs[0], 0, true); });
  add_operator(registry, "dot", 2, [](Inputs inputs) { return graph::dot(inputs[0], inputs[1]); });
  add_operator(registry, "outer", 2,
               [](Inputs inputs) { return graph::outer(inputs[0], inputs[1]); });
  add_operator(registry, "argsort", 1,
               [](Inputs inputs) { return graph::argsort(inputs[0], -1, false); });
  add_operator(registry, "searchsorted", 2,
               [](Inputs inputs) { return graph::search_sorted(inputs[0], inputs[1], false); });
  add_operator(registry, "linear_recurrence", 2,
               [](Inputs inputs) { return graph::linear_recurrence(inputs[0], inputs[1], -1); });
  add_operator(registry, "take", 2,
               [](Inputs inputs) { return graph::take(inputs[0], inputs[1], 0); });
  // What has no defaults can be recorded, not applied.
  for (const char* name :
       {"reshape",      "permute",      "transpose",    "squeeze",       "unsqueeze",
        "flatten",      "broadcast_to", "slice",        "getitem",       "pad",
        "cast",         "stack",        "gather",       "scatter_add",   "embedding",
        "dropout",      "normalize",    "layer_norm",   "cross_entropy", "scatter",
        "scatter_prod", "scatter_amax", "scatter_amin", "index_select",  "cummax",
        "cummin",       "one_hot",      "flip",         "roll",          "einsum",
        "tensordot"}) {
    add_operator(registry, name, kAnyArity, nullptr);
  }
}

}  // namespace

OperatorPtr make_operator(std::string name, int arity, Expression expression) {
  return std::make_shared<ExpressionOperator>(std::move(name), arity, std::move(expression));
}

const std::shared_ptr<OpRegistry>& default_registry() {
  // Never destroyed: operators may be objects of an interpreter that is gone by then.
  static const auto* registry = [] {
    auto filled = std::make_shared<OpRegistry>();
    add_rows(*filled);
    add_structural_families(*filled);
    return new std::shared_ptr<OpRegistry>(std::move(filled));
  }();
  return *registry;
}

}  // namespace vkml::autograd
