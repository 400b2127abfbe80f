// What realize() would do, as data. Not part of vkml.h: it shows the layers below.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vkml/api/tensor.h"
#include "vkml/dispatch/plan_description.h"
#include "vkml/graph/op_info.h"

namespace vkml {

using dispatch::NodeDescription;
using dispatch::PlanDescription;

/// The graph below some tensors of one device, and its plan. Has no effect.
PlanDescription describe(std::span<const Tensor> tensors);

/// What a node's gradient rule is said to read, and what it reads.
struct RuleReads {
  std::string op;
  std::size_t sources = 0;
  graph::GradientReads declared, found;
};
/// Of each node below some tensors that has a rule of its operator. For tests.
std::vector<RuleReads> gradient_reads(std::span<const Tensor> tensors);

}  // namespace vkml
