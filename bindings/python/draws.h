// The argument `generator` of functions that draw random numbers.
#pragma once

#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "common.h"
#include "vkml/api/random.h"

namespace vkml::python {

using Generator = std::shared_ptr<RandomStream>;

/// While it lives, this thread draws from the generator, or as before where that is none.
class DrawsOf {
 public:
  explicit DrawsOf(const Generator& generator) : is_active_(generator != nullptr) {
    if (is_active_) begin_draws(generator);
  }
  ~DrawsOf() {
    if (is_active_) end_draws();
  }
  DrawsOf(const DrawsOf&) = delete;
  DrawsOf& operator=(const DrawsOf&) = delete;

 private:
  bool is_active_;
};

inline auto generator_argument() { return nb::arg("generator") = nb::none(); }

}  // namespace vkml::python
