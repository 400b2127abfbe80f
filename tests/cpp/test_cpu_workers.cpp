// The threads of the CPU backend: every share is carried out once, whoever takes it.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backend/cpu/threads.h"
#include "backend/cpu/workers.h"

namespace vkml::cpu {
namespace {

using Counts = std::array<std::atomic<int>, 64>;

void count_share(void* context, int share, int) {
  ++(*static_cast<Counts*>(context))[static_cast<std::size_t>(share)];
}

// The threads of a pool never end, so no pool may: each stays reachable until the process exits.
Workers* lasting_workers(int threads) {
  static auto* const pools = new std::vector<Workers*>;
  return pools->emplace_back(new Workers(threads));
}

TEST(Workers, carry_each_share_out_once) {
  for (const int threads : {0, 1, 3}) {
    Workers* workers = lasting_workers(threads);
    for (int run = 0; run < 2000; ++run) {
      const int shares = 1 + run % 7;
      Counts counts{};
      ASSERT_TRUE(workers->run(shares, &count_share, &counts));
      for (int share = 0; share < 64; ++share) {
        ASSERT_EQ(counts[static_cast<std::size_t>(share)], share < shares ? 1 : 0);
      }
      if (run % 100 == 0) workers->rest();
      if (run % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

TEST(Workers, shares_run_beside_each_other) {
  Workers* workers = lasting_workers(1);
  struct Meeting {
    std::atomic<int> arrived{0};
  } meeting;
  // Each share waits for the other: one thread alone would never end.
  ASSERT_TRUE(workers->run(
      2,
      [](void* context, int, int) {
        auto& here = *static_cast<Meeting*>(context);
        ++here.arrived;
        while (here.arrived < 2) std::this_thread::yield();
      },
      &meeting));
  EXPECT_EQ(meeting.arrived, 2);
}

TEST(Workers, refuse_a_second_caller) {
  Workers* workers = lasting_workers(1);
  struct State {
    Workers* workers;
    std::atomic<int> refused{0};
  } state{workers};
  ASSERT_TRUE(workers->run(
      2,
      [](void* context, int, int) {
        auto& here = *static_cast<State*>(context);
        std::thread([&here] {
          Counts counts{};
          if (!here.workers->run(2, &count_share, &counts) && counts[0] == 0) ++here.refused;
        }).join();
      },
      &state));
  EXPECT_EQ(state.refused, 2);
}

TEST(ParallelShares, cover_the_range_from_many_callers) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int run = 0; run < 300; ++run) {
        std::vector<int> items(100);
        parallel_shares(100, true, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++items[static_cast<std::size_t>(i)];
        });
        for (const int item : items) wrong += item == 1 ? 0 : 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ParallelShares, rethrow) {
  for (int run = 0; run < 20; ++run) {
    EXPECT_THROW(parallel_shares(thread_count(), true,
                                 [](std::int64_t, std::int64_t) { throw std::runtime_error("x"); }),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace vkml::cpu
