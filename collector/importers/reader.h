// SPDX-License-Identifier: Apache-2.0
// What an importer is: how it knows a file of its format, and how it makes ranks of it. One source each holds its
// Reader; readers.h names them all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/importers/import_loss.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// What a file tells about one of its ranks beside the events. Whatever it does not tell is left empty: the import
/// finds it among the other files, or says that it is unknown.
struct RankHeader {
    std::optional<int64_t> rank;
    std::optional<int64_t> worldSize;   ///< ranks of the job, imported or not
    std::optional<int64_t> baseTimeNs;  ///< Unix time that the recording's times count from; empty: they are Unix times
    /// Hash of the communicator that told `rank`, its rank in it; empty where something else did. That is the rank in
    /// the job only if the communicator is of the whole job.
    std::optional<uint64_t> rankCommunicator;
    /// Meta of the run that the file is a copy of: calls are numbered and communicators known as they were there. Null
    /// of a recording.
    std::shared_ptr<const std::map<std::string, std::string>> run;
};

/// One rank as one file tells it.
struct FileRank {
    RankHeader header;
    RankRecording recording;  ///< its rank, worldSize, start and source are set later
    ImportLosses losses;
    uint64_t events = 0;  ///< in the file, needed or not
};

/// What a reader may be asked for.
struct ReadOptions {
    bool allOperations = false;  ///< every CPU operator and Python function becomes a range (host_operations.h)
};

struct Reader {
    const char* name = "";                  ///< meta `source` of the run
    const char* expected = "";              ///< what it takes, with its article: "a PyTorch (Kineto) or Chrome trace"
    std::vector<std::string_view> endings;  ///< of its files' names; they pick files from a folder and decide nothing
    bool anyName = false;                   ///< its files have any name: a folder's are looked into
    /// A recorder of calls (RankRecording::recorderCalls), which numbers them alike on all ranks and has no kernels.
    bool isRecorder = false;
    const char* timeBase = "";  ///< what a file calls its baseTimeNs; empty: the format has none that could be missing

    /// True for a file of its format; `head` is its first 64 KiB, inflated.
    bool (*recognises)(std::string_view head) = nullptr;
    /// Where several formats begin alike, as databases do: true for a file that holds what is of this one. Null: the
    /// first bytes tell.
    bool (*holds)(const std::filesystem::path& file) = nullptr;
    /// Reads a file and hands over its ranks one by one, each as soon as it is whole; where memory is short, a file is
    /// read again and must give the same ranks in the same order. Throws ImportError when nothing in it can be used.
    std::function<void(const std::filesystem::path& file, const ReadOptions& options,
                       const std::function<void(FileRank)>& take)>
        read;
};

}  // namespace rankscope::collector
