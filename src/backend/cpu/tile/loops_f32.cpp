// The tile loops of f32.
#include "tile/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile/loops_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tile/loops.h"
#include "tile/loops_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu {
namespace HWY_NAMESPACE {

Loop f32_loop_here(ops::Opcode op) { return float_loop<float>(op); }
Loop f32_polynomial_here() { return polynomial<float>; }

}  // namespace HWY_NAMESPACE
}  // namespace vkml::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(f32_loop_here);
HWY_EXPORT(f32_polynomial_here);

Loop f32_loop(ops::Opcode op) { return HWY_DYNAMIC_DISPATCH(f32_loop_here)(op); }
Loop f32_polynomial_loop() { return HWY_DYNAMIC_DISPATCH(f32_polynomial_here)(); }

}  // namespace vkml::cpu
#endif
