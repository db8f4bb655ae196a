// SPDX-License-Identifier: Apache-2.0
#include "injector/nccl_tuner/tuner_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "injector/record/mutex.h"

namespace rankscope::injector {
namespace {

using namespace tuner_abi;

constexpr size_t kMaxFileBytes = 256 * 1024;

struct JobsTable {
    Mutex mutex;
    bool read = false;
    TunerTable table;
};

constinit JobsTable g_jobs;

void complainTo(void* logger, int line, const char* problem) {
    auto* log = *static_cast<Logger*>(logger);
    if (log != nullptr)
        log(kLogWarning, kLogTuning, "rankscope", line, "rankscope tuner: line %d skipped: %s", line, problem);
}

void readFile(TunerTable& table, const char* name, Logger logger) noexcept {
    static char text[kMaxFileBytes];
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got = -1;
    while (fd >= 0 && length < sizeof text && (got = ::read(fd, text + length, sizeof text - length)) > 0)
        length += static_cast<size_t>(got);
    if (fd >= 0) close(fd);
    // Half a file would be other advice than the file's.
    if (got == 0)
        table.read(text, length, '\n', complainTo, &logger);
    else if (logger != nullptr)
        logger(kLogWarning, kLogTuning, "rankscope", 0, "rankscope tuner: %s cannot be read: NCCL decides", name);
}

}  // namespace

void TunerTable::read(const char* text, size_t length, char separator,
                      void (*complain)(void* whom, int line, const char* problem), void* whom) noexcept {
    int number = 0;
    for (size_t begin = 0; begin < length;) {
        size_t end = begin;
        while (end < length && text[end] != separator) ++end;
        ++number;
        TunerRow row;
        const char* problem = nullptr;
        const bool silent = isSilentLine(text + begin, end - begin);
        if (!silent) problem = parseTunerRow(text + begin, end - begin, row);
        for (size_t i = 0; !silent && problem == nullptr && i < count; ++i)
            if (overlap(rows[i], row)) problem = "overlaps an earlier line";
        if (!silent && problem == nullptr && count == kMaxTunerRows) problem = "more than 256 rows";
        if (problem != nullptr) {
            ++skippedLines;
            complain(whom, number, problem);
        } else if (!silent) {
            rows[count++] = row;
        }
        begin = end + 1;
    }
}

const TunerTable& jobsTunerTable(Logger logger) noexcept {
    const Lock lock(g_jobs.mutex);
    if (g_jobs.read) return g_jobs.table;
    g_jobs.read = true;
    const int before = errno;
    if (rowsComeFromRun()) {
        const char* rows = std::getenv("RANKSCOPE_TUNER_ROWS");
        g_jobs.table.read(rows, std::strlen(rows), ';', complainTo, &logger);
    } else if (const char* file = std::getenv("NCCL_TUNER_CONFIG_FILE"); file != nullptr && *file != '\0') {
        readFile(g_jobs.table, file, logger);
    }
    errno = before;
    return g_jobs.table;
}

bool rowsComeFromRun() noexcept {
    const char* rows = std::getenv("RANKSCOPE_TUNER_ROWS");
    return rows != nullptr && *rows != '\0';
}

}  // namespace rankscope::injector
