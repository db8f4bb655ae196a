// SPDX-License-Identifier: Apache-2.0
// Nothing: a library that is there for its soname. What it stands for is librankscope_vgpu.so, which it needs.
