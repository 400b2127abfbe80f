// What the machine is: its name, memory and instruction set, for people and for limits.
#pragma once

#include <cstdint>
#include <string>

namespace vkml::cpu {

/// "AMD EPYC 7B13", from /proc/cpuinfo; the architecture's name where that is missing.
std::string processor_name();

/// Physical memory, or less where a control group limits this process.
std::int64_t memory_bytes();

/// The best instruction set that the tile loops use here: "AVX2", "AVX3" (AVX-512), "NEON".
std::string instruction_set();

}  // namespace vkml::cpu
