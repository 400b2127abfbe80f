// Modes, devices, statistics.

#include <nanobind/stl/map.h>

#include <limits>

#include "common.h"

namespace vkml::python {

void bind_context(nb::module_& m) {
  m.def("is_grad_enabled", &is_grad_enabled, "Whether this thread records gradients.");
  m.def("set_grad_enabled", &set_grad_enabled, nb::arg("mode"),
        "Sets whether this thread records gradients; returns what it was.");
  m.def("set_eager", &set_eager, nb::arg("mode"),
        "Eager mode computes after every operator, so that an error surfaces where it was caused.");
  m.def("is_eager", &is_eager, "Whether eager mode is on.");
  m.def("_set_recording_only", &set_recording_only, nb::arg("enabled"));
  m.def(
      "set_depth_limit",
      [](nb::handle limit) {
        constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
        const std::int64_t length = integer_from("set_depth_limit", limit);
        if (length < 0 || length > kMost) {
          throw ArgumentError("[set_depth_limit] " + std::to_string(length) +
                              " is outside [0, 2^32). Use 0 for no limit");
        }
        set_depth_limit(static_cast<std::uint32_t>(length));
      },
      nb::arg("limit"), nb::sig("def set_depth_limit(limit: int) -> None"),
      "Unread chains longer than this that need no gradient are computed as they are recorded; 0 "
      "never.");
  m.def("depth_limit", &depth_limit, "The length at which an unread chain is computed.");
  m.def(
      "set_matmul_precision",
      [](const std::string& precision) {
        if (precision == "highest") {
          set_matmul_precision(MatmulPrecision::kHighest);
        } else if (precision == "high") {
          set_matmul_precision(MatmulPrecision::kHigh);
        } else {
          throw ArgumentError("[set_matmul_precision] \"" + precision +
                              "\" is no precision. Use \"highest\" or \"high\"");
        }
      },
      nb::arg("precision"),
      "How float32 matrix products that are recorded from now on may be rounded: \"highest\", the "
      "default, keeps float32's precision; \"high\" keeps about 16 bits where a device is faster "
      "for it (matrix units; elsewhere nothing changes). Gradients follow their product.");
  m.def(
      "matmul_precision",
      [] { return matmul_precision() == MatmulPrecision::kHigh ? "high" : "highest"; },
      "The precision of float32 matrix products: \"highest\" or \"high\".");
  m.def(
      "_autocast_dtype", [] { return dtype_object(autocast_dtype()); },
      nb::sig("def _autocast_dtype() -> dtype"));
  m.def(
      "_set_autocast_dtype",
      [](nb::handle dtype) { return dtype_object(set_autocast_dtype(dtype_from(dtype))); },
      nb::arg("dtype"), nb::sig("def _set_autocast_dtype(dtype: dtype) -> dtype"));
  m.def(
      "manual_seed",
      [](const nb::int_& seed) { manual_seed(PyLong_AsUnsignedLongLongMask(seed.ptr())); },
      nb::arg("seed"), "Seeds every random draw that follows; any integer, modulo 2^64.");
  m.def("initial_seed", &initial_seed, "The seed in use.");

  nb::class_<DeviceDescription>(m, "DeviceInfo", "What is known of a device.")
      .def_ro("device", &DeviceDescription::device)
      .def_ro("name", &DeviceDescription::name)
      .def_ro("driver", &DeviceDescription::driver)
      .def_ro("memory_bytes", &DeviceDescription::memory_bytes)
      .def_ro("is_software", &DeviceDescription::is_software)
      .def_ro("features", &DeviceDescription::features)
      .def("__repr__", [](const DeviceDescription& d) {
        return "DeviceInfo(" + to_string(d.device) + ", " + d.name + ", " + d.driver + ", " +
               std::to_string(d.memory_bytes >> 20) + " MiB" +
               (d.is_software ? ", software)" : ")");
      });
  m.def("devices", &devices, Release(),
        "Every device here, the CPU first. A driver that fails is left out; missing_devices() says "
        "why.");
  m.def("missing_devices", &missing_devices, Release(),
        "What devices() leaves out, with the reason and the remedy: a device whose driver fails "
        "(\"vulkan:1\"), or a kind of which there is none (\"vulkan\").");
  m.def(
      "set_default_device", [](nb::handle device) { set_default_device(device_from(device)); },
      nb::arg("device"), "Where tensors are made when no device is given.");
  m.def("default_device", &default_device, "Where tensors are made when no device is given.");
  m.def(
      "synchronize",
      [](nb::handle device) {
        if (device.is_none()) {
          const nb::gil_scoped_release release;
          synchronize();
        } else {
          const Device d = device_from(device);
          const nb::gil_scoped_release release;
          synchronize(d);
        }
      },
      nb::arg("device") = nb::none(), "Waits for everything submitted to a device, or to all.");
  m.def(
      "allocated_bytes",
      [](nb::handle device) {
        const Device d = device_from(device);
        const nb::gil_scoped_release release;
        return allocated_bytes(d);
      },
      nb::arg("device") = nb::none(), "Bytes that a device's backend holds.");

  nb::class_<CacheInfo>(m, "CacheInfo", "Plans looked up and compiled, kernels run.")
      .def_ro("hits", &CacheInfo::hits)
      .def_ro("misses", &CacheInfo::misses)
      .def_ro("plans", &CacheInfo::plans)
      .def_ro("kernels", &CacheInfo::kernels)
      .def("__repr__", [](const CacheInfo& c) {
        return "CacheInfo(hits=" + std::to_string(c.hits) + ", misses=" + std::to_string(c.misses) +
               ", plans=" + std::to_string(c.plans) + ", kernels=" + std::to_string(c.kernels) +
               ")";
      });
  m.def(
      "cache_info",
      [](nb::handle device) {
        const Device d = device_from(device);
        const nb::gil_scoped_release release;
        return cache_info(d);
      },
      nb::arg("device") = nb::none(), "Statistics of a device's plan cache.");
  m.def(
      "clear_cache",
      [](nb::handle device) {
        const Device d = device_from(device);
        const nb::gil_scoped_release release;
        clear_cache(d);
      },
      nb::arg("device") = nb::none(), "Forgets a device's compiled plans.");
  m.def("set_coverage", &set_coverage, nb::arg("mode"), "Counts evaluated operators from now on.");
  m.def("coverage", &coverage, "How often each operator ran, by device and name.");
  m.def("clear_coverage", &clear_coverage, "Sets the counts of coverage() back.");
}

}  // namespace vkml::python
