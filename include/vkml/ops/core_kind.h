// Structural operators that have a kernel core of their own. core_kind.def.h is the only list of
// them: a node's OpInfo and a planned kernel name a core by the same enumerator.
#pragma once

#include <cstdint>

#include "vkml/graph/op_info.h"

namespace vkml::ops {

enum class CoreKind : std::uint8_t {
#define VKML_CORE(kind, name, checks) kind,
#include "vkml/ops/core_kind.def.h"
};

constexpr const char* name_of(CoreKind kind) {
  constexpr const char* kNames[] = {
#define VKML_CORE(kind, name, checks) name,
#include "vkml/ops/core_kind.def.h"
  };
  return kNames[static_cast<int>(kind)];
}

/// Whether the core checks indices at run time.
constexpr bool checks_indices(CoreKind kind) {
  constexpr bool kChecks[] = {
#define VKML_CORE(kind, name, checks) checks,
#include "vkml/ops/core_kind.def.h"
  };
  return kChecks[static_cast<int>(kind)];
}

constexpr bool is_convolution(CoreKind kind) {
  return kind == CoreKind::kConv2d || kind == CoreKind::kConv2dInputGradient ||
         kind == CoreKind::kConv2dWeightGradient;
}
constexpr bool is_attention(CoreKind kind) {
  return kind == CoreKind::kAttentionLogSumExp || kind == CoreKind::kAttention ||
         kind == CoreKind::kAttentionQueryGradient || kind == CoreKind::kAttentionKeyGradient ||
         kind == CoreKind::kAttentionValueGradient;
}

/// An operator that is a core, in the name that users know it by.
constexpr graph::OpInfo core_op(const char* name, CoreKind kind,
                                graph::GradientRule gradient = nullptr,
                                graph::GradientReads reads = {}) {
  return {name, graph::Family::kCore, static_cast<int>(kind), gradient, reads};
}

/// The core of an operator; kNone of one that has none.
constexpr CoreKind core_of(const graph::OpInfo& op) {
  return op.family == graph::Family::kCore ? static_cast<CoreKind>(op.id) : CoreKind::kNone;
}

/// Whether the operator checks indices at run time and may raise IndexError.
constexpr bool checks_indices(const graph::OpInfo& op) {
  return op.family == graph::Family::kCheck || checks_indices(core_of(op));
}

/// Some cores compute on their way what another core gives. A node of such a core has that one's
/// among its sources, for the planner alone, which puts both into one kernel where it can: the core
/// itself never reads it.
struct Companion {
  CoreKind kind = CoreKind::kNone;
  int source = -1;  // its place among the sources
};
constexpr Companion companion_of(CoreKind kind) {
  if (kind == CoreKind::kAttention) return {CoreKind::kAttentionLogSumExp, 3};
  if (kind == CoreKind::kAttentionKeyGradient) return {CoreKind::kAttentionValueGradient, 6};
  return {};
}
constexpr Companion companion_of(const graph::OpInfo& op) { return companion_of(core_of(op)); }

/// What kScatter does with the elements of the source that meet at one element of the base.
enum class ScatterKind : int { kAdd, kReplace, kMultiply, kMax, kMin };

/// What kScan carries along its axis.
enum class ScanKind : int { kSum, kProduct, kLinear, kArgMax, kArgMin };

}  // namespace vkml::ops
