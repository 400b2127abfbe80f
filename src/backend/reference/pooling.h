// Pooling over windows of two axes, from the definitions beside ops::CoreKind.
#pragma once

#include "array.h"

namespace vkml::reference {

void max_pool(const Array& x, const graph::Attributes& attributes, Array& out);
void max_pool_indices(const Array& x, const graph::Attributes& attributes, Array& out);
void max_pool_gradient(const Array& gradient, const Array& indices, Array& out);
void average_pool(const Array& x, const graph::Attributes& attributes, Array& out);
void average_pool_gradient(const Array& gradient, const graph::Attributes& attributes, Array& out);

}  // namespace vkml::reference
