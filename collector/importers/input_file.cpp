// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "collector/importers/import_error.h"

namespace rankscope::collector {

namespace {
constexpr size_t kInflateInputBytes = 256 * 1024;
constexpr unsigned char kGzipMagic[2] = {0x1f, 0x8b};
}  // namespace

struct InputFile::Inflater {
    z_stream stream{};
    std::vector<unsigned char> input = std::vector<unsigned char>(kInflateInputBytes);
    bool betweenMembers = false;  // a gzip member ended: more input may start another one
    bool finished = false;

    ~Inflater() { inflateEnd(&stream); }
};

InputFile::InputFile(std::filesystem::path path) : m_path(std::move(path)) {
    m_fd = ::open(m_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (m_fd < 0) throw ImportError(m_path, 0, std::string("cannot be opened: ") + std::strerror(errno), "");
    struct stat info {};
    if (::fstat(m_fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        ::close(m_fd);
        throw ImportError(m_path, 0, "is a folder", "name the files inside it");
    }
    if (!S_ISREG(info.st_mode)) {
        ::close(m_fd);
        throw ImportError(m_path, 0, "is a pipe or a device, not a file", "write it to a file first");
    }
    unsigned char magic[2] = {};
    if (::pread(m_fd, magic, sizeof magic, 0) == 2 && std::memcmp(magic, kGzipMagic, 2) == 0) {
        m_inflater = std::make_unique<Inflater>();
        if (inflateInit2(&m_inflater->stream, 15 + 16) != Z_OK) {
            ::close(m_fd);
            throw ImportError(m_path, 0, "zlib could not be initialised", "");
        }
    }
}

InputFile::~InputFile() {
    if (m_fd >= 0) ::close(m_fd);
}

size_t InputFile::read(char* to, size_t bytes) {
    if (m_inflater) return readInflated(to, bytes);
    size_t done = 0;
    while (done < bytes) {
        const size_t got = readDisk(to + done, bytes - done);
        if (got == 0) break;
        done += got;
    }
    return done;
}

size_t InputFile::readDisk(char* to, size_t bytes) {
    ssize_t got = 0;
    do {
        got = ::read(m_fd, to, bytes);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        m_damage = std::string("read failed: ") + std::strerror(errno);
        return 0;
    }
    return static_cast<size_t>(got);
}

size_t InputFile::readInflated(char* to, size_t bytes) {
    Inflater& inflater = *m_inflater;
    z_stream& stream = inflater.stream;
    size_t done = 0;
    while (done < bytes && !inflater.finished) {
        if (stream.avail_in == 0) {
            stream.next_in = inflater.input.data();
            stream.avail_in =
                static_cast<uInt>(readDisk(reinterpret_cast<char*>(inflater.input.data()), inflater.input.size()));
            if (stream.avail_in == 0) {
                if (!inflater.betweenMembers && m_damage.empty()) m_damage = "the gzip stream is cut off";
                inflater.finished = true;
                break;
            }
        }
        if (inflater.betweenMembers) {
            // Bytes that start no further member (padding of a tape or a download) are no part of the text.
            if (stream.next_in[0] != kGzipMagic[0]) {
                inflater.finished = true;
                break;
            }
            inflateReset(&stream);
            inflater.betweenMembers = false;
        }
        const size_t room = std::min<size_t>(bytes - done, 1u << 30);
        stream.next_out = reinterpret_cast<Bytef*>(to + done);
        stream.avail_out = static_cast<uInt>(room);
        const int status = inflate(&stream, Z_NO_FLUSH);
        done += room - stream.avail_out;
        if (status == Z_STREAM_END) {
            inflater.betweenMembers = true;
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            m_damage = std::string("the gzip stream is damaged: ") + (stream.msg ? stream.msg : "unknown cause");
            inflater.finished = true;
        }
    }
    return done;
}

std::string wholeText(InputFile& input, size_t most, const char* what) {
    std::string text;
    constexpr size_t kPiece = size_t{64} << 10;
    for (size_t got = kPiece; got == kPiece;) {
        if (text.size() > most)
            throw ImportError(input.path(), text.size(),
                              "it is larger than " + std::string(what) + " (" + std::to_string(most >> 20) + " MiB)",
                              "");
        const size_t at = text.size();
        text.resize(at + kPiece);
        got = input.read(text.data() + at, kPiece);
        text.resize(at + got);
    }
    return text;
}

}  // namespace rankscope::collector
