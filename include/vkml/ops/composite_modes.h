// What composites can be asked for, for headers that know no values.
#pragma once

namespace vkml::graph {

/// Between two elements of a sorted axis: linearly, the lower, the higher, their middle, the
/// nearest.
enum class Interpolation { kLinear, kLower, kHigher, kMidpoint, kNearest };

/// Padding from the tensor itself: mirrored at its edge, its edge repeated, its other end.
enum class PadMode { kReflect, kReplicate, kCircular };

}  // namespace vkml::graph
