// A profile in the Trace Event Format of chrome://tracing, which Perfetto reads as well: the host
// is one process with a track for each thread, each device another.

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <system_error>

#include "vkml/api/profile.h"
#include "vkml/core/error.h"

namespace vkml {
namespace {

constexpr int kHostProcess = 0;

int process_of(Device device) { return 1 + key_of(device); }

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// A process's or a thread's name.
std::string naming(const char* what, int process, std::uint64_t thread, const std::string& name) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                     process, thread, quoted(name));
}

class Trace {
 public:
  explicit Trace(std::int64_t begin) : begin_(begin) {}

  void add(const KernelRun& run) {
    const KernelCost& cost = run.cost();
    const int process = process_of(run.device);
    tracks_[process].insert(run.thread);
    names_[process] = to_string(run.device);
    const auto& e = cost.extents;
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"kernel","name":{},"pid":{},"tid":{},{},"args":{{"extents":[{},{},{},{}],)"
        R"("bytes_read":{},"bytes_written":{},"flops":{:.0f},"submission":{},"timed_by":"{}"}}}})",
        quoted(cost.name), process, run.thread, times(run.time), e[0], e[1], e[2], e[3],
        cost.bytes_read, cost.bytes_written, cost.flops, run.submission,
        run.source == TimeSource::kDevice ? "device" : "host"));
  }

  void add(const HostSpan& span) {
    tracks_[kHostProcess].insert(span.thread);
    names_[kHostProcess] = "host";
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"host","name":"{}","pid":{},"tid":{},{},"args":{{"bytes":{}}}}})",
        name_of(span.work), kHostProcess, span.thread, times(span.time), span.bytes));
  }

  std::string text() const {
    std::vector<std::string> lines;
    for (const auto& [process, threads] : tracks_) {
      lines.push_back(naming("process_name", process, 0, names_.at(process)));
      for (const std::uint64_t thread : threads) {
        lines.push_back(
            naming("thread_name", process, thread,
                   fmt::format("{}thread {}", process == kHostProcess ? "" : "from ", thread)));
      }
    }
    lines.insert(lines.end(), events_.begin(), events_.end());
    return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n",
                       fmt::join(lines, ",\n"));
  }

 private:
  std::string times(const dispatch::KernelTime& time) const {
    return fmt::format(R"("ts":{:.3f},"dur":{:.3f})",
                       1e-3 * static_cast<double>(time.begin - begin_),
                       1e-3 * static_cast<double>(time.end - time.begin));
  }

  std::int64_t begin_;
  std::map<int, std::set<std::uint64_t>> tracks_;  // threads by process
  std::map<int, std::string> names_;               // of processes
  std::vector<std::string> events_;
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw FileError(fmt::format(
      "[profile] {}: cannot write the trace: {}. Choose a file in a folder that exists, "
      "is writable and has room; what was at this path before is unchanged",
      path, why));
}

/// Writes beside the file and renames.
void replace_file(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code problem;
  const fs::path target = fs::weakly_canonical(path, problem);  // through links
  if (problem) refuse(path, problem.message());
  const fs::file_status status = fs::status(target, problem);
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse(path, "it is no plain file");
  const std::string temporary =
      fmt::format("{}.{:08x}.part", target.string(), std::random_device{}());
  errno = 0;
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (file.fail()) {
    const int why = errno;
    fs::remove(temporary, problem);
    refuse(path, why != 0 ? std::generic_category().message(why) : "the disk may be full");
  }
  fs::rename(temporary, target, problem);
  if (!problem) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  refuse(path, problem.message());
}

}  // namespace

void Profile::write_trace(const std::string& path) const {
  Trace trace(data().time.begin);
  for (const HostSpan& span : spans()) trace.add(span);
  for (const KernelRun& run : runs()) trace.add(run);
  replace_file(path, trace.text());
}

}  // namespace vkml
