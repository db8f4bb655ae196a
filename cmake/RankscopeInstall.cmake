# SPDX-License-Identifier: Apache-2.0
# The build tree has the layout of an installed prefix, and `rankscope` finds its parts relative to itself: installing is copying.
foreach(part IN ITEMS bin lib/rankscope libexec/rankscope share/rankscope)
  install(DIRECTORY "${CMAKE_BINARY_DIR}/${part}/" DESTINATION "${part}" USE_SOURCE_PERMISSIONS OPTIONAL)
endforeach()
file(GLOB _man CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/man/*.1")
install(FILES ${_man} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT documentation)
