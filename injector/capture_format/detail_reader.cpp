// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/detail_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "injector/capture_format/record_view.h"

namespace rankscope::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".detail";

using Names = std::vector<std::string>;

Names detailFilesIn(const std::string& folder) {
    Names names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        std::string name = entry->path().filename().string();
        if (name.ends_with(kEnding)) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// What a folder holds of .detail files. A job of many ranks has a capture of each in one folder, and to look through
/// it for each of them takes a time that grows with their square: a folder that has not changed is not looked through
/// again.
class Folders {
  public:
    std::shared_ptr<const Names> detailFiles(const std::string& folder) {
        struct stat now {};
        if (::stat(folder.c_str(), &now) != 0) return std::make_shared<const Names>();
        const std::lock_guard lock(m_mutex);
        Listing& listing = m_listings[folder];
        if (listing.names && isSame(listing, now)) return listing.names;
        auto names = std::make_shared<const Names>(detailFilesIn(folder));
        // A change within a clock tick of the last one leaves the folder's time as it is.
        timespec clock{};
        ::clock_gettime(CLOCK_REALTIME, &clock);
        const bool settled = clock.tv_sec - now.st_mtim.tv_sec > kSettledSeconds;
        listing = settled ? Listing{now.st_mtim, now.st_dev, now.st_ino, names} : Listing{};
        return names;
    }

  private:
    static constexpr time_t kSettledSeconds = 2;  // no file system's time is coarser (FAT)
    struct Listing {
        timespec changed{};
        dev_t device = 0;
        ino_t inode = 0;
        std::shared_ptr<const Names> names;  // null: not to be relied on
    };
    static bool isSame(const Listing& listing, const struct stat& now) {
        return listing.changed.tv_sec == now.st_mtim.tv_sec && listing.changed.tv_nsec == now.st_mtim.tv_nsec &&
               listing.device == now.st_dev && listing.inode == now.st_ino;
    }

    std::mutex m_mutex;  // guards the listings: captures are read by several threads
    std::map<std::string, Listing> m_listings;
};

/// Numbers of the files NAME.<k>.detail, from the oldest on.
std::vector<uint32_t> numbersOf(const fs::path& base) {
    static Folders folders;
    std::vector<uint32_t> numbers;
    const std::string prefix = base.filename().string() + ".";
    const fs::path folder = base.has_parent_path() ? base.parent_path() : fs::path(".");
    const std::shared_ptr<const Names> names = folders.detailFiles(folder.string());
    for (auto name = std::lower_bound(names->begin(), names->end(), prefix);
         name != names->end() && name->starts_with(prefix); ++name) {
        if (name->size() <= prefix.size() + kEnding.size()) continue;
        const char* begin = name->data() + prefix.size();
        const char* end = name->data() + name->size() - kEnding.size();
        uint32_t number = 0;
        const auto [at, failure] = std::from_chars(begin, end, number);
        if (failure == std::errc() && at == end) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

/// Nothing, or what speaks against the file.
std::string complaintAbout(int fd, int64_t processStartNs) {
    FileHeader header;
    if (::pread(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header) ||
        std::memcmp(header.magic, kFileMagic, sizeof header.magic) != 0 || header.formatVersion != kFormatVersion)
        return "not a detail file of this version";
    if (header.processStartNs != processStartNs) return "belongs to another process than the capture file";
    return {};
}

}  // namespace

DetailReader::DetailReader(const std::string& base, int64_t processStartNs, LossList& losses) {
    for (const uint32_t number : numbersOf(base)) {
        const std::string path = base + "." + std::to_string(number) + ".detail";
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT) continue;  // it was the oldest
        std::string complaint = fd < 0 ? std::strerror(errno) : complaintAbout(fd, processStartNs);
        auto file = fd < 0 ? nullptr : std::make_unique<BlockScanner>(fd, path, kFileHeaderBytes, losses);
        if (!complaint.empty()) {
            losses.add(ReaderLossKind::ring, 0, 1, path + ": byte 0: " + complaint);
            continue;
        }
        if (m_files.empty()) {
            // Of what a file without its first block holds nobody knows whether it is told elsewhere, too.
            RecordView view;
            if (!file->next() || file->payload().size() < sizeof(DetailSinceRecord)) continue;
            view.data = file->payload().data();
            view.bytes = file->payload().size();
            if (view.type() != RecordType::detailSince) continue;
            m_sinceNs = view.as<DetailSinceRecord>().sinceNs;
        }
        m_files.push_back(std::move(file));
    }
}

bool DetailReader::next() {
    while (m_index < m_files.size()) {
        if (m_files[m_index]->next()) {
            const BlockHeader& header = m_files[m_index]->header();
            if (header.ringEnd != 0) m_ringEnds[header.threadIndex] = header.ringEnd;
            return true;
        }
        ++m_index;
    }
    return false;
}

}  // namespace rankscope::capture
