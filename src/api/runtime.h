// The one place above the backends that names them.
#pragma once

namespace vkml {
/// Makes every backend known. Cheap after the first call; opens no driver.
void register_backends();
}  // namespace vkml
