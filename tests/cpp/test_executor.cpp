// realize() on a device that fails, and what it counts.

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "graph_values.h"
#include "vkml/core/error.h"

namespace {

using namespace vkml;
using namespace vkml::values;
using graph::NodePtr;
using Numbers = std::vector<double>;

/// A backend for the device name vulkan:0 that fails on demand and is the reference otherwise.
class FailingBackend final : public dispatch::Backend, public Allocator {
 public:
  int failing_allocations = 0;
  int failing_allocations_after_run = 0;
  bool fails_in_the_middle = false;
  int trims = 0;
  std::string unsupported;
  std::optional<DType> without_arithmetic;

  dispatch::DeviceInfo info() const override { return {}; }
  Allocator& allocator() override { return *this; }
  Allocator& staging_allocator() override { return *this; }
  bool supports(const graph::Node& node, std::string& reason) const override {
    reason = "it was told so";
    return node.op().name != unsupported && has_arithmetic(node.dtype());
  }
  bool has_arithmetic(DType dtype) const override { return dtype != without_arithmetic; }
  int max_operands() const override { return dispatch::kLeastOperands; }
  std::int64_t scratch_bytes(const dispatch::Kernel&) const override { return 0; }
  std::shared_ptr<dispatch::Executable> compile(dispatch::ExecutionGraph graph) override {
    return inner_->compile(std::move(graph));
  }
  void reserve(dispatch::Executable& executable) override { inner_->reserve(executable); }
  std::shared_ptr<Submission> run(dispatch::Executable& executable,
                                  const dispatch::Bindings& bindings) override {
    if (std::exchange(fails_in_the_middle, false)) {
      throw dispatch::PartialRun{std::make_exception_ptr(OutOfMemoryError("[matmul] no scratch"))};
    }
    failing_allocations += std::exchange(failing_allocations_after_run, 0);
    return inner_->run(executable, bindings);
  }
  void upload(Storage& target, std::int64_t offset, std::span<const std::byte> bytes) override {
    inner_->upload(target, offset, bytes);
  }
  void download(const Storage& source, std::int64_t offset, std::span<std::byte> bytes) override {
    inner_->download(source, offset, bytes);
  }
  void synchronize() override {}
  void trim() override { ++trims; }
  std::int64_t allocated_bytes() const override { return 0; }

  StoragePtr allocate(std::size_t bytes) override {
    if (failing_allocations > 0) {
      --failing_allocations;
      throw OutOfMemoryError("[allocate] no memory left in this test");
    }
    StoragePtr host = inner_->allocator().allocate(bytes);
    void* address = host->host();
    return std::make_shared<Storage>(vulkan_device(), bytes, address, 0, [host](Storage&) {});
  }
  std::string_view name() const override { return "failing"; }
  Device device() const override { return vulkan_device(); }

 private:
  std::unique_ptr<dispatch::Backend> inner_ = reference::make_reference_backend();
};

FailingBackend& failing_backend() {
  dispatch::register_backend(
      DeviceKind::kVulkan,
      [](int) -> std::unique_ptr<dispatch::Backend> { return std::make_unique<FailingBackend>(); },
      [] { return 1; });
  return static_cast<FailingBackend&>(dispatch::backend_for(vulkan_device()));
}

Value failing_leaf(const Numbers& numbers, DType dtype = DType::kF32) {
  const Shape shape({static_cast<std::int64_t>(numbers.size())}, dtype);
  StoragePtr storage = failing_backend().allocate(numbers.size() * size_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    put_number(static_cast<std::byte*>(storage->host()), dtype, i, numbers[i]);
  }
  return Value(graph::make_leaf(std::move(storage), 0, shape, dtype));
}

TEST(Coverage, CountsWhatRan) {
  dispatch::clear_coverage();
  dispatch::set_coverage(true);
  realize(graph::tanh(leaf({2}, {1, 2})) + 1.0);
  dispatch::set_coverage(false);
  realize(graph::tanh(leaf({2}, {1, 2})));
  EXPECT_EQ(dispatch::coverage().at("cpu").at("tanh"), 1);
  dispatch::clear_coverage();
  EXPECT_TRUE(dispatch::coverage().empty());
}

TEST(Errors, OneDeviceForEachGraph) {
  const Value here = leaf({1}, {1});
  const Value there = failing_leaf({1});
  const std::array roots{(here + 1.0).node(), (there + 1.0).node()};
  try {
    dispatch::realize(roots);
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cpu"), std::string::npos) << text;
    EXPECT_NE(text.find("vulkan:0"), std::string::npos) << text;
  }
  EXPECT_THROW(here + there, DeviceError);
}

TEST(Errors, UnsupportedOperatorsNameTheRemedy) {
  failing_backend().unsupported = "tan";
  const Value y = graph::tan(failing_leaf({1})) + 1.0;
  try {
    realize(y);
    FAIL() << "no error";
  } catch (const UnsupportedError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("[tan] is not available on vulkan:0"), std::string::npos) << text;
    EXPECT_NE(text.find("vkml.tensor(t.numpy(), device=vkml.cpu)"), std::string::npos) << text;
  }
  failing_backend().unsupported.clear();
  realize(y);
  EXPECT_TRUE(y->is_computed());
}

TEST(Errors, ADtypeThatTheDeviceLacksIsAnsweredByAnother) {
  FailingBackend& backend = failing_backend();
  backend.without_arithmetic = DType::kF64;
  const Value number = graph::scalar(1.0, DType::kF64, vulkan_device());
  try {
    realize(graph::copy(graph::broadcast_to(number, List{3})));
    FAIL() << "no error";
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(),
                 "[full] is not available on vulkan:0: it was told so. Use float32, or make the "
                 "tensors on the CPU: device=vkml.cpu");
  }
  backend.without_arithmetic.reset();
}

TEST(Errors, OutOfMemoryIsTriedOnceMoreAfterTrimming) {
  FailingBackend& backend = failing_backend();
  const Value y = failing_leaf({1, 2}) + 1.0;
  const int trims = backend.trims;
  backend.failing_allocations = 1;
  realize(y);
  EXPECT_TRUE(y->is_computed());
  EXPECT_EQ(backend.trims, trims + 1);
}

TEST(Errors, OutOfMemoryLeavesTheGraphToBeRealisedLater) {
  FailingBackend& backend = failing_backend();
  const Value y = failing_leaf({1, 2}) + 1.0;
  backend.failing_allocations = 2;
  EXPECT_THROW(realize(y), OutOfMemoryError);
  EXPECT_FALSE(y->is_computed());
  EXPECT_FALSE(y->is_bound());
  backend.failing_allocations = 0;
  realize(y);
  EXPECT_EQ(get_number(static_cast<std::byte*>(y->storage()->host()), DType::kF32, 1), 3);
}

TEST(Errors, AFailureWhileOverwritingPoisonsWhatWasOverwritten) {
  FailingBackend& backend = failing_backend();
  Value parameter = failing_leaf({1, 2});
  Value fresh = failing_leaf({3, 4}) * 2.0;
  backend.fails_in_the_middle = true;
  realize(fresh);  // nothing is overwritten: it is run again
  EXPECT_EQ(get_number(static_cast<std::byte*>(fresh->storage()->host()), DType::kF32, 1), 8);

  parameter = graph::assign(parameter, parameter + 1.0);
  Storage* block = parameter->source(0)->storage().get();
  backend.fails_in_the_middle = true;
  EXPECT_THROW(realize(parameter), OutOfMemoryError);
  EXPECT_THROW(block->wait(), OutOfMemoryError)
      << "a value between old and new is never handed out";
}

TEST(Errors, AFailureWhileOneAssignmentIsRestoredLeavesTheOthersAndTheFirstError) {
  FailingBackend& backend = failing_backend();
  const Value x = failing_leaf({1, 2});
  const Value bad = graph::gather(x, 0, failing_leaf({9, 0}, DType::kI32));
  const std::array<Value, 2> old{x + 1.0, x * 3.0};
  const std::array<NodePtr, 2> assigned{graph::assign(old[0], bad).node(),
                                        graph::assign(old[1], bad).node()};
  backend.failing_allocations_after_run = 2;
  EXPECT_THROW(dispatch::realize(assigned), IndexError);
  EXPECT_EQ(backend.failing_allocations, 0);
  ASSERT_TRUE(assigned[1]->is_computed());
  EXPECT_EQ(get_number(static_cast<std::byte*>(assigned[1]->storage()->host()), DType::kF32, 1), 6);
  EXPECT_FALSE(assigned[0]->is_computed());
  EXPECT_THROW(dispatch::realize(std::span(assigned).first(1)), IndexError);
  ASSERT_TRUE(assigned[0]->is_computed());
  EXPECT_EQ(get_number(static_cast<std::byte*>(assigned[0]->storage()->host()), DType::kF32, 1), 3);
}

TEST(Random, TheOrderOfReadingChangesNothing) {
  use_reference();
  const auto draw = [](std::uint32_t key) {
    return graph::random_normal(List{100}, {{key, 42}}, kCpu);
  };
  const Value first = draw(1);
  const Value second = draw(2);
  const Numbers second_read_first = numbers_of(second);
  const Numbers then_first = numbers_of(first);
  EXPECT_NE(then_first, second_read_first);
  EXPECT_EQ(numbers_of(draw(1)), then_first);
  EXPECT_EQ(numbers_of(draw(2)), second_read_first);
}

}  // namespace
