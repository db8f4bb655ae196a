// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/capture_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "collector/ingest/side_by_side.h"
#include "injector/capture_format/crc32c.h"
#include "injector/capture_format/reader.h"

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

/// Files below `directory`, by name: the order of a directory is not the same everywhere.
std::vector<fs::path> captureFiles(const fs::path& directory) {
    std::vector<fs::path> files;
    std::error_code error;
    fs::recursive_directory_iterator entry(directory, fs::directory_options::skip_permission_denied, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        std::error_code ignored;
        // Runs of their own, which hold the same ranks.
        if (entry->path().filename() == "dumps" && entry.depth() == 0) entry.disable_recursion_pending();
        if (entry->path().extension() == ".cap" && !entry->is_directory(ignored)) files.push_back(entry->path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

CaptureGlance glanceAt(const std::string& path) {
    capture::CaptureReader reader(path);
    CaptureGlance glance;
    glance.header = reader.header();
    glance.rank = glance.header.rank;
    glance.worldSize = glance.header.worldSize;
    while (const capture::RecordView* view = reader.next()) {
        ++glance.records;
        switch (view->type()) {
            case capture::RecordType::kernel:
            case capture::RecordType::kernelSummary:
            case capture::RecordType::memcpy:
            case capture::RecordType::memset:
                ++glance.gpuRecords;
                break;
            case capture::RecordType::ncclCall:
                ++glance.ncclRecords;
                break;
            case capture::RecordType::rankIdentity: {
                const auto identity = view->as<capture::RankIdentityRecord>();
                if (identity.worldSize > 0) glance.worldSize = identity.worldSize;
                if (identity.rank < 0) break;
                if (identity.device >= 0) glance.rankOfDevice[identity.device] = identity.rank;
                if (identity.device < 0) glance.rank = identity.rank;
                break;
            }
            default:
                break;
        }
    }
    std::set<int32_t> ranks;
    for (const auto& [device, rank] : glance.rankOfDevice) ranks.insert(rank);
    if (ranks.size() == 1) glance.rank = *ranks.begin();
    if (ranks.size() < 2) glance.rankOfDevice.clear();
    return glance;
}

/// 0 of what is no file: a pipe would be waited for.
uint32_t headCrcOf(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return 0;
    std::string head(sizeof(capture::FileHeader), '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    return capture::crc32c(head.data(), static_cast<size_t>(file.gcount()));
}

/// One rank that a file offers.
struct Offer {
    const CaptureLook* file;
    int32_t rank;
    int32_t device;
    const CaptureGlance& glance() const { return *file->glance; }
    /// More is better: later attempt, more GPU work, more of anything; the name decides what is left.
    auto worth() const {
        return std::make_tuple(glance().header.attempt, glance().gpuRecords, glance().ncclRecords, glance().records);
    }
};

class Chooser {
  public:
    explicit Chooser(CaptureSet& set) : m_set(set) {}

    void offer(const CaptureLook& file) {
        for (const auto& [device, rank] : file.glance->rankOfDevice) m_offers.push_back({&file, rank, device});
        if (file.glance->rankOfDevice.empty()) m_offers.push_back({&file, file.glance->rank, -1});
    }

    void choose() {
        nameUnknownRanks();
        std::map<int32_t, std::vector<Offer>> byRank;
        for (const Offer& offer : m_offers) byRank[offer.rank].push_back(offer);
        for (auto& [rank, offers] : byRank) {
            std::stable_sort(offers.begin(), offers.end(),
                             [](const Offer& a, const Offer& b) { return a.worth() > b.worth(); });
            for (size_t i = 1; i < offers.size(); ++i) refuse(offers[i], offers[0]);
            const CaptureLook& file = *offers[0].file;
            m_set.ranks.push_back(
                {file.path, file.name, rank, offers[0].device, file.process, {}, false, file.readFrom});
        }
    }

  private:
    bool didAnything(const Offer& offer) const { return offer.glance().gpuRecords + offer.glance().ncclRecords > 0; }

    /// A process whose rank nobody told: alone it is rank 0; beside others it is a helper unless it used the GPU.
    void nameUnknownRanks() {
        std::set<int32_t> taken;
        for (const Offer& offer : m_offers) taken.insert(offer.rank);
        taken.erase(-1);
        const bool alone = m_offers.size() == 1;
        std::erase_if(m_offers, [&](const Offer& offer) { return offer.rank < 0 && !alone && !didAnything(offer); });
        int32_t next = 0;
        for (Offer& offer : m_offers) {
            if (offer.rank >= 0) continue;
            while (taken.count(next)) ++next;
            offer.rank = next;
            taken.insert(next);
            if (alone) continue;
            m_set.losses.push_back(
                {0,
                 "unknown_rank",
                 store::Severity::warning,
                 next,
                 "collector",
                 1,
                 offer.file->name,
                 {},
                 fmt::format("{} does not tell its rank: it is shown as rank {}", offer.file->name, next)});
        }
    }

    void refuse(const Offer& offer, const Offer& chosen) {
        const CaptureGlance& file = offer.glance();
        const std::string& name = offer.file->name;
        if (file.header.attempt != chosen.glance().header.attempt) {
            m_set.losses.push_back({0,
                                    "earlier_attempt",
                                    store::Severity::info,
                                    offer.rank,
                                    "collector",
                                    1,
                                    name,
                                    {},
                                    fmt::format("attempt {} of rank {} was restarted: attempt {} is shown",
                                                file.header.attempt, offer.rank, chosen.glance().header.attempt)});
            return;
        }
        if (!didAnything(offer)) return;  // a launcher or helper that inherited the rank's variables
        m_set.losses.push_back({0,
                                "duplicate_rank",
                                store::Severity::warning,
                                offer.rank,
                                "collector",
                                1,
                                name,
                                {},
                                fmt::format("two files claim rank {}: {} is used, {} ({} device records) is not",
                                            offer.rank, chosen.file->name, name, file.gpuRecords)});
    }

    CaptureSet& m_set;
    std::vector<Offer> m_offers;
};

}  // namespace

std::vector<CaptureFile> captureFilesIn(const std::vector<fs::path>& directories) {
    std::vector<CaptureFile> files;
    for (size_t d = 0; d < directories.size(); ++d)
        for (const fs::path& file : captureFiles(directories[d]))
            files.push_back({file.string(), file.lexically_relative(directories[d]).string(), static_cast<int32_t>(d),
                             headCrcOf(file)});
    return files;
}

std::vector<CaptureLook> lookAt(const std::vector<CaptureFile>& files, unsigned threads) {
    std::vector<CaptureLook> looks(files.size());
    sideBySide(files.size(), threads, [&](size_t i) {
        looks[i].path = files[i].path;
        looks[i].name = files[i].name;
        looks[i].directory = files[i].directory;
        looks[i].readFrom = files[i].readFrom;
        try {
            looks[i].glance = glanceAt(files[i].readFrom.empty() ? files[i].path : files[i].readFrom);
        } catch (const std::exception& error) {
            looks[i].error = error.what();
        }
    });
    return looks;
}

CaptureSet choose(const std::vector<CaptureLook>& looks) {
    CaptureSet set;
    set.filesFound = looks.size();
    Chooser chooser(set);
    for (const CaptureLook& look : looks) {
        if (!look.glance) {
            if (set.firstError.empty()) set.firstError = look.error;
            set.losses.push_back({0,
                                  "unreadable_file",
                                  store::Severity::error,
                                  {},
                                  "collector",
                                  1,
                                  look.name,
                                  0,
                                  look.error + ": nothing of it is used"});
            continue;
        }
        set.worldSize = std::max(set.worldSize, look.glance->worldSize);
        set.virtualGpu = set.virtualGpu || look.glance->header.virtualGpu != 0;
        chooser.offer(look);
    }
    chooser.choose();
    return set;
}

CaptureSet findCaptures(const std::vector<fs::path>& directories, unsigned threads) {
    return choose(lookAt(captureFilesIn(directories), threads));
}

}  // namespace rankscope::collector
