// A user's program: nothing but installed headers and vkml::vkml.
#include <cstdio>

#include "vkml/core/shape.h"

int main() {
  const vkml::Shape shape({2, 3}, vkml::DType::kF32);
  std::printf("%s\n", shape.to_string().c_str());
  return shape.numel() == 6 ? 0 : 1;
}
