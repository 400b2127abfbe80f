// Elements in other places: reversed, repeated, padded, on diagonals; tensors made from rules.

#include <algorithm>
#include <cmath>

#include "define.h"

namespace vkml::python {
namespace {

DType float_or(nb::handle dtype) { return dtype.is_none() ? kDefaultFloat : dtype_from(dtype); }

Tensor with_flag(Tensor tensor, bool requires_grad) {
  if (requires_grad) tensor.requires_grad_();
  return tensor;
}

std::vector<Tensor> tensors_from(const nb::args& args) {
  if (args.size() == 1 && !nb::isinstance<Tensor>(args[0])) {
    return nb::cast<std::vector<Tensor>>(nb::handle(args[0]));
  }
  return nb::cast<std::vector<Tensor>>(nb::handle(args));
}

nb::tuple tuple_from(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) list.append(tensor);
  return nb::tuple(list);
}

void bind_reordering(nb::module_& m, nb::class_<Tensor>& tensor) {
  const auto flip_axes = [](const Tensor& x, nb::handle dims, nb::handle axis) {
    Extents axes = axes_from("flip", dims, axis);
    if (axes.empty() && dims.is_none()) {
      for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
    }
    return on_axes(x, [&axes](const Tensor& lines) { return flip(lines, axes); });
  };
  m.def("flip", flip_axes, nb::arg("input"), nb::arg("dims") = nb::none(),
        nb::arg("axis") = nb::none(), "Elements in reverse order along axes, or along all.");
  tensor.def(
      "flip",
      [flip_axes](const Tensor& x, const nb::args& dims) {
        return flip_axes(x, dims.size() == 1 ? nb::handle(dims[0]) : nb::handle(dims), nb::none());
      },
      "Elements in reverse order along axes.");
  def_both(
      m, tensor, "fliplr", [](const Tensor& x) { return flip(x, {1}); },
      "Columns in reverse order.");
  def_both(
      m, tensor, "flipud", [](const Tensor& x) { return flip(x, {0}); }, "Rows in reverse order.");
  def_both(
      m, tensor, "roll",
      [](const Tensor& x, nb::handle shifts, nb::handle dims, nb::handle axis) {
        return roll(x, extents_from("roll", shifts), axes_from("roll", dims, axis));
      },
      nb::arg("shifts"), nb::arg("dims") = nb::none(), nb::arg("axis") = nb::none(),
      "Elements moved along axes, those that leave coming in at the other end; without axes, of "
      "the flattened tensor.");
  def_both(
      m, tensor, "rot90",
      [](const Tensor& x, std::int64_t k, nb::handle dims) {
        const Extents axes = extents_from("rot90", dims);
        if (axes.size() != 2) throw ArgumentError("[rot90] needs two axes");
        const std::int64_t turns = ((k % 4) + 4) % 4;
        if (turns == 0) return x;
        if (turns == 2) return flip(x, axes);
        return turns == 1 ? flip(transpose(x, axes[0], axes[1]), {axes[0]})
                          : flip(transpose(x, axes[0], axes[1]), {axes[1]});
      },
      nb::arg("k") = 1, nb::arg("dims") = nb::make_tuple(0, 1),
      "k quarter turns in the plane of two axes, from the first towards the second.");
  for (const char* name : {"movedim", "moveaxis"}) {
    def_both(
        m, tensor, name,
        [](const Tensor& x, nb::handle source, nb::handle destination) {
          return movedim(x, extents_from("movedim", source), extents_from("movedim", destination));
        },
        nb::arg("source"), nb::arg("destination"),
        "Axes moved to other places, the rest in order; a view.");
  }
  def_both(m, tensor, "swapaxes", &transpose, nb::arg("axis0"), nb::arg("axis1"),
           "Two axes exchanged; a view.");
  def_both(m, tensor, "swapdims", &transpose, nb::arg("dim0"), nb::arg("dim1"),
           "Two axes exchanged; a view.");
  def_both(
      m, tensor, "matrix_transpose", [](const Tensor& x) { return transpose(x, -1, -2); },
      "The last two axes exchanged; a view.");
  def_both(
      m, tensor, "expand_dims",
      [](const Tensor& x, std::int64_t axis) { return unsqueeze(x, axis); }, nb::arg("axis") = 0,
      "Adds an axis of extent 1.");
  def_both(
      m, tensor, "ravel", [](const Tensor& x) { return reshape(x, {-1}); },
      "One axis with all elements in row-major order.");
  def_both(
      m, tensor, "unflatten",
      [](const Tensor& x, std::int64_t dim, nb::handle sizes) {
        const int axis = normalize_axis("unflatten", dim, x.rank());
        Extents parts = extents_from("unflatten", sizes);
        const auto unknown = std::find(parts.begin(), parts.end(), -1);
        if (unknown != parts.end()) {
          std::int64_t known = 1;
          for (const std::int64_t part : parts) known *= part == -1 ? 1 : part;
          if (known > 0) *unknown = x.shape()[axis] / known;
        }
        Extents extents = x.extents();
        extents.erase(extents.begin() + axis);
        extents.insert(extents.begin() + axis, parts.begin(), parts.end());
        return reshape(x, extents);
      },
      nb::arg("dim"), nb::arg("sizes"), "An axis split into several; one size may be -1.");
  def_both(
      m, tensor, "unbind",
      [](const Tensor& x, std::int64_t dim) { return tuple_from(unbind(x, dim)); },
      nb::arg("dim") = 0, "The slices along an axis, without that axis.");
  def_both(
      m, tensor, "narrow",
      [](const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length) {
        const int axis = normalize_axis("narrow", dim, x.rank());
        const std::int64_t first = start < 0 ? start + x.shape()[axis] : start;
        if (first < 0 || length < 0 || first + length > x.shape()[axis]) {
          throw IndexError("[narrow] elements " + std::to_string(start) + " to " +
                           std::to_string(start + length) + " leave an axis of extent " +
                           std::to_string(x.shape()[axis]));
        }
        return slice(x, axis, first, first + length);
      },
      nb::arg("dim"), nb::arg("start"), nb::arg("length"), "`length` elements of an axis; a view.");
  def_both(
      m, tensor, "select",
      [](const Tensor& x, std::int64_t dim, std::int64_t index) {
        const int axis = normalize_axis("select", dim, x.rank());
        Index parts(static_cast<std::size_t>(axis), IndexSlice{});
        parts.emplace_back(index);
        return x.index(parts);
      },
      nb::arg("dim"), nb::arg("index"), "One slice of an axis, which disappears; a view.");
  tensor.def("unfold", &sliding_windows, nb::arg("dimension"), nb::arg("size"), nb::arg("step"),
             "Windows of `size` elements at every `step`: the axis counts windows, a new last axis "
             "elements. A view of dense memory; where windows overlap it cannot be written to.");
}

void bind_repeating(nb::module_& m, nb::class_<Tensor>& tensor) {
  const auto tiled = [](const Tensor& x, Extents counts) {
    while (counts.size() < static_cast<std::size_t>(x.rank())) counts.insert(counts.begin(), 1);
    return repeat(x, counts);
  };
  m.def(
      "tile",
      [tiled](const Tensor& x, nb::handle dims) { return tiled(x, extents_from("tile", dims)); },
      nb::arg("input"), nb::arg("dims"),
      "The tensor repeated along its last axes, or along new ones before them.");
  tensor.def(
      "tile",
      [tiled](const Tensor& x, const nb::args& dims) {
        return tiled(x, extents_from("tile", dims));
      },
      "The tensor repeated along its last axes, or along new ones before them.");
  tensor.def(
      "repeat",
      [](const Tensor& x, const nb::args& sizes) {
        return repeat(x, extents_from("repeat", sizes));
      },
      "The tensor repeated along each axis; more counts than axes make new axes.");
  def_both(
      m, tensor, "repeat_interleave",
      [](const Tensor& given, nb::handle repeats, nb::handle dim, nb::handle axis,
         std::optional<std::int64_t>) {
        const bool is_flat = dim.is_none() && axis.is_none();
        const Tensor x = is_flat ? reshape(given, {-1}) : given;
        const std::int64_t along = axis_from("repeat_interleave", dim, axis, 0);
        if (nb::isinstance<Tensor>(repeats)) {
          return repeat_interleave(x, nb::cast<const Tensor&>(repeats), along);
        }
        return repeat_interleave(x, nb::cast<std::int64_t>(repeats), along);
      },
      nb::arg("repeats"), nb::arg("dim") = nb::none(), nb::arg("axis") = nb::none(), nb::kw_only(),
      nb::arg("output_size") = nb::none(),
      "Each element `repeats` times in a row; a tensor of counts, one for each, waits for them, "
      "with or without output_size.");
  m.def(
      "repeat_interleave",
      [](const Tensor& repeats) {
        const std::int64_t count = repeats.numel();
        const Tensor numbers = arange(0, count, 1, DType::kI64, repeats.device());
        return repeat_interleave(numbers, repeats, 0);
      },
      nb::arg("repeats"), "The number i of each count, as often as it says. Waits for the counts.");
  m.def(
      "broadcast_tensors",
      [](const nb::args& tensors) { return tuple_from(broadcast_tensors(tensors_from(tensors))); },
      nb::arg("tensors"), "Tensors broadcast to one shape; views.");
  m.def(
      "meshgrid",
      [](const nb::args& args, const std::string& indexing) {
        std::vector<Tensor> grids = tensors_from(args);
        const bool swaps = indexing == "xy" && grids.size() > 1;
        if (indexing != "xy" && indexing != "ij") {
          throw ArgumentError("[meshgrid] indexing '" + indexing + "' is not 'ij' or 'xy'");
        }
        if (swaps) std::swap(grids[0], grids[1]);
        for (std::size_t i = 0; i < grids.size(); ++i) {
          Extents extents(grids.size(), 1);
          extents[i] = grids[i].numel();
          grids[i] = reshape(grids[i], extents);
        }
        grids = broadcast_tensors(grids);
        if (swaps) std::swap(grids[0], grids[1]);
        return tuple_from(grids);
      },
      nb::arg("tensors"), nb::kw_only(), nb::arg("indexing") = "ij",
      "Coordinates of a grid from those along each axis; 'xy' exchanges the first two axes.");
  const auto joined = [&m](const char* name, int least_rank, std::int64_t axis,
                           const char* documentation) {
    m.def(
        name,
        [least_rank, axis](std::vector<Tensor> tensors) {
          for (Tensor& t : tensors) {
            if (t.rank() == 0) t = reshape(t, {1});
            if (t.rank() == 1 && least_rank > 1) t = unsqueeze(t, 0);
            if (t.rank() == 2 && least_rank > 2) t = unsqueeze(t, 2);
          }
          const bool is_line = !tensors.empty() && tensors[0].rank() == 1;
          return concat(tensors, is_line ? 0 : axis);
        },
        nb::arg("tensors"), documentation);
  };
  joined("hstack", 1, 1,
         "Tensors joined side by side: along the second axis, vectors along theirs.");
  joined("vstack", 2, 0, "Tensors joined as rows: along the first axis, vectors as rows.");
  joined("dstack", 3, 2, "Tensors joined along the third axis.");
  def_both(
      m, tensor, "tensor_split",
      [](const Tensor& x, nb::handle where, std::int64_t dim) {
        const int axis = normalize_axis("tensor_split", dim, x.rank());
        const std::int64_t extent = x.shape()[axis];
        Extents bounds{0};
        if (nb::isinstance<nb::sequence>(where)) {
          for (const std::int64_t bound : extents_from("tensor_split", where))
            bounds.push_back(bound);
        } else {
          const auto count = nb::cast<std::int64_t>(where);
          if (count <= 0) throw ArgumentError("[tensor_split] the number of parts is not positive");
          for (std::int64_t i = 1; i < count; ++i) {
            bounds.push_back(i * (extent / count) + std::min(i, extent % count));
          }
        }
        nb::list parts;
        for (std::size_t i = 0; i < bounds.size(); ++i) {
          const bool is_last = i + 1 == bounds.size();
          parts.append(
              slice(x, axis, bounds[i], is_last ? std::optional<std::int64_t>() : bounds[i + 1]));
        }
        return nb::tuple(parts);
      },
      nb::arg("indices_or_sections"), nb::arg("dim") = 0,
      "Parts along an axis that begin at given indices, or so many of nearly equal size; views.");
}

void bind_diagonals(nb::module_& m, nb::class_<Tensor>& tensor) {
  for (const bool upper : {false, true}) {
    def_both(
        m, tensor, upper ? "triu" : "tril",
        [upper](const Tensor& x, std::int64_t offset) { return triangle(x, offset, upper); },
        nb::arg("diagonal") = 0,
        upper ? "The last two axes on and above a diagonal, 0 below it."
              : "The last two axes on and below a diagonal, 0 above it.");
    m.def(
        upper ? "triu_indices" : "tril_indices",
        [upper](std::int64_t row, std::int64_t col, std::int64_t offset, nb::handle device) {
          const Tensor all = ones({row, col}, DType::kI32, device_from(device));
          return transpose(nonzero(triangle(all, offset, upper)), 0, 1);
        },
        nb::arg("row"), nb::arg("col"), nb::arg("offset") = 0, nb::kw_only(),
        nb::arg("device") = nb::none(), "Rows and columns of a triangle, int64 (2, count).");
  }
  def_both(m, tensor, "diagonal", &diagonal, nb::arg("offset") = 0, nb::arg("dim1") = 0,
           nb::arg("dim2") = 1,
           "The diagonal of two axes as the last axis; a view of dense memory.");
  def_both(
      m, tensor, "diag",
      [](const Tensor& x, std::int64_t offset) {
        if (x.rank() == 1) return diag_embed(x, offset);
        if (x.rank() == 2) return diagonal(x, offset);
        throw ShapeError("[diag] needs one or two axes, not shape " + x.shape().to_string());
      },
      nb::arg("diagonal") = 0, "The diagonal of a matrix, or a matrix with a vector on it.");
  def_both(
      m, tensor, "diag_embed",
      [](const Tensor& x, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
        const Tensor squares = diag_embed(x, offset);
        const int rank = squares.rank();
        const int row = normalize_axis("diag_embed", dim1, rank);
        const int column = normalize_axis("diag_embed", dim2, rank);
        if (row == column) {
          throw ArgumentError("[diag_embed] dim1 and dim2 are both axis " + std::to_string(row));
        }
        // Rows and columns exchanged put the diagonal on the other side.
        const Tensor turned = row < column ? squares : transpose(squares, -1, -2);
        const Extents to = row < column ? Extents{row, column} : Extents{column, row};
        if (to[0] == rank - 2 && to[1] == rank - 1) return turned;
        return movedim(turned, {-2, -1}, to);
      },
      nb::arg("offset") = 0, nb::arg("dim1") = -2, nb::arg("dim2") = -1,
      "Square matrices, in axes dim1 and dim2, with the last axis on their diagonal.");
  def_both(
      m, tensor, "trace", [](const Tensor& x) { return sum(diagonal(x)); },
      "The sum of a matrix's diagonal.");
}

void bind_made(nb::module_& m) {
  m.def(
      "eye",
      [](std::int64_t n, std::optional<std::int64_t> columns, nb::handle dtype, nb::handle device,
         bool requires_grad) {
        return with_flag(eye(n, columns.value_or(n), 0, float_or(dtype), device_from(device)),
                         requires_grad);
      },
      nb::arg("n"), nb::arg("m") = nb::none(), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("requires_grad") = false,
      "A matrix with ones on the diagonal.");
  m.def(
      "linspace",
      [](double start, double end, std::int64_t steps, nb::handle dtype, nb::handle device,
         bool requires_grad) {
        return with_flag(linspace(start, end, steps, float_or(dtype), device_from(device)),
                         requires_grad);
      },
      nb::arg("start"), nb::arg("end"), nb::arg("steps"), nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false, "`steps` numbers from start to end, both included.");
  m.def(
      "logspace",
      [](double start, double end, std::int64_t steps, double base, nb::handle dtype,
         nb::handle device, bool requires_grad) {
        const DType wanted = float_or(dtype);
        const DType wide = wanted == DType::kF64 ? DType::kF64 : DType::kF32;
        const Tensor exponents = linspace(start, end, steps, wide, device_from(device));
        return with_flag(to(pow(Tensor(base), exponents), wanted), requires_grad);
      },
      nb::arg("start"), nb::arg("end"), nb::arg("steps"), nb::arg("base") = 10.0, nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false, "base to the power of linspace.");
  m.def(
      "one_hot",
      [](const Tensor& x, std::int64_t num_classes) {
        return one_hot(x, num_classes == -1 ? max(x).item_integer() + 1 : num_classes);
      },
      nb::arg("input"), nb::arg("num_classes") = -1,
      "Class numbers as int64 rows of zeros with a single 1; without num_classes, max + 1 of them, "
      "which waits.");
}

}  // namespace

void bind_arrangement(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_reordering(m, tensor);
  bind_repeating(m, tensor);
  bind_diagonals(m, tensor);
  bind_made(m);
}

}  // namespace vkml::python
