// A user's program: nothing but installed headers and vkml::vkml. The README prints what follows.
#include <cstdio>

#include "vkml/api/vkml.h"

int main() {
  vkml::Tensor truth = vkml::linspace(1, 3, 3), w = vkml::zeros({3}).requires_grad_();
  for (int step = 0; step < 200; ++step, w.set_grad({})) {
    mean(square(matmul(vkml::randn({64, 3}), w - truth))).backward();
    w.assign_(w.detach() - 0.1 * w.grad());
  }
  std::puts(w.to_string().c_str());
}
