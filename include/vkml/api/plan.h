// What realize() would do, as data. Not part of vkml.h: it shows the layers below.
#pragma once

#include <span>

#include "vkml/api/tensor.h"
#include "vkml/dispatch/plan_description.h"

namespace vkml {

using dispatch::NodeDescription;
using dispatch::PlanDescription;

/// The graph below some tensors of one device, and its plan. Has no effect.
PlanDescription describe(std::span<const Tensor> tensors);

}  // namespace vkml
