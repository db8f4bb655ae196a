// SPDX-License-Identifier: Apache-2.0
#include "collector/store/input_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collector/store/error.h"

namespace rankscope::store {
namespace {

class Descriptor {
  public:
    explicit Descriptor(const std::filesystem::path& file)
        : m_number(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ~Descriptor() {
        if (m_number >= 0) ::close(m_number);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return m_number; }

  private:
    int m_number;
};

[[noreturn]] void failToRead(const std::filesystem::path& file) {
    throw Error(file.string(), std::string("cannot be read: ") + std::strerror(errno),
                errno == ENOENT ? "" : "check that you may read it");
}

}  // namespace

std::string readInputText(const std::filesystem::path& file, uint64_t mostBytes) {
    const Descriptor descriptor(file);
    struct stat info {};
    if (descriptor.number() < 0 || ::fstat(descriptor.number(), &info) != 0) failToRead(file);
    if (!S_ISREG(info.st_mode))
        throw Error(file.string(), S_ISDIR(info.st_mode) ? "is a folder" : "is a pipe or a device, not a file",
                    S_ISDIR(info.st_mode) ? "name a file in it" : "write it to a file first");
    std::string text;
    constexpr size_t kPiece = size_t{1} << 16;
    for (;;) {
        const size_t before = text.size();
        text.resize(before + kPiece);
        const ssize_t got = ::read(descriptor.number(), text.data() + before, kPiece);
        if (got < 0 && errno != EINTR) failToRead(file);
        text.resize(before + static_cast<size_t>(got > 0 ? got : 0));
        if (text.size() > mostBytes)
            throw Error(file.string(), fmt::format("is larger than the {} bytes that such a file can have", mostBytes),
                        "name the right file");
        if (got == 0) return text;
    }
}

}  // namespace rankscope::store
