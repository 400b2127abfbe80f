// What a single kernel can hold: one iteration space, at most one core, one set of reduced axes,
// every value inside read exactly at the element (or row) where it is computed, and limits on
// instructions and operands.
#pragma once

#include <span>
#include <vector>

#include "access.h"
#include "schedule.h"

namespace vkml::dispatch {

/// Where a member is computed.
enum class Place : std::uint8_t { kElement, kRow };

struct Group {
  std::vector<int> members;  // positions, ascending
  int core = -1;             // the member that has a kernel core, or is assembled from parts
  int companion = -1;        // the member that this core computes on its way
  Extents space{1, 1, 1, 1};
  unsigned reduced = 0;       // mask of the axes of `space` that form a row
  std::vector<Place> places;  // by member
  std::vector<AxisMap> maps;  // by member: its axes in `space`
};

/// More gain little: the values read take up the registers or tiles of a kernel.
inline constexpr int kMaxOperands = 12;

class KernelForm {
 public:
  KernelForm(const Schedule& schedule, int max_operands);

  /// Whether the members are one kernel; fills in core, space, row, places and maps.
  bool describe(Group& group) const;

  /// Whether a donating assignment reads of the block that it overwrites each element in its place
  /// alone: x[:] = x[::-1] does not.
  bool overwrites_in_place(int assignment) const;

 private:
  bool find_row(Group& group) const;
  bool place_members(Group& group) const;
  /// Every value of the group is read where it is computed.
  bool check_accesses(const Group& group) const;
  bool reads_in_place(const Access& access, const AxisMap& reader_map, const Group& group,
                      int root) const;
  /// An assignment of a value with a window replaced that nobody else reads: its own kernels put
  /// the value together in the block assigned to.
  bool assigns_window(const Group& group) const;
  /// A donated block is read only at the element that overwrites it.
  bool check_donation(const Group& group) const;
  int count_operands(const Group& group) const;

  const Schedule& schedule_;
  int max_operands_;
  std::vector<int> uses_;  // by position: how often other steps read the value
};

bool is_reduce(const Schedule& schedule, int position);
/// Steps that run as a program; the others have a core or are assembled by several kernels.
bool is_program(const Schedule& schedule, int position);
bool is_assembled(const Schedule& schedule, int position);
/// The step whose result a core computes on its way, or -1: one of its sources, which it never
/// reads.
int companion_of(const Schedule& schedule, int position);
/// The sources that a step's program reads: an assignment reads the new value alone.
std::span<const int> read_sources(const Schedule& schedule, int position);
/// The shape at whose elements a step reads its sources.
const Shape& reading_shape(const Schedule& schedule, int position);
/// Whether `source` lies in the block that a donating assignment overwrites.
bool is_overwritten_by(const Schedule& schedule, int source, int assignment);
/// A value computed in place wherever it is read: numbers and coordinates.
bool is_inline(const Schedule& schedule, int position);
/// Whether coordinates can be computed from those of the reader through this access.
bool inlines_at(const Schedule& schedule, const Access& access, const Shape& reader);

}  // namespace vkml::dispatch
