// vkml.profile, a `with` statement round vkml::Profile, and the plain objects that it gives.

#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>

#include <filesystem>
#include <memory>

#include "common.h"
#include "vkml/api/profile.h"

namespace vkml::python {
namespace {

/// A profile that opens when its block is entered; another block replaces what it holds.
class PythonProfile {
 public:
  void enter() {
    if (profile_ && profile_->is_open()) {
      throw ArgumentError("[profile] this profile's block is entered already");
    }
    profile_ = std::make_unique<Profile>();
  }
  void exit() {
    if (profile_) profile_->close();
  }
  const Profile& get() const {
    if (!profile_) throw ArgumentError("[profile] is empty: `with vkml.profile() as p:` fills it");
    return *profile_;
  }

 private:
  std::unique_ptr<Profile> profile_;
};

const char* name_of(TimeSource source) { return source == TimeSource::kDevice ? "device" : "host"; }

/// What a row of the table and a single run have in common.
template <typename Class>
void bind_cost(Class& bound) {
  using Bound = typename Class::Type;
  const auto cost = [](auto get) {
    return [get](const Bound& one) {
      if constexpr (std::is_same_v<Bound, KernelRun>) {
        return get(one.cost());
      } else {
        return get(one.cost);
      }
    };
  };
  bound
      .def_prop_ro(
          "name", cost([](const KernelCost& c) { return c.name; }),
          "The kernel's core and the operators fused into it, as vkml.explain prints them.")
      .def_prop_ro("extents", cost([](const KernelCost& c) { return c.extents; }),
                   "Of the iteration space, padded with 1 to four axes.")
      .def_prop_ro("bytes_read", cost([](const KernelCost& c) { return c.bytes_read; }),
                   "Bytes that one run reads, each once.")
      .def_prop_ro("bytes_written", cost([](const KernelCost& c) { return c.bytes_written; }),
                   "Bytes that one run writes.")
      .def_prop_ro("flops", cost([](const KernelCost& c) { return c.flops; }),
                   "Floating-point operations of one run; a fused multiply-add is two.")
      .def_prop_ro(
          "device", [](const Bound& b) { return b.device; }, "The device that it ran on.")
      .def_prop_ro(
          "timed_by", [](const Bound& b) { return name_of(b.source); },
          "\"device\"; \"host\" where the device writes no timestamps.");
}

template <typename Timed>
double seconds_of(const Timed& timed) {
  return 1e-9 * static_cast<double>(timed.time.end - timed.time.begin);
}

}  // namespace

void bind_profile(nb::module_& m) {
  nb::class_<KernelRun> run(m, "KernelRun", "A kernel that ran while a profile was open.");
  bind_cost(run);
  run.def_prop_ro(
         "begin", [](const KernelRun& r) { return 1e-9 * static_cast<double>(r.time.begin); },
         "Seconds, on the clock of time.perf_counter().")
      .def_prop_ro("seconds", &seconds_of<KernelRun>, "How long it ran.")
      .def_ro("thread", &KernelRun::thread, "threading.get_native_id() of who handed it over.")
      .def_ro("submission", &KernelRun::submission,
              "Kernels that were handed over together have one number.")
      .def("__repr__", [](const KernelRun& r) {
        return "<KernelRun " + r.cost().name + " on " + to_string(r.device) + ">";
      });

  nb::class_<KernelSummary> summary(m, "KernelSummary",
                                    "All runs of one kernel while a profile was open.");
  bind_cost(summary);
  summary.def_ro("count", &KernelSummary::count, "How often it ran.")
      .def_ro("seconds", &KernelSummary::seconds, "Of all runs together.")
      .def_ro("shortest", &KernelSummary::shortest, "Seconds of the fastest run.")
      .def_ro("threads", &KernelSummary::threads, "Who handed it over, as in KernelRun.thread.")
      .def_prop_ro(
          "gb_per_second", [](const KernelSummary& s) { return 1e-9 * s.bytes_per_second(); },
          "10^9 bytes read and written in a second.")
      .def_prop_ro(
          "gflops_per_second", [](const KernelSummary& s) { return 1e-9 * s.flops_per_second(); },
          "10^9 operations in a second.")
      .def_ro("share_of_roof", &KernelSummary::share_of_roof,
              "The time that it would need at the speed of a long copy or a large product on this "
              "device over the time that it took; None where those were not measured.")
      .def("__repr__", [](const KernelSummary& s) {
        return "<KernelSummary " + std::to_string(s.count) + " x " + s.cost.name + " on " +
               to_string(s.device) + ">";
      });

  nb::class_<HostSpan>(m, "HostSpan", "Work of the host while a profile was open.")
      .def_prop_ro(
          "name", [](const HostSpan& s) { return std::string(dispatch::name_of(s.work)); },
          "What the work was for: \"plan\", \"submit\", \"wait\" and so on.")
      .def_prop_ro(
          "begin", [](const HostSpan& s) { return 1e-9 * static_cast<double>(s.time.begin); },
          "Seconds, on the clock of time.perf_counter().")
      .def_prop_ro("seconds", &seconds_of<HostSpan>, "How long it took.")
      .def_ro("thread", &HostSpan::thread, "threading.get_native_id() of who did it.")
      .def_ro("bytes", &HostSpan::bytes, "Of uploads and downloads.")
      .def("__repr__", [](const HostSpan& s) {
        return "<HostSpan " + std::string(dispatch::name_of(s.work)) + ">";
      });

  nb::class_<PythonProfile>(
      m, "profile",
      "What runs inside `with vkml.profile() as p:`, on every device and from every thread: "
      "kernels "
      "with the time that they took on their device, and the host's work. print(p) when the block "
      "is over. Recorded steps (vkml.jit) show their kernels too. One block is open at a time; "
      "inside, kernels of a device run one after the other. See docs/profiling.md.")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](nb::handle self) {
            nb::cast<PythonProfile&>(self).enter();
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> profile"),
          "Begins. Raises ArgumentError while another profile is open.")
      .def(
          "__exit__",
          [](PythonProfile& self, const nb::args&) {
            const nb::gil_scoped_release release;
            self.exit();
          },
          nb::sig("def __exit__(self, *exception: object) -> None"),
          "Waits for all devices, and ends.")
      .def_prop_ro(
          "kernels",
          [](const PythonProfile& self) {
            const nb::gil_scoped_release release;
            return self.get().kernels();
          },
          "A KernelSummary for each kernel, the longest first.")
      .def_prop_ro(
          "runs", [](const PythonProfile& self) { return self.get().runs(); },
          "A KernelRun for each time that a kernel ran, by its beginning.")
      .def_prop_ro(
          "spans", [](const PythonProfile& self) { return self.get().spans(); },
          "A HostSpan for each piece of the host's work, by its beginning; they nest.")
      .def_prop_ro(
          "seconds", [](const PythonProfile& self) { return self.get().seconds(); },
          "From the block's beginning to its end.")
      .def(
          "table",
          [](const PythonProfile& self, std::size_t rows) {
            const nb::gil_scoped_release release;
            return self.get().table(rows);
          },
          nb::arg("rows") = 30,
          "Kernels, the longest first, at most `rows` of them, and the host's work, as text.")
      .def(
          "trace",
          [](const PythonProfile& self, const std::filesystem::path& path) {
            const nb::gil_scoped_release release;
            self.get().write_trace(path.string());
          },
          nb::arg("path"), nb::sig("def trace(self, path: str | os.PathLike[str]) -> None"),
          "Writes a trace that chrome://tracing and ui.perfetto.dev show; a file that is there is "
          "replaced as a whole or not at all. Raises FileError.")
      .def("__str__", [](const PythonProfile& self) {
        const nb::gil_scoped_release release;
        return self.get().table();
      });
}

}  // namespace vkml::python
