// Reading and writing by index and by mask.

#include <algorithm>
#include <limits>

#include "define.h"

namespace vkml::python {
namespace {

/// How scatter_reduce combines; "mean" is a sum that is divided afterwards.
ScatterKind kind_from(const std::string& name) {
  if (name == "add" || name == "sum" || name == "mean") return ScatterKind::kAdd;
  if (name == "multiply" || name == "prod") return ScatterKind::kMultiply;
  if (name == "amax") return ScatterKind::kMax;
  if (name == "amin") return ScatterKind::kMin;
  throw ArgumentError("[scatter] reduce '" + name +
                      "' is not 'sum', 'prod', 'mean', 'amax' or 'amin'");
}

Tensor index_like(const Tensor& x, const Tensor& index) {
  return x.device() == index.device() ? index : to(index, x.device());
}

/// A value in the shape of an index.
Tensor source_from(const char* op, const Tensor& x, const Tensor& index, nb::handle source) {
  const Extents extents = index.extents();
  if (!nb::isinstance<Tensor>(source)) {
    return full(extents, nb::cast<double>(nb::float_(source)), x.dtype(), x.device());
  }
  // As in PyTorch a source may be larger than the index.
  Tensor part = of_same_dtype(op, x, nb::cast<const Tensor&>(source));
  for (int axis = 0; axis < part.rank() && axis < index.rank(); ++axis) {
    if (part.shape()[axis] > index.shape()[axis]) part = slice(part, axis, 0, index.shape()[axis]);
  }
  return part;
}

/// What every number of a dtype exceeds, or falls below.
Tensor least_of(DType dtype, bool exceeds) {
  if (is_floating(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return Tensor(exceeds ? -infinity : infinity);
  }
  using Narrow = std::numeric_limits<std::int32_t>;
  using Wide = std::numeric_limits<std::int64_t>;
  if (dtype == DType::kI64) return Tensor(exceeds ? Wide::min() : Wide::max());
  if (dtype == DType::kI32) return Tensor(exceeds ? Narrow::min() : Narrow::max());
  return Tensor(exceeds ? 0 : 255);
}

Tensor reduce_into(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
                   const std::string& reduce, bool include_self,
                   const char* name = "scatter_reduce") {
  const ScatterKind kind = kind_from(reduce);
  const Tensor part = source_from(name, x, index, nb::cast(source));
  Tensor base = x;
  const Tensor none = zeros(x.extents(), DType::kI32, x.device());
  const Extents extents = index.extents();
  const Tensor ones_of = ones(extents, DType::kI32, x.device());
  const bool counts_needed = reduce == "mean" || !include_self;
  const Tensor hits =
      counts_needed ? scatter(none, dim, index, ones_of, ScatterKind::kAdd, name) : Tensor();
  if (!include_self) {
    // Elements that something meets start from what leaves the others as they are.
    const Tensor met = gt(hits, Tensor(0));
    if (kind == ScatterKind::kAdd) base = where(met, Tensor(0), x);
    if (kind == ScatterKind::kMultiply) base = where(met, Tensor(1), x);
    if (kind == ScatterKind::kMax || kind == ScatterKind::kMin) {
      base = where(met, least_of(x.dtype(), kind == ScatterKind::kMax), x);
    }
  }
  Tensor combined = scatter(base, dim, index, part, kind, name);
  if (reduce != "mean") return combined;
  const Tensor total = include_self ? hits + Tensor(1) : maximum(hits, Tensor(1));
  if (is_floating(x.dtype())) return combined / to(total, x.dtype());
  return floor_divide(combined, to(total, x.dtype()));
}

/// An index for every element of a source that lies along one axis.
Tensor spread_index(const char* op, const Tensor& index, std::int64_t dim, const Tensor& source) {
  const int axis = normalize_axis(op, dim, source.rank());
  if (index.rank() != 1 || index.numel() != source.shape()[axis]) {
    throw ShapeError("[" + std::string(op) + "] needs a vector of " +
                     std::to_string(source.shape()[axis]) + " indices, not shape " +
                     index.shape().to_string());
  }
  Extents column(static_cast<std::size_t>(source.rank()), 1);
  column[static_cast<std::size_t>(axis)] = index.numel();
  return broadcast_to(reshape(index, column), source.extents());
}

void bind_scatter(nb::module_& m, nb::class_<Tensor>& tensor) {
  // A number has a name of its own in PyTorch.
  for (const char* source_name : {"src", "value"}) {
    def_with_inplace(
        m, tensor, "scatter", "scatter_",
        [](const Tensor& x, std::int64_t dim, const Tensor& index, nb::handle source,
           nb::handle reduce) {
          const Tensor part = source_from("scatter", x, index, source);
          if (reduce.is_none()) return scatter(x, dim, index, part, ScatterKind::kReplace);
          return scatter(x, dim, index, part, kind_from(nb::cast<std::string>(reduce)));
        },
        nb::arg("dim"), nb::arg("index"), nb::arg(source_name), nb::kw_only(),
        nb::arg("reduce") = nb::none(),
        "x with source elements, or one number, written at their index along an axis; of equal "
        "indices the last stays. With reduce 'add' or 'multiply' they are combined with x.");
  }
  def_with_inplace(
      m, tensor, "scatter_reduce", "scatter_reduce_",
      [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
         const std::string& reduce,
         bool include_self) { return reduce_into(x, dim, index, source, reduce, include_self); },
      nb::arg("dim"), nb::arg("index"), nb::arg("src"), nb::arg("reduce"), nb::kw_only(),
      nb::arg("include_self") = true,
      "x combined with source elements at their index: 'sum', 'prod', 'mean', 'amax' or 'amin'. "
      "The order is fixed, so results never change.");
  m.def(
      "_index_reduce",
      [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
         const std::string& reduce, bool include_self) {
        const Tensor places = spread_index("index_reduce", index, dim, source);
        return reduce_into(x, dim, places, source, reduce, include_self, "index_reduce");
      },
      nb::arg("input"), nb::arg("dim"), nb::arg("index"), nb::arg("source"), nb::arg("reduce"),
      nb::arg("include_self"));
  def_inplace(
      tensor, "scatter_add_",
      [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source) {
        return scatter_add(x, dim, index, source_from("scatter_add", x, index, nb::cast(source)));
      },
      nb::arg("dim"), nb::arg("index"), nb::arg("src"), "scatter_add in place.");
  def_with_inplace(
      m, tensor, "index_add", "index_add_",
      [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
         double alpha) {
        of_same_dtype("index_add", x, source);
        const Tensor scaled = alpha == 1 ? source : source * Tensor(alpha);
        return scatter(x, dim, spread_index("index_add", index, dim, source), scaled,
                       ScatterKind::kAdd, "index_add");
      },
      nb::arg("dim"), nb::arg("index"), nb::arg("source"), nb::kw_only(), nb::arg("alpha") = 1.0,
      "x plus alpha times slices of a source at indices along an axis; equal indices add.");
  def_with_inplace(
      m, tensor, "index_copy", "index_copy_",
      [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source) {
        of_same_dtype("index_copy", x, source);
        return scatter(x, dim, spread_index("index_copy", index, dim, source), source,
                       ScatterKind::kReplace, "index_copy");
      },
      nb::arg("dim"), nb::arg("index"), nb::arg("source"),
      "x with slices of a source at indices along an axis; of equal indices the last stays.");
  def_with_inplace(
      m, tensor, "index_fill", "index_fill_",
      [](const Tensor& x, std::int64_t dim, const Tensor& index, double value) {
        const int axis = normalize_axis("index_fill", dim, x.rank());
        Extents extents = x.extents();
        extents[static_cast<std::size_t>(axis)] = index.numel();
        const Tensor source = full(extents, value, x.dtype(), x.device());
        // Alone among these functions it counts negative indices from the end, as PyTorch's.
        const Tensor counted = where(lt(index, Tensor(0)), index + Tensor(x.shape()[axis]), index);
        return scatter(x, axis, spread_index("index_fill", counted, axis, source), source,
                       ScatterKind::kReplace, "index_fill");
      },
      nb::arg("dim"), nb::arg("index"), nb::arg("value"),
      "x with one number in the slices at indices along an axis; negative ones count from its "
      "end.");
}

std::vector<Tensor> indices_from(nb::handle indices, const Tensor& x) {
  std::vector<Tensor> result;
  for (const nb::handle item : indices) {
    result.push_back(item.is_none() ? Tensor() : index_like(x, nb::cast<Tensor>(item)));
  }
  return result;
}

void bind_index(nb::module_& m, nb::class_<Tensor>& tensor) {
  // For functions of the package, whose names their errors carry.
  m.def(
      "_gather_as",
      [](const std::string& name, const Tensor& x, std::int64_t dim, const Tensor& index) {
        return gather(x, dim, index, name);
      },
      nb::arg("name"), nb::arg("input"), nb::arg("dim"), nb::arg("index"));
  m.def(
      "_embedding_as",
      [](const std::string& name, const Tensor& indices, const Tensor& weight) {
        return embedding(indices, weight, name);
      },
      nb::arg("name"), nb::arg("indices"), nb::arg("weight"));
  m.def(
      "_scatter_as",
      [](const std::string& name, const Tensor& x, std::int64_t dim, const Tensor& index,
         const Tensor& source) {
        return scatter(x, dim, index, source, ScatterKind::kReplace, name);
      },
      nb::arg("name"), nb::arg("input"), nb::arg("dim"), nb::arg("index"), nb::arg("src"));
  for (const char* name : {"take_along_dim", "take_along_axis"}) {
    def_both(
        m, tensor, name,
        [name](const Tensor& x, const Tensor& indices, nb::handle dim, nb::handle axis) {
          if (dim.is_none() && axis.is_none()) {
            return gather(reshape(x, {-1}), 0, reshape(indices, {-1}), name);
          }
          const std::int64_t given = axis_from(name, dim, axis, -1);
          const int along = normalize_axis(name, given, x.rank());
          const Tensor wide =
              where(lt(indices, Tensor(0)), indices + Tensor(x.shape()[along]), indices);
          // Axes of extent 1 repeat.
          Extents of_x, of_index;
          for (int i = 0; i < x.rank(); ++i) {
            const std::int64_t common = x.shape()[i] == 1   ? wide.size(i)
                                        : wide.size(i) == 1 ? x.shape()[i]
                                                            : wide.size(i);
            of_x.push_back(i == along ? x.shape()[i] : std::max(common, x.shape()[i]));
            of_index.push_back(i == along ? wide.size(i) : common);
          }
          return gather(broadcast_to(x, of_x), along, broadcast_to(wide, of_index), name);
        },
        nb::arg("indices"), nb::arg("dim") = nb::none(), nb::arg("axis") = nb::none(),
        "out[..., i, ...] = x[..., indices[..., i, ...], ...]; other axes broadcast, negative "
        "indices count from the end.");
  }
  def_with_inplace(
      m, tensor, "index_put", "index_put_",
      [](const Tensor& x, nb::handle indices, nb::handle values, bool accumulate) {
        const Tensor written = operand_from(values, "index_put");
        if (nb::isinstance<Tensor>(values)) of_same_dtype("index_put", x, written);
        return index_put(x, indices_from(indices, x), written, accumulate);
      },
      nb::arg("indices"), nb::arg("values"), nb::arg("accumulate") = false,
      "x with values written at one index for each leading axis (None takes all); of repeated "
      "places the last value stays, or all add.");
}

void bind_masks(nb::module_& m, nb::class_<Tensor>& tensor) {
  const auto as_tuple_or_matrix = [](const Tensor& x, bool as_tuple) -> nb::object {
    const Tensor positions = nonzero(x);
    if (!as_tuple) return nb::cast(positions);
    nb::list columns;
    for (const Tensor& column : unbind(positions, 1)) columns.append(column);
    return nb::tuple(columns);
  };
  def_both(m, tensor, "nonzero", as_tuple_or_matrix, nb::kw_only(), nb::arg("as_tuple") = false,
           "Positions of elements that are not 0, int64 (count, rank), or a vector for each axis. "
           "Waits for the values.");
  def_both(
      m, tensor, "argwhere", [](const Tensor& x) { return nonzero(x); },
      "Positions of elements that are not 0, int64 (count, rank). Waits for the values.");
  def_both(m, tensor, "masked_select", &masked_select, nb::arg("mask"),
           "The elements where a mask is true, in row-major order. Waits for the mask.");
  def_with_inplace(
      m, tensor, "masked_fill", "masked_fill_",
      [](const Tensor& x, const Tensor& mask, nb::handle value) {
        return where(mask, to(operand_from(value, "masked_fill"), x.dtype()), x);
      },
      nb::arg("mask"), nb::arg("value"), "x with one value where a mask is true.");
  def_with_inplace(
      m, tensor, "masked_scatter", "masked_scatter_",
      [](const Tensor& x, const Tensor& mask, const Tensor& source) {
        return masked_scatter(x, mask, source);
      },
      nb::arg("mask"), nb::arg("source"),
      "x with the next element of a source wherever a mask is true.");
  def_inplace(
      tensor, "fill_",
      [](const Tensor& x, double value) { return full(x.extents(), value, x.dtype(), x.device()); },
      nb::arg("value"), "Every element one number, in place.");
  def_inplace(
      tensor, "zero_", [](const Tensor& x) { return zeros(x.extents(), x.dtype(), x.device()); },
      "Every element 0, in place.");
}

}  // namespace

void bind_selection(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_scatter(m, tensor);
  bind_index(m, tensor);
  bind_masks(m, tensor);
}

}  // namespace vkml::python
