// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/csv_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "collector/store/sqlite.h"

namespace rankscope::exports {
namespace {

TEST(CsvFolder, BytesAreHexadecimal) {
    std::string folder = (std::filesystem::temp_directory_path() / "rankscope-csv-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    store::Database trace(":memory:", store::OpenMode::create);
    trace.execute(
        "CREATE TABLE seen (rank INTEGER, shares BLOB); INSERT INTO seen VALUES (3, x'00ff7b'), (4, x''), (5, NULL)");
    writeCsvFolder(trace, folder);
    std::stringstream text;
    text << std::ifstream(folder + "/seen.csv").rdbuf();
    EXPECT_EQ(text.str(), "rank,shares\r\n3,00ff7b\r\n4,\r\n5,\r\n");
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rankscope::exports
