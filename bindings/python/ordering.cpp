// Scans, sorting and what follows from it.

#include <limits>

#include "define.h"

namespace vkml::python {
namespace {

using Scan = Tensor (*)(const Tensor&, std::int64_t);
using RankedScan = Ranked (*)(const Tensor&, std::int64_t);

std::int64_t required_axis(const char* op, const Tensor& x, nb::handle dim, nb::handle axis) {
  if (dim.is_none() && axis.is_none() && x.rank() > 1) {
    throw ArgumentError(std::string("[") + op + "] needs one axis: dim=-1, say");
  }
  return axis_from(op, dim, axis, 0);
}

void def_scan(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, Scan scan,
              const char* documentation) {
  def_both(
      m, tensor, name,
      [scan, name](const Tensor& x, nb::handle dim, nb::handle dtype, nb::handle axis) {
        const Tensor source = dtype.is_none() ? x : to(x, dtype_from(dtype));
        return scan(source, required_axis(name, x, dim, axis));
      },
      nb::arg("dim") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("axis") = nb::none(),
      documentation);
}

void def_ranked_scan(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, RankedScan scan,
                     const char* documentation) {
  def_both(
      m, tensor, name,
      [scan, name](const Tensor& x, nb::handle dim, nb::handle axis) {
        return ranked_tuple(name, scan(x, required_axis(name, x, dim, axis)));
      },
      nb::arg("dim") = nb::none(), nb::arg("axis") = nb::none(), documentation);
}

void bind_scans(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_scan(m, tensor, "cumsum", &cumsum, "Sums of the elements up to each one along an axis.");
  def_scan(m, tensor, "cumprod", &cumprod,
           "Products of the elements up to each one along an axis; gradients are right at zeros.");
  def_scan(m, tensor, "logcumsumexp", &logcumsumexp,
           "log(cumsum(exp(x))) along an axis, without overflow.");
  def_ranked_scan(m, tensor, "cummax", &cummax,
                  "(values, indices) of the largest up to each element; the last of equals. A NaN "
                  "stays.");
  def_ranked_scan(m, tensor, "cummin", &cummin,
                  "(values, indices) of the smallest up to each element; the last of equals. A NaN "
                  "stays.");
  m.def(
      "linear_recurrence",
      [](const Tensor& a, const Tensor& b, std::int64_t dim) {
        return linear_recurrence(a, b, dim);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("dim") = -1,
      "y[i] = a[i] * y[i - 1] + b[i] along an axis, from y[-1] = 0, by a parallel scan.");
  def_both(
      m, tensor, "diff",
      [](const Tensor& x, std::int64_t n, std::int64_t dim, const std::optional<Tensor>& prepend,
         const std::optional<Tensor>& append) {
        if (n < 0) throw ArgumentError("[diff] n is " + std::to_string(n) + ". Pass 0 or more");
        std::vector<Tensor> parts{x};
        if (prepend) parts.insert(parts.begin(), *prepend);
        if (append) parts.push_back(*append);
        Tensor result = parts.size() > 1 ? concat(parts, dim) : x;
        for (std::int64_t i = 0; i < n; ++i) {
          const Tensor later = slice(result, dim, 1, {});
          const Tensor earlier = slice(result, dim, 0, -1);
          result = x.dtype() == DType::kBool ? ne(later, earlier) : later - earlier;
        }
        return result;
      },
      nb::arg("n") = 1, nb::arg("dim") = -1, nb::arg("prepend") = nb::none(),
      nb::arg("append") = nb::none(),
      "Differences of neighbours along an axis, n times, of the tensor with others joined at its "
      "ends.");
}

Interpolation interpolation_from(const std::string& name) {
  if (name == "linear") return Interpolation::kLinear;
  if (name == "lower") return Interpolation::kLower;
  if (name == "higher") return Interpolation::kHigher;
  if (name == "midpoint") return Interpolation::kMidpoint;
  if (name == "nearest") return Interpolation::kNearest;
  throw ArgumentError("[quantile] interpolation '" + name +
                      "' is not 'linear', 'lower', 'higher', 'midpoint' or 'nearest'");
}

std::vector<double> fractions_from(nb::handle q) {
  if (nb::isinstance<Tensor>(q)) return nb::cast<std::vector<double>>(q.attr("tolist")());
  return nb::cast<std::vector<double>>(q);
}

void bind_sorting(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_both(
      m, tensor, "sort",
      [](const Tensor& x, nb::handle dim, bool descending, bool, nb::handle axis) {
        const std::int64_t along = axis_from("sort", dim, axis, -1);
        return ranked_tuple("sort", ranked_on_axes(x, [&](const Tensor& lines) {
                              return sort(lines, along, descending);
                            }));
      },
      nb::arg("dim") = nb::none(), nb::arg("descending") = false, nb::arg("stable") = true,
      nb::arg("axis") = nb::none(),
      "(values, indices) in order along an axis; always stable, NaN is the largest.");
  def_both(
      m, tensor, "argsort",
      [](const Tensor& x, nb::handle dim, bool descending, bool, nb::handle axis) {
        const std::int64_t along = axis_from("argsort", dim, axis, -1);
        return on_axes(x, [&](const Tensor& lines) { return argsort(lines, along, descending); });
      },
      nb::arg("dim") = nb::none(), nb::arg("descending") = false, nb::arg("stable") = true,
      nb::arg("axis") = nb::none(),
      "Positions (int32) that sort an axis; always stable, NaN is the largest.");
  def_both(
      m, tensor, "msort", [](const Tensor& x) { return sort(x, 0).values; },
      "The values in order along the first axis.");
  def_both(
      m, tensor, "topk",
      [](const Tensor& x, std::int64_t k, nb::handle dim, bool largest, bool, nb::handle axis) {
        const std::int64_t along = axis_from("topk", dim, axis, -1);
        if (x.rank() == 0 && k == 0) throw ArgumentError("[topk] 0 elements of a number");
        return ranked_tuple("topk", ranked_on_axes(x, [&](const Tensor& lines) {
                              return topk(lines, k, along, largest);
                            }));
      },
      nb::arg("k"), nb::arg("dim") = nb::none(), nb::arg("largest") = true,
      nb::arg("sorted") = true, nb::arg("axis") = nb::none(),
      "(values, indices) of the k largest, or smallest, along an axis, in order.");
  def_both(
      m, tensor, "kthvalue",
      [](const Tensor& x, std::int64_t k, std::int64_t dim, bool keepdim) {
        return ranked_tuple("kthvalue", ranked_on_axes(x, [&](const Tensor& lines) {
                              return kthvalue(lines, k, dim, keepdim);
                            }));
      },
      nb::arg("k"), nb::arg("dim") = -1, nb::arg("keepdim") = false,
      "(value, index) of the k-th smallest along an axis, counted from 1.");
  def_both(
      m, tensor, "median",
      [](const Tensor& x, nb::handle dim, bool keepdim, nb::handle axis) -> nb::object {
        if (dim.is_none() && axis.is_none()) {
          if (x.numel() == 0 && is_floating(x.dtype())) {
            return nb::cast(
                full({}, std::numeric_limits<double>::quiet_NaN(), x.dtype(), x.device()));
          }
          return nb::cast(median(reshape(x, {x.numel()}), 0).values);
        }
        const std::int64_t along = axis_from("median", dim, axis, -1);
        return ranked_tuple("median", ranked_on_axes(x, [&](const Tensor& lines) {
                              return median(lines, along, keepdim);
                            }));
      },
      nb::arg("dim") = nb::none(), nb::arg("keepdim") = false, nb::arg("axis") = nb::none(),
      "The middle element, the lower of two; with dim (values, indices). NaN if there is one.");
  def_both(
      m, tensor, "quantile",
      [](const Tensor& x, nb::handle q, nb::handle dim, bool keepdim,
         const std::string& interpolation, nb::handle axis) {
        const Extents axes = axes_from("quantile", dim, axis);
        std::optional<std::int64_t> along;
        if (!axes.empty()) along = axis_from("quantile", dim, axis, 0);
        const Interpolation how = interpolation_from(interpolation);
        const auto at = [&](double fraction) {
          if (!along) return quantile(x, fraction, along, keepdim, how);
          return on_axes(x, [&](const Tensor& lines) {
            return quantile(lines, fraction, along, keepdim, how);
          });
        };
        const bool is_number =
            !nb::isinstance<nb::sequence>(q) &&
            !(nb::isinstance<Tensor>(q) && nb::cast<const Tensor&>(q).rank() > 0);
        if (is_number) return at(nb::cast<double>(nb::float_(q)));
        std::vector<Tensor> results;
        for (const double fraction : fractions_from(q)) {
          results.push_back(at(fraction));
        }
        return stack(results, 0);
      },
      nb::arg("q"), nb::arg("dim") = nb::none(), nb::arg("keepdim") = false,
      nb::arg("interpolation") = "linear", nb::arg("axis") = nb::none(),
      "The elements at fractions q of the sorted axis; several fractions make a first axis. NaN if "
      "there is one.");
}

/// Tensors that were asked for: one alone, several as a tuple.
nb::object asked_for(const Unique& found, bool inverse, bool counts) {
  nb::list results;
  results.append(found.values);
  if (inverse) results.append(found.inverse);
  if (counts) results.append(found.counts);
  return results.size() == 1 ? nb::object(results[0]) : nb::object(nb::tuple(results));
}

void bind_searching(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_both(
      m, tensor, "unique",
      [](const Tensor& x, bool, bool return_inverse, bool return_counts,
         std::optional<std::int64_t> dim) {
        return asked_for(dim ? unique(x, *dim) : unique(x), return_inverse, return_counts);
      },
      nb::arg("sorted") = true, nb::arg("return_inverse") = false, nb::arg("return_counts") = false,
      nb::arg("dim") = nb::none(),
      "The distinct elements in order, or with dim the distinct slices in lexicographic order, "
      "with where each went and how often each occurs. Waits for the values.");
  def_both(
      m, tensor, "unique_consecutive",
      [](const Tensor& x, bool return_inverse, bool return_counts,
         std::optional<std::int64_t> dim) {
        return asked_for(dim ? unique_consecutive(x, *dim) : unique_consecutive(x), return_inverse,
                         return_counts);
      },
      nb::arg("return_inverse") = false, nb::arg("return_counts") = false,
      nb::arg("dim") = nb::none(),
      "One element, or with dim one slice, of each run of equals. Waits for the values.");
  m.def(
      "searchsorted",
      [](const Tensor& given, nb::handle values, bool, bool right, nb::handle side,
         const std::optional<Tensor>& sorter) {
        const bool from_right = side.is_none() ? right : nb::cast<std::string>(side) == "right";
        const Tensor sorted =
            sorter
                ? gather(given, -1, indices_from(nb::cast(*sorter), "searchsorted", given.device()))
                : given;
        Tensor numbers = operand_from(values, "searchsorted");
        if (numbers.device() != sorted.device()) numbers = to(numbers, sorted.device());
        return searchsorted(sorted, numbers, from_right);
      },
      nb::arg("sorted_sequence"), nb::arg("input"), nb::kw_only(), nb::arg("out_int32") = false,
      nb::arg("right") = false, nb::arg("side") = nb::none(), nb::arg("sorter") = nb::none(),
      "Where values would be inserted into rows in ascending order, before equals or (right) after "
      "them; int32 always. A sorter puts rows in order.");
  m.def(
      "bucketize",
      [](nb::handle x, const Tensor& boundaries, bool, bool right) {
        return searchsorted(boundaries, operand_from(x, "bucketize"), right);
      },
      nb::arg("input"), nb::arg("boundaries"), nb::kw_only(), nb::arg("out_int32") = false,
      nb::arg("right") = false,
      "The bucket of each element between ascending boundaries; int32 always.");
  def_both(
      m, tensor, "bincount",
      [](const Tensor& x, const std::optional<Tensor>& weights, std::int64_t minlength) {
        return bincount(x, weights.value_or(Tensor()), minlength);
      },
      nb::arg("weights") = nb::none(), nb::arg("minlength") = 0,
      "How often 0, 1, ... occur in a vector, or the sums of their weights. Waits for the values.");
  def_both(
      m, tensor, "histc",
      [](const Tensor& x, std::int64_t bins, double low, double high) {
        if (low > high) {
          throw ArgumentError("[histc] min " + std::to_string(low) + " exceeds max " +
                              std::to_string(high) + ". Exchange them");
        }
        if (low == high && x.numel() > 0) {
          low = min(x).item();
          high = max(x).item();
        }
        if (low == high) {
          low -= 1;
          high += 1;
        }
        const Tensor edges = linspace(low, high, bins + 1, DType::kF32, x.device());
        return to(histogram(x, edges), x.dtype());
      },
      nb::arg("bins") = 100, nb::arg("min") = 0.0, nb::arg("max") = 0.0,
      "Counts in equal bins between min and max, or between the extremes when both are equal.");
  m.def(
      "histogram",
      [](const Tensor& x, nb::handle bins, nb::handle range, const std::optional<Tensor>& weight,
         bool density) {
        Tensor edges;
        if (nb::isinstance<Tensor>(bins)) {
          edges = nb::cast<Tensor>(bins);
        } else {
          double low = 0;
          double high = 1;  // of no elements, as PyTorch's
          if (!range.is_none()) {
            low = nb::cast<double>(range[0]);
            high = nb::cast<double>(range[1]);
          } else if (x.numel() > 0) {
            low = min(x).item();
            high = max(x).item();
          }
          if (low == high) {
            low -= 0.5;
            high += 0.5;
          }
          edges = linspace(low, high, nb::cast<std::int64_t>(bins) + 1, DType::kF32, x.device());
        }
        Tensor counts = histogram(x, edges, weight.value_or(Tensor()));
        if (density) {
          const Tensor widths = slice(edges, 0, 1, {}) - slice(edges, 0, 0, -1);
          counts = counts / sum(counts) / widths;
        }
        return nb::module_::import_("vkml._results").attr("histogram")()(counts, edges);
      },
      nb::arg("input"), nb::arg("bins"), nb::kw_only(), nb::arg("range") = nb::none(),
      nb::arg("weight") = nb::none(), nb::arg("density") = false,
      "(hist, bin_edges): counts, or sums of weights, between edges that are given or divide the "
      "range equally; the last bin holds its upper edge.");
  const auto is_in = [](nb::handle elements, nb::handle among, bool, bool invert) {
    const Tensor x = operand_from(elements, "isin");
    const Tensor test_elements = operand_from(among, "isin");
    const Tensor line = sort(reshape(test_elements, {test_elements.numel()}), 0).values;
    const Tensor found = ne(searchsorted(line, x, true), searchsorted(line, x, false));
    return invert ? logical_not(found) : found;
  };
  constexpr const char* kIsIn = "Whether each element occurs among others.";
  m.def("isin", is_in, nb::arg("elements"), nb::arg("test_elements"), nb::kw_only(),
        nb::arg("assume_unique") = false, nb::arg("invert") = false, kIsIn);
  tensor.def("isin", is_in, nb::arg("test_elements"), nb::kw_only(),
             nb::arg("assume_unique") = false, nb::arg("invert") = false, kIsIn);
}

}  // namespace

void bind_ordering(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_scans(m, tensor);
  bind_sorting(m, tensor);
  bind_searching(m, tensor);
}

}  // namespace vkml::python
