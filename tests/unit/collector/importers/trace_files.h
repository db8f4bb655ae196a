// SPDX-License-Identifier: Apache-2.0
// Small Kineto traces for tests: a folder of their own, and the pieces of events that repeat.
#pragma once

#include <stdlib.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rankscope::tests {

/// A folder that goes away with its owner.
class TraceFolder {
  public:
    TraceFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "rankscope-import-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
        m_path = pattern;
    }
    ~TraceFolder() { std::filesystem::remove_all(m_path); }
    TraceFolder(const TraceFolder&) = delete;
    TraceFolder& operator=(const TraceFolder&) = delete;

    std::filesystem::path operator/(const std::string& name) const { return m_path / name; }

    std::filesystem::path write(const std::string& name, std::string_view text) const {
        std::ofstream(m_path / name, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
        return m_path / name;
    }
    std::filesystem::path writeGzip(const std::string& name, std::string_view text) const {
        const gzFile file = gzopen((m_path / name).c_str(), "wb");
        gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
        gzclose(file);
        return m_path / name;
    }

  private:
    std::filesystem::path m_path;
};

/// A kernel on stream 7; `extra` goes into its args.
inline std::string kernelEvent(const std::string& name, const std::string& ts, const std::string& dur, int correlation,
                               const std::string& extra = "") {
    return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": 7, "ts": )" + ts +
           R"(, "dur": )" + dur + R"(, "args": {"device": 0, "context": 1, "stream": 7, "correlation": )" +
           std::to_string(correlation) + extra + "}}";
}

inline std::string launchEvent(const std::string& ts, int correlation, int tid = 100) {
    return R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": )" +
           std::to_string(tid) + R"(, "ts": )" + ts + R"(, "dur": 5, "args": {"cbid": 211, "correlation": )" +
           std::to_string(correlation) + "}}";
}

inline std::string annotationEvent(const std::string& name, const std::string& ts, const std::string& dur,
                                   const std::string& args = "") {
    return R"({"ph": "X", "cat": "user_annotation", "name": ")" + name + R"(", "pid": 100, "tid": 100, "ts": )" + ts +
           R"(, "dur": )" + dur + R"(, "args": {)" + args + "}}";
}

}  // namespace rankscope::tests
