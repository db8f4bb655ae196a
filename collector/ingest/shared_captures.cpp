// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/shared_captures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "collector/ingest/beside_files.h"
#include "collector/ingest/packed_ranks.h"
#include "collector/team/packing.h"

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

struct SeenFile {
    CaptureFile file;                  ///< `path` is that of the process which looks at it
    std::map<int, std::string> paths;  ///< by process that sees it
};

/// Each file to the one that has least to do among those that see it, the first process last: it has work of its own
/// besides. Of several with as much the one behind the last that got one, so that neighbours, which are alike, are
/// spread.
std::vector<std::vector<CaptureFile>> deal(const std::vector<SeenFile>& files, int processes) {
    std::vector<std::vector<CaptureFile>> ofProcess(static_cast<size_t>(processes));
    for (const SeenFile& seen : files) {
        const auto least = std::ranges::min_element(seen.paths, {}, [&](const auto& sees) {
            return std::tuple(ofProcess[static_cast<size_t>(sees.first)].size(), sees.first == 0, sees.first);
        });
        CaptureFile& file = ofProcess[static_cast<size_t>(least->first)].emplace_back(seen.file);
        file.path = least->second;
    }
    return ofProcess;
}

constexpr const char* kBeside[] = {"health", "stacks"};  // folders, and the kinds of loss of what is not read of them

/// Files that tell of the ranks beside their captures: "health/node1.txt".
std::vector<std::string> filesBeside(const std::vector<fs::path>& directories) {
    std::vector<std::string> names;
    for (const char* folder : kBeside)
        for (const fs::path& path : textFilesIn(directories, folder))
            names.push_back(std::string(folder) + "/" + path.filename().string());
    return names;
}

store::Loss unread(const std::string& name, const std::string& process) {
    return {.kind = name.substr(0, name.find('/')),
            .source = "collector",
            .file = name,
            .message = fmt::format("{} is not where the first process looks, only where {} does, and is not read: copy "
                                   "it there and collect again",
                                   name, process)};
}

}  // namespace

CaptureSet findCaptures(const std::vector<fs::path>& directories, team::Team& team) {
    std::map<std::tuple<int32_t, fs::path, uint32_t>, SeenFile> seen;  // in the order of captureFilesIn()
    const auto add = [&seen](const CaptureFile& file, int process) {
        SeenFile& known = seen[{file.directory, file.name, file.headCrc}];
        known.file = file;
        known.paths.try_emplace(process, file.path);
    };
    for (const CaptureFile& file : captureFilesIn(directories)) add(file, 0);
    std::vector<store::Loss> losses;
    std::set<std::string> told;
    for (const std::string& name : filesBeside(directories)) told.insert(name);
    for (int process = 1; process < team.size(); ++process) {
        const std::string message = team.receiveFrom(process);
        team::Unpacker unpack(message, team.nameOf(process));
        for (const CaptureFile& file : unpack.get<std::vector<CaptureFile>>()) add(file, process);
        for (const std::string& name : unpack.get<std::vector<std::string>>())
            if (told.insert(name).second) losses.push_back(unread(name, team.nameOf(process)));
    }
    std::vector<SeenFile> files;
    for (auto& [key, file] : seen) files.push_back(std::move(file));
    const std::vector<std::vector<CaptureFile>> dealt = deal(files, team.size());
    for (int process = 1; process < team.size(); ++process)
        team.sendTo(process, team::Packer()(dealt[static_cast<size_t>(process)]).take());
    std::vector<CaptureLook> looks = lookAt(dealt[0], team.threads());
    for (int process = 1; process < team.size(); ++process) {
        const std::string message = team.receiveFrom(process);
        for (CaptureLook& look : team::Unpacker(message, team.nameOf(process)).get<std::vector<CaptureLook>>()) {
            look.process = process;
            looks.push_back(std::move(look));
        }
    }
    std::ranges::stable_sort(looks, {},
                             [](const CaptureLook& look) { return std::pair(look.directory, fs::path(look.name)); });
    CaptureSet set = choose(looks);
    set.losses.insert(set.losses.end(), losses.begin(), losses.end());
    return set;
}

void dealOut(const std::vector<CaptureChoice>& ranks, uint64_t keepBytes, const std::vector<std::string>& shards,
             team::Team& team) {
    for (int process = 1; process < team.size(); ++process) {
        std::vector<CaptureChoice> own;
        std::ranges::copy_if(ranks, std::back_inserter(own),
                             [process](const CaptureChoice& choice) { return choice.process == process; });
        const std::string shard = shards.empty() || own.empty() ? std::string() : shards[static_cast<size_t>(process)];
        team.sendTo(process, team::Packer()(own)(keepBytes)(shard).take());
    }
}

DealtRanks helpFindCaptures(const std::vector<fs::path>& directories, team::Team& team) {
    team.send(team::Packer()(captureFilesIn(directories))(filesBeside(directories)).take());
    const std::string files = team.await();
    team.send(
        team::Packer()(lookAt(team::Unpacker(files, team.nameOf(0)).get<std::vector<CaptureFile>>(), team.threads()))
            .take());
    const std::string message = team.await();
    DealtRanks dealt;
    team::Unpacker(message, team.nameOf(0))(dealt.ranks)(dealt.keepBytes)(dealt.shard);
    return dealt;
}

}  // namespace rankscope::collector
