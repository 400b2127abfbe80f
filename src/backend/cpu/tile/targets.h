// Which instruction sets the vector loops are compiled for. Include before any Highway header.
#pragma once

// Each target compiles every loop once more: those that differ little from a neighbour are left
// out.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
