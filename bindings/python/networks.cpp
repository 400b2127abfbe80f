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

graph::AttentionOptions attention_options(bool is_causal, std::optional<double> scale,
                                          bool shares_heads) {
  return {is_causal, scale, shares_heads};
}

void bind_attention(nb::module_& m) {
  m.def(
      "_scaled_dot_product_attention",
      [](const Tensor& query, const Tensor& key, const Tensor& value, std::optional<Tensor> mask,
         bool is_causal, std::optional<double> scale, bool enable_gqa) {
        return scaled_dot_product_attention(query, key, value, mask.value_or(Tensor()),
                                            attention_options(is_causal, scale, enable_gqa));
      },
      nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("attn_mask").none(),
      nb::arg("is_causal"), nb::arg("scale").none(), nb::arg("enable_gqa"));
  m.def(
      "_attention_weights",
      [](const Tensor& query, const Tensor& key, std::optional<Tensor> mask, bool is_causal,
         std::optional<double> scale, bool enable_gqa) {
        return attention_weights(query, key, mask.value_or(Tensor()),
                                 attention_options(is_causal, scale, enable_gqa));
      },
      nb::arg("query"), nb::arg("key"), nb::arg("attn_mask").none(), nb::arg("is_causal"),
      nb::arg("scale").none(), nb::arg("enable_gqa"));
}

}  // namespace

void bind_networks(nb::module_& m) {
  bind_attention(m);
  m.def(
      "conv2d",
      [](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
         nb::handle stride, nb::handle padding, nb::handle dilation, std::int64_t groups) {
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
         nb::handle dilation, bool ceil_mode) {
        const Pair size = pair_from("max_pool2d", "kernel_size", kernel);
        return max_pool2d(input, size,
                          stride.is_none() ? size : pair_from("max_pool2d", "stride", stride),
                          pair_from("max_pool2d", "padding", padding),
                          pair_from("max_pool2d", "dilation", dilation), ceil_mode);
      },
      nb::arg("input"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
      nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("ceil_mode") = false,
      "The largest of each window; padding never wins. With ceil_mode a last window may reach past "
      "the padding.");
  m.def(
      "max_pool2d_with_indices",
      [](const Tensor& input, nb::handle kernel, nb::handle stride, nb::handle padding,
         nb::handle dilation, bool ceil_mode) {
        const Pair size = pair_from("max_pool2d", "kernel_size", kernel);
        const Ranked found = max_pool2d_with_indices(
            input, size, stride.is_none() ? size : pair_from("max_pool2d", "stride", stride),
            pair_from("max_pool2d", "padding", padding),
            pair_from("max_pool2d", "dilation", dilation), ceil_mode);
        return nb::make_tuple(found.values, found.indices);
      },
      nb::arg("input"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
      nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("ceil_mode") = false,
      "max_pool2d with the positions row * width + column of the (first) largest, as int32.");
  m.def(
      "conv_transpose2d",
      [](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
         nb::handle stride, nb::handle padding, nb::handle output_padding, std::int64_t groups,
         nb::handle dilation) {
        const char* op = "conv_transpose2d";
        return conv_transpose2d(input, weight, bias.value_or(Tensor()),
                                pair_from(op, "stride", stride), pair_from(op, "padding", padding),
                                pair_from(op, "output_padding", output_padding), groups,
                                pair_from(op, "dilation", dilation));
      },
      nb::arg("input"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("stride") = 1,
      nb::arg("padding") = 0, nb::arg("output_padding") = 0, nb::arg("groups") = 1,
      nb::arg("dilation") = 1,
      "The gradient of conv2d as an operator: (N, C, H, W) with (C, O / groups, KH, KW).");
  m.def(
      "unfold",
      [](const Tensor& input, nb::handle kernel, nb::handle dilation, nb::handle padding,
         nb::handle stride) {
        return unfold(input, pair_from("unfold", "kernel_size", kernel),
                      pair_from("unfold", "dilation", dilation),
                      pair_from("unfold", "padding", padding),
                      pair_from("unfold", "stride", stride));
      },
      nb::arg("input"), nb::arg("kernel_size"), nb::arg("dilation") = 1, nb::arg("padding") = 0,
      nb::arg("stride") = 1, "Windows of (N, C, H, W) as columns (N, C * KH * KW, windows).");
  m.def(
      "fold",
      [](const Tensor& input, nb::handle output_size, nb::handle kernel, nb::handle dilation,
         nb::handle padding, nb::handle stride) {
        return fold(input, pair_from("fold", "output_size", output_size),
                    pair_from("fold", "kernel_size", kernel),
                    pair_from("fold", "dilation", dilation), pair_from("fold", "padding", padding),
                    pair_from("fold", "stride", stride));
      },
      nb::arg("input"), nb::arg("output_size"), nb::arg("kernel_size"), nb::arg("dilation") = 1,
      nb::arg("padding") = 0, nb::arg("stride") = 1,
      "The sum of columns (N, C * KH * KW, windows) where their windows lie in an image.");
  m.def(
      "avg_pool2d",
      [](const Tensor& input, nb::handle kernel, nb::handle stride, nb::handle padding,
         bool count_include_pad, bool ceil_mode) {
        const Pair size = pair_from("avg_pool2d", "kernel_size", kernel);
        return avg_pool2d(
            input, size, stride.is_none() ? size : pair_from("avg_pool2d", "stride", stride),
            pair_from("avg_pool2d", "padding", padding), count_include_pad, ceil_mode);
      },
      nb::arg("input"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
      nb::arg("padding") = 0, nb::arg("count_include_pad") = true, nb::arg("ceil_mode") = false,
      "The mean of each window; with ceil_mode a last window may reach past the padding.");
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
      [](const Tensor& input, nb::handle normalized_shape, const std::optional<Tensor>& weight,
         const std::optional<Tensor>& bias, double eps) {
        return layer_norm(input, extents_from("layer_norm", normalized_shape),
                          weight.value_or(Tensor()), bias.value_or(Tensor()), eps);
      },
      nb::arg("input"), nb::arg("normalized_shape"), nb::arg("weight") = nb::none(),
      nb::arg("bias") = nb::none(), nb::arg("eps") = 1e-5,
      "Normalises over the last axes, then scales and shifts.");
  m.def(
      "normalize",
      [](const Tensor& input, nb::handle dim, double eps) {
        return normalize(input, extents_from("normalize", dim), eps);
      },
      nb::arg("input"), nb::arg("dim"), nb::arg("eps") = 1e-5,
      "(x - mean) / sqrt(variance + eps) over axes, with the biased variance.");
  m.def("_add_to_product", &add_to_product, nb::arg("product"), nb::arg("addend"),
        "The sum, under autocast in the product's precision.");
  m.def("_checked_probability", &checked_probability, nb::arg("input"),
        "The input of binary_cross_entropy, which raises where it is no probability.");
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
