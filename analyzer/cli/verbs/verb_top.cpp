// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/live/live_run.h"
#include "analyzer/cli/live/live_text.h"
#include "analyzer/cli/live/metrics_server.h"
#include "analyzer/cli/live/metrics_text.h"
#include "analyzer/cli/verbs/metrics_options.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/output_file.h"

namespace rankscope::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct TopOptions {
    std::string run;
    std::string format = "text";
    std::string metrics, metricsFile;
    bool whileInput = false;
    bool once = false;
    double intervalS = 5;
    double windowS = 60;
    unsigned workers = 1;
};

constexpr int kNice = 10;  // the job goes first

volatile sig_atomic_t g_isOver = 0;

// Ctrl-C is how people leave: the folder that is made for looking goes with it.
void leaveBySignal() {
    struct sigaction action {};
    action.sa_handler = [](int) { g_isOver = 1; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);  // who reads may go first (| head)
}

// On a terminal the picture before is replaced.
bool show(const LiveState& state, const TopOptions& options, const Console& console) {
    std::string text =
        options.format == "json" ? liveJson(state) : liveText(state, text::Painter(console.colorOnStdout()));
    const bool isTerminal = isatty(STDOUT_FILENO) == 1;
    if (isTerminal) text = text::terminalText(text, console.colorOnStdout());
    if (options.format == "text" && !options.once) text = isTerminal ? "\x1b[H\x1b[2J" + text : text + '\n';
    // Not by the console, for which a reader that has gone is an error.
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return true;
    if (errno == EPIPE) return false;
    throw VerbError(kExitInput, fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

std::chrono::nanoseconds processorTime() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// A look costs processor time beside the job: the next one comes when four times as much has passed. How long the look
// waited for a processor is none of its cost.
Clock::duration pauseAfter(std::chrono::nanoseconds look, double intervalS) {
    constexpr int kLeastPause = 4;
    return std::max<Clock::duration>(
        look * kLeastPause, std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(intervalS)));
}

// The job's wrapper tells by the end of our standard input that the job has ended.
void waitFor(Clock::duration time, bool whileInput) {
    constexpr int kSliceMs = 200;
    for (const auto end = Clock::now() + time; g_isOver == 0 && Clock::now() < end;) {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        if (poll(&input, whileInput ? 1 : 0, kSliceMs) > 0) g_isOver = 1;
    }
}

std::string hostHere() {
    const char* told = std::getenv("RANKSCOPE_HOST");
    char name[256] = {};
    if (told != nullptr && *told != '\0') return told;
    return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// The endpoint and the file, whichever is asked for. Beside a job what fails is said once, and the job goes on.
class MetricsOutlet {
  public:
    MetricsOutlet(const TopOptions& options, const Console& console)
        : m_file(options.metricsFile), m_isBeside(options.whileInput), m_console(console), m_host(hostHere()) {
        if (options.metrics.empty()) return;
        try {
            m_server = std::make_unique<MetricsServer>(*parseMetricsAddress(options.metrics));
            m_console.note(fmt::format("metrics: {}", m_server->url()));
        } catch (const VerbError& error) {
            if (!m_isBeside) throw;
            m_console.warning(fmt::format("{}; the job goes on without ({})", error.what(), error.hint()));
        }
    }
    // What nobody renews any more is no state of a job.
    ~MetricsOutlet() {
        if (m_isWritten) text::removeOutputFile(m_file);
    }

    void give(const LiveState& state) {
        if (m_server == nullptr && m_file.empty()) return;
        const std::string text = metricsText(state, m_host);
        if (m_server) m_server->give(text);
        if (m_file.empty() || m_hasFailed) return;
        try {
            text::writeOutputFile(text, m_file);
            m_isWritten = true;
        } catch (const std::filesystem::filesystem_error& error) {
            if (!m_isBeside) throw;
            m_hasFailed = true;
            m_console.warning(
                fmt::format("--metrics-file: {}: {}; the job goes on without", m_file, error.code().message()));
        }
    }

  private:
    std::string m_file;
    bool m_isBeside;
    const Console& m_console;
    std::string m_host;
    std::unique_ptr<MetricsServer> m_server;
    bool m_isWritten = false, m_hasFailed = false;
};

int top(const TopOptions& options, const Console& console) {
    leaveBySignal();
    setpriority(PRIO_PROCESS, 0, kNice);
    LiveRun run(options.run, options.windowS, options.workers);
    MetricsOutlet metrics(options, console);
    LiveState state;
    state.run = std::filesystem::path(options.run).filename().string();
    metrics.give(state);
    while (g_isOver == 0) {
        const auto before = processorTime();
        state = run.look();
        metrics.give(state);
        if (options.format != "none" && !show(state, options, console)) break;
        if (options.once) break;
        if (state.phase == LivePhase::ended) {
            if (!options.whileInput) console.next(fmt::format("rankscope analyze {}", options.run));
            break;
        }
        waitFor(pauseAfter(processorTime() - before, options.intervalS), options.whileInput);
    }
    return kExitOk;
}

std::string checkSpan(const std::string& text) {
    const auto value = finiteNumber(text);
    constexpr double kMost = 1e6;
    return value && *value > 0 && *value <= kMost ? "" : fmt::format("'{}' is no time: write seconds", text);
}

}  // namespace

void addTopVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<TopOptions>();
    auto* verb = app.add_subcommand(
        "top", "A job while it runs: step time, late ranks, bus bandwidth, devices' health, findings as they arise");
    verb->group(kRecordGroup);
    addRunOption(*verb, options->run);
    verb->add_flag("--once", options->once, "Look once and end");
    addFormatOption(*verb, options->format, {"text", "json", "none"},
                    "text; json: one object a line, rankscope.top/1; none: for --metrics alone");
    addMetricsOptions(*verb, options->metrics, options->metricsFile);
    verb->add_flag("--while-input", options->whileInput)->group("");  // of `run`, which ends it
    verb->add_option("--interval", options->intervalS,
                     "Look every so many seconds, or more seldom when looking takes long")
        ->type_name("S")
        ->capture_default_str()
        ->check(checkSpan);
    verb->add_option("--window", options->windowS, "How much of the recorded time is looked at, from its end")
        ->type_name("S")
        ->capture_default_str()
        ->check(checkSpan);
    addWorkersOption(*verb, options->workers);
    setAction(*verb, invocation, [options, &invocation] { return top(*options, invocation.console); });
}

}  // namespace rankscope::cli
