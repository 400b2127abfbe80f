// x[...] in the name of the operator that a user called.
#pragma once

#include "vkml/api/tensor.h"

namespace vkml {

/// x[index], a view. Errors carry the name `op`.
Tensor index_as(const char* op, const Tensor& x, const Index& index);

}  // namespace vkml
