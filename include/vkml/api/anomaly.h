// Anomaly mode: which operator's gradient is NaN, and where the program called it.
#pragma once

#include <functional>
#include <string>

namespace vkml {

/// While it is on, a node that records a gradient remembers where it was made, and every gradient
/// rule of a backward pass is computed at once and checked: the first NaN is an AutogradError that
/// names the operator and that place. Slow, for debugging. With `check_nan` false, places are
/// remembered only.
void set_detect_anomaly(bool enabled, bool check_nan = true);
bool is_detecting_anomaly();
bool is_checking_nan();

/// Says in which line of the program the calling thread is; "" when it does not know. C++ has none
/// of its own.
void set_place_provider(std::function<std::string()> provider);

}  // namespace vkml
