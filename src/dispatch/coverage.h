// Counts evaluated operators while vkml.coverage() asks for it.
#pragma once

#include "schedule.h"

namespace vkml::dispatch {
void record_coverage(const Schedule& schedule, Device device);
}
