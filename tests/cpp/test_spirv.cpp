// Every module that code generation makes for the hand-built kernels is valid SPIR-V, whatever the
// device offers, and depends on a tensor's layout, not on its size.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backend/vulkan/dispatch_list.h"
#include "kernel_attention_cases.h"
#include "kernel_line_cases.h"
#include "vkml/core/error.h"

namespace vkml::vulkan {
namespace {

using oracle::KernelCase;

struct Variant {
  std::string name;
  DeviceTraits traits;
};

/// Software and hardware, addresses and descriptors, everything offered and nothing.
std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const bool use_addresses : {false, true}) {
    for (const bool is_software : {false, true}) {
      for (const bool is_rich : {false, true}) {
        DeviceTraits traits;
        traits.use_addresses = use_addresses;
        traits.is_software = is_software;
        traits.has_int64 = traits.has_float64 = is_rich;
        traits.has_storage8 = traits.has_storage16 = is_rich;
        traits.has_subgroup_arithmetic = traits.has_subgroup_shuffle = is_rich;
        traits.has_accurate_exp2 = traits.has_float16 = traits.has_half_conversions =
            traits.keeps_special_values = is_rich && !is_software;
        if (use_addresses) traits.has_int64 = true;
        if (is_rich) {
          traits.subgroup_size = 32;
          traits.max_workgroup_invocations = 1024;
          traits.max_shared_bytes = 49152;
          traits.compute_units = 64;
        }
        all.push_back({std::string(use_addresses ? "addresses" : "descriptors") +
                           (is_software ? ", software" : ", hardware") +
                           (is_rich ? ", rich" : ", least"),
                       traits});
      }
    }
  }
  return all;
}

/// Devices with matrix units, which no software driver has.
std::vector<Variant> matrix_variants() {
  std::vector<Variant> all;
  for (const Variant& variant : variants()) {
    if (variant.traits.is_software || !variant.traits.has_storage16) continue;
    all.push_back({variant.name + ", matrix units", variant.traits});
    DeviceTraits& traits = all.back().traits;
    traits.has_float16 = traits.has_matrix_f16 = traits.has_matrix_bf16 = true;
    traits.has_matrix_conversions = true;
    traits.compute_units = 132;
    traits.max_push_bytes = 256;
  }
  return all;
}

/// The kernel with the scratch that it asks for.
dispatch::ExecutionGraph with_scratch(dispatch::ExecutionGraph graph, const DeviceTraits& traits) {
  for (dispatch::Kernel& kernel : graph.kernels) {
    kernel.scratch_bytes = scratch_bytes(kernel, traits);
    if (kernel.scratch_bytes == 0) continue;
    kernel.scratch = static_cast<int>(graph.buffers.size());
    dispatch::Buffer buffer;
    buffer.bytes = kernel.scratch_bytes;
    graph.buffers.push_back(buffer);
  }
  return graph;
}

std::string validator() {
#ifdef VKML_SPIRV_VAL
  const std::string path = VKML_SPIRV_VAL;
  if (std::filesystem::exists(path)) return path;
#endif
  return {};
}

/// Validates each distinct module once.
class Validator {
 public:
  Validator()
      : folder_(std::filesystem::temp_directory_path() /
                ("vkml_test_spirv_" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Validator() {
    // Invalid modules stay for inspection.
    if (std::filesystem::is_empty(folder_)) std::filesystem::remove(folder_);
  }
  Validator(const Validator&) = delete;
  Validator& operator=(const Validator&) = delete;

  /// Empty when the module is valid, otherwise what spirv-val said.
  std::string check(const ShaderCode& code) {
    if (!seen_.insert(code.words).second) return {};
    const auto stem = folder_ / (code.name + "_" + std::to_string(seen_.size()));
    const std::string module = stem.string() + ".spv", log = stem.string() + ".txt";
    std::ofstream(module, std::ios::binary)
        .write(reinterpret_cast<const char*>(code.words.data()),
               static_cast<std::streamsize>(code.words.size() * 4));
    const std::string command =
        "\"" + validator() + "\" --target-env vulkan1.1 \"" + module + "\" > \"" + log + "\" 2>&1";
    std::string complaint;
    if (std::system(command.c_str()) != 0) {
      std::ifstream file(log);
      complaint.assign(std::istreambuf_iterator<char>(file), {});
      complaint = code.name + " (" + module + "): " + complaint;
    } else {
      std::filesystem::remove(module);
    }
    std::filesystem::remove(log);
    return complaint;
  }

 private:
  std::filesystem::path folder_;
  std::set<std::vector<std::uint32_t>> seen_;
};

void expect_valid(const std::vector<KernelCase>& cases,
                  const std::vector<Variant>& on = variants()) {
  if (validator().empty()) GTEST_SKIP() << "spirv-val was not found when the tests were configured";
  Validator spirv_val;
  for (const Variant& variant : on) {
    for (const KernelCase& test : cases) {
      SCOPED_TRACE(test.name + ", " + variant.name);
      const dispatch::ExecutionGraph graph = with_scratch(test.graph, variant.traits);
      for (const dispatch::Kernel& kernel : graph.kernels) {
        try {
          for (const Dispatch& dispatch : generate(kernel, graph, variant.traits)) {
            EXPECT_EQ(spirv_val.check(*dispatch.code), "");
            EXPECT_LE(dispatch.code->push_bytes, variant.traits.max_push_bytes);
            EXPECT_EQ(dispatch.code->buffer_count, dispatch.buffers.size());
          }
        } catch (const UnsupportedError& error) {
          // Only 64-bit arithmetic may be missing.
          const std::string message = error.what();
          EXPECT_FALSE(variant.traits.has_int64 && variant.traits.has_float64) << message;
          EXPECT_NE(message.find("shader"), std::string::npos) << message;
        }
      }
    }
  }
}

TEST(Spirv, MapsAreValid) { expect_valid(oracle::map_cases()); }
TEST(Spirv, ConversionsAreValid) { expect_valid(oracle::conversion_cases()); }
TEST(Spirv, OpcodesAreValid) { expect_valid(oracle::opcode_cases()); }
TEST(Spirv, RowsAreValid) { expect_valid(oracle::row_cases()); }
TEST(Spirv, ReductionsAreValid) { expect_valid(oracle::reduce_cases()); }
TEST(Spirv, ProductsAreValid) { expect_valid(oracle::matmul_cases()); }
TEST(Spirv, ConvolutionsAreValid) { expect_valid(oracle::convolution_cases()); }
TEST(Spirv, PoolsAreValid) { expect_valid(oracle::pool_cases()); }
TEST(Spirv, IndexingIsValid) { expect_valid(oracle::index_cases()); }
TEST(Spirv, ScattersAreValid) { expect_valid(oracle::scatter_cases()); }
TEST(Spirv, ScansAreValid) { expect_valid(oracle::scan_cases()); }
TEST(Spirv, SortsAreValid) { expect_valid(oracle::sort_cases()); }
TEST(Spirv, SearchesAreValid) { expect_valid(oracle::search_cases()); }
TEST(Spirv, AttentionIsValid) { expect_valid(oracle::attention_cases()); }

/// Products large enough for matrix units: whole tiles, parts of tiles, rows that start at vectors
/// and rows that do not, batches, split sums, both tile sizes.
std::vector<KernelCase> matrix_unit_cases() {
  std::vector<KernelCase> cases;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const bool transposes_a : {false, true}) {
      for (const bool transposes_b : {false, true}) {
        const oracle::MatmulLayout plain{transposes_a, transposes_b, false, false, dtype};
        oracle::MatmulLayout fused = plain;
        fused.has_epilogue = true;
        cases.push_back(oracle::matmul_case({1, 1, 4096, 4096}, 4096, plain));
        cases.push_back(oracle::matmul_case({1, 1, 4000, 4008}, 4016, fused));
        cases.push_back(oracle::matmul_case({1, 1, 4095, 4097}, 4001, fused));
        cases.push_back(oracle::matmul_case({8, 8, 128, 128}, 128, fused));
        cases.push_back(oracle::matmul_case({1, 1, 512, 512}, 8192, fused));
      }
    }
  }
  return cases;
}

TEST(Spirv, ProductsOnMatrixUnitsAreValid) { expect_valid(matrix_unit_cases(), matrix_variants()); }

TEST(Spirv, LargeProductsRunOnMatrixUnits) {
  for (const Variant& variant : matrix_variants()) {
    for (const KernelCase& test : matrix_unit_cases()) {
      SCOPED_TRACE(test.name + ", " + variant.name);
      const dispatch::ExecutionGraph graph = with_scratch(test.graph, variant.traits);
      bool found = false;
      for (const Dispatch& part : generate(graph.kernels[0], graph, variant.traits)) {
        found |= part.code->name == "contraction_matrix";
      }
      EXPECT_TRUE(found);
    }
  }
}

TEST(Spirv, ConvolutionsOnMatrixUnitsAreValid) {
  expect_valid(oracle::large_convolution_cases(), matrix_variants());
  std::vector<Variant> variants = matrix_variants();
  for (Variant& variant : variants) variant.traits.compute_units = 1;  // few tiles are enough
  expect_valid(oracle::staged_convolution_cases(), variants);
}

TEST(Spirv, AttentionOnMatrixUnitsIsValid) {
  for (const Variant& variant : matrix_variants()) {
    expect_valid(oracle::matrix_attention_cases(), {variant});
    for (const KernelCase& test : oracle::matrix_attention_cases()) {
      const auto parts = generate(test.graph.kernels[0], test.graph, variant.traits);
      EXPECT_EQ(parts.at(0).code->name, "attention_matrix") << test.name;
    }
  }
}

std::vector<std::string> names_of(const KernelCase& test, const DeviceTraits& traits) {
  const dispatch::ExecutionGraph graph = with_scratch(test.graph, traits);
  std::vector<std::string> names;
  for (const Dispatch& part : generate(graph.kernels[0], graph, traits)) {
    names.push_back(part.code->name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Spirv, MatrixUnitsReadRowsThatStartAtVectors) {
  const DeviceTraits traits = matrix_variants()[0].traits;
  const oracle::MatmulLayout half{false, false, false, false, DType::kF16};
  EXPECT_EQ(names_of(oracle::matmul_case({1, 1, 4096, 4096}, 4096, half), traits),
            Names({"contraction_matrix"}));
  EXPECT_EQ(names_of(oracle::matmul_case({1, 1, 4096, 4097}, 4096, half), traits),
            Names({"matrix_copy", "contraction_matrix"}));
  EXPECT_EQ(names_of(oracle::matmul_case({1, 1, 4096, 4096}, 4097, half), traits),
            Names({"matrix_copy", "contraction_matrix"}));
  EXPECT_EQ(names_of(oracle::matmul_case({1, 1, 4096, 4097}, 4097, half), traits),
            Names({"matrix_copy", "matrix_copy", "contraction_matrix"}));
  EXPECT_EQ(names_of(oracle::matmul_case({1, 1, 512, 512}, 8192, half), traits),
            Names({"contraction_matrix", "contraction_epilogue"}));
}

TEST(Spirv, LargeConvolutionsRunOnMatrixUnits) {
  const DeviceTraits traits = matrix_variants()[0].traits;
  const Names staged{"matrix_copy", "convolution_matrix"};
  const Names weights{"convolution_weight_gradient", "convolution_weight_sum"};
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(name_of(dtype));
    // That of the benchmarks, one of tests/python/test_large_products.py, and 1 x 1.
    for (const oracle::Sweep& sweep :
         {oracle::Sweep{32, 64, 32, 32, 64, 3, 3, 1, 1, 1, 1},
          oracle::Sweep{8, 32, 32, 32, 128, 3, 3, 1, 1, 1, 1}, oracle::Sweep{32, 64, 32, 32, 64}}) {
      const std::vector<KernelCase> cases = oracle::convolution_cases_of(sweep, dtype);
      EXPECT_EQ(names_of(cases[0], traits), staged);
      EXPECT_EQ(names_of(cases[1], traits), staged);
      EXPECT_EQ(names_of(cases[2], traits), weights);
    }
    // Rows of pixels that 16 does not divide: images stick out of tiles, sums over pixels cannot.
    const std::vector<KernelCase> odd =
        oracle::convolution_cases_of({32, 40, 31, 33, 96, 3, 3, 1, 1, 1, 1}, dtype);
    EXPECT_EQ(names_of(odd[0], traits), staged);
    EXPECT_EQ(names_of(odd[1], traits), staged);
    EXPECT_EQ(names_of(odd[2], traits)[0], "contraction_matrix");
  }
  // Where windows step over pixels, the gradient of the image is gathered.
  const std::vector<KernelCase> strided =
      oracle::convolution_cases_of({32, 64, 64, 64, 64, 3, 3, 2, 2, 1, 1}, DType::kF16);
  EXPECT_EQ(names_of(strided[0], traits), staged);
  EXPECT_EQ(names_of(strided[1], traits)[0], "contraction_matrix");
}

TEST(Spirv, MatrixUnitsServeTheTypesThatTheyHave) {
  const auto names = [](DType dtype, const DeviceTraits& traits) {
    const oracle::MatmulLayout layout{false, false, false, false, dtype};
    return names_of(oracle::matmul_case({1, 1, 2048, 2048}, 2048, layout), traits);
  };
  DeviceTraits traits = matrix_variants()[0].traits;
  traits.has_matrix_bf16 = false;
  EXPECT_EQ(names(DType::kF16, traits), Names({"contraction_matrix"}));
  EXPECT_EQ(names(DType::kBF16, traits), Names({"contraction_tiled"}));
  EXPECT_EQ(names(DType::kF32, traits), Names({"contraction_tiled"}));
  EXPECT_EQ(names(DType::kI32, traits), Names({"contraction_direct"}));
  traits.has_matrix_bf16 = true;
  traits.has_storage16 = false;
  EXPECT_EQ(names(DType::kF32, traits), Names({"contraction_tiled"}));
}

TEST(Spirv, HighPrecisionTakesFewerProducts) {
  const DeviceTraits traits = matrix_variants()[0].traits;
  constexpr std::uint32_t kMatrixMultiplyAdd = 4459;  // OpCooperativeMatrixMulAddKHR
  const auto products = [&](const graph::Attributes& attributes) {
    KernelCase test = oracle::matmul_case({1, 1, 2048, 2048}, 2048, {});
    test.graph.kernels[0].attributes = attributes;
    const dispatch::ExecutionGraph graph = with_scratch(test.graph, traits);
    const auto words = generate(graph.kernels[0], graph, traits).at(0).code->words;
    int count = 0;
    for (std::size_t i = 5; i < words.size(); i += words[i] >> 16) {
      count += (words[i] & 0xffffu) == kMatrixMultiplyAdd;
    }
    return count;
  };
  // 16 matrices for each 16 of k: six products and, after the loop, two for what is not finite;
  // three and two, in steps of twice the length.
  EXPECT_EQ(products({}), 16 * (6 + 2));
  EXPECT_EQ(products({1}), 2 * 16 * (3 + 2));
}

std::vector<std::uint32_t> words_of(const KernelCase& test, const DeviceTraits& traits) {
  const dispatch::ExecutionGraph graph = with_scratch(test.graph, traits);
  return generate(graph.kernels[0], graph, traits).at(0).code->words;
}

TEST(Spirv, MapsDoNotDependOnTheShape) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    const auto kind = dispatch::BufferKind::kInput;
    EXPECT_EQ(words_of(oracle::multiply_add_case(1000, kind), variant.traits),
              words_of(oracle::multiply_add_case(123456, kind), variant.traits));
  }
}

TEST(Spirv, ProductsDoNotDependOnTheShape) {
  for (const Variant& variant : variants()) {
    if (!variant.traits.is_software) continue;
    SCOPED_TRACE(variant.name);
    const oracle::MatmulLayout layout;
    EXPECT_EQ(words_of(oracle::matmul_case({1, 1, 512, 512}, 64, layout), variant.traits),
              words_of(oracle::matmul_case({1, 1, 1024, 640}, 128, layout), variant.traits));
  }
}

TEST(Spirv, EqualKernelsGiveEqualWords) {
  const Variant variant = variants()[0];
  const KernelCase test = oracle::matmul_case({2, 3, 9, 12}, 20, {});
  EXPECT_EQ(words_of(test, variant.traits), words_of(test, variant.traits));
}

TEST(Spirv, MoreBuffersThanPlansGiveAKernelAreABrokenPromise) {
  oracle::KernelBuilder b(ops::CoreKind::kNone, {1, 1, 1, 8});
  oracle::Register sum = b.load(b.dense(DType::kF32, b.kernel.space));
  for (int i = 0; i < 20; ++i) {
    const oracle::Register next = b.load(b.dense(DType::kF32, b.kernel.space));
    sum = b.emit(ops::Opcode::kAdd, ops::ScalarType::kF32, {sum, next});
  }
  b.result(DType::kF32, sum);
  const dispatch::ExecutionGraph graph = b.finish();
  DeviceTraits traits;
  traits.use_addresses = traits.has_int64 = true;
  EXPECT_THROW(generate(graph.kernels[0], graph, traits), InternalError);
}

TEST(Spirv, LargeRegionsAreCut) {
  DeviceTraits traits;
  traits.use_addresses = traits.has_int64 = true;
  // 2^32 elements: three parts at least, and rows of them.
  const KernelCase map = oracle::multiply_add_case(1, dispatch::BufferKind::kTemporary);
  dispatch::ExecutionGraph graph = map.graph;
  dispatch::Kernel& kernel = graph.kernels[0];
  kernel.space = {1, 1, std::int64_t{1} << 20, std::int64_t{1} << 12};
  for (auto* operands : {&kernel.loads, &kernel.stores}) {
    for (dispatch::Operand& operand : *operands) {
      operand.extents = kernel.space;
      operand.strides = oracle::row_major(kernel.space);
    }
  }
  const std::vector<Dispatch> parts = generate(kernel, graph, traits);
  ASSERT_GE(parts.size(), 3u);
  if (validator().empty()) return;
  Validator spirv_val;
  for (const Dispatch& part : parts) EXPECT_EQ(spirv_val.check(*part.code), "");
}

TEST(Spirv, ManyStridesStillFit) {
  // Four transposed operands: more strides than 128 bytes hold. Literals take their place.
  oracle::KernelBuilder b(ops::CoreKind::kNone, {3, 5, 7, 9});
  oracle::Register sum = b.load(b.dense(DType::kF32, b.kernel.space));
  for (int i = 0; i < 9; ++i) {
    const auto operand = oracle::transposed(b.dense(DType::kF32, {3, 5, 9, 7}));
    sum = b.emit(ops::Opcode::kAdd, ops::ScalarType::kF32, {sum, b.load(operand)});
  }
  b.result(DType::kF32, sum);
  expect_valid({{"many strides", b.finish(), 0, 0, {}}});
}

}  // namespace
}  // namespace vkml::vulkan
