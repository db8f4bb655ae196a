// SPDX-License-Identifier: Apache-2.0
// Rows of a database of rocprofv3: a small whole one of two processes, one of each schema, with some values changed.
#include "collector/importers/import_error.h"
#include "collector/importers/readers.h"
#include "tests/fuzz/row_edits.h"
#include "tests/unit/collector/importers/rocpd_rows.h"

using namespace rankscope;

namespace {

std::filesystem::path wholeDatabase() {
    const auto file = fuzz::folder() / "whole.db";
    store::Database database(file.string(), store::OpenMode::create);
    tests::fillRocpd(database, "_a", 500, 11, false);
    tests::fillRocpd(database, "_b", 600, 12, true);
    return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    static const fuzz::RowEdits edits(wholeDatabase());
    const auto file = fuzz::folder() / "results.db";
    edits.apply({data, bytes}, file);
    try {
        collector::kRocpdReader.read(file, {}, [](const collector::FileRank&) {});
    } catch (const collector::ImportError&) {
    } catch (const store::Error&) {
    }
    return 0;
}
