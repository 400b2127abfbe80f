// Parts of the Vulkan runtime that need no device: free ranges, hazards, byte hulls, the cache
// file, worker threads.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>

#include "backend/vulkan/free_ranges.h"
#include "backend/vulkan/hazards.h"
#include "backend/vulkan/kernel_traits.h"
#include "backend/vulkan/pipeline_cache_file.h"
#include "backend/vulkan/worker_pool.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {
namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

TEST(FreeRanges, TakesTheSmallestThatFits) {
  FreeRanges ranges;
  ranges.put({0, 0, 1000, 0});
  ranges.put({1, 0, 300, 0});
  const auto range = ranges.take(200, kAny, true);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->chunk, 1u);
  EXPECT_EQ(range->bytes, 200u);
  EXPECT_EQ(ranges.count(), 2u);
  EXPECT_FALSE(ranges.take(1001, kAny, true));
  EXPECT_FALSE(ranges.take(400, 500, false))
      << "1000 bytes are more than the caller wants to waste";
}

TEST(FreeRanges, MergesNeighboursAndKeepsTheirLastUse) {
  FreeRanges ranges;
  ranges.put({0, 0, 768, 0});
  const auto a = ranges.take(256, kAny, true);
  const auto b = ranges.take(256, kAny, true);
  const auto c = ranges.take(256, kAny, true);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(ranges.count(), 0u);
  ranges.put({0, a->offset, 256, 5});
  ranges.put({0, c->offset, 256, 9});
  EXPECT_EQ(ranges.count(), 2u);
  EXPECT_FALSE(ranges.take_chunk(0, 768));
  ranges.put({0, b->offset, 256, 7});
  const auto whole = ranges.take_chunk(0, 768);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->last_use, 9u);
  EXPECT_EQ(ranges.count(), 0u);
}

TEST(FreeRanges, NeverHandsOutAByteTwice) {
  FreeRanges ranges;
  constexpr std::uint64_t kChunk = 1 << 16;
  ranges.put({0, 0, kChunk, 0});
  ranges.put({1, 0, kChunk, 0});
  std::vector<int> owner(2 * kChunk, -1);
  std::vector<Range> held;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    if (held.empty() || random() % 2 == 0) {
      const auto range = ranges.take(1 + random() % 3000, kAny, true);
      if (!range) continue;
      for (std::uint64_t k = 0; k < range->bytes; ++k) {
        int& byte = owner[range->chunk * kChunk + range->offset + k];
        ASSERT_EQ(byte, -1);
        byte = i;
      }
      held.push_back(*range);
    } else {
      const std::size_t pick = random() % held.size();
      const Range range = held[pick];
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(pick));
      for (std::uint64_t k = 0; k < range.bytes; ++k) {
        owner[range.chunk * kChunk + range.offset + k] = -1;
      }
      ranges.put(range);
    }
  }
  for (const Range& range : held) ranges.put(range);
  EXPECT_TRUE(ranges.take_chunk(0, kChunk));
  EXPECT_TRUE(ranges.take_chunk(1, kChunk));
}

Access read(int memory, std::int64_t begin, std::int64_t end) {
  return {memory, begin, end, true, false};
}
Access write(int memory, std::int64_t begin, std::int64_t end) {
  return {memory, begin, end, false, true};
}

TEST(Hazards, IndependentDispatchesNeedNoBarrier) {
  HazardTracker tracker;
  EXPECT_FALSE(tracker.add({read(1, 0, 100), write(0, 0, 100)}));
  EXPECT_FALSE(tracker.add({read(1, 0, 100), write(0, 100, 200)}))
      << "both read, other bytes written";
  EXPECT_FALSE(tracker.add({read(0, 200, 300), write(2, 0, 100)}));
}

TEST(Hazards, EachKindOfHazardNeedsOne) {
  const Access earlier_write = write(0, 0, 100), earlier_read = read(0, 0, 100);
  for (const Access& later : {read(0, 99, 100), write(0, 50, 60)}) {
    HazardTracker tracker;
    tracker.add({earlier_write});
    EXPECT_TRUE(tracker.add({later}));
  }
  HazardTracker tracker;
  tracker.add({earlier_read});
  EXPECT_FALSE(tracker.add({read(0, 0, 100)}));
  EXPECT_TRUE(tracker.add({write(0, 0, 4)})) << "write after read";
}

TEST(Hazards, ABarrierOrdersEverythingBeforeIt) {
  HazardTracker tracker;
  tracker.add({write(0, 0, 100)});
  tracker.add({write(0, 100, 200)});
  EXPECT_TRUE(tracker.add({read(0, 0, 100), write(0, 300, 400)}));
  EXPECT_FALSE(tracker.add({read(0, 100, 200), write(0, 400, 500)}));
  EXPECT_TRUE(tracker.add({read(0, 300, 500)}));
}

TEST(Hazards, StatusIsReadAfterItIsWritten) {
  HazardTracker tracker;
  EXPECT_FALSE(tracker.add({{kStatusMemory, 0, 8, false, true}}));
  EXPECT_FALSE(tracker.add({{kStatusMemory, 0, 8, false, true}}))
      << "compare-exchange needs no order";
  EXPECT_TRUE(tracker.add({{kStatusMemory, 0, 8, true, false}}));
  EXPECT_FALSE(tracker.add({{kStatusMemory, 0, 8, false, true}}));
}

TEST(ByteHulls, CoverEveryElement) {
  dispatch::ExecutionGraph graph;
  graph.buffers.resize(3);
  dispatch::Kernel kernel;
  dispatch::Operand operand;
  operand.buffer = 1;
  operand.dtype = DType::kF16;
  operand.offset = 7;
  operand.extents = {1, 1, 3, 5};
  operand.strides = {0, 0, 100, -1};
  kernel.loads = {operand};
  const ByteHulls hulls = byte_hulls(kernel, graph);
  ASSERT_EQ(hulls.size(), 1u);
  // Elements 3 to 207, in whole words.
  EXPECT_EQ(hulls.at(1).begin, 4);
  EXPECT_EQ(hulls.at(1).end, 416);

  operand.offset = 0;
  kernel.loads = {operand};
  EXPECT_EQ(byte_hulls(kernel, graph).at(1).begin, -8) << "elements before the binding";
  kernel.loads[0].extents[2] = 0;
  EXPECT_TRUE(byte_hulls(kernel, graph).empty());
}

TEST(KernelTraits, LargeRangesGoByAddress) {
  DeviceProfile profile;
  profile.limits.max_storage_range = 1 << 20;
  const ByteHulls small{{0, {0, 1 << 19}}}, large{{0, {0, 1 << 21}}};
  EXPECT_THROW(traits_for(large, profile, vulkan_device(0)), UnsupportedError);
  profile.has_addresses = true;
  EXPECT_FALSE(traits_for(small, profile, vulkan_device(0)).use_addresses);
  EXPECT_TRUE(traits_for(large, profile, vulkan_device(0)).use_addresses);
}

class CacheFile : public testing::Test {
 protected:
  CacheFile() {
    folder_ = std::filesystem::temp_directory_path() /
              ("vkml_cache_" + std::to_string(std::random_device{}()));
    profile_.vendor_id = 0x10de;
    profile_.cache_uuid[3] = 9;
  }
  ~CacheFile() override { std::filesystem::remove_all(folder_); }
  PipelineCacheFile file() const { return {folder_.string(), profile_}; }
  void flip(std::streamoff position) const {
    std::fstream stream(file().path(), std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(position);
    const int byte = stream.get();
    stream.seekp(position);
    stream.put(static_cast<char>(byte ^ 1));
  }

  std::filesystem::path folder_;
  DeviceProfile profile_;
  const std::vector<std::byte> data_{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{250}};
};

TEST_F(CacheFile, ReadsWhatWasWritten) {
  EXPECT_FALSE(file().read()) << "there is none yet";
  ASSERT_TRUE(file().write(data_));
  EXPECT_EQ(file().read(), data_);
  ASSERT_TRUE(file().write({}));
  EXPECT_EQ(file().read(), std::vector<std::byte>());
  // Nothing but the file itself is left behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(CacheFile, RejectsEveryFlippedBit) {
  ASSERT_TRUE(file().write(data_));
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file().path()));
  for (std::streamoff i = 0; i < size; ++i) {
    flip(i);
    EXPECT_FALSE(file().read()) << "byte " << i;
    flip(i);
  }
  EXPECT_EQ(file().read(), data_);
}

TEST_F(CacheFile, RejectsEveryTruncation) {
  ASSERT_TRUE(file().write(data_));
  for (auto size = std::filesystem::file_size(file().path()); size-- > 0;) {
    std::filesystem::resize_file(file().path(), size);
    EXPECT_FALSE(file().read()) << size << " bytes";
  }
}

TEST_F(CacheFile, RejectsAnotherDevicesFile) {
  ASSERT_TRUE(file().write(data_));
  const std::string mine = file().path();
  profile_.driver_version = 2;
  EXPECT_NE(file().path(), mine);
  std::filesystem::copy_file(mine, file().path());
  EXPECT_FALSE(file().read());
}

TEST_F(CacheFile, UnwritableFolderIsNoError) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "a file") << "not a folder";
  const PipelineCacheFile inside((folder_ / "a file" / "cache").string(), profile_);
  EXPECT_FALSE(inside.write(data_));
  EXPECT_FALSE(inside.read());
  EXPECT_FALSE(PipelineCacheFile("", profile_).write(data_));
}

TEST(WorkerPool, DoesEveryTaskOnce) {
  WorkerPool workers;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::atomic<int>> done(97);
    workers.for_each(done.size(), 8, [&](std::size_t i) { ++done[i]; });
    for (const auto& count : done) ASSERT_EQ(count, 1);
  }
}

TEST(WorkerPool, PassesFailuresOn) {
  WorkerPool workers;
  std::atomic<int> done = 0;
  EXPECT_THROW(workers.for_each(20, 4,
                                [&](std::size_t i) {
                                  if (i == 7) throw std::runtime_error("task 7");
                                  ++done;
                                }),
               std::runtime_error);
  EXPECT_EQ(done, 19);
}

TEST(WorkerPool, CopiesBytes) {
  WorkerPool workers;
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{3'000'001}}) {
    std::vector<std::byte> source(size), target(size);
    for (std::size_t i = 0; i < size; ++i) source[i] = static_cast<std::byte>(i * 31);
    copy_bytes(workers, target.data(), source.data(), size, 4);
    EXPECT_EQ(target, source);
  }
}

}  // namespace
}  // namespace vkml::vulkan
