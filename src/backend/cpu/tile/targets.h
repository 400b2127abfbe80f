// Which instruction sets the vector loops are compiled for. Include before any Highway header.
#pragma once

// Each target compiles every loop once more: those that differ little from a neighbour are left
// out, and those whose vectors have no size at compile time.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
