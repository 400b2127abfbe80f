// The oracle itself, against values worked out by hand.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "graph_values.h"
#include "vkml/core/error.h"

namespace {

using namespace vkml;
using namespace vkml::values;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::vector<std::int64_t> kAll;

TEST(Reference, ElementwiseBroadcasts) {
  const Value a = leaf({2, 1}, {1, 2});
  const Value b = leaf({3}, {10, 20, 30});
  EXPECT_EQ(numbers_of(a + b), (Numbers{11, 21, 31, 12, 22, 32}));
}

TEST(Reference, RoundsAfterEveryNode) {
  const Value one = leaf({1}, {1}, DType::kF16);
  const Value small = leaf({1}, {0x1p-12}, DType::kF16);
  // 1 + 2^-12 is 1 in f16, so that nothing remains.
  EXPECT_EQ(numbers_of((one + small) - one), Numbers{0});
  const Value wide = leaf({1}, {1}, DType::kF32);
  EXPECT_EQ(numbers_of((wide + small) - wide), Numbers{0x1p-12});
}

TEST(Reference, HalvesRoundOnceToEvenAndOverflow) {
  // Between 1 and 1 + 2^-10, just above the middle by less than f32 can see.
  const Value x = leaf({4}, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 65519, 65520}, DType::kF64);
  EXPECT_EQ(numbers_of(graph::cast(x, DType::kF16)), (Numbers{1 + 0x1p-10, 1, 65504, kInfinity}));
  const Value y = leaf({3}, {1 + 0x1p-8, 1 + 0x1.8p-7, 0x1p-134}, DType::kF64);
  EXPECT_EQ(numbers_of(graph::cast(y, DType::kBF16)), (Numbers{1, 1 + 0x1p-6, 0}));
}

TEST(Reference, IntegersWrap) {
  const Value x = leaf({2}, {2147483647, -2147483648.0}, DType::kI32);
  EXPECT_EQ(numbers_of(x + leaf({2}, {1, -1}, DType::kI32)), (Numbers{-2147483648.0, 2147483647}));
  const Value bytes = leaf({2}, {250, 3}, DType::kU8);
  EXPECT_EQ(numbers_of(bytes + bytes), (Numbers{244, 6}));
  EXPECT_EQ(numbers_of(graph::floor_divide(leaf({2}, {-7, 7}, DType::kI32),
                                           leaf({2}, {2, 0}, DType::kI32))),
            (Numbers{-4, 0}));
}

TEST(Reference, BoolsHaveOneBit) {
  const Value x = leaf({2}, {0, 1}, DType::kBool);
  EXPECT_EQ(numbers_of(graph::bitwise_not(x)), (Numbers{1, 0}));
  EXPECT_EQ(numbers_of(x + x), (Numbers{0, 1}));
}

TEST(Reference, CastsTruncateAndSaturate) {
  const Value x = leaf({7}, {-1.5, 1.9, 300, 3e9, -3e9, kNan, kInfinity}, DType::kF64);
  EXPECT_EQ(numbers_of(graph::cast(x, DType::kI32)),
            (Numbers{-1, 1, 300, 2147483647, -2147483648.0, 0, 2147483647}));
  EXPECT_EQ(numbers_of(graph::cast(x, DType::kU8)), (Numbers{0, 1, 255, 255, 0, 0, 255}));
  EXPECT_EQ(numbers_of(graph::cast(x, DType::kBool)), Numbers(7, 1.0));
  EXPECT_EQ(numbers_of(graph::cast(leaf({2}, {-1, 256}, DType::kI32), DType::kU8)),
            (Numbers{255, 0}));
}

TEST(Reference, Reductions) {
  const Value x = leaf({2, 3}, {3, kNan, 1, 5, 5, -2});
  const std::vector<std::int64_t> last{1};
  const std::vector<std::int64_t> first{0};
  const Numbers top = numbers_of(graph::max(x, last, false));
  EXPECT_TRUE(std::isnan(top[0]));
  EXPECT_EQ(top[1], 5);
  EXPECT_EQ(numbers_of(graph::argmax(x, last, false)), (Numbers{1, 0}));
  EXPECT_EQ(numbers_of(graph::argmin(leaf({4}, {2, 1, 1, 3}), first, true)), Numbers{1});
  const Value counts = leaf({2, 3}, count_up(6), DType::kI32);
  EXPECT_EQ(numbers_of(graph::sum(counts, first, false)), (Numbers{3, 5, 7}));
  EXPECT_EQ(numbers_of(graph::prod(counts, last, false)), (Numbers{0, 60}));
  EXPECT_EQ(numbers_of(graph::sum(counts, kAll, false)), Numbers{15});
  EXPECT_EQ(numbers_of(graph::any(leaf({2}, {0, 2}), kAll, false)), Numbers{1});
  EXPECT_EQ(numbers_of(graph::all(leaf({2}, {0, 2}), kAll, false)), Numbers{0});
}

TEST(Reference, EmptyRowsGiveTheIdentity) {
  const Value none = leaf({2, 0}, {});
  const std::vector<std::int64_t> last{1};
  EXPECT_EQ(numbers_of(graph::sum(none, last, false)), (Numbers{0, 0}));
  EXPECT_EQ(numbers_of(graph::prod(none, last, false)), (Numbers{1, 1}));
  EXPECT_EQ(numbers_of(graph::all(none, last, false)), (Numbers{1, 1}));
  EXPECT_THROW(graph::max(none, last, false), ShapeError);
}

TEST(Reference, ViewsOfComputedAndPendingValues) {
  const Value x = leaf({2, 3}, count_up(6));
  for (const Value& base : {x, x + 0.0}) {
    EXPECT_EQ(numbers_of(graph::transpose(base, 0, 1)), (Numbers{0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(numbers_of(graph::slice(base, 1, std::nullopt, std::nullopt, -2)),
              (Numbers{2, 0, 5, 3}));
    const Value row = graph::select_index("getitem", base, 0, 1);
    EXPECT_EQ(numbers_of(graph::broadcast_to(row, List{2, 3})), (Numbers{3, 4, 5, 3, 4, 5}));
    EXPECT_EQ(numbers_of(graph::reshape(graph::transpose(base, 0, 1), List{6})),
              (Numbers{0, 3, 1, 4, 2, 5}));
  }
}

TEST(Reference, Assembly) {
  const Value a = leaf({1, 2}, {1, 2});
  const Value b = leaf({2, 2}, {3, 4, 5, 6});
  EXPECT_EQ(numbers_of(graph::concat(std::array{a, b}, 0)), (Numbers{1, 2, 3, 4, 5, 6}));
  const std::array<std::int64_t, 2> amounts[] = {{1, 0}, {-1, 1}};
  EXPECT_EQ(numbers_of(graph::pad(b, amounts, 9)), (Numbers{9, 9, 4, 9, 6, 9}));
  EXPECT_EQ(numbers_of(graph::iota(List{2, 3}, 1, kCpu)), (Numbers{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(numbers_of(graph::full(List{2}, 7, DType::kI64, kCpu)), (Numbers{7, 7}));
}

TEST(Reference, MatrixProducts) {
  const Value a = leaf({2, 3}, count_up(6));
  const Value b = leaf({3, 2}, count_up(6));
  EXPECT_EQ(numbers_of(graph::matmul(a, b)), (Numbers{10, 13, 28, 40}));
  EXPECT_EQ(numbers_of(graph::matmul(graph::transpose(b, 0, 1), graph::transpose(a, 0, 1))),
            (Numbers{10, 28, 13, 40}));
  // Batches broadcast: (2, 1, 1, 2) @ (3, 2, 1).
  const Value left = leaf({2, 1, 1, 2}, {1, 0, 0, 1});
  const Value right = leaf({3, 2, 1}, count_up(6));
  EXPECT_EQ(numbers_of(graph::matmul(left, right)), (Numbers{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(numbers_of(graph::matmul(leaf({2, 0}, {}), leaf({0, 1}, {}))), (Numbers{0, 0}));
}

TEST(Reference, GroupedConvolutionAndItsGradients) {
  // A 1-D convolution with 2 groups and stride 2; the gradient of its input is known.
  const Value x = parameter({1, 2, 1, 4}, count_up(8));
  const Value w = parameter({2, 1, 1, 2}, {1, 2, 3, 4});
  graph::Conv2dParameters parameters;
  parameters.stride = {1, 2};
  parameters.groups = 2;
  const Value y = graph::conv2d(x, w, parameters);
  EXPECT_EQ(numbers_of(y), (Numbers{0 + 2, 2 + 6, 12 + 20, 18 + 28}));
  std::vector<Value> gradients(2);
  y->op().gradient(y, leaf({1, 2, 1, 2}, {1, 1, 1, 1}), gradients);
  EXPECT_EQ(numbers_of(gradients[0]), (Numbers{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(numbers_of(gradients[1]), (Numbers{0 + 2, 1 + 3, 4 + 6, 5 + 7}));
}

TEST(Reference, PaddedAndDilatedConvolution) {
  const Value x = leaf({1, 1, 3, 3}, count_up(9));
  const Value w = leaf({1, 1, 2, 2}, {1, 10, 100, 1000});
  graph::Conv2dParameters parameters;
  parameters.padding = {1, 1};
  parameters.dilation = {2, 2};
  EXPECT_EQ(numbers_of(graph::conv2d(x, w, parameters)),
            (Numbers{4000, 5000 + 300, 400, 7000 + 10, 8000 + 600 + 20, 700 + 1, 40, 50 + 3, 4}));
}

TEST(Reference, MaxPooling) {
  const Value x = parameter({1, 1, 2, 4}, {-5, kNan, -7, -7, -5, -6, -8, -9});
  graph::Pool2dParameters parameters;
  const Numbers y = numbers_of(graph::max_pool2d(x, parameters));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], -7);
  EXPECT_EQ(numbers_of(graph::max_pool2d_indices(x, parameters)), (Numbers{1, 2}));
  // Padding never wins.
  parameters.kernel = {3, 3};
  parameters.stride = {3, 3};
  parameters.padding = {1, 1};
  EXPECT_EQ(numbers_of(graph::max_pool2d(leaf({1, 1, 1, 1}, {-5}), parameters)), Numbers{-5});
}

TEST(Reference, OverlappingWindowsAddTheirGradients) {
  const Value x = parameter({1, 1, 1, 3}, {1, 5, 2});
  graph::Pool2dParameters parameters;
  parameters.kernel = {1, 2};
  parameters.stride = {1, 1};
  std::vector<Value> gradients(1);
  const Value upstream = leaf({1, 1, 1, 2}, {10, 20});
  const Value largest = graph::max_pool2d(x, parameters);
  largest->op().gradient(largest, upstream, gradients);
  EXPECT_EQ(numbers_of(gradients[0]), (Numbers{0, 30, 0}));
  const Value average = graph::avg_pool2d(x, parameters);
  EXPECT_EQ(numbers_of(average), (Numbers{3, 3.5}));
  average->op().gradient(average, upstream, gradients);
  EXPECT_EQ(numbers_of(gradients[0]), (Numbers{5, 15, 10}));
}

TEST(Reference, AveragePoolingCountsPaddingOnlyWhenAsked) {
  graph::Pool2dParameters parameters;
  parameters.padding = {1, 1};
  const Value x = leaf({1, 1, 2, 2}, {4, 8, 12, 16});
  EXPECT_EQ(numbers_of(graph::avg_pool2d(x, parameters)), (Numbers{1, 2, 3, 4}));
  parameters.count_include_pad = false;
  EXPECT_EQ(numbers_of(graph::avg_pool2d(x, parameters)), (Numbers{4, 8, 12, 16}));
}

TEST(Reference, GatherAndScatterAdd) {
  const Value x = leaf({2, 3}, count_up(6));
  const Value index = leaf({2, 2}, {2, 0, 1, 1}, DType::kI64);
  EXPECT_EQ(numbers_of(graph::gather(x, 1, index)), (Numbers{2, 0, 4, 4}));
  EXPECT_EQ(numbers_of(graph::scatter_add(x, 1, index, leaf({2, 2}, {10, 20, 30, 40}))),
            (Numbers{20, 1, 12, 3, 74, 5}));
}

TEST(Reference, BadIndicesNameOperatorAndValueAndWriteNothing) {
  const Value x = leaf({3}, {1, 2, 3});
  const Value bad = leaf({2}, {0, 3}, DType::kI32);
  const Value good = x * 2.0;
  const Value gathered = graph::gather(x, 0, bad);
  const std::array roots{good.node(), gathered.node()};
  try {
    dispatch::realize(roots);
    FAIL() << "no error";
  } catch (const IndexError& error) {
    EXPECT_STREQ(error.what(), "[gather] index 3 is out of bounds for an axis of extent 3");
  }
  EXPECT_FALSE(good->is_computed());
  EXPECT_EQ(numbers_of(good), (Numbers{2, 4, 6}));

  const Value logits = leaf({1, 10}, count_up(10));
  const Value target = leaf({1}, {12}, DType::kI64);
  try {
    realize(graph::cross_entropy_rows(logits, target, -100, 0));
    FAIL() << "no error";
  } catch (const IndexError& error) {
    EXPECT_STREQ(error.what(),
                 "[cross_entropy] index 12 is out of bounds for an axis of extent 10");
  }
}

TEST(Reference, IgnoredTargetsAreExempt) {
  const Value logits = leaf({2, 2}, {0, 0, 3, 4});
  const Value target = leaf({2}, {0, -100}, DType::kI64);
  const Numbers rows = numbers_of(graph::cross_entropy_rows(logits, target, -100, 0));
  EXPECT_NEAR(rows[0], std::log(2.0), 1e-7);
  EXPECT_EQ(rows[1], 0);
}

TEST(Reference, AssignGivesTheNewValueAndKeepsTheOldForItsReaders) {
  const Value old = leaf({2}, {1, 2});
  const Value reader = old + 10.0;
  const Value fresh = graph::assign(old, leaf({2}, {5, 6}));
  EXPECT_EQ(numbers_of(fresh), (Numbers{5, 6}));
  EXPECT_EQ(numbers_of(reader), (Numbers{11, 12}));
}

TEST(Reference, MemoryIsAlignedCountedAndRefusedWithItsSize) {
  const std::unique_ptr<dispatch::Backend> backend = reference::make_reference_backend();
  const std::int64_t before = backend->allocated_bytes();
  {
    const StoragePtr block = backend->allocator().allocate(100);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->host()) % 64, 0u);
    EXPECT_EQ(backend->allocated_bytes(), before + 100);
    const StoragePtr empty = backend->allocator().allocate(0);
    EXPECT_NE(empty->host(), nullptr);
  }
  EXPECT_EQ(backend->allocated_bytes(), before);
  try {
    const StoragePtr block = backend->allocator().allocate(std::size_t{1} << 62);
    FAIL() << "no error";
  } catch (const OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("4611686018427387904"), std::string::npos);
  }
}

}  // namespace
