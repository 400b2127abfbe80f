// Chapter 15's record on real tensors: its worked examples and self-check questions, and what a
// record must hold beyond them. Expected numbers are the chapter's, or follow from calculus.

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "vkml/api/autograd.h"
#include "vkml/api/vkml.h"

namespace vkml {
namespace {

using autograd::ComputationGraph;
using autograd::Differentiable;
using autograd::GraphNode;
using autograd::OpRegistry;
using graph::Value;
using Inputs = std::span<const Value>;
using Order = std::vector<int>;

Tensor scalar(float value, bool requires_grad = false) {
  const Tensor tensor = Tensor::from_values(std::span(&value, 1), {});
  return requires_grad ? Tensor(tensor).requires_grad_() : tensor;
}

double number(const Value& value) { return Tensor(value).item(); }

/// The chapter's own operators, from calculus.
class MulOp final : public Differentiable {
 public:
  Value forward(Inputs inputs) const override { return graph::mul(inputs[0], inputs[1]); }
  std::vector<Value> backward(const Value& gradient, Inputs inputs, const Value&) const override {
    return {graph::mul(gradient, inputs[1]), graph::mul(gradient, inputs[0])};
  }
};

/// x^3, with a backward that can be differentiated again, and counts its calls.
class Cube final : public Differentiable {
 public:
  Value forward(Inputs inputs) const override { return inputs[0] * inputs[0] * inputs[0]; }
  std::vector<Value> backward(const Value& gradient, Inputs inputs, const Value&) const override {
    ++backward_calls;
    return {gradient * inputs[0] * inputs[0] * 3.0};
  }
  mutable int backward_calls = 0;
};

struct Example {
  ComputationGraph graph;
  Tensor x = scalar(3, true);
  Tensor y = scalar(4, true);
  Tensor z = apply(graph, "mul", {x, y});
  Tensor w = apply(graph, "add", {z, x});
};

TEST(Tape, Example1511BackwardNeedsTheOtherOperand) {
  OpRegistry registry;
  const auto mul = std::make_shared<MulOp>();
  registry.register_op("mul", mul);
  EXPECT_EQ(registry.get("mul"), mul);
  const std::vector<Value> inputs{scalar(3, true).value(), scalar(4, true).value()};
  for (const autograd::OperatorPtr& op :
       {registry.get("mul"), autograd::default_registry()->get("mul")}) {
    const Value z = op->forward(inputs);
    const std::vector<Value> gradients = op->backward(scalar(1).value(), inputs, z);
    ASSERT_EQ(gradients.size(), 2u);
    EXPECT_EQ(number(gradients[0]), 4);
    EXPECT_EQ(number(gradients[1]), 3);
  }
}

TEST(Tape, Example1512UnknownNameIsAnErrorAndInsertsNothing) {
  OpRegistry empty;
  EXPECT_THROW(empty.get("relu"), UnregisteredOpError);
  EXPECT_EQ(empty.size(), 0u);
  const OpRegistry& registry = *autograd::default_registry();
  const std::vector<std::string> before = registry.names();
  try {
    registry.get("sofmax");
    FAIL() << "an unknown name was found";
  } catch (const UnregisteredOpError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("\"sofmax\""), std::string::npos) << message;
    EXPECT_NE(message.find("\"softmax\""), std::string::npos) << message;
  }
  EXPECT_EQ(registry.names(), before);
  EXPECT_FALSE(registry.contains("sofmax"));
}

TEST(Tape, DefaultRegistryHoldsEveryRowAndTheStructuralFamilies) {
  const OpRegistry& registry = *autograd::default_registry();
  for (const ops::ElementwiseRow& row : ops::elementwise_rows()) {
    EXPECT_TRUE(registry.contains(row.name)) << row.name;
  }
  for (const char* name : {"sum", "matmul", "conv2d", "softmax", "reshape", "gather", "concat"}) {
    EXPECT_TRUE(registry.contains(name)) << name;
  }
}

TEST(Tape, Example1521And1531FieldsOfTheTwoNodes) {
  const Example e;
  EXPECT_EQ(e.w.item(), 15);
  const std::vector<GraphNode> nodes = e.graph.nodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].op_name, "mul");
  EXPECT_EQ(nodes[1].op_name, "add");
  // Shared, not copied: the very nodes of the tensors.
  EXPECT_EQ(nodes[0].inputs[0].node(), e.x.value().node());
  EXPECT_EQ(nodes[0].inputs[1].node(), e.y.value().node());
  EXPECT_EQ(nodes[0].output.node(), e.z.value().node());
  EXPECT_EQ(nodes[1].inputs[0].node(), e.z.value().node());
  EXPECT_EQ(nodes[1].inputs[1].node(), e.x.value().node());
  EXPECT_EQ(number(nodes[0].output), 12);
  EXPECT_EQ(number(nodes[1].output), 15);
  for (const GraphNode& node : nodes) {
    EXPECT_EQ(number(node.grad), 0);
    EXPECT_TRUE(node.requires_grad);
  }
  EXPECT_EQ(grad_fn_index(e.z), 0);
  EXPECT_EQ(grad_fn_index(e.w), 1);
  EXPECT_EQ(grad_fn_index(e.x), -1);
}

TEST(Tape, Example1522AndQuestion2WhatRequiresGradGates) {
  ComputationGraph graph;
  const Tensor trained = scalar(3, true);
  const Tensor frozen = scalar(4);
  const Tensor z = apply(graph, "mul", {trained, frozen});
  EXPECT_EQ(graph.size(), 1u);
  EXPECT_TRUE(z.requires_grad());
  ComputationGraph folded;
  const Tensor plain = apply(folded, "mul", {scalar(3), frozen});
  EXPECT_EQ(folded.size(), 0u);
  EXPECT_FALSE(plain.requires_grad());
  EXPECT_EQ(grad_fn_index(plain), -1);
  EXPECT_EQ(plain.item(), 12);
}

TEST(Tape, NothingIsRecordedUnderNoGrad) {
  ComputationGraph graph;
  const Tensor x = scalar(3, true);
  const NoGrad scope;
  const Tensor z = apply(graph, "mul", {x, x});
  EXPECT_EQ(graph.size(), 0u);
  EXPECT_FALSE(z.requires_grad());
  EXPECT_EQ(z.item(), 9);
}

TEST(Tape, Example1541BackwardOrder) {
  const Example e;
  EXPECT_EQ(topological_backward_order(e.graph), (Order{1, 0}));
  EXPECT_EQ(topological_backward_order(e.graph, e.w), (Order{1, 0}));
  EXPECT_EQ(topological_backward_order(e.graph, e.z), (Order{0}));
  EXPECT_EQ(topological_backward_order(e.graph, e.x), (Order{}));
}

TEST(Tape, Example1542AndQuestions3And5ANodeThatIsNoAncestor) {
  ComputationGraph graph;
  const Tensor x = scalar(3, true);
  const Tensor y = scalar(4, true);
  const Tensor z = apply(graph, "mul", {x, y});
  const Tensor q = apply(graph, "sub", {x, scalar(1)});
  const Tensor w = apply(graph, "add", {z, x});
  const Tensor r = apply(graph, "mul", {q, x});
  EXPECT_EQ(topological_backward_order(graph), (Order{3, 2, 1, 0}));
  EXPECT_EQ(topological_backward_order(graph, w), (Order{2, 0}));
  EXPECT_EQ(topological_backward_order(graph, r), (Order{3, 1}));
  backward(graph, w);
  const std::vector<GraphNode> nodes = graph.nodes();
  EXPECT_EQ(number(nodes[0].grad), 1);
  EXPECT_EQ(number(nodes[1].grad), 0);
  EXPECT_EQ(number(nodes[2].grad), 1);
  EXPECT_EQ(x.grad().item(), 5);
  EXPECT_EQ(y.grad().item(), 3);
  // Running the unrelated operator's backward contributes zeros.
  const std::vector<Value> wasted =
      graph.registry().get("sub")->backward(nodes[1].grad, nodes[1].inputs, nodes[1].output);
  EXPECT_EQ(number(wasted[0]), 0);
}

TEST(Tape, Question1OtherNumbers) {
  ComputationGraph graph;
  const Tensor x = scalar(5, true);
  const Tensor y = scalar(2, true);
  const Tensor w = apply(graph, "add", {apply(graph, "mul", {x, y}), x});
  EXPECT_EQ(number(graph.nodes()[0].output), 10);
  EXPECT_EQ(w.item(), 15);
}

TEST(Tape, APassFindsGradientsThroughCallsThatWereNotRecorded) {
  ComputationGraph graph;
  const Tensor x = scalar(2, true);
  const Tensor u = apply(graph, "square", {x});
  const Tensor v = u * 3.0;  // not recorded
  const Tensor w = apply(graph, "mul", {v, x});
  EXPECT_EQ(topological_backward_order(graph, w), (Order{1, 0}));
  backward(graph, w);  // w = 3 x^3
  EXPECT_EQ(number(graph.nodes()[0].grad), 6);
  EXPECT_EQ(x.grad().item(), 36);
}

TEST(Tape, TheSameValueTwice) {
  ComputationGraph graph;
  const Tensor x = scalar(3, true);
  const Tensor z = apply(graph, "mul", {x, x});
  const Tensor again = record(graph, "mul", {x, x}, z);
  EXPECT_EQ(graph.size(), 2u);
  EXPECT_NE(again.value().node(), z.value().node());
  backward(graph, again);
  EXPECT_EQ(x.grad().item(), 6);
}

TEST(Tape, OperatorsAskedByThemselvesGiveEachInputItsOwnGradient) {
  const auto mul = autograd::default_registry()->get("mul");
  const Value x = scalar(3, true).value();
  const std::vector<Value> twice{x, x};
  const std::vector<Value> gradients = mul->backward(scalar(1).value(), twice, mul->forward(twice));
  EXPECT_EQ(number(gradients[0]), 3);
  EXPECT_EQ(number(gradients[1]), 3);
  // Also where nothing was recorded, and where the output is a composite of several nodes.
  const auto mean = autograd::default_registry()->get("mean");
  const std::vector<float> values{1, 2, 3, 4};
  const std::vector<Value> input{Tensor::from_values(values, {4}).value()};
  const Value result = mean->forward(input);
  EXPECT_EQ(Tensor(mean->backward(scalar(1).value(), input, result)[0]).to_floats(),
            std::vector<float>(4, 0.25f));
}

TEST(Tape, AResultWithoutHistoryGetsTheBuiltInGradient) {
  const Tensor x = scalar(3, true), y = scalar(4, true);
  for (const Tensor& result : {scalar(12), (x * y).detach(), scalar(12, true)}) {
    ComputationGraph graph;
    const Tensor q = record(graph, "mul", {x, y}, result);
    ASSERT_TRUE(q.requires_grad());
    backward(graph, q);
    EXPECT_EQ(number(graph.nodes()[0].grad), 1);
  }
  EXPECT_EQ(x.grad().item(), 12);
  EXPECT_EQ(y.grad().item(), 9);
}

TEST(Tape, ACustomOperatorInTheGraphUnderNoGradAndTwice) {
  OpRegistry registry;
  const auto cube = std::make_shared<Cube>();
  registry.register_op("cube", cube);
  const Tensor x = scalar(2, true);
  {
    const NoGrad scope;
    EXPECT_FALSE(apply("cube", {x}, registry).requires_grad());
  }
  const Tensor y = apply("cube", {x}, registry);
  EXPECT_EQ(y.item(), 8);
  const Tensor first = gradients(y, std::span(&x, 1), {}, true, true)[0];
  EXPECT_EQ(first.item(), 12);
  const Tensor second = gradients(first, std::span(&x, 1), {}, true, true)[0];
  EXPECT_EQ(second.item(), 12);
  y.backward();
  EXPECT_EQ(x.grad().item(), 12);
  EXPECT_GE(cube->backward_calls, 2);
}

TEST(Tape, ARecordUsesItsOwnRegistry) {
  const auto registry = std::make_shared<OpRegistry>();
  const auto cube = std::make_shared<Cube>();
  registry->register_op("cube", cube);
  ComputationGraph graph(registry);
  const Tensor x = scalar(2, true);
  const Tensor y = record(graph, "cube", {x}, x * x * x);
  backward(graph, y);
  EXPECT_EQ(cube->backward_calls, 1);
  EXPECT_EQ(x.grad().item(), 12);
  EXPECT_THROW(apply(graph, "mul", {x, x}), UnregisteredOpError);
  EXPECT_EQ(graph.size(), 1u);
}

TEST(Tape, BackwardFromAnUnrecordedValueIsAnError) {
  Example e;
  EXPECT_THROW(backward(e.graph, e.x), AutogradError);
  EXPECT_THROW(backward(e.graph, e.w * 2.0), AutogradError);
}

TEST(Tape, IndicesEndWithTheRecord) {
  Tensor z;
  {
    Example e;
    z = e.z;
    EXPECT_EQ(grad_fn_index(z), 0);
  }
  EXPECT_EQ(grad_fn_index(z), -1);
}

TEST(Tape, ALongRecordIsWalkedWithoutRecursion) {
  ComputationGraph graph;
  Tensor x = scalar(1, true);
  const Tensor start = x;
  constexpr int kCalls = 50'000;
  for (int i = 0; i < kCalls; ++i) x = apply(graph, "neg", {x});
  const Order order = topological_backward_order(graph, x);
  ASSERT_EQ(order.size(), static_cast<std::size_t>(kCalls));
  EXPECT_TRUE(std::ranges::is_sorted(order, std::greater<>()));
}

TEST(Tape, Hooks) {
  const Tensor x = scalar(3, true);
  const Tensor z = x * 2.0;
  std::vector<double> seen;
  HookHandle on_z = register_hook(z, [&](const Tensor& g) {
    seen.push_back(g.item());
    return g * 10.0;
  });
  register_hook(x, [&](const Tensor& g) {
    seen.push_back(g.item());
    return Tensor();
  });
  // z is used twice: the hook sees the sum, once.
  (z * z + z).backward({}, true);
  EXPECT_EQ(seen, (std::vector<double>{13, 260}));
  EXPECT_EQ(x.grad().item(), 260);
  on_z.remove();
  on_z.remove();
  seen.clear();
  (z * z + z).backward({}, true);
  EXPECT_EQ(seen, (std::vector<double>{26}));
  EXPECT_THROW(register_hook(scalar(1), [](const Tensor&) { return Tensor(); }), AutogradError);
  register_hook(z, [](const Tensor&) { return ones({2}); });
  EXPECT_THROW((z * 1.0).backward({}, true), ShapeError);
}

TEST(Tape, RegistryRefusesNothing) {
  OpRegistry registry;
  EXPECT_THROW(registry.register_op("", std::make_shared<Cube>()), ArgumentError);
  EXPECT_THROW(registry.register_op("cube", nullptr), ArgumentError);
  EXPECT_EQ(registry.size(), 0u);
}

}  // namespace
}  // namespace vkml
