// jit(): replays give the bits of the loop without it, change state in place, and record again when
// what they were recorded with has changed.
#include "vkml/api/jit.h"

#include <gtest/gtest.h>

#include "vkml/api/vkml.h"

namespace vkml {
namespace {

std::vector<Device> devices_here() {
  std::vector<Device> found{kCpu};
  for (const DeviceDescription& description : devices()) {
    if (description.device.kind == DeviceKind::kVulkan) {
      found.push_back(description.device);
      break;
    }
  }
  return found;
}

Tensor counting(const Extents& extents, Device device, float scale = 0.01f) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = scale * static_cast<float>((i * 37) % 101) - 0.5f;
  }
  return Tensor::from_values(values, extents, device);
}

/// Two layers, and a step of gradient descent on the mean square of their output.
struct Network {
  Tensor first, second;
  explicit Network(Device device)
      : first(counting({6, 8}, device).requires_grad_()),
        second(counting({8, 3}, device).requires_grad_()) {}

  Tensor step(const Tensor& x) {
    first.set_grad({});
    second.set_grad({});
    const Tensor y = matmul(relu(matmul(x, first)), second);
    const Tensor loss = mean(y * y);
    loss.backward();
    const NoGrad scope;
    first.assign_(first - first.grad() * 0.1);
    second.assign_(second - second.grad() * 0.1);
    realize(std::vector<Tensor>{first, second});
    return loss;
  }
};

class Jit : public testing::TestWithParam<Device> {};

TEST_P(Jit, GivesTheBitsOfTheLoop) {
  Network plain(GetParam());
  Network recorded(GetParam());
  const JitFunction step = jit([&](std::span<const Tensor> arguments) {
    return std::vector<Tensor>{recorded.step(arguments[0])};
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = counting({4, 6}, GetParam(), 0.01f + 0.001f * static_cast<float>(i));
    const Tensor expected = plain.step(x);
    const Tensor loss = step(std::vector<Tensor>{x})[0];
    EXPECT_EQ(loss.item(), expected.item()) << "step " << i;
    EXPECT_EQ(recorded.first.to_floats(), plain.first.to_floats()) << "step " << i;
    EXPECT_EQ(recorded.second.grad().to_floats(), plain.second.grad().to_floats()) << "step " << i;
  }
  EXPECT_EQ(step.recording_count(), 1);
}

TEST_P(Jit, RecordsAgainForAnotherShape) {
  int calls = 0;
  const JitFunction twice = jit([&](std::span<const Tensor> arguments) {
    ++calls;
    return std::vector<Tensor>{arguments[0] * 2.0};
  });
  for (const std::int64_t extent : {3, 5, 3, 5}) {
    const Tensor x = counting({extent}, GetParam());
    std::vector<float> expected = x.to_floats();
    for (float& value : expected) value *= 2;
    EXPECT_EQ(twice(std::vector<Tensor>{x})[0].to_floats(), expected);
  }
  EXPECT_EQ(calls, 2);
}

TEST_P(Jit, KeepsTheRecordingsUsedLast) {
  int calls = 0;
  const JitFunction twice = jit([&](std::span<const Tensor> arguments) {
    ++calls;
    return std::vector<Tensor>{arguments[0] * 2.0};
  });
  const auto call = [&](std::int64_t extent) {
    return twice(std::vector<Tensor>{counting({extent}, GetParam())});
  };
  const auto most = static_cast<std::int64_t>(kMaxRecordings);
  for (std::int64_t extent = 1; extent <= most; ++extent) call(extent);
  call(1);
  EXPECT_EQ(calls, most);
  call(most + 1);
  EXPECT_EQ(twice.recording_count(), most);
  call(1);
  EXPECT_EQ(calls, most + 1);
}

TEST_P(Jit, LeavesEverythingAsItWasWhenTheFunctionThrows) {
  Tensor state = counting({4}, GetParam());
  const std::vector<float> before = state.to_floats();
  const JitFunction fails = jit([&](std::span<const Tensor>) -> std::vector<Tensor> {
    state.assign_(state + 1.0);
    state.item();
    return {};
  });
  EXPECT_THROW(fails({}), Error);
  EXPECT_EQ(state.to_floats(), before);
}

INSTANTIATE_TEST_SUITE_P(Devices, Jit, testing::ValuesIn(devices_here()), [](const auto& test) {
  return test.param.kind == DeviceKind::kCpu ? "cpu" : "vulkan";
});

}  // namespace
}  // namespace vkml
