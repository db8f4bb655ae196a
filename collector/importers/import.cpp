// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "collector/importers/clock_offsets.h"
#include "collector/importers/communicator_inference.h"
#include "collector/importers/flight_join.h"
#include "collector/importers/import_error.h"
#include "collector/importers/rank_of_file.h"
#include "collector/importers/reader_mapped.h"
#include "collector/importers/readers.h"
#include "collector/importers/recording_rows.h"
#include "collector/ingest/trace_builder.h"
#include "collector/store/folder_access.h"

namespace rankscope::collector {

namespace {

// Unix times before 2001 are times since a base, or since boot.
constexpr int64_t kPlausibleUnixNs = 978'307'200'000'000'000;

/// One rank of the run to be: where it stands, what is small of it, and its recording while memory allows.
struct Part {
    std::filesystem::path file;
    size_t index = 0;    // among the file's ranks
    bool alone = false;  // the file holds no other rank
    int32_t rank = -1;
    int64_t baseNs = 0;
    std::optional<int64_t> firstNs;  ///< relative to the base
    std::string hostName;            // empty: not told
    int64_t pid = 0;
    RankHeader header;
    ImportLosses losses;
    RankCalls calls;
    CallPlan plan;
    ClockLine clock;     ///< to that of the others, where it drifts; what a shift puts right is in baseNs
    DumpedCalls dumped;  // of a recorder, which needs no inference
    DumpPlan dumpPlan;
    std::shared_ptr<RankRecording> recording;  // null: read again; shared because std::function must be copyable
};

/// The reader of every file: all are looked at before the first is read.
const Reader& readerOfAll(const std::vector<std::filesystem::path>& files, std::span<const Reader* const> among) {
    const Reader* reader = nullptr;
    for (const std::filesystem::path& file : files) {
        const Reader& own = readerOf(file, among);
        if (reader != nullptr && reader != &own)
            throw ImportError(
                file, 0,
                std::string("it is ") + own.expected + ", but " + files.front().string() + " is " + reader->expected,
                "import files of one format; each import is a run of its own");
        reader = &own;
    }
    return *reader;
}

/// Empty where it is not told, or cannot be.
std::optional<int32_t> worldSizeOf(const RankHeader& header) {
    if (!header.worldSize || *header.worldSize <= 0 || *header.worldSize > INT32_MAX) return std::nullopt;
    return static_cast<int32_t>(*header.worldSize);
}

/// Reads a file's ranks into `parts`.
void readParts(const std::filesystem::path& file, const Reader& reader, const ReadOptions& options, uint64_t keepBytes,
               uint64_t& kept, std::vector<Part>& parts, ImportResult& result) {
    const size_t before = parts.size();
    reader.read(file, options, [&](FileRank read) {
        Part part;
        part.file = file;
        part.index = parts.size() - before;
        part.header = read.header;
        part.losses = std::move(read.losses);
        part.firstNs = earliestNs(read.recording);
        part.hostName = read.recording.hostName;
        part.pid = read.recording.process.pid;
        // Times on the shared base are needed before the base of every file is known: keep the calls relative and move
        // them later.
        if (reader.isRecorder) {
            part.dumped = collectDumpedCalls(read.recording);
        } else if (!read.header.run) {
            part.calls = collectCalls(read.recording);
        }
        part.calls.worldSize = worldSizeOf(read.header);
        result.events += read.events;
        result.kernels += read.recording.kernels.size();
        const uint64_t bytes = sizeInMemory(read.recording);
        if (kept + bytes <= keepBytes) {
            kept += bytes;
            part.recording = std::make_shared<RankRecording>(std::move(read.recording));
        }
        parts.push_back(std::move(part));
    });
    if (parts.size() == before) throw ImportError(file, 0, "it tells of no rank", "");
    parts.back().alone = parts.size() == before + 1;
}

RankRecording readAgain(const Part& part, const Reader& reader, const ReadOptions& options) {
    std::optional<RankRecording> recording;
    size_t index = 0;
    reader.read(part.file, options, [&](FileRank read) {
        if (index++ == part.index) recording = std::move(read.recording);
    });
    if (!recording) throw ImportError(part.file, 0, "it has changed since it was read first", "import it again");
    return std::move(*recording);
}

/// Forgets ranks that communicators told, where two of those have the same: they are parts of the job then (tensor
/// parallel within each node, say), and none was made for all of it. The same rank of the same communicator stays.
void forgetRanksOfSubgroups(std::vector<Part>& parts) {
    std::map<int64_t, std::set<uint64_t>> communicatorsOf;  // by rank
    for (const Part& part : parts)
        if (part.header.rank && part.header.rankCommunicator)
            communicatorsOf[*part.header.rank].insert(*part.header.rankCommunicator);
    if (std::ranges::none_of(communicatorsOf, [](const auto& rank) { return rank.second.size() > 1; })) return;
    std::set<std::pair<int64_t, uint64_t>> seen;
    for (const Part& part : parts)
        if (part.header.rank && part.header.rankCommunicator &&
            !seen.emplace(*part.header.rank, *part.header.rankCommunicator).second)
            return;  // one rank twice
    for (Part& part : parts) {
        if (!part.header.rankCommunicator) continue;
        part.header.rank.reset();
        part.header.worldSize.reset();
        part.calls.worldSize.reset();
        part.header.rankCommunicator.reset();
    }
}

void assignRanks(std::vector<Part>& parts) {
    forgetRanksOfSubgroups(parts);
    std::map<int32_t, const Part*> taken;
    const auto take = [&taken](Part& part, int32_t rank) {
        const auto [other, isNew] = taken.emplace(rank, &part);
        if (!isNew) {
            throw ImportError(part.file, 0,
                              "it is of rank " + std::to_string(rank) + ", and so is " + other->second->file.string(),
                              "import one file per rank; recordings of several runs, or several steps of one rank, are "
                              "runs of their own");
        }
        part.rank = rank;
    };
    for (Part& part : parts) {
        if (part.header.rank && *part.header.rank >= 0 && *part.header.rank <= INT32_MAX)
            take(part, static_cast<int32_t>(*part.header.rank));
    }
    for (Part& part : parts) {
        if (part.rank >= 0 || !part.alone) continue;
        const auto rank = rankFromFileName(part.file.filename().string());
        if (rank && taken.count(*rank) == 0) take(part, *rank);
    }
    int32_t next = 0;
    for (Part& part : parts) {
        if (part.rank >= 0) continue;
        while (taken.count(next) > 0) ++next;
        take(part, next);
        part.losses.add("rank_unknown", "warning", std::nullopt,
                        "neither the trace nor the file's name tells the rank; the next free number was given");
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
}

/// Puts all files on one time base: the one they tell, which a file that is cut off has lost.
void settleBases(std::vector<Part>& parts, const Reader& reader) {
    std::set<int64_t> told;
    for (const Part& part : parts) {
        if (part.header.baseTimeNs) told.insert(*part.header.baseTimeNs);
    }
    for (Part& part : parts) {
        if (part.header.baseTimeNs) {
            part.baseNs = *part.header.baseTimeNs;
        } else if (*reader.timeBase != '\0' && part.firstNs && *part.firstNs < kPlausibleUnixNs && told.size() == 1) {
            part.baseNs = *told.begin();
            part.losses.add("clock", "warning", std::nullopt,
                            std::string(reader.timeBase) + " is missing; that of the other files was taken");
        }
    }
}

store::Severity severityOf(const std::string& text) {
    if (text == "error") return store::Severity::error;
    return text == "info" ? store::Severity::info : store::Severity::warning;
}

store::Loss toRow(const ImportLoss& loss) {
    store::Loss row;
    row.kind = loss.kind;
    row.severity = severityOf(loss.severity);
    row.source = "importer";
    row.count = loss.count;
    if (loss.offset) row.offset = static_cast<int64_t>(*loss.offset);
    row.message = loss.message;
    return row;
}

/// What of a recording depends on the whole set of files, or is the same in every format.
void complete(const Part& part, const Reader& reader, RankRecording& recording) {
    recording.rank = part.rank;
    recording.worldSize = -1;  // of the job, not of what was imported
    recording.process.captureFile = part.file.filename().string();
    recording.process.identitySource = part.header.rank ? "trace" : "none";
    recording.hostName = part.hostName.empty() ? "unknown" : part.hostName;  // one host unless something tells names
    if (part.header.baseTimeNs) recording.meta["time_base_ns"] = std::to_string(*part.header.baseTimeNs);
    recording.sources.push_back({0, reader.name, "live", std::nullopt, "imported"});
    shiftTimes(recording, part.baseNs);
    if (part.clock.drift != 0) moveTimes(recording, part.clock);
    if (part.firstNs && part.baseNs + *part.firstNs >= kPlausibleUnixNs) {
        recording.startUnixAtNs = part.baseNs + *part.firstNs;
        recording.startUnixNs = recording.startUnixAtNs;
    }
    if (reader.isRecorder) {
        applyPlan(part.dumpPlan, recording);
    } else {
        applyPlan(part.plan, recording);
    }
    for (const ImportLoss& loss : part.losses.all()) {
        store::Loss row = toRow(loss);
        row.rank = part.rank;
        row.file = part.file.filename().string();
        recording.losses.push_back(std::move(row));
    }
}

/// Hosts by the names of files, where the traces do not tell them. Such a name is one if its number is the process of
/// the trace, or if other files have the host with another number: "worker0_step_12" is no host.
void tellHosts(std::vector<Part>& parts) {
    std::map<std::string, std::set<int64_t>> processesOf;
    const auto nameOf = [](const Part& part) { return parseProfilerFileName(part.file.filename().string()); };
    for (const Part& part : parts)
        if (const auto name = nameOf(part); name && part.alone) processesOf[name->host].insert(name->pid);
    for (Part& part : parts) {
        const auto name = nameOf(part);
        if (!part.hostName.empty() || !part.alone || !name) continue;
        if (name->pid == part.pid || processesOf[name->host].size() > 1) part.hostName = name->host;
    }
}

/// "40.0 us", "2.00 s".
std::string distanceText(int64_t ns) {
    const double abs = std::abs(static_cast<double>(ns));
    if (abs < 1e6) return fmt::format("{:.3g} us", abs / 1e3);
    if (abs < 1e9) return fmt::format("{:.3g} ms", abs / 1e6);
    return abs < 1e12 ? fmt::format("{:.3g} s", abs / 1e9) : fmt::format("{:.0f} s", abs / 1e9);
}

/// "50 ppm".
std::string driftText(const ClockLine& line) {
    return fmt::format("{:.3g} ppm", line.drift * 1e6);
}

/// Clocks that differ are of different machines, whatever their names are.
void tellMachine(const ClockOffset& offset, Part& part) {
    if (offset.machine == 0) return;
    part.losses.add("clock", "warning", std::nullopt,
                    fmt::format("its clock is another than that of other ranks on {}: several machines have that name, "
                                "and count as hosts of their own",
                                part.hostName));
    part.hostName += fmt::format(" ({})", offset.machine + 1);
}

/// Puts ranks whose clocks differ on one: for good where no host is told, since then they would be taken for those of
/// one host; for the search of communicators alone where hosts are, whose clocks the trace's own model ties.
void settleClocks(std::vector<Part>& parts, std::vector<RankCalls>& calls) {
    std::vector<std::string> hosts;
    for (const Part& part : parts) hosts.push_back(part.hostName);
    const std::vector<ClockOffset> offsets = clockOffsets(calls, hosts);
    for (size_t i = 0; i < parts.size(); ++i) {
        const ClockOffset& offset = offsets[i];
        Part& part = parts[i];
        tellMachine(offset, part);
        if (offset.doubted) {
            part.losses.add("clock", "warning", std::nullopt,
                            fmt::format("ends of its collectives move against those of rank {} by {}, as clocks of two "
                                        "machines do; nothing tells that they are the same collectives, so that groups "
                                        "may be split and who comes last is unknown: names of files that tell hosts "
                                        "(HOST_PID.TIME.pt.trace.json) would",
                                        parts[offset.against].rank, driftText(offset.line)));
            continue;
        }
        if (offset.line.isSame()) continue;
        for (RankCalls::Call& call : calls[i].calls) {
            call.startNs = offset.line.moved(call.startNs);
            call.endNs = offset.line.moved(call.endNs);
        }
        if (!hosts[i].empty()) continue;
        const int64_t aheadNs = offset.line.aheadNs;
        if (offset.line.drift != 0) {
            part.clock = offset.line;
        } else {
            part.baseNs -= aheadNs;
        }
        part.losses.add(
            "clock", "info", std::nullopt,
            fmt::format("its clock is {} {} that of rank {}{}, by the ends of {} collectives (within {}): its times "
                        "were moved",
                        distanceText(aheadNs), aheadNs > 0 ? "ahead of" : "behind", parts[offset.against].rank,
                        offset.line.drift == 0 ? "" : " when it began, and drifts by " + driftText(offset.line),
                        offset.samples, distanceText(offset.boundNs)));
    }
}

void planCalls(std::vector<Part>& parts, ImportLosses& losses) {
    std::vector<RankCalls> calls;
    for (Part& part : parts) {
        part.calls.rank = part.rank;
        for (RankCalls::Call& call : part.calls.calls) {
            call.startNs += part.baseNs;
            call.endNs += part.baseNs;
        }
        calls.push_back(std::move(part.calls));
    }
    settleClocks(parts, calls);
    std::vector<CallPlan> plans = inferCommunicators(calls, losses);
    for (size_t i = 0; i < parts.size(); ++i) parts[i].plan = std::move(plans[i]);
}

void planDumps(std::vector<Part>& parts) {
    std::vector<DumpedCalls> dumps;
    for (Part& part : parts) {
        part.dumped.rank = part.rank;
        dumps.push_back(std::move(part.dumped));
    }
    std::vector<DumpPlan> plans = joinDumps(std::move(dumps));
    for (size_t i = 0; i < parts.size(); ++i) parts[i].dumpPlan = std::move(plans[i]);
}

/// What a copy of a run tells of it: what is found anew, or is of this copy, is left out.
void tellCopied(const std::map<std::string, std::string>& run, RunFacts& facts) {
    static constexpr std::array kFoundAnew{
        "schema_version", "tool_version", "run_name",   "source",           "virtual",
        "start_unix_ns",  "duration_ns",  "world_size", "job_world_size",   "step_source",
        "exit_status",    "stop_signal",  "link_peaks", "analysis.verdict", "analysis.not_judged",
        "analysis.places"};
    const auto told = [&run](const char* key) {
        const auto found = run.find(key);
        return found == run.end() ? std::string() : found->second;
    };
    const auto number = [&told](const char* key) {
        const std::string text = told(key);
        int value = 0;
        return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() ? std::optional(value)
                                                                                                : std::nullopt;
    };
    if (!told("source").empty()) facts.source = told("source");
    facts.virtualGpu = told("virtual") == "1";
    facts.exitStatus = number("exit_status");
    facts.stopSignal = number("stop_signal");
    for (const auto& [key, value] : run)
        if (std::ranges::find(kFoundAnew, key) == kFoundAnew.end()) facts.meta[key] = value;
    facts.meta["imported_from"] = "export";
}

int64_t countWarnings(const ImportLosses& losses) {
    return std::count_if(losses.all().begin(), losses.all().end(),
                         [](const ImportLoss& loss) { return loss.severity != "info"; });
}

}  // namespace

std::vector<std::string_view> importEndings() {
    std::vector<std::string_view> endings;
    for (const Reader* reader : readers())
        for (const std::string_view ending : reader->endings)
            if (std::ranges::find(endings, ending) == endings.end()) endings.push_back(ending);
    return endings;
}

bool isImportableByContent(const std::filesystem::path& file) {
    try {
        return readerOf(file).anyName;
    } catch (const ImportError&) {
        return false;
    }
}

ImportResult importRun(const std::vector<std::filesystem::path>& files, const std::filesystem::path& outRunDir,
                       const ImportOptions& options) {
    if (files.empty()) throw ImportError(outRunDir, 0, "no files to import were named", "");
    std::optional<Reader> mapped;
    if (!options.mapping.empty()) mapped = mappedReader(options.mapping, files);
    const Reader& reader = mapped ? *mapped : readerOfAll(files, options.readers.empty() ? readers() : options.readers);

    const ReadOptions asked{options.allOperations};
    ImportResult result;
    result.source = reader.name;
    result.isRecorder = reader.isRecorder;
    std::vector<Part> parts;
    uint64_t kept = 0;
    for (size_t i = 0; i < files.size(); ++i) {
        readParts(files[i], reader, asked, options.keepBytes, kept, parts, result);
        if (options.progress) options.progress(files[i], i + 1, files.size());
    }
    assignRanks(parts);
    settleBases(parts, reader);
    tellHosts(parts);

    ImportLosses runLosses;
    std::optional<int32_t> worldSize;
    for (const Part& part : parts) {
        result.ranks.push_back(part.rank);
        if (const auto told = worldSizeOf(part.header)) worldSize = std::max(worldSize.value_or(0), *told);
    }
    if (reader.isRecorder) {
        planDumps(parts);
    } else {
        planCalls(parts, runLosses);
    }

    RunFacts facts;
    facts.source = result.source;
    facts.runName = std::filesystem::absolute(outRunDir).lexically_normal().filename().string();
    if (facts.runName.empty()) facts.runName = outRunDir.string();
    facts.keepBytes = options.keepBytes;
    facts.isRecorder = reader.isRecorder;
    if (parts.front().header.run) tellCopied(*parts.front().header.run, facts);
    if (!options.links.empty()) facts.meta["links"] = options.links;
    // Importing some ranks of a large job is a choice: it is told once, not as one missing rank after the other.
    const int64_t missing = worldSize.value_or(0) - static_cast<int64_t>(parts.size());
    if (worldSize)
        facts.meta["job_world_size"] = std::to_string(std::max(*worldSize, static_cast<int32_t>(parts.size())));
    if (missing > 0) {
        runLosses.add("missing_rank", "warning", std::nullopt,
                      "the job had " + std::to_string(*worldSize) +
                          " ranks; the others were not imported, and collectives with them are incomplete",
                      missing);
    }
    store::makeRunFolder(outRunDir, options.shared);
    TraceBuilder builder(outRunDir / "trace.db", facts);
    for (const ImportLoss& loss : runLosses.all()) builder.addLoss(toRow(loss));
    result.losses = static_cast<uint64_t>(countWarnings(runLosses));
    for (Part& part : parts) {
        result.losses += static_cast<uint64_t>(countWarnings(part.losses));
        if (part.recording) {
            complete(part, reader, *part.recording);
            builder.add(std::move(*part.recording));
            part.recording.reset();
        } else {
            const int32_t rank = part.rank;
            builder.add(rank, [part = std::make_shared<const Part>(std::move(part)), &reader, asked] {
                RankRecording recording = readAgain(*part, reader, asked);
                complete(*part, reader, recording);
                return recording;
            });
        }
    }
    builder.finish();
    return result;
}

}  // namespace rankscope::collector
