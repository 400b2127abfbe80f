// What networks are made of: convolution, pooling, normalisation, dropout, losses.

#include "common.h"

namespace vkml::python {
namespace {

Reduction reduction_from(const std::string& name) {
  if (name == "mean") return Reduction::kMean;
  if (name == "sum") return Reduction::kSum;
  if (name == "none") return Reduction::kNone;
  throw ArgumentError("[cross_entropy] reduction '" + name + "' is not 'mean', 'sum' or 'none'");
}

}  // namespace

void bind_networks(nb::module_& m) {
  m.def(
      "conv2d",
      [](const Tensor& input, const Tensor& weight, std::optional<Tensor> bias, nb::handle stride,
         nb::handle padding, nb::handle dilation, std::int64_t groups) {
        return conv2d(input, weight, bias.value_or(Tensor()), pair_from("conv2d", "stride", stride),
                      pair_from("conv2d", "padding", padding),
                      pair_from("conv2d", "dilation", dilation), groups);
      },
      nb::arg("input"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("stride") = 1,
      nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("groups") = 1,
      "Cross-correlation of (N, C, H, W) with (O, C / groups, KH, KW).");
  m.def(
      "max_pool2d",
      [](const Tensor& input, nb::handle kernel, nb::handle stride, nb::handle padding,
         nb::handle dilation) {
        const Pair size = pair_from("max_pool2d", "kernel_size", kernel);
        return max_pool2d(input, size,
                          stride.is_none() ? size : pair_from("max_pool2d", "stride", stride),
                          pair_from("max_pool2d", "padding", padding),
                          pair_from("max_pool2d", "dilation", dilation));
      },
      nb::arg("input"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
      nb::arg("padding") = 0, nb::arg("dilation") = 1,
      "The largest of each window; padding never wins.");
  m.def(
      "avg_pool2d",
      [](const Tensor& input, nb::handle kernel, nb::handle stride, nb::handle padding,
         bool count_include_pad) {
        const Pair size = pair_from("avg_pool2d", "kernel_size", kernel);
        return avg_pool2d(input, size,
                          stride.is_none() ? size : pair_from("avg_pool2d", "stride", stride),
                          pair_from("avg_pool2d", "padding", padding), count_include_pad);
      },
      nb::arg("input"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
      nb::arg("padding") = 0, nb::arg("count_include_pad") = true, "The mean of each window.");
  m.def(
      "embedding",
      [](nb::handle input, const Tensor& weight) {
        return embedding(indices_from(input, "embedding", weight.device()), weight);
      },
      nb::arg("input"), nb::arg("weight"), "Rows of `weight` at integer positions.");
  m.def("dropout", &dropout, nb::arg("input"), nb::arg("p") = 0.5, nb::arg("training") = true,
        "Zeroes elements with probability p and scales the others by 1 / (1 - p).");
  m.def(
      "layer_norm",
      [](const Tensor& input, nb::handle normalized_shape, std::optional<Tensor> weight,
         std::optional<Tensor> bias, double eps) {
        return layer_norm(input, extents_from(normalized_shape), weight.value_or(Tensor()),
                          bias.value_or(Tensor()), eps);
      },
      nb::arg("input"), nb::arg("normalized_shape"), nb::arg("weight") = nb::none(),
      nb::arg("bias") = nb::none(), nb::arg("eps") = 1e-5,
      "Normalises over the last axes, then scales and shifts.");
  m.def(
      "normalize",
      [](const Tensor& input, nb::handle dim, double eps) {
        return normalize(input, extents_from(dim), eps);
      },
      nb::arg("input"), nb::arg("dim"), nb::arg("eps") = 1e-5,
      "(x - mean) / sqrt(variance + eps) over axes, with the biased variance.");
  m.def(
      "cross_entropy",
      [](const Tensor& input, const Tensor& target, const std::string& reduction,
         std::int64_t ignore_index, double label_smoothing) {
        return cross_entropy(input, target, reduction_from(reduction), ignore_index,
                             label_smoothing);
      },
      nb::arg("input"), nb::arg("target"), nb::arg("reduction") = "mean",
      nb::arg("ignore_index") = -100, nb::arg("label_smoothing") = 0.0,
      "-log_softmax(input)[target], classes along axis 1.");
}

}  // namespace vkml::python
