#include "kernel_timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "barriers.h"
#include "check.h"
#include "frame.h"

namespace vkml::vulkan {

namespace {

// Clocks differ by some millionths: after so long by a few microseconds.
constexpr std::int64_t kRecalibrateAfter = 1'000'000'000;

// Each is a submission and a wait; the shortest is the least disturbed.
constexpr int kCalibrations = 3;

// After all work before it, which is how a kernel's end is told from its beginning.
constexpr VkPipelineStageFlagBits kTimestampStage = VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;

/// Whether all timestamps are there.
bool read_queries(const DeviceContext& context, VkQueryPool pool, std::span<std::uint64_t> ticks) {
  return context.vk().GetQueryPoolResults(context.device(), pool, 0,
                                          static_cast<std::uint32_t>(ticks.size()),
                                          ticks.size_bytes(), ticks.data(), sizeof(std::uint64_t),
                                          VK_QUERY_RESULT_64_BIT) == VK_SUCCESS;
}

}  // namespace

std::int64_t host_time_of(std::uint64_t ticks, std::uint64_t known_ticks, std::int64_t known_time,
                          std::int64_t now, std::uint32_t bits, double period) {
  const std::uint64_t mask = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const auto since = static_cast<double>((ticks - known_ticks) & mask) * period;
  const double wrap = std::ldexp(period, static_cast<int>(std::min(bits, 64u)));
  const double wraps = std::round((static_cast<double>(now - known_time) - since) / wrap);
  return known_time + static_cast<std::int64_t>(std::llround(since + wraps * wrap));
}

void DeviceClock::calibrate(FramePool& frames) {
  Queue& queue = context_.queue();
  if (!has_timestamps()) return;
  if (is_calibrated_) {
    const bool is_fresh = dispatch::steady_now() - host_time_ < kRecalibrateAfter;
    if (is_fresh || queue.completed() < queue.submitted()) return;
  }
  queue.wait(queue.submitted());
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kCalibrations; ++i) {
    const std::shared_ptr<Frame> frame = frames.acquire();
    frame->begin(0, 0, 0);
    const DeviceFunctions& vk = context_.vk();
    const VkQueryPool pool = frame->queries(1);
    VkCommandBuffer commands = frame->begin_commands();
    vk.CmdResetQueryPool(commands, pool, 0, 1);
    vk.CmdWriteTimestamp(commands, kTimestampStage, pool, 0);
    check(vk.EndCommandBuffer(commands), "vkEndCommandBuffer");
    const std::int64_t before = dispatch::steady_now();
    frame->value = queue.submit(commands);
    queue.wait(frame->value);
    const std::int64_t after = dispatch::steady_now();
    frames.retire(frame);
    std::array<std::uint64_t, 1> ticks{};
    if (!read_queries(context_, pool, ticks) || after - before >= best) continue;
    best = after - before;
    ticks_ = ticks[0];
    host_time_ = before + (after - before) / 2;
    is_calibrated_ = true;
  }
}

std::int64_t DeviceClock::host_time(std::uint64_t ticks, std::int64_t now) const {
  const DeviceProfile& profile = context_.profile();
  return host_time_of(ticks, ticks_, host_time_, now, profile.timestamp_bits,
                      profile.timestamp_period);
}

KernelTiming::KernelTiming(std::shared_ptr<const DeviceClock> clock, VkQueryPool queries,
                           std::shared_ptr<dispatch::KernelTimer> timer, std::size_t kernels)
    : clock_(std::move(clock)), queries_(queries), timer_(std::move(timer)), times_(kernels) {}

void KernelTiming::begin(const DeviceFunctions& vk, VkCommandBuffer commands) {
  if (uses_host_clock()) return;
  vk.CmdResetQueryPool(commands, queries_, 0, 2 * static_cast<std::uint32_t>(times_.size()));
}

void KernelTiming::begin_kernel(const DeviceFunctions& vk, VkCommandBuffer commands, int kernel) {
  const auto query = 2 * static_cast<std::uint32_t>(begun_.size());
  begun_.push_back(kernel);
  if (uses_host_clock()) return;
  barrier_between_dispatches(vk, commands);
  vk.CmdWriteTimestamp(commands, kTimestampStage, queries_, query);
}

void KernelTiming::end_kernel(const DeviceFunctions& vk, VkCommandBuffer commands) {
  if (uses_host_clock()) return;
  const auto query = 2 * static_cast<std::uint32_t>(begun_.size()) - 1;
  vk.CmdWriteTimestamp(commands, kTimestampStage, queries_, query);
}

void KernelTiming::add_host_time(std::int64_t begin, std::int64_t end) {
  dispatch::KernelTime& time = times_[static_cast<std::size_t>(begun_.back())];
  // A long kernel is submitted in parts.
  if (time.end == 0) time.begin = begin;
  time.end = end;
}

void KernelTiming::read_timestamps(const DeviceContext& context) {
  std::vector<std::uint64_t> ticks(2 * begun_.size());
  if (!read_queries(context, queries_, ticks)) return;
  const std::int64_t now = dispatch::steady_now();
  for (std::size_t i = 0; i < begun_.size(); ++i) {
    times_[static_cast<std::size_t>(begun_[i])] = {clock_->host_time(ticks[2 * i], now),
                                                   clock_->host_time(ticks[2 * i + 1], now)};
  }
}

void KernelTiming::report(const DeviceContext& context) noexcept try {
  if (!uses_host_clock()) read_timestamps(context);
  // A kernel over no elements has no dispatch: it takes no time, where the one before it ended.
  std::int64_t last = 0;
  for (const dispatch::KernelTime& time : times_) {
    if (time.end == 0) continue;
    last = time.begin;
    break;
  }
  for (dispatch::KernelTime& time : times_) {
    if (time.end == 0) time = {last, last};
    last = time.end;
  }
  timer_->finished(times_,
                   uses_host_clock() ? dispatch::TimeSource::kHost : dispatch::TimeSource::kDevice);
} catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  // The run itself is done; its times are lost.
}

}  // namespace vkml::vulkan
