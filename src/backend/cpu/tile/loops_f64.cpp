// The tile loops of f64.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile/loops_f64.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tile/loops.h"
#include "tile/loops_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {

Loop f64_loop_here(ops::Opcode op, Pattern tiles) { return float_loop<double>(op, tiles); }
Loop f64_polynomial_here(Pattern tiles) { return pick_polynomial<double>(tiles); }
Loop f64_beyond_here(ops::FarFunction function) { return pick_beyond<double>(function); }

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(f64_loop_here);
HWY_EXPORT(f64_polynomial_here);
HWY_EXPORT(f64_beyond_here);

Loop f64_loop(ops::Opcode op, Pattern tiles) {
  return HWY_DYNAMIC_DISPATCH(f64_loop_here)(op, tiles);
}
Loop f64_polynomial_loop(Pattern tiles) { return HWY_DYNAMIC_DISPATCH(f64_polynomial_here)(tiles); }
Loop f64_beyond_loop(ops::FarFunction function) {
  return HWY_DYNAMIC_DISPATCH(f64_beyond_here)(function);
}

}  // namespace vkml::cpu
#endif
