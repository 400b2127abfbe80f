// What vkml.jit is made of: recording a call, and the table of recordings that replays them.

#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "replay_table.h"
#include "vkml/api/jit.h"

namespace vkml::python {
namespace {

/// A recorded call and all that it depends on.
struct Entry {
  Signature signature;
  std::shared_ptr<Guards> guards;
  std::shared_ptr<NumberProgram> numbers;
  std::shared_ptr<RecordedCall> call;
  ResultShape results;
};

/// The recordings of one function, the last used first.
class ReplayTable {
 public:
  /// The results of a call whose recording is here, else NotImplemented.
  nb::object replay(nb::handle args, nb::handle kwargs) {
    if (is_eager() || is_recording()) return nb::borrow(Py_NotImplemented);
    // Held while it runs: Python code of a finalizer may change the table.
    std::vector<Tensor> tensors;
    std::vector<Number> numbers;
    // NOLINTNEXTLINE(modernize-loop-convert): Python code that runs here may add or drop entries.
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const std::shared_ptr<Entry> entry = entries_[i];
      tensors.clear();
      if (!entry->signature.matches(args, kwargs, tensors) || !entry->guards->failure().empty() ||
          !entry->numbers->evaluate(numbers).empty()) {
        continue;
      }
      nb::object results = run(*entry, args, kwargs, tensors, numbers);
      if (!results.is_valid()) continue;
      move_to_front(entry);
      return results;
    }
    return nb::borrow(Py_NotImplemented);
  }

  /// Why the last used recording does not stand for this call.
  std::string reason(const nb::tuple& args, const nb::dict& kwargs) const {
    if (entries_.empty()) return {};
    const Entry& entry = *entries_.front();
    std::vector<Tensor> tensors;
    std::vector<Number> numbers;
    if (!entry.signature.matches(args, kwargs, tensors)) {
      return entry.signature.difference(Signature(args, kwargs));
    }
    std::string why = entry.guards->failure();
    if (why.empty()) why = entry.numbers->evaluate(numbers);
    if (why.empty()) why = entry.call->mismatch(tensors);
    return why;
  }

  /// Takes a recording over, and replays it. `is_kept`: later calls may use it.
  nb::object add(const Signature& signature, std::shared_ptr<Guards> guards,
                 std::shared_ptr<NumberProgram> numbers, CallRecording& recording,
                 nb::handle result, const std::vector<Tensor>& adopted,
                 const std::vector<Tensor>& captured, const nb::tuple& args,
                 const nb::dict& kwargs) {
    std::vector<Tensor> tensors;
    ResultShape shape(result, tensors);
    std::shared_ptr<RecordedCall> call;
    {
      const nb::gil_scoped_release release;
      call = recording.finish(tensors, adopted);
    }
    auto entry = std::make_shared<Entry>(
        Entry{signature, std::move(guards), std::move(numbers), std::move(call), std::move(shape)});
    entry->signature.pin(captured);
    const std::vector<Tensor> arguments = entry->signature.tensors();
    entry->signature.forget_tensors();
    std::vector<Number> values;
    entry->numbers->evaluate(values);
    nb::object results = run(*entry, args, kwargs, arguments, values);
    if (!results.is_valid()) {
      throw ArgumentError(
          "[jit] another thread changed the shape, dtype, device or gradient of a tensor while the "
          "function that uses it was recorded. Call again when it is done");
    }
    // Tensors that the first run made are not made again.
    if (!adopted.empty()) return results;
    entries_.insert(entries_.begin(), std::move(entry));
    if (entries_.size() > kMaxRecordings) entries_.pop_back();
    return results;
  }

  void visit(const Visit& visit) const {
    for (const std::shared_ptr<Entry>& entry : entries_) {
      entry->signature.visit(visit);
      entry->guards->visit(visit);
      entry->numbers->visit(visit);
      entry->results.visit(visit);
    }
  }
  std::size_t size() const { return entries_.size(); }
  void clear() { const std::vector<std::shared_ptr<Entry>> dropped = std::exchange(entries_, {}); }

 private:
  /// The recording that was used is looked at first from now on. Other threads had their turn
  /// meanwhile, and may have dropped it.
  void move_to_front(const std::shared_ptr<Entry>& entry) {
    const auto place = std::find(entries_.begin(), entries_.end(), entry);
    if (place != entries_.end()) std::rotate(entries_.begin(), place, place + 1);
  }

  /// The results, or a null object where the recording does not stand for the call.
  static nb::object run(const Entry& entry, nb::handle args, nb::handle kwargs,
                        const std::vector<Tensor>& tensors, const std::vector<Number>& numbers) {
    std::optional<std::vector<Tensor>> outcome;
    {
      const nb::gil_scoped_release release;
      outcome = entry.call->run(tensors, numbers);
    }
    if (!outcome) return {};
    const std::vector<Tensor>& found = *outcome;
    entry.numbers->write_back(numbers);
    std::vector<nb::object> objects;
    objects.reserve(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      nb::object known = argument_with(found[i], args);
      if (!known.is_valid()) known = argument_with(found[i], kwargs);
      for (std::size_t k = 0; k < i && !known.is_valid(); ++k) {
        if (found[k].slot() == found[i].slot()) known = objects[k];
      }
      objects.push_back(known.is_valid() ? known : nb::cast(found[i]));
    }
    return entry.results.build(objects);
  }

  /// An argument that is returned is the same object.
  static nb::object argument_with(const Tensor& tensor, nb::handle arguments) {
    if (nb::isinstance<Tensor>(arguments)) {
      return nb::inst_ptr<Tensor>(arguments)->slot() == tensor.slot() ? nb::borrow(arguments)
                                                                      : nb::object();
    }
    if (PyDict_CheckExact(arguments.ptr())) {
      for (const auto [key, value] : nb::borrow<nb::dict>(arguments)) {
        nb::object found = argument_with(tensor, value);
        if (found.is_valid()) return found;
      }
    } else if (PyTuple_Check(arguments.ptr()) || PyList_CheckExact(arguments.ptr())) {
      for (const nb::handle item : arguments) {
        nb::object found = argument_with(tensor, item);
        if (found.is_valid()) return found;
      }
    }
    return {};
  }

  std::vector<std::shared_ptr<Entry>> entries_;
};

// A model may hold the function that was recorded with it: the garbage collector must see the
// cycle.

// Py_VISIT knows its parameters by name.
int traverse_table(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  int stopped = 0;
  nb::inst_ptr<ReplayTable>(self)->visit([&](nb::handle object) {
    if (stopped == 0 && object.is_valid()) stopped = visit(object.ptr(), arg);
  });
  return stopped;
}

int clear_table(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<ReplayTable>(self)->clear();
  return 0;
}

PyType_Slot table_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_table)},
                             {Py_tp_clear, reinterpret_cast<void*>(&clear_table)},
                             {0, nullptr}};

/// A CallRecording that Python ends.
struct Recorder {
  std::unique_ptr<CallRecording> recording;
};

}  // namespace

void bind_jit(nb::module_& m) {
  m.def(
      "is_recording", &is_recording,
      "Whether this thread is recording a function for vkml.jit: values cannot be observed then.");

  nb::class_<Signature>(m, "_Signature").def(nb::init<nb::tuple, nb::dict>());

  nb::class_<Guards>(m, "_Guards")
      .def(nb::init<>())
      .def("item", &Guards::add_item, nb::arg("container"), nb::arg("key").none(),
           nb::arg("value").none(), nb::arg("description"))
      .def("attribute", &Guards::add_attribute, nb::arg("object"), nb::arg("name"),
           nb::arg("value").none(), nb::arg("description"))
      .def("length", &Guards::add_length)
      .def("drop_changed", &Guards::drop_changed);

  nb::class_<NumberProgram>(m, "_NumberProgram")
      .def(nb::init<>())
      .def("constant", &NumberProgram::constant)
      .def("input", &NumberProgram::input)
      .def("operation", &NumberProgram::operation)
      .def("expect", &NumberProgram::expect)
      .def("write", &NumberProgram::write);

  nb::class_<Recorder>(m, "_Recorder")
      .def("__init__",
           [](Recorder* self, const Signature& signature) {
             new (self) Recorder();
             const nb::gil_scoped_release release;
             self->recording = std::make_unique<CallRecording>(signature.tensors());
           })
      .def("close", [](Recorder& self) {
        const nb::gil_scoped_release release;
        self.recording.reset();
      });

  nb::class_<ReplayTable>(m, "_ReplayTable", nb::type_slots(table_slots))
      .def(nb::init<>())
      .def("replay", &ReplayTable::replay)
      .def("reason", &ReplayTable::reason)
      .def("clear", &ReplayTable::clear)
      .def("__len__", &ReplayTable::size)
      .def(
          "add",
          [](ReplayTable& self, const Signature& signature, std::shared_ptr<Guards> guards,
             std::shared_ptr<NumberProgram> numbers, Recorder& recorder, const nb::object& result,
             const std::vector<Tensor>& adopted, const std::vector<Tensor>& captured,
             const nb::tuple& args, const nb::dict& kwargs) {
            return self.add(signature, std::move(guards), std::move(numbers), *recorder.recording,
                            result, adopted, captured, args, kwargs);
          },
          nb::arg("signature"), nb::arg("guards"), nb::arg("numbers"), nb::arg("recorder"),
          nb::arg("result").none(), nb::arg("adopted"), nb::arg("captured"), nb::arg("args"),
          nb::arg("kwargs"));
}

}  // namespace vkml::python
