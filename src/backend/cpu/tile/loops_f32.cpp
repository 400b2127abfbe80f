// The tile loops of f32.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile/loops_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tile/loops.h"
#include "tile/loops_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {

Loop f32_loop_here(ops::Opcode op, Pattern tiles) { return float_loop<float>(op, tiles); }
Loop f32_polynomial_here(Pattern tiles) { return pick_polynomial<float>(tiles); }
Loop f32_beyond_here(ops::FarFunction function) { return pick_beyond<float>(function); }

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(f32_loop_here);
HWY_EXPORT(f32_polynomial_here);
HWY_EXPORT(f32_beyond_here);

Loop f32_loop(ops::Opcode op, Pattern tiles) {
  return HWY_DYNAMIC_DISPATCH(f32_loop_here)(op, tiles);
}
Loop f32_polynomial_loop(Pattern tiles) { return HWY_DYNAMIC_DISPATCH(f32_polynomial_here)(tiles); }
Loop f32_beyond_loop(ops::FarFunction function) {
  return HWY_DYNAMIC_DISPATCH(f32_beyond_here)(function);
}

}  // namespace vkml::cpu
#endif
