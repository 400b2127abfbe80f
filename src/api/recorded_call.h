// What a recording found out about a call, and its replay.
#pragma once

#include <memory>
#include <span>

#include "call_recorder.h"
#include "vkml/api/jit.h"

namespace vkml {

/// Plans what `recorder` watched, puts everything back, and returns the replay.
std::shared_ptr<RecordedCall> make_recorded_call(CallRecorder& recorder,
                                                 std::span<const Tensor> results,
                                                 std::span<const Tensor> adopted);

}  // namespace vkml
