// Chapter 15 on real tensors: each worked example (15.1.1 to 15.4.2) and each self-check question,
// with numbers that are computed here.
//
//   chapter15 [device]     for example chapter15 vulkan

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "vkml/api/autograd.h"
#include "vkml/api/vkml.h"

namespace {

using vkml::Tensor;
using vkml::autograd::ComputationGraph;
using vkml::autograd::default_registry;
using vkml::autograd::GraphNode;
using vkml::autograd::OpRegistry;
using vkml::graph::Value;

Tensor trained(float value) { return vkml::full({}, value).requires_grad_(); }
Tensor frozen(float value) { return vkml::full({}, value); }
double number(const Value& value) { return Tensor(value).item(); }

const char* text(bool value) { return value ? "true" : "false"; }

std::string joined(const std::vector<std::string>& parts) {
  std::string line = "[";
  for (const std::string& part : parts) line += (line.size() > 1 ? ", " : "") + part;
  return line + "]";
}

std::string order_text(const std::vector<int>& order) {
  std::vector<std::string> parts;
  for (const int index : order) parts.push_back(std::to_string(index));
  return joined(parts);
}

std::string names_text(const ComputationGraph& graph) {
  std::vector<std::string> parts;
  for (const GraphNode& node : graph.nodes()) parts.push_back(node.op_name);
  return joined(parts);
}

/// w = x * y + x, recorded.
struct RunningExample {
  RunningExample(float x_value, float y_value) : x(trained(x_value)), y(trained(y_value)) {
    z = vkml::apply(graph, "mul", {x, y});
    w = vkml::apply(graph, "add", {z, x});
  }
  ComputationGraph graph;
  Tensor x, y, z, w;
};

void print_nodes(const ComputationGraph& graph) {
  const char* const inputs[2][2] = {{"x", "y"}, {"z", "x"}};
  const char* const outputs[2] = {"z", "w"};
  const std::vector<GraphNode> nodes = graph.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    std::printf(
        "GraphNode #%zu: op_name=%s, inputs=[%s=%.1f, %s=%.1f], output=%s=%.1f, grad=%.1f\n", i,
        node.op_name.c_str(), inputs[i][0], number(node.inputs[0]), inputs[i][1],
        number(node.inputs[1]), outputs[i], number(node.output), number(node.grad));
  }
}

void example_15_1_1() {
  std::printf("\n15.1.1  An operator in both directions\n");
  const auto mul = default_registry()->get("mul");
  std::printf("registry.get(\"mul\") succeeded: %s\n", text(mul != nullptr));
  const std::vector<Value> inputs{trained(3).value(), trained(4).value()};
  const Value z = mul->forward(inputs);
  const std::vector<Value> gradients = mul->backward(frozen(1).value(), inputs, z);
  std::printf("mul.backward(grad_output=1.0, x=3.0, y=4.0): dz/dx=%.1f (=y), dz/dy=%.1f (=x)\n",
              number(gradients[0]), number(gradients[1]));
}

void look_up(const OpRegistry& registry, const std::string& name) {
  const std::size_t before = registry.size();
  try {
    registry.get(name);
    std::printf("registry.get(\"%s\") succeeded\n", name.c_str());
  } catch (const vkml::UnregisteredOpError& error) {
    std::printf("UnregisteredOpError: %s\n", error.what());
  }
  std::printf("a phantom entry was inserted: %s\n", text(registry.size() != before));
}

void example_15_1_2() {
  std::printf("\n15.1.2  A name that nobody registered, in debug and release builds alike\n");
  look_up(OpRegistry(), "relu");
  look_up(*default_registry(), "rellu");
}

void example_15_2_1() {
  std::printf("\n15.2.1  The two nodes of w = x*y + x\n");
  print_nodes(RunningExample(3, 4).graph);
}

void print_gating(const char* what, const Tensor& a, const Tensor& b) {
  ComputationGraph graph;
  const Tensor result = vkml::apply(graph, "mul", {a, b});
  std::printf("mul(%s) -> node created? %s (nodes=%zu), value=%.1f, requires_grad=%s\n", what,
              text(graph.size() > 0), graph.size(), result.item(), text(result.requires_grad()));
}

void example_15_2_2() {
  std::printf("\n15.2.2  What requires_grad gates\n");
  print_gating("x [requires_grad=true], y [requires_grad=false]", trained(3), frozen(4));
}

void example_15_3_1() {
  std::printf("\n15.3.1  The graph, one call at a time\n");
  const RunningExample e(3, 4);
  std::printf("w = %.1f\ngraph.nodes.size() = %zu\n", e.w.item(), e.graph.size());
  const std::vector<GraphNode> nodes = e.graph.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::printf("graph.nodes[%zu] = GraphNode(\"%s\", output=%.1f)\n", i, nodes[i].op_name.c_str(),
                number(nodes[i].output));
  }
  print_gating("both requires_grad=false", frozen(3), frozen(4));
}

void example_15_4_1() {
  std::printf("\n15.4.1  The order of the backward pass\n");
  const RunningExample e(3, 4);
  std::printf("forward order: %s\n", names_text(e.graph).c_str());
  std::printf("backward order (indices): %s\n",
              order_text(topological_backward_order(e.graph)).c_str());
}

/// The running example with q = x - 1 between its calls.
struct UnusedNode {
  ComputationGraph graph;
  Tensor x = trained(3), y = trained(4);
  Tensor z = vkml::apply(graph, "mul", {x, y});
  Tensor q = vkml::apply(graph, "sub", {x, frozen(1)});
  Tensor w = vkml::apply(graph, "add", {z, x});
};

void example_15_4_2() {
  std::printf("\n15.4.2  A node that is recorded but no ancestor of w\n");
  UnusedNode e;
  std::printf("graph.nodes in append order: %s\n", names_text(e.graph).c_str());
  std::printf("topological_backward_order(graph): %s\n",
              order_text(topological_backward_order(e.graph)).c_str());
  std::printf("topological_backward_order(graph, w): %s\n",
              order_text(topological_backward_order(e.graph, e.w)).c_str());
  backward(e.graph, e.w);
  const GraphNode sub = e.graph.nodes()[1];
  std::printf("w = %.1f; after backward(w): x.grad = %.1f, y.grad = %.1f\n", e.w.item(),
              e.x.grad().item(), e.y.grad().item());
  std::printf("graph.nodes[1] (\"%s\", producing q=%.1f).grad = %.1f\n", sub.op_name.c_str(),
              number(sub.output), number(sub.grad));
}

void question_1() {
  std::printf("\nQuestion 1  The same nodes with x = 5, y = 2\n");
  print_nodes(RunningExample(5, 2).graph);
}

void question_2() {
  std::printf(
      "\nQuestion 2  Both operands frozen: no input asks for a gradient, so nothing is kept\n");
  print_gating("x, y [requires_grad=false]", frozen(3), frozen(4));
}

void question_3() {
  std::printf("\nQuestion 3  r = q * x after w: sub becomes an ancestor of r, not of w\n");
  UnusedNode e;
  const Tensor r = vkml::apply(e.graph, "mul", {e.q, e.x});
  std::printf("ancestors of r: %s, of w: %s\n",
              order_text(topological_backward_order(e.graph, r)).c_str(),
              order_text(topological_backward_order(e.graph, e.w)).c_str());
  backward(e.graph, e.w);
  std::printf("x.grad = %.1f with sub in the record", e.x.grad().item());
  RunningExample without(3, 4);
  backward(without.graph, without.w);
  std::printf(", %.1f without it\n", without.x.grad().item());
}

void question_4() {
  std::printf(
      "\nQuestion 4  get(\"relu\") before relu is registered: the same error in every build\n");
  OpRegistry registry;
  registry.register_op("mul", default_registry()->get("mul"));
  look_up(registry, "relu");
}

void question_5() {
  std::printf("\nQuestion 5  Zero gradients are harmless: running sub's backward by mistake\n");
  UnusedNode e;
  const GraphNode sub = e.graph.nodes()[1];
  const std::vector<Value> contributions =
      default_registry()->get("sub")->backward(sub.grad, sub.inputs, sub.output);
  std::printf("grad = %.1f, its contribution to x = %.1f\n", number(sub.grad),
              number(contributions[0]));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1) vkml::set_default_device(vkml::parse_device(argv[1]));
  example_15_1_1();
  example_15_1_2();
  example_15_2_1();
  example_15_2_2();
  example_15_3_1();
  example_15_4_1();
  example_15_4_2();
  question_1();
  question_2();
  question_3();
  question_4();
  question_5();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
