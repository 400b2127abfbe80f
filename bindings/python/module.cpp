// The native module vkml._vkml.

#include "common.h"

#ifndef VKML_VERSION
#define VKML_VERSION "0.1.0"
#endif

NB_MODULE(_vkml, m) {
  using namespace vkml::python;
  m.doc() = "vkML's native module; use it through the package vkml.";
  m.attr("__version__") = VKML_VERSION;
  // Tensors may live in module globals when the interpreter goes: not a leak worth a message.
  nb::set_leak_warnings(false);
  watch_forks();
  bind_errors(m);
  bind_types(m);
  bind_context(m);
  bind_random_stream(m);
  bind_tensor(m);
  bind_creation(m);
  bind_networks(m);
  bind_linalg(m);
  bind_transforms(m);
  bind_jit(m);
  bind_plan(m);
  bind_profile(m);
  bind_argument_errors(m);  // last: it goes round all functions
}
