// Views, assembly, reductions and indexing: functions and methods.

#include <algorithm>
#include <functional>

#include "define.h"

namespace vkml::python {
namespace {

using Reduce = Tensor (*)(const Tensor&, const Extents&, bool);

/// sum(dim, keepdim), with NumPy's names for both as well, and dtype to accumulate in.
void def_reduction(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, Reduce reduce,
                   const char* documentation) {
  def_both(
      m, tensor, name,
      [reduce, name](const Tensor& x, nb::handle dim, bool keepdim, nb::handle axis, bool keepdims,
                     nb::handle dtype) {
        const Tensor source = dtype.is_none() ? x : to(x, dtype_from(dtype));
        return reduce(source, axes_of(name, x, dim, axis), keepdim || keepdims);
      },
      nb::arg("dim") = nb::none(), nb::arg("keepdim") = false, nb::arg("axis") = nb::none(),
      nb::arg("keepdims") = false, nb::arg("dtype") = nb::none(), documentation);
}

/// With PyTorch's `dim` a pair (values, indices); with NumPy's `axis`, or over everything, values.
void def_extreme(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, Reduce reduce,
                 Ranked (*along)(const Tensor&, std::int64_t, bool),
                 Tensor (*pairwise)(const Tensor&, const Tensor&), const char* documentation) {
  // Before the reduction, which takes any object for `dim`.
  def_both(m, tensor, name, pairwise, nb::arg("other"),
           "The larger or smaller of two tensors' elements: maximum or minimum.");
  const nb::object pair =
      nb::module_::import_("collections")
          .attr("namedtuple")(std::string(name) + "_result", nb::make_tuple("values", "indices"));
  def_both(
      m, tensor, name,
      [reduce, along, name, pair](const Tensor& x, nb::handle dim, bool keepdim, nb::handle axis,
                                  bool keepdims) -> nb::object {
        if (dim.is_none())
          return nb::cast(reduce(x, axes_of(name, x, dim, axis), keepdim || keepdims));
        const Extents axes = axes_of(name, x, dim, axis);
        if (axes_from(name, dim, axis).size() != 1) {
          throw ArgumentError(std::string("[") + name + "] with dim gives indices too, along one " +
                              "axis. For several use a" + name + "(dim=" + to_string(axes) + ")");
        }
        const Ranked found = ranked_on_axes(x, [&](const Tensor& lines) {
          return along(lines, axes.empty() ? 0 : axes[0], keepdim);
        });
        return pair(found.values, found.indices);
      },
      nb::arg("dim") = nb::none(), nb::arg("keepdim") = false, nb::arg("axis") = nb::none(),
      nb::arg("keepdims") = false, documentation);
}

void bind_reductions(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_reduction(m, tensor, "sum", &sum, "The sum over axes, or over everything.");
  def_reduction(m, tensor, "mean", &mean, "The mean over axes; halves are summed in float32.");
  def_reduction(m, tensor, "prod", &prod, "The product over axes.");
  def_reduction(m, tensor, "amax", &max,
                "The largest over axes; NaN if any is NaN; ties share the gradient.");
  def_reduction(m, tensor, "amin", &min,
                "The smallest over axes; NaN if any is NaN; ties share the gradient.");
  def_reduction(m, tensor, "any", &any, "Whether any element is true.");
  def_reduction(m, tensor, "all", &all, "Whether every element is true.");
  def_reduction(m, tensor, "argmax", &argmax, "The first index of the largest (of a NaN, if any).");
  def_reduction(m, tensor, "argmin", &argmin,
                "The first index of the smallest (of a NaN, if any).");
  def_reduction(m, tensor, "logsumexp", &logsumexp, "log(sum(exp(x))), without overflow.");
  def_extreme(
      m, tensor, "max", &max, &max_along, &maximum,
      "The largest. With dim a pair (values, indices); with axis, or without, values alone.");
  def_extreme(
      m, tensor, "min", &min, &min_along, &minimum,
      "The smallest. With dim a pair (values, indices); with axis, or without, values alone.");
  const auto spread = [](bool root) {
    return [root](const Tensor& x, nb::handle dim, double correction, bool keepdim, nb::handle axis,
                  bool keepdims, nb::handle unbiased) {
      const double degrees = unbiased.is_none() ? correction : (nb::cast<bool>(unbiased) ? 1 : 0);
      const Extents axes = axes_of(root ? "std" : "var", x, dim, axis);
      return root ? standard_deviation(x, axes, keepdim || keepdims, degrees)
                  : var(x, axes, keepdim || keepdims, degrees);
    };
  };
  for (const bool root : {false, true}) {
    def_both(m, tensor, root ? "std" : "var", spread(root), nb::arg("dim") = nb::none(),
             nb::arg("correction") = 1.0, nb::arg("keepdim") = false, nb::arg("axis") = nb::none(),
             nb::arg("keepdims") = false, nb::arg("unbiased") = nb::none(),
             root ? "The square root of var."
                  : "Squared differences from the mean over (count - correction).");
  }
  const auto along = [](const char* name, nb::handle dim, nb::handle axis) {
    const Extents axes = axes_from(name, dim, axis);
    if (axes.size() != 1)
      throw ArgumentError(std::string("[") + name + "] needs one axis: dim=-1, say");
    return axes[0];
  };
  def_both(
      m, tensor, "softmax",
      [along](const Tensor& x, nb::handle dim, nb::handle axis, nb::handle dtype) {
        const std::int64_t given = along("softmax", dim, axis);
        return on_axes(dtype.is_none() ? x : to(x, dtype_from(dtype)),
                       [given](const Tensor& line) { return softmax(line, given); });
      },
      nb::arg("dim") = nb::none(), nb::arg("axis") = nb::none(), nb::kw_only(),
      nb::arg("dtype") = nb::none(), "exp(x) / sum(exp(x)) along an axis.");
  def_both(
      m, tensor, "log_softmax",
      [along](const Tensor& x, nb::handle dim, nb::handle axis, nb::handle dtype) {
        const std::int64_t given = along("log_softmax", dim, axis);
        return on_axes(dtype.is_none() ? x : to(x, dtype_from(dtype)),
                       [given](const Tensor& line) { return log_softmax(line, given); });
      },
      nb::arg("dim") = nb::none(), nb::arg("axis") = nb::none(), nb::kw_only(),
      nb::arg("dtype") = nb::none(), "log(softmax(x)), without overflow.");
}

void bind_views(nb::module_& m, nb::class_<Tensor>& tensor) {
  m.def(
      "reshape",
      [](const Tensor& x, nb::handle shape) { return reshape(x, extents_from("reshape", shape)); },
      nb::arg("input"), nb::arg("shape"),
      "Other extents; a view where strides allow, else a copy.");
  tensor.def(
      "reshape",
      [](const Tensor& x, const nb::args& shape) {
        return reshape(x, extents_from("reshape", shape));
      },
      "Other extents; a view where strides allow, else a copy.");
  tensor.def(
      "view",
      [](const Tensor& x, const nb::args& shape) {
        return reshape(x, extents_from("reshape", shape));
      },
      "reshape under PyTorch's other name.");
  m.def(
      "permute",
      [](const Tensor& x, nb::handle dims) { return permute(x, extents_from("permute", dims)); },
      nb::arg("input"), nb::arg("dims"), "Axes in another order; a view.");
  tensor.def(
      "permute",
      [](const Tensor& x, const nb::args& dims) {
        return permute(x, extents_from("permute", dims));
      },
      "Axes in another order; a view.");
  def_both(m, tensor, "transpose", &transpose, nb::arg("dim0"), nb::arg("dim1"),
           "Two axes exchanged; a view.");
  const auto reversed = [](const Tensor& x) {
    Extents axes;
    for (int axis = x.rank(); axis-- > 0;) axes.push_back(axis);
    return permute(x, axes);
  };
  tensor.def("t", reversed, "Axes in reverse order; a view.");
  tensor.def_prop_ro("T", reversed, "Axes in reverse order; a view.");
  tensor.def_prop_ro(
      "mT", [](const Tensor& x) { return transpose(x, -1, -2); }, "The last two axes exchanged.");
  def_both(
      m, tensor, "squeeze",
      [](const Tensor& x, nb::handle dim, nb::handle axis) {
        Extents axes = axes_from("squeeze", dim, axis);
        if (axes.empty()) return squeeze(x);
        if (x.rank() == 0) axes = axes_of("squeeze", x, dim, axis);
        for (std::int64_t& a : axes) a = normalize_axis("squeeze", a, x.rank());
        std::sort(axes.begin(), axes.end(), std::greater<>());
        Tensor result = x;
        for (const std::int64_t a : axes) result = squeeze(result, a);
        return result;
      },
      nb::arg("dim") = nb::none(), nb::arg("axis") = nb::none(),
      "Drops axes of extent 1: those named, or all of them.");
  def_both(m, tensor, "unsqueeze", &unsqueeze, nb::arg("dim"), "Adds an axis of extent 1.");
  def_both(m, tensor, "flatten", &flatten, nb::arg("start_dim") = 0, nb::arg("end_dim") = -1,
           "Merges axes.");
  def_both(
      m, tensor, "broadcast_to",
      [](const Tensor& x, nb::handle shape) {
        return broadcast_to(x, extents_from("broadcast_to", shape));
      },
      nb::arg("shape"), "Repeats along axes of extent 1, without memory; a view.");
  tensor.def(
      "expand",
      [](const Tensor& x, const nb::args& sizes) {
        Extents extents = extents_from("expand", sizes);
        const auto added = static_cast<std::int64_t>(extents.size()) - x.rank();
        for (std::size_t i = 0; i < extents.size(); ++i) {
          const auto axis = static_cast<std::int64_t>(i) - added;
          if (extents[i] != -1) continue;
          if (axis < 0) {
            throw ArgumentError("[expand] -1 keeps an extent, and axis " + std::to_string(i) +
                                " of " + to_string(extents) + " is new. Give its extent");
          }
          extents[i] = x.shape()[static_cast<int>(axis)];
        }
        return broadcast_to(x, extents);
      },
      "broadcast_to; -1 keeps an extent.");
  tensor.def(
      "expand_as",
      [](const Tensor& x, const Tensor& other) { return broadcast_to(x, other.extents()); },
      nb::arg("other"), "broadcast_to the shape of another tensor.");
  def_both(m, tensor, "contiguous", &contiguous,
           "Dense row-major memory; the same tensor when it is dense.");
  tensor.def(
      "clone", [](const Tensor& x) { return to_copy(x); },
      "A copy of its own, with the gradient passed on.");
}

PadMode pad_mode_from(const std::string& name) {
  if (name == "reflect") return PadMode::kReflect;
  if (name == "replicate") return PadMode::kReplicate;
  if (name == "circular") return PadMode::kCircular;
  throw ArgumentError("[pad] mode '" + name +
                      "' is not 'constant', 'reflect', 'replicate' or 'circular'");
}

/// As in PyTorch, negative amounts cut off what is there: before an axis goes round in circles, and
/// after it was reflected or its ends repeated.
Tensor padded_or_cropped(const Tensor& x, std::vector<std::array<std::int64_t, 2>> amounts,
                         PadMode mode) {
  std::vector<std::array<std::int64_t, 2>> cropped(amounts.size());
  bool crops = false;
  for (std::size_t axis = 0; axis < amounts.size(); ++axis) {
    for (std::size_t side = 0; side < 2; ++side) {
      cropped[axis][side] = std::min<std::int64_t>(amounts[axis][side], 0);
      amounts[axis][side] = std::max<std::int64_t>(amounts[axis][side], 0);
      crops = crops || cropped[axis][side] < 0;
    }
  }
  if (!crops) return pad_from_inside(x, amounts, mode);
  if (mode == PadMode::kCircular) return pad_from_inside(pad(x, cropped, 0), amounts, mode);
  return pad(pad_from_inside(x, amounts, mode), cropped, 0);
}

void bind_assembly(nb::module_& m, nb::class_<Tensor>& tensor) {
  for (const char* name : {"cat", "concat"}) {
    m.def(
        name,
        [](std::vector<Tensor> tensors, std::int64_t dim, nb::handle axis) {
          // Vectors of no elements have always joined anything in PyTorch: a list begins with one.
          const auto is_nothing = [](const Tensor& t) { return t.rank() == 1 && t.numel() == 0; };
          const bool has_others = std::any_of(tensors.begin(), tensors.end(),
                                              [](const Tensor& t) { return t.rank() > 1; });
          if (has_others) std::erase_if(tensors, is_nothing);
          return concat(tensors, axis.is_none() ? dim : nb::cast<std::int64_t>(axis));
        },
        nb::arg("tensors"), nb::arg("dim") = 0, nb::arg("axis") = nb::none(),
        "Tensors joined along an axis.");
  }
  m.def(
      "stack",
      [](const std::vector<Tensor>& tensors, std::int64_t dim, nb::handle axis) {
        return stack(tensors, axis.is_none() ? dim : nb::cast<std::int64_t>(axis));
      },
      nb::arg("tensors"), nb::arg("dim") = 0, nb::arg("axis") = nb::none(),
      "Tensors joined along a new axis.");
  def_both(
      m, tensor, "split",
      [](const Tensor& x, nb::handle sizes, std::int64_t dim) {
        nb::list parts;
        if (!nb::isinstance<nb::sequence>(sizes)) {
          // Nothing divides into parts of nothing.
          if (x.rank() > 0 && x.size(dim) == 0 && nb::cast<std::int64_t>(sizes) == 0) {
            return nb::make_tuple(x);
          }
          for (const Tensor& part : split(x, nb::cast<std::int64_t>(sizes), dim))
            parts.append(part);
          return nb::tuple(parts);
        }
        std::int64_t start = 0;
        for (const std::int64_t size : extents_from("split", sizes)) {
          parts.append(slice(x, dim, start, start + size));
          start += size;
        }
        if (start != x.size(dim)) {
          throw ShapeError("[split] the sizes add up to " + std::to_string(start) +
                           ", the axis has extent " + std::to_string(x.size(dim)));
        }
        return nb::tuple(parts);
      },
      nb::arg("split_size_or_sections"), nb::arg("dim") = 0,
      "Parts along an axis: of one size, or of given sizes.");
  def_both(
      m, tensor, "chunk",
      [](const Tensor& x, std::int64_t chunks, std::int64_t dim) {
        if (chunks <= 0)
          throw ArgumentError("[chunk] the number of chunks " + std::to_string(chunks) +
                              " is not positive");
        const std::int64_t extent = x.size(dim);
        nb::list parts;
        for (const Tensor& part :
             split(x, std::max<std::int64_t>(1, (extent + chunks - 1) / chunks), dim)) {
          parts.append(part);
        }
        return nb::tuple(parts);
      },
      nb::arg("chunks"), nb::arg("dim") = 0, "At most `chunks` equal parts along an axis.");
  m.def(
      "pad",
      [](const Tensor& x, nb::handle pad_sizes, const std::string& mode, double value) {
        const Extents flat = extents_from("pad", pad_sizes);
        if (flat.size() % 2 != 0 || flat.size() / 2 > static_cast<std::size_t>(x.rank())) {
          throw ArgumentError("[pad] needs a pair for each of the last axes, at most " +
                              std::to_string(x.rank()));
        }
        std::vector<std::array<std::int64_t, 2>> amounts(static_cast<std::size_t>(x.rank()));
        for (std::size_t i = 0; i < flat.size() / 2; ++i) {
          amounts[amounts.size() - 1 - i] = {flat[2 * i], flat[2 * i + 1]};
        }
        if (mode == "constant") return pad(x, amounts, value);
        return padded_or_cropped(x, amounts, pad_mode_from(mode));
      },
      nb::arg("input"), nb::arg("pad"), nb::arg("mode") = "constant", nb::arg("value") = 0.0,
      "Padding, last axis first: (left, right, top, bottom, ...), with a number or, by mode "
      "'reflect', 'replicate' or 'circular', from the tensor itself. Negative amounts crop.");
}

void bind_indexing(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_both(
      m, tensor, "gather",
      [](const Tensor& x, std::int64_t dim, nb::handle index) {
        const Tensor places = indices_from(index, "gather", x.device());
        if (x.rank() > 0) return gather(x, dim, places);
        // Of the one element, as many as the index has.
        return reshape(gather(reshape(x, {1}), dim, reshape(places, {-1})), places.extents());
      },
      nb::arg("dim"), nb::arg("index"), "out[..., i, ...] = x[..., index[..., i, ...], ...].");
  def_both(
      m, tensor, "scatter_add",
      [](const Tensor& x, std::int64_t dim, nb::handle index, const Tensor& source) {
        return scatter_add(x, dim, indices_from(index, "scatter_add", x.device()),
                           of_same_dtype("scatter_add", x, source));
      },
      nb::arg("dim"), nb::arg("index"), nb::arg("src"),
      "x plus every element of src at its index; equal indices add.");
  def_both(
      m, tensor, "index_select",
      [](const Tensor& x, std::int64_t dim, nb::handle index) {
        const Tensor places = indices_from(index, "index_select", x.device());
        return on_axes(x, [&](const Tensor& line) { return index_select(line, dim, places); });
      },
      nb::arg("dim"), nb::arg("index"), "Slices at the indices along an axis.");
  m.def(
      "take",
      [](const Tensor& x, nb::handle given) {
        return take(flatten(x), indices_from(given, "take", x.device()), 0);
      },
      nb::arg("input"), nb::arg("index"), "Elements of the flattened tensor at the indices.");
  m.def(
      "take",
      [](const Tensor& x, nb::handle given, nb::handle axis) {
        const Tensor indices = indices_from(given, "take", x.device());
        return axis.is_none() ? take(flatten(x), indices, 0)
                              : take(x, indices, nb::cast<std::int64_t>(axis));
      },
      nb::arg("input"), nb::arg("indices"), nb::arg("axis") = nb::none(),
      "Slices at the indices along an axis, or elements of the flattened tensor.");
}

}  // namespace

void bind_structure(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_views(m, tensor);
  bind_reductions(m, tensor);
  bind_assembly(m, tensor);
  bind_indexing(m, tensor);
  m.def("matmul", &matmul, nb::arg("input"), nb::arg("other"),
        "Matrix product with NumPy's rule for ranks 1 to 4.");
  tensor.def("matmul", &matmul, nb::arg("other"),
             "Matrix product with NumPy's rule for ranks 1 to 4.");
}

}  // namespace vkml::python
