// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/detail_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "injector/capture_format/record_view.h"

namespace rankscope::capture {
namespace {

namespace fs = std::filesystem;

/// Numbers of the files NAME.<k>.detail, from the oldest on.
std::vector<uint32_t> numbersOf(const fs::path& base) {
    std::vector<uint32_t> numbers;
    const std::string prefix = base.filename().string() + ".";
    constexpr std::string_view kEnding = ".detail";
    std::error_code error;
    const fs::path folder = base.has_parent_path() ? base.parent_path() : fs::path(".");
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (!name.starts_with(prefix) || !name.ends_with(kEnding) || name.size() <= prefix.size() + kEnding.size())
            continue;
        const char* begin = name.data() + prefix.size();
        const char* end = name.data() + name.size() - kEnding.size();
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
