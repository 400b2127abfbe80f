// Memory of a thread that outlives a kernel but holds nothing between kernels: registers of the
// tile machine, packed panels, planes of images.
#pragma once

#include <cstddef>

namespace vkml::cpu {

/// Whose memory: a kernel may use one block of each purpose at a time on each thread.
enum class ScratchPurpose { kCaller, kWorker, kPanelA, kPanelB, kPlane, kPatches };
inline constexpr int kScratchPurposes = 6;

/// At least `bytes` bytes, aligned to 64, contents undefined; valid until the same thread asks for
/// the same purpose again. Throws OutOfMemoryError.
std::byte* thread_scratch(ScratchPurpose purpose, std::size_t bytes);

}  // namespace vkml::cpu
