// The operators that are no rows of the elementwise table, by the names that nodes, errors and the
// record of calls know them by. One row each:
// - VKML_OPERATOR(name, inputs, call): `call` gives the operator of its inputs x[0], x[1], ...,
// with
//   every parameter at its default;
// - VKML_PARAMETRIC_OPERATOR(name): has parameters without defaults, so it can be recorded, and not
//   applied by name alone.
// kAnyArity inputs are as many as there are. Included several times; no include guard.

// Reductions over all axes
VKML_OPERATOR(sum, 1, graph::sum(x[0], {}, false))
VKML_OPERATOR(mean, 1, graph::mean(x[0], {}, false))
VKML_OPERATOR(prod, 1, graph::prod(x[0], {}, false))
VKML_OPERATOR(max, 1, graph::max(x[0], {}, false))
VKML_OPERATOR(min, 1, graph::min(x[0], {}, false))
VKML_OPERATOR(argmax, 1, graph::argmax(x[0], {}, false))
VKML_OPERATOR(argmin, 1, graph::argmin(x[0], {}, false))
VKML_OPERATOR(any, 1, graph::any(x[0], {}, false))
VKML_OPERATOR(all, 1, graph::all(x[0], {}, false))
VKML_OPERATOR(logsumexp, 1, graph::logsumexp(x[0], {}, false))
VKML_OPERATOR(var, 1, graph::variance(x[0], {}, false, 1))
VKML_OPERATOR(std, 1, graph::standard_deviation(x[0], {}, false, 1))
VKML_OPERATOR(norm, 1, graph::norm(x[0], 2, {}, false))

// Along the last axis
VKML_OPERATOR(softmax, 1, graph::softmax(x[0], -1))
VKML_OPERATOR(log_softmax, 1, graph::log_softmax(x[0], -1))
VKML_OPERATOR(cumsum, 1, graph::cumsum(x[0], -1))
VKML_OPERATOR(cumprod, 1, graph::cumprod(x[0], -1))
VKML_OPERATOR(logcumsumexp, 1, graph::logcumsumexp(x[0], -1))
VKML_OPERATOR(linear_recurrence, 2, graph::linear_recurrence(x[0], x[1], -1))
VKML_OPERATOR(argsort, 1, graph::argsort(x[0], -1, false))
VKML_OPERATOR(sort, 1,
              graph::gather(x[0], -1, graph::argsort(graph::detach(x[0]), -1, false), "sort"))
VKML_OPERATOR(searchsorted, 2, graph::search_sorted(x[0], x[1], false))
VKML_PARAMETRIC_OPERATOR(topk)
VKML_PARAMETRIC_OPERATOR(polygamma)
VKML_PARAMETRIC_OPERATOR(cummax)
VKML_PARAMETRIC_OPERATOR(cummin)

// Products, convolution, pooling
VKML_OPERATOR(matmul, 2, graph::matmul(x[0], x[1]))
VKML_OPERATOR(bmm, 2, graph::matmul(x[0], x[1]))
VKML_OPERATOR(dot, 2, graph::dot(x[0], x[1]))
VKML_OPERATOR(outer, 2, graph::outer(x[0], x[1]))
VKML_OPERATOR(conv2d, 2, graph::conv2d(x[0], x[1], {}))
VKML_OPERATOR(conv_transpose2d, 2, graph::conv_transpose2d(x[0], x[1], {}, {0, 0}))
VKML_OPERATOR(max_pool2d, 1, graph::max_pool2d(x[0], {}))
VKML_OPERATOR(avg_pool2d, 1, graph::avg_pool2d(x[0], {}))
VKML_OPERATOR(scaled_dot_product_attention, 3,
              graph::scaled_dot_product_attention(x[0], x[1], x[2], {}, {}))
VKML_PARAMETRIC_OPERATOR(einsum)
VKML_PARAMETRIC_OPERATOR(tensordot)

// Views and arrangement
VKML_OPERATOR(contiguous, 1, graph::contiguous(x[0]))
VKML_OPERATOR(detach, 1, graph::detach(x[0]))
VKML_OPERATOR(concat, kAnyArity, graph::concat(x, 0))
VKML_OPERATOR(cat, kAnyArity, graph::concat(x, 0))
VKML_OPERATOR(tril, 1, graph::triangle(x[0], 0, false))
VKML_OPERATOR(triu, 1, graph::triangle(x[0], 0, true))
VKML_PARAMETRIC_OPERATOR(reshape)
VKML_PARAMETRIC_OPERATOR(permute)
VKML_PARAMETRIC_OPERATOR(transpose)
VKML_PARAMETRIC_OPERATOR(squeeze)
VKML_PARAMETRIC_OPERATOR(unsqueeze)
VKML_PARAMETRIC_OPERATOR(flatten)
VKML_PARAMETRIC_OPERATOR(broadcast_to)
VKML_PARAMETRIC_OPERATOR(slice)
VKML_PARAMETRIC_OPERATOR(pad)
VKML_PARAMETRIC_OPERATOR(stack)
VKML_PARAMETRIC_OPERATOR(flip)
VKML_PARAMETRIC_OPERATOR(roll)
VKML_PARAMETRIC_OPERATOR(cast)

// Selection by index
VKML_OPERATOR(take, 2, graph::take(x[0], x[1], 0))
VKML_PARAMETRIC_OPERATOR(getitem)
VKML_PARAMETRIC_OPERATOR(setitem)
VKML_PARAMETRIC_OPERATOR(index_put)
VKML_PARAMETRIC_OPERATOR(gather)
VKML_PARAMETRIC_OPERATOR(index_select)
VKML_PARAMETRIC_OPERATOR(index_add)
VKML_PARAMETRIC_OPERATOR(index_copy)
VKML_PARAMETRIC_OPERATOR(index_fill)
VKML_PARAMETRIC_OPERATOR(scatter_reduce)
VKML_PARAMETRIC_OPERATOR(take_along_axis)
VKML_PARAMETRIC_OPERATOR(take_along_dim)
VKML_PARAMETRIC_OPERATOR(embedding)
VKML_PARAMETRIC_OPERATOR(one_hot)
VKML_PARAMETRIC_OPERATOR(masked_scatter)
VKML_PARAMETRIC_OPERATOR(scatter)
VKML_PARAMETRIC_OPERATOR(scatter_add)
VKML_PARAMETRIC_OPERATOR(scatter_prod)
VKML_PARAMETRIC_OPERATOR(scatter_amax)
VKML_PARAMETRIC_OPERATOR(scatter_amin)

// Networks
VKML_PARAMETRIC_OPERATOR(dropout)
VKML_PARAMETRIC_OPERATOR(normalize)
VKML_PARAMETRIC_OPERATOR(layer_norm)
VKML_PARAMETRIC_OPERATOR(cross_entropy)

#undef VKML_OPERATOR
#undef VKML_PARAMETRIC_OPERATOR
