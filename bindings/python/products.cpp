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
                       int rank_b, const char* first, const char* second,
                       const char* documentation) {
  def_both(
      m, tensor, name,
      [name, rank_a, rank_b](const Tensor& input, const Tensor& a, const Tensor& b, double beta,
                             double alpha) {
        check_rank(name, a, rank_a);
        check_rank(name, b, rank_b);
        return add_product(input, a, b, beta, alpha);
      },
      nb::arg(first), nb::arg(second), nb::kw_only(), nb::arg("beta") = 1.0, nb::arg("alpha") = 1.0,
      documentation);
}

double order_from(nb::handle p) {
  if (p.is_none()) return 2;
  if (!nb::isinstance<nb::str>(p)) return nb::cast<double>(nb::float_(p));
  const auto name = nb::cast<std::string>(p);
  if (name == "fro") return 2;
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  throw ArgumentError("[norm] p '" + name + "' is not a number, 'fro', 'nuc', 'inf' or '-inf'");
}

/// The letter of an axis that a sublist names by number.
std::string axis_letter(nb::handle axis) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const std::int64_t number = integer_from("einsum", axis);
  if (number < 0 || number >= static_cast<std::int64_t>(kLetters.size())) {
    throw ArgumentError("[einsum] axis " + std::to_string(number) + " is not in [0, 51]");
  }
  return std::string(1, kLetters[static_cast<std::size_t>(number)]);
}

void bind_products_of(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_product(m, tensor, "mm", "mat2", 2, 2, "The product of two matrices.");
  def_product(m, tensor, "bmm", "mat2", 3, 3, "Products of two batches of matrices.");
  def_product(m, tensor, "mv", "vec", 2, 1, "The product of a matrix and a vector.");
  def_both(m, tensor, "dot", &dot, nb::arg("tensor"), "The sum of products of two vectors.");
  def_both(m, tensor, "outer", &outer, nb::arg("vec2"), "The products a_i * b_j of two vectors.");
  def_both(
      m, tensor, "vecdot",
      [](const Tensor& a, const Tensor& b, nb::handle dim, nb::handle axis) {
        return sum(a * b, {axis_from("vecdot", dim, axis, -1)}, false);
      },
      nb::arg("other"), nb::arg("dim") = nb::none(), nb::arg("axis") = nb::none(),
      "Sums of products along an axis.");
  def_added_product(m, tensor, "addmm", 2, 2, "mat1", "mat2",
                    "beta * input + alpha * (mat1 @ mat2).");
  def_added_product(m, tensor, "addmv", 2, 1, "mat", "vec",
                    "beta * input + alpha * (matrix @ vector).");
  def_added_product(m, tensor, "baddbmm", 3, 3, "batch1", "batch2",
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
  m.def(
      "einsum",
      [](const Tensor& first, const nb::args& rest) {
        std::vector<Tensor> tensors{first};
        std::string equation;
        bool is_named = false;  // whether the last operand's axes were given
        const auto named = [&equation](nb::handle axes) {
          for (const nb::handle axis : axes) {
            equation += axis.ptr() == Py_Ellipsis ? "..." : axis_letter(axis);
          }
        };
        for (const nb::handle each : rest) {
          if (nb::isinstance<Tensor>(each)) {
            equation += ",";
            tensors.push_back(nb::cast<Tensor>(each));
            is_named = false;
          } else {
            if (is_named) equation += "->";
            named(each);
            is_named = true;
          }
        }
        return einsum(equation, tensors);
      },
      nb::arg("input"), nb::arg("operands"),
      "The same with a list of numbers for each operand's axes: einsum(a, [0, 1], b, [1, 2], [0, "
      "2]).");
}

void bind_statistics(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_both(
      m, tensor, "norm",
      [](const Tensor& given, nb::handle p, nb::handle dim, bool keepdim, nb::handle axis,
         bool keepdims, nb::handle dtype) {
        const Tensor x = dtype.is_none() ? given : to(given, dtype_from(dtype));
        if (nb::isinstance<nb::str>(p) && nb::cast<std::string>(p) == "nuc") {
          return nb::cast<Tensor>(
              nb::module_::import_("vkml.linalg")
                  .attr("norm")(x, "nuc", dim.is_none() ? axis : dim, keepdim || keepdims));
        }
        return norm(x, order_from(p), axes_of("norm", x, dim, axis), keepdim || keepdims);
      },
      nb::arg("p") = 2.0, nb::arg("dim") = nb::none(), nb::arg("keepdim") = false,
      nb::arg("axis") = nb::none(), nb::arg("keepdims") = false, nb::arg("dtype") = nb::none(),
      "sum(|x|^p)^(1 / p) over axes; the largest |x| for p = inf, the number of nonzeros for p = "
      "0. The gradient at 0 is 0.");
  def_both(
      m, tensor, "count_nonzero",
      [](const Tensor& x, nb::handle dim, bool keepdim, nb::handle axis, bool keepdims) {
        return count_nonzero(x, axes_of("count_nonzero", x, dim, axis), keepdim || keepdims);
      },
      nb::arg("dim") = nb::none(), nb::arg("keepdim") = false, nb::arg("axis") = nb::none(),
      nb::arg("keepdims") = false, "How many elements are not 0, as int32.");
  const auto nan_reduction = [&](const char* name, bool is_mean, const char* documentation) {
    def_both(
        m, tensor, name,
        [name, is_mean](const Tensor& given, nb::handle dim, bool keepdim, nb::handle axis,
                        bool keepdims, nb::handle dtype) {
          const Tensor x = dtype.is_none() ? given : to(given, dtype_from(dtype));
          const Extents axes = axes_of(name, x, dim, axis);
          const Tensor is_number = logical_not(isnan(x));
          const Tensor numbers = where(is_number, x, Tensor(0));
          if (!is_mean) return sum(numbers, axes, keepdim || keepdims);
          // A sum in half precision overflows where the mean does not.
          const bool is_half = is_floating(x.dtype()) && size_of(x.dtype()) == 2;
          const Tensor wide = is_half ? to(numbers, DType::kF32) : numbers;
          const Tensor total = sum(wide, axes, keepdim || keepdims);
          const Tensor count = count_nonzero(is_number, axes, keepdim || keepdims);
          const Tensor result = total / to(count, total.dtype());
          return is_half ? to(result, x.dtype()) : result;
        },
        nb::arg("dim") = nb::none(), nb::arg("keepdim") = false, nb::arg("axis") = nb::none(),
        nb::arg("keepdims") = false, nb::arg("dtype") = nb::none(), documentation);
  };
  nan_reduction("nansum", false, "The sum over axes of what is not NaN.");
  nan_reduction("nanmean", true, "The mean over axes of what is not NaN.");
  def_both(
      m, tensor, "aminmax",
      [](const Tensor& x, nb::handle dim, bool keepdim) {
        const Extents axes = axes_of("aminmax", x, dim, nb::none());
        return nb::make_tuple(min(x, axes, keepdim), max(x, axes, keepdim));
      },
      nb::kw_only(), nb::arg("dim") = nb::none(), nb::arg("keepdim") = false,
      "The pair (smallest, largest).");
  const auto with_mean = [&](const char* name, bool root, const char* documentation) {
    def_both(
        m, tensor, name,
        [name, root](const Tensor& x, nb::handle dim, double correction, bool keepdim) {
          const Extents axes = axes_of(name, x, dim, nb::none());
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
