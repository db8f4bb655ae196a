// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/flight_dump.h"
#include "collector/importers/flight_rank.h"
#include "collector/importers/readers.h"

namespace rankscope::collector {

const Reader kFlightRecorderReader{
    .name = "flight_recorder",
    .expected = "a dump of PyTorch's flight recorder",
    .endings = {".json", ".json.gz", ".pickle", ".pkl"},
    .anyName = true,
    .isRecorder = true,
    .recognises = isFlightDump,
    .read =
        [](const std::filesystem::path& file, const ReadOptions&, const std::function<void(FileRank)>& take) {
            ImportLosses losses;
            const FlightDump dump = readFlightDump(file, losses);
            FileRank rank = rankFromDump(dump, rankOfDump(dump, file.filename().string()));
            rank.losses = std::move(losses);
            take(std::move(rank));
        },
};

}  // namespace rankscope::collector
