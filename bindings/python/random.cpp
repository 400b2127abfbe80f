// Draws from distributions: functions, and methods that fill a tensor.

#include "vkml/api/random.h"

#include <utility>

#include "define.h"
#include "draws.h"

namespace vkml::python {
namespace {

DType float_or(nb::handle dtype) { return dtype.is_none() ? kDefaultFloat : dtype_from(dtype); }

using Draw = Tensor (*)(const Extents&, double, double, DType, std::optional<Device>);

/// name(size, a, b, *, generator, dtype, device).
void def_draw(nb::module_& m, const char* name, Draw draw, const char* first, double first_value,
              const char* second, double second_value, const char* documentation) {
  m.def(
      name,
      [draw, name](nb::handle size, double a, double b, const Generator& generator,
                   nb::handle dtype, nb::handle device) {
        const DrawsOf scope(generator);
        return draw(extents_from(name, size), a, b, float_or(dtype), device_from(device));
      },
      nb::arg("size"), nb::arg(first) = first_value, nb::arg(second) = second_value, nb::kw_only(),
      generator_argument(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      documentation);
}

/// x.name(...) draws a value in the place of x's.
template <typename Function, typename... Extra>
void def_fill(nb::class_<Tensor>& tensor, const char* name, Function draw, const Extra&... extra) {
  tensor.def(
      name,
      [draw](nb::object self, double a, double b, const Generator& generator) {
        const DrawsOf scope(generator);
        Tensor& x = nb::cast<Tensor&>(self);
        x.update_(draw(x, a, b));
        return self;
      },
      extra...);
}

}  // namespace

void bind_random_stream(nb::module_& m) {
  nb::class_<RandomStream>(m, "_RandomStream", "A stream of random draws of its own.")
      .def(nb::init<>())
      .def_rw("_seed", &RandomStream::seed)
      .def_rw("draws", &RandomStream::draws, "How many draws it has given. May be set.");
}

void bind_random(nb::module_& m, nb::class_<Tensor>& tensor) {
  def_draw(m, "uniform", &random::uniform, "low", 0, "high", 1, "Uniform on [low, high).");
  def_draw(m, "gumbel", &random::gumbel, "loc", 0, "scale", 1,
           "-log(-log(u)) for uniform u, scaled and moved: argmax(log(p) + gumbel) draws from p.");
  m.def(
      "normal",
      [](nb::handle mean, nb::handle std, nb::handle size, const Generator& generator,
         nb::handle dtype, nb::handle device) {
        const DrawsOf scope(generator);
        if (!size.is_none()) {
          return random::normal(extents_from("normal", size), nb::cast<double>(mean),
                                nb::cast<double>(std), float_or(dtype), device_from(device));
        }
        const Tensor centre = operand_from(mean, "normal");
        const Tensor scale = operand_from(std, "normal");
        const Tensor shaped = centre + scale * Tensor(0.0);
        const Tensor draw = random::normal(shaped.extents(), 0, 1, shaped.dtype(), shaped.device());
        return centre + scale * draw;
      },
      nb::arg("mean") = 0.0, nb::arg("std") = 1.0, nb::arg("size") = nb::none(), nb::kw_only(),
      generator_argument(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      "Normal with a mean and a deviation, numbers with a size or tensors that broadcast.");
  m.def(
      "truncated_normal",
      [](nb::handle size, double mean, double std, double low, double high,
         const Generator& generator, nb::handle dtype, nb::handle device) {
        const DrawsOf scope(generator);
        return random::truncated_normal(extents_from("truncated_normal", size), mean, std, low,
                                        high, float_or(dtype), device_from(device));
      },
      nb::arg("size"), nb::arg("mean") = 0.0, nb::arg("std") = 1.0, nb::arg("low") = -2.0,
      nb::arg("high") = 2.0, nb::kw_only(), generator_argument(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), "Normal, conditioned on [low, high].");
  m.def(
      "exponential",
      [](nb::handle size, double lambd, const Generator& generator, nb::handle dtype,
         nb::handle device) {
        const DrawsOf scope(generator);
        return random::exponential(extents_from("exponential", size), lambd, float_or(dtype),
                                   device_from(device));
      },
      nb::arg("size"), nb::arg("lambd") = 1.0, nb::kw_only(), generator_argument(),
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      "Exponential with a rate: density lambd * exp(-lambd * x).");
  m.def(
      "gamma",
      [](const Tensor& concentration, const Generator& generator) {
        const DrawsOf scope(generator);
        return random::gamma(concentration);
      },
      nb::arg("concentration"), nb::kw_only(), generator_argument(),
      "Gamma of rate 1 with a shape parameter for each element (Marsaglia and Tsang, 2000); no "
      "gradient.");
  m.def(
      "bernoulli",
      [](const Tensor& probability, const Generator& generator) {
        const DrawsOf scope(generator);
        return random::bernoulli(probability);
      },
      nb::arg("input"), nb::kw_only(), generator_argument(),
      "1 with the probability that each element gives, else 0.");
  m.def(
      "multinomial",
      [](const Tensor& weights, std::int64_t count, bool replacement, const Generator& generator) {
        const DrawsOf scope(generator);
        return random::multinomial(weights, count, replacement);
      },
      nb::arg("input"), nb::arg("num_samples"), nb::arg("replacement") = false, nb::kw_only(),
      generator_argument(),
      "Positions (int64) drawn from weights (N) or (rows, N) in proportion to them.");
  m.def(
      "randperm",
      [](std::int64_t n, const Generator& generator, nb::handle dtype, nb::handle device) {
        const DrawsOf scope(generator);
        const DType type = dtype.is_none() ? DType::kI64 : dtype_from(dtype);
        return random::permutation(n, type, device_from(device));
      },
      nb::arg("n"), nb::kw_only(), generator_argument(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), "0 to n - 1 in a random order.");
  def_fill(
      tensor, "uniform_",
      [](const Tensor& x, double low, double high) {
        return random::uniform(x.extents(), low, high, x.dtype(), x.device());
      },
      nb::arg("from") = 0.0, nb::arg("to") = 1.0, nb::kw_only(), generator_argument(),
      // PyTorch's first name is a word of Python's, which a stub cannot hold.
      nb::sig("def uniform_(self, *args: typing.Any, **kwargs: typing.Any) -> Tensor"),
      "Filled with uniform draws from `from` (0) to `to` (1), in place.");
  def_fill(
      tensor, "normal_",
      [](const Tensor& x, double mean, double deviation) {
        return random::normal(x.extents(), mean, deviation, x.dtype(), x.device());
      },
      nb::arg("mean") = 0.0, nb::arg("std") = 1.0, nb::kw_only(), generator_argument(),
      "Filled with normal draws, in place.");
  tensor.def(
      "exponential_",
      [](nb::object self, double lambd, const Generator& generator) {
        const DrawsOf scope(generator);
        Tensor& x = nb::cast<Tensor&>(self);
        x.update_(random::exponential(x.extents(), lambd, x.dtype(), x.device()));
        return self;
      },
      nb::arg("lambd") = 1.0, nb::kw_only(), generator_argument(),
      "Filled with exponential draws, in place.");
  tensor.def(
      "bernoulli_",
      [](nb::object self, double p, const Generator& generator) {
        const DrawsOf scope(generator);
        if (!(p >= 0 && p <= 1)) {
          throw ArgumentError("[bernoulli_] p is " + std::to_string(p) + ", not in [0, 1]");
        }
        Tensor& x = nb::cast<Tensor&>(self);
        const Tensor draw = random::uniform(x.extents(), 0, 1, DType::kF32, x.device());
        x.update_(to(lt(draw, Tensor(p)), x.dtype()));
        return self;
      },
      nb::arg("p") = 0.5, nb::kw_only(), generator_argument(),
      "Filled with 1 with probability p, else 0, in place.");

  nb::class_<DrawTape>(m, "_DrawTape", "The random draws of one call of a function.")
      .def(nb::new_([] { return std::make_shared<DrawTape>(); }))
      .def(
          "begin",
          [](std::shared_ptr<DrawTape> self, bool replay) { begin_draws(std::move(self), replay); },
          nb::arg("replay"), "Notes the draws that follow, or makes the noted ones again.");
  m.def("_end_draws", &end_draws, "Ends the last begin().");
}

}  // namespace vkml::python
