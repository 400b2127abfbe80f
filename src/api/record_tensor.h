// From a recorded value to the tensor a user gets.
#pragma once

#include "vkml/api/tensor.h"
#include "vkml/graph/value.h"

namespace vkml {

/// Wraps the value; computes it at once in eager mode, or when the chain below it has grown too
/// long.
Tensor record(graph::Value value);
/// The same for a view of `base`: assigning through it changes the base.
Tensor record_view(const graph::Value& value, const Tensor& base, const graph::Value& base_value);

/// Gives a tensor another value of its shape and dtype, which its copies, its base and its views
/// show from now on; computes it as record() does.
void assign_to(const Tensor& tensor, const graph::Value& value);

/// A number takes the device of the tensor it meets.
graph::Value on_device(const graph::Value& value, Device device);
/// Whether it must do so to get there.
bool is_number_elsewhere(const graph::Value& value, Device device);

}  // namespace vkml
