// Steps that move values between tensors and registers, or make them from coordinates.
#pragma once

#include <cstddef>

#include "tile/program.h"
#include "vkml/core/dtype.h"

namespace vkml::cpu {

/// Converts n elements, `stride` apart in memory, to their compute type, one after the other.
void load_elements(void* target, const std::byte* source, DType dtype, std::int64_t n,
                   std::int64_t stride);
/// Converts n elements of the compute type to neighbours in memory.
void store_elements(std::byte* target, const void* source, DType dtype, std::int64_t n);

// In all of these `immediate` is the index of a load or store of the plan, unless said otherwise.

/// Copies the window of a load into a register, converting.
void load_window(const Step& step, const Frame& frame);
/// Fills a slot with copies of the load's element at the window's start.
void load_splat(const Step& step, const Frame& frame);
/// Points the slot at the load's memory; at the edge copies it into the slot's register.
void aim_load(const Step& step, const Frame& frame);
/// Points the slot at the store's memory, or at the edge at the slot's register.
void aim_store(const Step& step, const Frame& frame);
/// After aim_store: at the edge, copies the register to memory.
void finish_store(const Step& step, const Frame& frame);
/// Copies source 0 to the window of a store, converting.
void store_window(const Step& step, const Frame& frame);

/// Fills a slot with copies of the run-time scalar `immediate`.
template <std::size_t kBytes>
void load_scalar(const Step& step, const Frame& frame);
void load_boolean_scalar(const Step& step, const Frame& frame);

/// The coordinate along the plan's axis `immediate`.
template <typename T>
void iota(const Step& step, const Frame& frame);

/// Repeats row values (source 0) over the elements of their rows.
template <std::size_t kBytes>
void expand_horizontal(const Step& step, const Frame& frame);
template <std::size_t kBytes>
void expand_vertical(const Step& step, const Frame& frame);

/// Source 0 clamped to [0, source 1 - 1]; reports the first index outside. `immediate`: the site.
template <typename T>
void check_index(const Step& step, const Frame& frame);

}  // namespace vkml::cpu
