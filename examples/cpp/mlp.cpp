// Trains a classifier of clothes on Fashion-MNIST from C++ alone: the network of
// examples/python/train_fashion_mnist.py, with Adam and a learning rate that rises and falls.
//
//   mlp [--data folder] [--epochs n] [--device cpu|vulkan]
//
// The folder holds the four IDX files, compressed or not; by default it is that of Debian's package
// dataset-fashion-mnist.

#include <vkml/api/vkml.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

using vkml::Tensor;

constexpr std::int64_t kBatch = 128;
constexpr std::int64_t kPixels = 28 * 28;
constexpr double kPeakRate = 3e-3;
constexpr double kLabelSmoothing = 0.1;     // the accuracy then depends little on seed and device
constexpr std::int64_t kIgnoreNone = -100;  // no label is ignored
// Mean and deviation of the training images, in [0, 1].
constexpr double kPixelMean = 0.2860, kPixelDeviation = 0.3530;

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  int epochs = 10;
  std::string device;
};

/// A positive whole number, as the option's value.
int positive(const std::string& option, const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 1) {
    throw std::invalid_argument(option + " takes a whole number from 1 to " +
                                std::to_string(std::numeric_limits<int>::max()) + ", not \"" +
                                text + "\"");
  }
  return value;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    if (i + 1 == count) throw std::invalid_argument(name + " needs a value");
    const std::string value = arguments[i + 1];
    if (name == "--data") {
      options.data = value;
    } else if (name == "--epochs") {
      options.epochs = positive(name, value);
    } else if (name == "--device") {
      options.device = value;
    } else {
      throw std::invalid_argument(name + " is no option: --data, --epochs, --device");
    }
  }
  return options;
}

/// The bytes of an IDX file after its header of `rank` extents.
std::vector<std::byte> read_idx(const std::string& folder, const std::string& name, int rank) {
  std::unique_ptr<gzFile_s, decltype(&gzclose)> file(
      gzopen((folder + "/" + name + ".gz").c_str(), "rb"), &gzclose);
  // zlib reads plain files as they are.
  if (!file) file.reset(gzopen((folder + "/" + name).c_str(), "rb"));
  if (!file) throw std::runtime_error("cannot open " + folder + "/" + name + "[.gz]");
  std::vector<unsigned char> header(static_cast<std::size_t>(4 + 4 * rank));
  const auto length = static_cast<unsigned>(header.size());
  if (gzread(file.get(), header.data(), length) != static_cast<int>(length) || header[2] != 8 ||
      header[3] != rank) {
    throw std::runtime_error(name + " is no IDX file of bytes with rank " + std::to_string(rank));
  }
  std::size_t bytes = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const unsigned char* extent = &header[static_cast<std::size_t>(4 + 4 * axis)];
    bytes *= static_cast<std::size_t>(extent[0]) << 24 | static_cast<std::size_t>(extent[1]) << 16 |
             static_cast<std::size_t>(extent[2]) << 8 | extent[3];
  }
  if (bytes > (std::size_t{1} << 30)) throw std::runtime_error(name + " claims more than 1 GiB");
  std::vector<std::byte> content(bytes);
  if (gzread(file.get(), content.data(), static_cast<unsigned>(bytes)) != static_cast<int>(bytes)) {
    throw std::runtime_error(name + " is shorter than its header says");
  }
  return content;
}

struct Data {
  Tensor images;  // (count, 784), normalised
  Tensor labels;  // (count), i32
  std::int64_t count = 0;
};

Data load(const std::string& folder, const std::string& part, vkml::Device device) {
  const std::vector<std::byte> pixels = read_idx(folder, part + "-images-idx3-ubyte", 3);
  const std::vector<std::byte> labels = read_idx(folder, part + "-labels-idx1-ubyte", 1);
  Data data;
  data.count = static_cast<std::int64_t>(labels.size());
  const Tensor bytes = Tensor::from_host(pixels, {data.count, kPixels}, vkml::DType::kU8, device);
  data.images = (to(bytes, vkml::DType::kF32) / 255.0 - kPixelMean) / kPixelDeviation;
  data.images.realize();
  data.labels =
      to(Tensor::from_host(labels, {data.count}, vkml::DType::kU8, device), vkml::DType::kI32);
  data.labels.realize();
  return data;
}

/// A layer x @ weight + bias, drawn as PyTorch draws it.
struct Linear {
  Tensor weight, bias;

  Linear(std::int64_t inputs, std::int64_t outputs) {
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    weight = (vkml::rand({inputs, outputs}) * 2.0 - 1.0) * bound;
    bias = (vkml::rand({outputs}) * 2.0 - 1.0) * bound;
    weight.requires_grad_();
    bias.requires_grad_();
  }
  Tensor operator()(const Tensor& x) const { return matmul(x, weight) + bias; }
};

struct Network {
  Linear first{kPixels, 256}, second{256, 128}, third{128, 10};

  Tensor operator()(const Tensor& x) const { return third(relu(second(relu(first(x))))); }
  std::vector<Tensor> parameters() const {
    return {first.weight, first.bias, second.weight, second.bias, third.weight, third.bias};
  }
};

/// Adam (Kingma and Ba, 2015).
class Adam {
 public:
  explicit Adam(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
    for (const Tensor& parameter : parameters_) {
      means_.push_back(vkml::zeros(parameter.extents()));
      squares_.push_back(vkml::zeros(parameter.extents()));
    }
  }

  void step(double rate) {
    ++steps_;
    const double correction1 = 1 - std::pow(kBeta1, steps_);
    const double correction2 = 1 - std::pow(kBeta2, steps_);
    std::vector<Tensor> changed;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Tensor gradient = parameters_[i].grad();
      means_[i].assign_(means_[i] * kBeta1 + gradient * (1 - kBeta1));
      squares_[i].assign_(squares_[i] * kBeta2 + gradient * gradient * (1 - kBeta2));
      const Tensor deviation = sqrt(squares_[i] / correction2) + 1e-8;
      parameters_[i].assign_(parameters_[i].detach() -
                             means_[i] / deviation * (rate / correction1));
      parameters_[i].set_grad({});
      changed.insert(changed.end(), {parameters_[i], means_[i], squares_[i]});
    }
    vkml::realize(changed);
  }

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
  std::vector<Tensor> parameters_, means_, squares_;
  int steps_ = 0;
};

/// Up along a cosine in the first 30 % of the steps, then down to nearly nothing.
double learning_rate(int step, int steps) {
  const double rise = 0.3 * steps;
  const bool rising = step < rise;
  const double share = rising ? step / rise : (step - rise) / (steps - rise);
  const double cosine = (1 + std::cos(std::numbers::pi * share)) / 2;
  return kPeakRate * (rising ? 1 - 0.96 * cosine : cosine);
}

double accuracy(const Network& network, const Data& data) {
  const vkml::NoGrad no_grad;
  const Tensor hits = eq(argmax(network(data.images), {1}), data.labels);
  return sum(hits).item() / static_cast<double>(data.count);
}

void run(const Options& options) {
  if (!options.device.empty()) vkml::set_default_device(vkml::parse_device(options.device));
  const vkml::Device device = vkml::default_device();
  vkml::manual_seed(0);
  const Data training = load(options.data, "train", device);
  const Data test = load(options.data, "t10k", device);
  const Network network;
  Adam optimizer(network.parameters());

  std::vector<std::int32_t> order(static_cast<std::size_t>(training.count));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 generator(0);
  const auto batches = static_cast<int>((training.count + kBatch - 1) / kBatch);
  int step = 0;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), generator);
    const Tensor shuffled = Tensor::from_host(std::as_bytes(std::span(order)), {training.count},
                                              vkml::DType::kI32, device);
    Tensor total = vkml::zeros({});
    for (int batch = 0; batch < batches; ++batch, ++step) {
      const std::int64_t begin = batch * kBatch;
      const Tensor chosen = slice(shuffled, 0, begin, std::min(begin + kBatch, training.count));
      const Tensor loss =
          cross_entropy(network(take(training.images, chosen)), take(training.labels, chosen),
                        vkml::Reduction::kMean, kIgnoreNone, kLabelSmoothing);
      loss.backward();
      optimizer.step(learning_rate(step, batches * options.epochs));
      total += loss.detach();
    }
    std::printf("epoch %d/%d  loss %.3f  test accuracy %.1f %%\n", epoch + 1, options.epochs,
                total.item() / batches, 100 * accuracy(network, test));
    std::fflush(stdout);
  }
  std::printf("test accuracy: %.1f %%\n", 100 * accuracy(network, test));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(parse(count, arguments));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mlp: %s\n", error.what());
    return 1;
  }
}
