#include "pipeline_cache_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "environment.h"

namespace vkml::vulkan {

namespace {

// The file: Header, identity, the driver's data. Little-endian, as every machine with Vulkan is.
constexpr char kMagic[8] = {'V', 'K', 'M', 'L', 'P', 'I', 'P', 'E'};
constexpr std::uint32_t kFormat = 1;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 30;

struct Header {
  char magic[8];
  std::uint32_t format;
  std::uint32_t identity_bytes;
  std::uint64_t data_bytes;
  std::uint64_t checksum;  // XXH3 of everything after the header
};
static_assert(sizeof(Header) == 32);

void debug(const std::string& path, const char* what) {
  if (env_debug()) fmt::print(stderr, "vkml: pipeline cache {}: {}\n", path, what);
}

}  // namespace

PipelineCacheFile::PipelineCacheFile(const DeviceProfile& profile)
    : PipelineCacheFile(env_cache_directory(), profile) {}

PipelineCacheFile::PipelineCacheFile(std::string directory, const DeviceProfile& profile)
    : directory_(std::move(directory)) {
  identity_ = fmt::format("{:08x}-{:08x}-{:08x}-", profile.vendor_id, profile.device_id,
                          profile.driver_version);
  for (const std::uint8_t byte : profile.cache_uuid) identity_ += fmt::format("{:02x}", byte);
  if (directory_.empty()) return;
  const std::uint64_t tag = XXH3_64bits(identity_.data(), identity_.size());
  path_ = fmt::format("{}/pipelines-{:016x}.bin", directory_, tag);
}

std::optional<std::vector<std::byte>> PipelineCacheFile::read() const {
  if (path_.empty()) return std::nullopt;
  std::ifstream file(path_, std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const std::streamoff size = file.tellg();
  if (size < static_cast<std::streamoff>(sizeof(Header)) ||
      size > static_cast<std::streamoff>(kMaxFileBytes)) {
    debug(path_, "rejected: impossible size");
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) return std::nullopt;

  Header header;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  const auto body = std::span(bytes).subspan(sizeof(Header));
  const bool fits = std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 &&
                    header.format == kFormat && header.identity_bytes == identity_.size() &&
                    body.size() >= header.identity_bytes &&
                    header.data_bytes == body.size() - header.identity_bytes;
  if (!fits || std::memcmp(body.data(), identity_.data(), identity_.size()) != 0) {
    debug(path_, "rejected: truncated, of another format or from another driver");
    return std::nullopt;
  }
  if (XXH3_64bits(body.data(), body.size()) != header.checksum) {
    debug(path_, "rejected: damaged");
    return std::nullopt;
  }
  return std::vector(body.begin() + static_cast<std::ptrdiff_t>(identity_.size()), body.end());
}

bool PipelineCacheFile::write(std::span<const std::byte> data) const {
  if (path_.empty() || data.size() > kMaxFileBytes / 2) return false;
  std::vector<std::byte> body(identity_.size() + data.size());
  std::memcpy(body.data(), identity_.data(), identity_.size());
  if (!data.empty()) std::memcpy(body.data() + identity_.size(), data.data(), data.size());
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.format = kFormat;
  header.identity_bytes = static_cast<std::uint32_t>(identity_.size());
  header.data_bytes = data.size();
  header.checksum = XXH3_64bits(body.data(), body.size());

  std::error_code problem;
  std::filesystem::create_directories(directory_, problem);
  const std::string temporary = fmt::format("{}.{:08x}.tmp", path_, std::random_device{}());
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&header), sizeof(Header));
    file.write(reinterpret_cast<const char*>(body.data()),
               static_cast<std::streamsize>(body.size()));
    file.flush();
    if (!file) {
      file.close();
      std::filesystem::remove(temporary, problem);
      debug(path_, "could not be written");
      return false;
    }
  }
  std::filesystem::rename(temporary, path_, problem);
  if (problem) {
    debug(path_, "could not be replaced");
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    return false;
  }
  return true;
}

}  // namespace vkml::vulkan
