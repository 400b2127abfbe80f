// The driver's compiled pipelines on disk. Drivers have crashed on damaged cache data, so nothing
// reaches one unless a checksum says that this device's driver wrote it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device_profile.h"

namespace vkml::vulkan {

class PipelineCacheFile {
 public:
  /// The file for a device, in the cache directory of the environment.
  explicit PipelineCacheFile(const DeviceProfile& profile);
  PipelineCacheFile(std::string directory, const DeviceProfile& profile);

  /// The driver's data, or nothing when the file is missing, damaged, of another format or from
  /// another device or driver.
  std::optional<std::vector<std::byte>> read() const;
  /// Replaces the file in one step, so that readers see the old one or the new one. False when it
  /// could not be written: a cache that cannot be kept is no error.
  bool write(std::span<const std::byte> data) const;

  const std::string& path() const { return path_; }

 private:
  std::string directory_;
  std::string path_;  // empty: there is nowhere to keep it
  std::string identity_;
};

}  // namespace vkml::vulkan
