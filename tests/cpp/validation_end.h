// Included at the end of a test of Vulkan: its last case speaks for all that ran before it.
#pragma once

#include <gtest/gtest.h>

#include "vulkan_plans.h"

namespace vkml::vulkan {

TEST(VulkanEnd, ValidationLayerFoundNothing) {
  VKML_REQUIRE_VULKAN();
  if (!Instance::get().validates()) GTEST_SKIP() << "VKML_VALIDATION is not set";
  test::backend()->synchronize();
  EXPECT_EQ(Instance::get().validation_errors(), 0u);
}

}  // namespace vkml::vulkan
