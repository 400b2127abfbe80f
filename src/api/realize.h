// Values of several devices, each device's as one graph.
#pragma once

#include <span>

#include "vkml/dispatch/executor.h"
#include "vkml/graph/node.h"

namespace vkml {

/// Realises the roots, one graph for each device: values and gradients cross devices by copies,
/// which are leaves of the other device's graph.
void realize_by_device(std::span<const graph::NodePtr> roots,
                       const dispatch::RealizeOptions& options = {});

/// The same for values that have nothing to do with the caller, whose failures come back where they
/// are read. One that fails does not keep the others from being computed.
void realize_quietly(std::span<const graph::NodePtr> roots);

}  // namespace vkml
