// A user's program: nothing but installed headers and vkml::vkml. The README prints what follows.
#include <cstdio>

#include "vkml/api/vkml.h"

int main() {
  const float truth[] = {1, -2, 3};
  const vkml::Tensor x = vkml::randn({64, 3});
  const vkml::Tensor y = matmul(x, vkml::Tensor::from_values(truth, {3}));
  vkml::Tensor w = vkml::zeros({3}).requires_grad_();
  for (int step = 0; step < 200; ++step) {
    mean(square(matmul(x, w) - y)).backward();
    w.assign_(w.detach() - 0.1 * w.grad());
    w.set_grad({});
  }
  for (const float value : w.to_floats()) std::printf("%.3f ", value);
}
