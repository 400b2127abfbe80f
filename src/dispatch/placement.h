// Which values are computed where a concat puts them, so that nothing has to be copied: each lies
// in the memory of the joined value, which is taken when the first of them is written.
#pragma once

#include <vector>

#include "fuse.h"

namespace vkml::dispatch {

struct Placement {
  int container = -1;       // position of the value that holds this one; -1: it has its own memory
  std::int64_t offset = 0;  // elements from the container's first
  bool is_dense = true;     // otherwise nobody but the container reads it, and it lies at `strides`
  Extents strides{0, 0, 0, 0};
};

/// By position. Containers may lie in other containers.
std::vector<Placement> place_parts(const Schedule& schedule, const Fusion& fusion);

}  // namespace vkml::dispatch
