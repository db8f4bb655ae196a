// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The only symbols the library shows: hooks and entry points.
#define RANKSCOPE_EXPORT extern "C" __attribute__((visibility("default")))
