// SPDX-License-Identifier: Apache-2.0
// Each family of changes by what reads its arguments: the registry lists them with their syntax.
#pragma once

#include "analyzer/edits/edit_arguments.h"

namespace rankscope::edits {

std::unique_ptr<Edit> parseAlgorithm(EditArguments& arguments);
std::unique_ptr<Edit> parseBalance(EditArguments& arguments);
std::unique_ptr<Edit> parseBuckets(EditArguments& arguments);
std::unique_ptr<Edit> parseNoContention(EditArguments& arguments);
std::unique_ptr<Edit> parseReduceOnce(EditArguments& arguments);
std::unique_ptr<Edit> parseNoStalls(EditArguments& arguments);
std::unique_ptr<Edit> parseCudaGraphs(EditArguments& arguments);
std::unique_ptr<Edit> parseLaunchEarly(EditArguments& arguments);
std::unique_ptr<Edit> parseSteady(EditArguments& arguments);
std::unique_ptr<Edit> parseLayers(EditArguments& arguments);
std::unique_ptr<Edit> parseMicroBatches(EditArguments& arguments);
std::unique_ptr<Edit> parseSchedule(EditArguments& arguments);
std::unique_ptr<Edit> parsePlace(EditArguments& arguments);
std::unique_ptr<Edit> parseReplicas(EditArguments& arguments);
std::unique_ptr<Edit> parsePrefetch(EditArguments& arguments);
std::unique_ptr<Edit> parseOverlap(EditArguments& arguments);
std::unique_ptr<Edit> parseSpeed(EditArguments& arguments);
std::unique_ptr<Edit> parseNetwork(EditArguments& arguments);
std::unique_ptr<Edit> parseBytes(EditArguments& arguments);
std::unique_ptr<Edit> parseGradients(EditArguments& arguments);

}  // namespace rankscope::edits
