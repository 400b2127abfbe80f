// Products of vectors and matrices, norms and other statistics.

#include <limits>

#include "define.h"

namespace vkml::python {
namespace {

void check_rank(const char* op, const Tensor& x, int rank) {
  if (x.rank() == rank) return;
  throw ShapeError(std::string("[") + op + "] needs tensors of rank " + std::to_string(rank) +
                   ", not shape " + x.shape().to_string());
}

/// A product of operands of fixed ranks, as a function and a method.
void def_product(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, const char* other,
                 int rank_a, int rank_b, const char* documentation) {
  def_both(
      m, tensor, name,
      [name, rank_a, rank_b](const Tensor& a, const Tensor& b) {
        check_rank(name, a, rank_a);
        check_rank(name, b, rank_b);
        return matmul(a, b);
      },
      nb::arg(other), documentation);
}

void def_added_product(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, int rank_a,
                       int rank_b, const char* documentation) {
  def_both(
      m, tensor, name,
      [name, rank_a, rank_b](const Tensor& input, const Tensor& a, const Tensor& b, double beta,
                             double alpha) {
        check_rank(name, a, rank_a);
        check_rank(name, b, rank_b);
        return add_product(input, a, b, beta, alpha);
      },
      nb::arg("mat1"), nb::arg("mat2"), nb::kw_only(), nb::arg("beta") = 1.0,
      nb::arg("alpha") = 1.0, documentation);
}

double order_from(nb::handle p) {
  if (p.is_none()) return 2;
  if (!nb::isinstance<nb::str>(p)) return nb::cast<double>(nb::float_(p));
  const auto name = nb::cast<std::string>(p);
  if (name == "fro") return 2;
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  throw ArgumentError("[norm] p '" + name + "' is not a number, 'fro', 'inf' or '-inf'");
}

void bind_products_of(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_product(m, tensor, "mm", "mat2", 2, 2, "The product of two matrices.");
  def_product(m, tensor, "bmm", "mat2", 3, 3, "Products of two batches of matrices.");
  def_product(m, tensor, "mv", "vec", 2, 1, "The product of a matrix and a vector.");
  def_both(m, tensor, "dot", &dot, nb::arg("other"), "The sum of products of two vectors.");
  def_both(m, tensor, "outer", &outer, nb::arg("vec2"), "The products a_i * b_j of two vectors.");
  def_both(
      m, tensor, "vecdot",
      [](const Tensor& a, const Tensor& b, nb::handle dim, nb::handle axis) {
        return sum(a * b, {axis_from("vecdot", dim, axis, -1)}, false);
      },
      nb::arg("other"), nb::arg("dim") = nb::none(), nb::arg("axis") = nb::none(),
      "Sums of products along an axis.");
  def_added_product(m, tensor, "addmm", 2, 2, "beta * input + alpha * (mat1 @ mat2).");
  def_added_product(m, tensor, "addmv", 2, 1, "beta * input + alpha * (matrix @ vector).");
  def_added_product(m, tensor, "baddbmm", 3, 3,
                    "beta * input + alpha * (batch1 @ batch2), for batches of matrices.");
  m.def(
      "tensordot",
      [](const Tensor& a, const Tensor& b, nb::handle dims) {
        Extents axes_a, axes_b;
        if (nb::isinstance<nb::sequence>(dims)) {
          const nb::object first = dims[0], second = dims[1];
          axes_a = extents_from("tensordot", nb::handle(first));
          axes_b = extents_from("tensordot", nb::handle(second));
        } else {
          const auto count = nb::cast<std::int64_t>(dims);
          for (std::int64_t i = 0; i < count; ++i) {
            axes_a.push_back(a.rank() - count + i);
            axes_b.push_back(i);
          }
        }
        return tensordot(a, b, axes_a, axes_b);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("dims") = 2,
      "Sums of products over the last axes of a and the first of b, or over two lists of axes.");
  m.def(
      "einsum",
      [](const std::string& equation, const nb::args& operands) {
        const bool is_list = operands.size() == 1 && !nb::isinstance<Tensor>(operands[0]);
        const auto tensors =
            nb::cast<std::vector<Tensor>>(is_list ? nb::handle(operands[0]) : nb::handle(operands));
        return einsum(equation, tensors);
      },
      nb::arg("equation"), nb::arg("operands"),
      "Sums of products in Einstein's notation: einsum('bij,bjk->bik', a, b). Operands are "
      "contracted from left to right.");
}

void bind_statistics(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_both(
      m, tensor, "norm",
      [](const Tensor& x, nb::handle p, nb::handle dim, bool keepdim, nb::handle axis,
         bool keepdims) {
        return norm(x, order_from(p), axes_from("norm", dim, axis), keepdim || keepdims);
      },
      nb::arg("p") = 2.0, nb::arg("dim") = nb::none(), nb::arg("keepdim") = false,
      nb::arg("axis") = nb::none(), nb::arg("keepdims") = false,
      "sum(|x|^p)^(1 / p) over axes; the largest |x| for p = inf, the number of nonzeros for p = "
      "0. The gradient at 0 is 0.");
  def_both(
      m, tensor, "count_nonzero",
      [](const Tensor& x, nb::handle dim, bool keepdim, nb::handle axis, bool keepdims) {
        return count_nonzero(x, axes_from("count_nonzero", dim, axis), keepdim || keepdims);
      },
      nb::arg("dim") = nb::none(), nb::arg("keepdim") = false, nb::arg("axis") = nb::none(),
      nb::arg("keepdims") = false, "How many elements are not 0, as int32.");
  const auto nan_reduction = [&](const char* name, bool is_mean, const char* documentation) {
    def_both(
        m, tensor, name,
        [name, is_mean](const Tensor& x, nb::handle dim, bool keepdim, nb::handle axis,
                        bool keepdims) {
          const Extents axes = axes_from(name, dim, axis);
          const Tensor is_number = logical_not(isnan(x));
          Tensor total = sum(where(is_number, x, Tensor(0)), axes, keepdim || keepdims);
          if (!is_mean) return total;
          return total / to(count_nonzero(is_number, axes, keepdim || keepdims), total.dtype());
        },
        nb::arg("dim") = nb::none(), nb::arg("keepdim") = false, nb::arg("axis") = nb::none(),
        nb::arg("keepdims") = false, documentation);
  };
  nan_reduction("nansum", false, "The sum over axes of what is not NaN.");
  nan_reduction("nanmean", true, "The mean over axes of what is not NaN.");
  def_both(
      m, tensor, "aminmax",
      [](const Tensor& x, nb::handle dim, bool keepdim) {
        const Extents axes = axes_from("aminmax", dim, nb::none());
        return nb::make_tuple(min(x, axes, keepdim), max(x, axes, keepdim));
      },
      nb::kw_only(), nb::arg("dim") = nb::none(), nb::arg("keepdim") = false,
      "The pair (smallest, largest).");
  const auto with_mean = [&](const char* name, bool root, const char* documentation) {
    def_both(
        m, tensor, name,
        [name, root](const Tensor& x, nb::handle dim, double correction, bool keepdim) {
          const Extents axes = axes_from(name, dim, nb::none());
          const Tensor spread = root ? standard_deviation(x, axes, keepdim, correction)
                                     : var(x, axes, keepdim, correction);
          return nb::make_tuple(spread, mean(x, axes, keepdim));
        },
        nb::arg("dim") = nb::none(), nb::kw_only(), nb::arg("correction") = 1.0,
        nb::arg("keepdim") = false, documentation);
  };
  with_mean("std_mean", true, "The pair (std, mean).");
  with_mean("var_mean", false, "The pair (var, mean).");
}

}  // namespace

void bind_products(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_products_of(m, tensor);
  bind_statistics(m, tensor);
}

}  // namespace vkml::python
