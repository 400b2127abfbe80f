// Keywords that choose among rows of the elementwise table, or combine a few of them: overloads of
// the functions and methods that the rows already have.

#include <algorithm>
#include <cmath>

#include "define.h"
#include "vkml/core/dtype.h"
#include "vkml/core/error.h"

namespace vkml::python {
namespace {

Tensor divide(nb::handle input, nb::handle other, const std::optional<std::string>& rounding_mode) {
  const Tensor a = operand_from(input, "div");
  const Tensor b = operand_from(other, "div");
  if (!rounding_mode) return a / b;
  if (*rounding_mode == "floor") return floor_divide(a, b);
  if (*rounding_mode == "trunc") return trunc_divide(a, b);
  throw ArgumentError("[div] rounding_mode is '" + *rounding_mode +
                      "'. Pass None, 'trunc' or 'floor'");
}

Tensor scaled(nb::handle other, nb::handle alpha, const char* op) {
  return operand_from(other, op) * operand_from(alpha, op);
}

Tensor round_decimals(nb::handle input, int decimals) {
  const Tensor x = operand_from(input, "round");
  if (decimals == 0 || !is_floating(x.dtype())) return round(x);
  // Powers of ten are exact as whole numbers alone.
  const Tensor scale(std::pow(10.0, std::abs(decimals)));
  return decimals > 0 ? round(x * scale) / scale : round(x / scale) * scale;
}

Tensor clamp_ends(nb::handle input, nb::handle low, nb::handle high) {
  const Tensor x = operand_from(input, "clamp");
  if (low.is_none() && high.is_none()) {
    throw ArgumentError("[clamp] min and max are both None. Give one of them");
  }
  if (high.is_none()) return clamp_min(x, operand_from(low, "clamp"));
  return clamp_max(x, operand_from(high, "clamp"));
}

Tensor gelu_by(nb::handle input, const std::string& approximate) {
  const Tensor x = operand_from(input, "gelu");
  if (approximate == "none") return gelu(x);
  if (approximate == "tanh") return gelu_tanh(x);
  throw ArgumentError("[gelu] approximate is '" + approximate + "'. Pass 'none' or 'tanh'");
}

/// One weight, or one for each channel: along axis 1, where there is one.
Tensor prelu(nb::handle input, const Tensor& weight) {
  const Tensor x = operand_from(input, "prelu");
  const std::int64_t channels = x.rank() >= 2 ? x.size(1) : 1;
  if (weight.numel() != 1 && weight.numel() != channels) {
    throw ShapeError("[prelu] " + std::to_string(weight.numel()) + " weights for the " +
                     std::to_string(channels) + " channels of shape " + x.shape().to_string() +
                     ". Pass one weight, or one for each channel");
  }
  Extents extents(static_cast<std::size_t>(std::max(x.rank(), 1)), 1);
  if (weight.numel() != 1) extents[1] = channels;
  const Tensor slopes = x.rank() == 0 ? reshape(weight, {}) : reshape(weight, extents);
  return leaky_relu(x, slopes);
}

Tensor logit_within(nb::handle input, double eps) {
  const Tensor x = operand_from(input, "logit");
  return logit(clamp(x, Tensor(eps), Tensor(1.0 - eps)));
}

/// The dtype's own limit where an end is None; integers have no infinity to replace.
Tensor replace_nonfinite(nb::handle input, nb::handle nan, nb::handle posinf, nb::handle neginf) {
  Tensor x = operand_from(input, "nan_to_num");
  if (!is_floating(x.dtype())) return x;
  const double limit = largest_number(x.dtype());
  return nan_to_num(x, operand_from(nan, "nan_to_num"),
                    posinf.is_none() ? Tensor(limit) : operand_from(posinf, "nan_to_num"),
                    neginf.is_none() ? Tensor(-limit) : operand_from(neginf, "nan_to_num"));
}

Tensor polygamma(std::int64_t n, nb::handle input) {
  return vkml::polygamma(n, operand_from(input, "polygamma"));
}

Tensor close_with_nan(nb::handle input, nb::handle other, nb::handle rtol, nb::handle atol,
                      bool equal_nan) {
  const Tensor a = operand_from(input, "isclose");
  const Tensor b = operand_from(other, "isclose");
  const Tensor is_close =
      isclose(a, b, operand_from(rtol, "isclose"), operand_from(atol, "isclose"));
  return equal_nan ? logical_or(is_close, logical_and(isnan(a), isnan(b))) : is_close;
}

bool is_true(const Tensor& condition) {
  const nb::gil_scoped_release release;
  return all(condition).item_integer() != 0;
}

/// The multivariate gamma function's logarithm: p (p - 1) / 4 log(pi) and the lgamma of p points.
Tensor mvlgamma(nb::handle input, std::int64_t p) {
  const Tensor x = operand_from(input, "mvlgamma");
  if (p < 1) {
    throw ArgumentError("[mvlgamma] p is " + std::to_string(p) + ". Pass a positive number");
  }
  constexpr double kLogPi = 1.14472988584940017414;
  Tensor sum = lgamma(x) + Tensor(static_cast<double>(p * (p - 1)) / 4 * kLogPi);
  for (std::int64_t j = 1; j < p; ++j) {
    sum = sum + lgamma(x - Tensor(static_cast<double>(j) / 2));
  }
  return sum;
}

}  // namespace

void bind_keywords(nb::module_& m, nb::class_<Tensor>& tensor) {
  for (const char* name : {"div", "divide"}) {
    def_with_inplace(
        m, tensor, name, in_place(name), &divide, nb::arg("other"), nb::kw_only(),
        nb::arg("rounding_mode").none(),
        "a / b; 'trunc' rounds the quotient toward zero, 'floor' toward minus infinity.");
  }
  def_with_inplace(
      m, tensor, "add", "add_",
      [](nb::handle input, nb::handle other, nb::handle alpha) {
        return operand_from(input, "add") + scaled(other, alpha, "add");
      },
      nb::arg("other"), nb::kw_only(), nb::arg("alpha"), "input + alpha * other.");
  for (const char* name : {"sub", "subtract"}) {
    def_with_inplace(
        m, tensor, name, in_place(name),
        [](nb::handle input, nb::handle other, nb::handle alpha) {
          return operand_from(input, "sub") - scaled(other, alpha, "sub");
        },
        nb::arg("other"), nb::kw_only(), nb::arg("alpha"), "input - alpha * other.");
  }
  def_with_inplace(m, tensor, "round", "round_", &round_decimals, nb::kw_only(),
                   nb::arg("decimals"),
                   "The nearest multiple of 10^-decimals; halves go to the even one.");
  for (const char* name : {"clamp", "clip"}) {
    def_with_inplace(m, tensor, name, in_place(name), &clamp_ends, nb::arg("min") = nb::none(),
                     nb::arg("max") = nb::none(), "Limits from one side; NaN stays.");
  }
  def_both(m, tensor, "gelu", &gelu_by, nb::kw_only(), nb::arg("approximate"),
           "'none' for the exact function, 'tanh' for its approximation.");
  def_both(m, tensor, "prelu", &prelu, nb::arg("weight"),
           "x where x > 0, weight * x elsewhere; one weight, or one for each channel (axis 1).");
  def_with_inplace(m, tensor, "nan_to_num", "nan_to_num_", &replace_nonfinite, nb::arg("nan") = 0.0,
                   nb::arg("posinf") = nb::none(), nb::arg("neginf") = nb::none(),
                   "NaN and infinities replaced; by default by 0 and the dtype's ends.");
  def_with_inplace(m, tensor, "logit", "logit_", &logit_within, nb::arg("eps"),
                   "log(x / (1 - x)) of the input limited to [eps, 1 - eps].");
  def_both(m, tensor, "isclose", &close_with_nan, nb::arg("other"), nb::arg("rtol") = 1e-5,
           nb::arg("atol") = 1e-8, nb::kw_only(), nb::arg("equal_nan"),
           "isclose where, on request, NaN is close to NaN.");
  def_both(
      m, tensor, "allclose",
      [](nb::handle input, nb::handle other, nb::handle rtol, nb::handle atol, bool equal_nan) {
        return is_true(close_with_nan(input, other, rtol, atol, equal_nan));
      },
      nb::arg("other"), nb::arg("rtol") = 1e-5, nb::arg("atol") = 1e-8,
      nb::arg("equal_nan") = false, "Whether isclose holds everywhere, as a bool. Waits.");
  def_both(
      m, tensor, "equal",
      [](const Tensor& a, const Tensor& b) {
        return a.shape().same_extents(b.shape()) && is_true(eq(a, b));
      },
      nb::arg("other"), "Whether two tensors have one shape and equal elements, as a bool. Waits.");
  def_both(
      m, tensor, "float_power",
      [](nb::handle input, nb::handle exponent) {
        const Tensor base = to(operand_from(input, "float_power"), DType::kF64);
        return pow(base, to(operand_from(exponent, "float_power"), DType::kF64));
      },
      nb::arg("exponent"), "input to the power exponent, in float64 whatever both are.");
  def_both(
      m, tensor, "rsub",
      [](nb::handle input, nb::handle other, nb::handle alpha) {
        return operand_from(other, "rsub") - scaled(input, alpha, "rsub");
      },
      nb::arg("other"), nb::kw_only(), nb::arg("alpha") = 1, "other - alpha * input.");
  def_both(m, tensor, "mvlgamma", &mvlgamma, nb::arg("p"),
           "The logarithm of the multivariate gamma function of dimension p.");
  m.def("polygamma", &polygamma, nb::arg("n"), nb::arg("input"),
        "The n-th derivative of digamma, n from 0 to 100.");
  tensor.def(
      "polygamma", [](nb::handle input, std::int64_t n) { return polygamma(n, input); },
      nb::arg("n"), "The n-th derivative of digamma, n from 0 to 100.");
}

}  // namespace vkml::python
