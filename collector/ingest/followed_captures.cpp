// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/followed_captures.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "collector/ingest/raw_capture.h"
#include "collector/ingest/side_by_side.h"
#include "injector/capture_format/block_scanner.h"
#include "injector/capture_format/crc32c.h"
#include "injector/capture_format/reader.h"
#include "injector/capture_format/record_cursor.h"

namespace rankscope::collector {

using namespace capture;
namespace fs = std::filesystem;

/// One of them. The copy has the file's header, a block for each of its blocks, and behind them the bytes of the block
/// that is being written, if any, so that it reads as the file does.
class FollowedCapture {
  public:
    FollowedCapture(std::string path, std::string copy) : m_path(std::move(path)), m_copy(std::move(copy)) {}

    /// Where the file is read: its copy, or itself.
    const std::string& goOn(const TimeSpan& part);

  private:
    bool begin();
    bool prune(int64_t sinceNs);
    bool append(int64_t sinceNs);
    bool copyBlocks(BlockScanner& blocks, const LossList& damage, int64_t sinceNs, std::ostream& out);
    bool takeRecords(const BlockHeader& header, const std::vector<uint8_t>& payload, int64_t sinceNs,
                     std::ostream& out);

    std::string m_path, m_copy;
    std::optional<FileHeader> m_header;
    ino_t m_inode = 0;
    uint64_t m_read = kFileHeaderBytes;    // of the file: behind its last whole block
    uint64_t m_copied = kFileHeaderBytes;  // of the copy: behind that block's
    uint32_t m_sequence = 0;               // of the next block
    std::optional<int64_t> m_prunedNs;     // what was over before is no longer in the copy
    int64_t m_newestNs = 0;
    std::set<RecordType> m_seen;
    bool m_isItself = false;  // no copy is kept
};

namespace {

int openFile(const std::string& path) {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool copyBytes(const std::string& path, uint64_t from, uint64_t bytes, std::ostream& out) {
    std::ifstream in(path, std::ios::binary);
    std::string content(bytes, '\0');
    in.seekg(static_cast<std::streamoff>(from));
    in.read(content.data(), static_cast<std::streamsize>(bytes));
    out.write(content.data(), in.gcount());
    return out.good();
}

}  // namespace

/// Copies the header; false where there is none yet.
bool FollowedCapture::begin() {
    try {
        m_header = CaptureReader(m_path).header();
    } catch (const CaptureError&) {
        return false;
    }
    struct stat info {};
    if (::stat(m_path.c_str(), &info) != 0) return false;
    m_inode = info.st_ino;
    std::error_code ignored;
    fs::create_directories(fs::path(m_copy).parent_path(), ignored);
    std::ofstream out(m_copy, std::ios::binary | std::ios::trunc);
    return copyBytes(m_path, 0, kFileHeaderBytes, out);
}

/// Writes what is left of a block. The newest record stays, whatever it tells: then the process was last heard of; and
/// the first of each type, which tells that such are recorded.
bool FollowedCapture::takeRecords(const BlockHeader& header, const std::vector<uint8_t>& payload, int64_t sinceNs,
                                  std::ostream& out) {
    std::vector<uint8_t> kept;
    kept.reserve(payload.size());
    BlockHeader block = header;
    block.recordCount = 0;
    RecordCursor cursor(payload.data(), payload.size());
    RecordView view;
    bool keepsKernel = true;
    for (RecordCursor::Step step = cursor.next(); step != RecordCursor::Step::end; step = cursor.next()) {
        if (step != RecordCursor::Step::record) return false;
        view.data = cursor.record();
        view.bytes = cursor.recordBytes();
        const int64_t timeNs = recordTimeNs(view.data);
        const bool isPlausible = timesPlausible(view, m_header->processStartNs);
        const bool isFirst = m_seen.insert(view.type()).second;
        bool keeps = !isPlausible || isFirst || timeNs >= m_newestNs || isAskedFor(view, sinceNs);
        if (view.type() == RecordType::kernel)
            keepsKernel = keeps;
        else if (view.type() == RecordType::kernelGraph)
            keeps = keepsKernel;  // it goes on with the kernel before it
        if (isPlausible) m_newestNs = std::max(m_newestNs, timeNs);
        if (!keeps) continue;
        ++block.recordCount;
        kept.insert(kept.end(), view.data, view.data + view.bytes);
    }
    block.payloadBytes = static_cast<uint32_t>(kept.size());
    block.payloadCrc = crc32c(kept.data(), kept.size());
    block.headerCrc = crc32c(&block, offsetof(BlockHeader, headerCrc));
    out.write(reinterpret_cast<const char*>(&block), sizeof block);
    out.write(reinterpret_cast<const char*>(kept.data()), static_cast<std::streamsize>(kept.size()));
    m_copied += sizeof block + kept.size();
    return out.good();
}

/// False where a block is damaged or one is missing.
bool FollowedCapture::copyBlocks(BlockScanner& blocks, const LossList& damage, int64_t sinceNs, std::ostream& out) {
    while (blocks.next()) {
        // A scanner that begins in the middle takes the blocks before as missing.
        for (const ReaderLoss& loss : damage.rows())
            if (loss.kind != ReaderLossKind::sequenceGap) return false;
        if (blocks.header().sequence != m_sequence) return false;
        ++m_sequence;
        m_read = blocks.blockOffset() + sizeof(BlockHeader) + blocks.payload().size();
        if (!takeRecords(blocks.header(), blocks.payload(), sinceNs, out)) return false;
    }
    return true;
}

/// Writes the copy anew, without what is over by now.
bool FollowedCapture::prune(int64_t sinceNs) {
    const int file = openFile(m_copy);
    if (file < 0) return false;
    LossList damage;
    BlockScanner blocks(file, m_copy, kFileHeaderBytes, damage);
    const std::string next = m_copy + ".next";
    std::ofstream out(next, std::ios::binary | std::ios::trunc);
    if (!copyBytes(m_copy, 0, kFileHeaderBytes, out)) return false;
    const uint64_t read = m_read;
    const uint32_t sequence = std::exchange(m_sequence, 0);
    m_copied = kFileHeaderBytes;
    m_seen.clear();
    const bool isWhole = copyBlocks(blocks, damage, sinceNs, out) && m_sequence == sequence;
    m_read = read;
    m_prunedNs = sinceNs;
    out.close();
    std::error_code error;
    fs::rename(next, m_copy, error);
    return isWhole && !out.fail() && !error;
}

bool FollowedCapture::append(int64_t sinceNs) {
    const int file = openFile(m_path);
    if (file < 0) return false;
    LossList damage;
    BlockScanner blocks(file, m_path, m_read, damage);
    std::error_code error;
    fs::resize_file(m_copy, m_copied, error);
    std::ofstream out(m_copy, std::ios::binary | std::ios::app);
    if (error || !copyBlocks(blocks, damage, sinceNs, out)) return false;
    struct stat info {};
    if (::stat(m_path.c_str(), &info) != 0) return false;
    const auto size = static_cast<uint64_t>(info.st_size);
    // More than a block that is being written is damage.
    if (size < m_read || size - m_read > sizeof(BlockHeader) + kMaxBlockPayloadBytes) return false;
    const bool isWhole = size == m_read || copyBytes(m_path, m_read, size - m_read, out);
    out.close();
    return isWhole && !out.fail();
}

const std::string& FollowedCapture::goOn(const TimeSpan& part) {
    if (m_isItself) return m_path;
    if (!m_header && !begin()) {
        m_isItself = m_header.has_value();  // else it comes yet
        return m_path;
    }
    struct stat info {};
    const bool isSame = ::stat(m_path.c_str(), &info) == 0 && info.st_ino == m_inode;
    // Each rewriting is paid by a quarter of a part that went by.
    constexpr int64_t kPrunedParts = 4;
    if (!m_prunedNs) m_prunedNs = part.sinceNs;
    const bool isDue = part.sinceNs - *m_prunedNs >= (part.untilNs - part.sinceNs) / kPrunedParts;
    m_isItself = !isSame || (isDue && !prune(part.sinceNs)) || !append(part.sinceNs);
    if (!m_isItself) return m_copy;
    std::error_code ignored;
    fs::remove(m_copy, ignored);
    return m_path;
}

FollowedCaptures::FollowedCaptures(fs::path folder) : m_folder(std::move(folder)) {}

FollowedCaptures::~FollowedCaptures() = default;

void FollowedCaptures::follow(std::vector<CaptureFile>& files, const TimeSpan& part, unsigned threads) {
    std::vector<FollowedCapture*> followed;
    for (const CaptureFile& file : files) {
        std::unique_ptr<FollowedCapture>& one = m_files[file.path];
        const fs::path copy = m_folder / std::to_string(file.directory) / file.name;
        if (!one) one = std::make_unique<FollowedCapture>(file.path, copy.string());
        followed.push_back(one.get());
    }
    sideBySide(files.size(), threads, [&](size_t i) { files[i].readFrom = followed[i]->goOn(part); });
}

}  // namespace rankscope::collector
