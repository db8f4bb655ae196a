# SPDX-License-Identifier: Apache-2.0
# The build tree has the layout of an installed prefix, and `rankscope` finds its parts relative to itself: installing is copying.
# Components: rankscope, gui (the timeline), documentation and desktop; the packages rankscope and rankscope-gui hold two each.
foreach(part IN ITEMS bin lib/rankscope libexec/rankscope share/rankscope)
  install(DIRECTORY "${CMAKE_BINARY_DIR}/${part}/" DESTINATION "${part}" COMPONENT rankscope USE_SOURCE_PERMISSIONS OPTIONAL
          PATTERN rankscope-view EXCLUDE PATTERN "librankscope_mpi_*" EXCLUDE)
endforeach()
# Of no package: each asks for its MPI, which users bring themselves.
install(DIRECTORY "${CMAKE_BINARY_DIR}/lib/rankscope/" DESTINATION lib/rankscope COMPONENT mpi USE_SOURCE_PERMISSIONS OPTIONAL
        FILES_MATCHING PATTERN "librankscope_mpi_*" PATTERN vgpu EXCLUDE PATTERN bundled EXCLUDE)
install(PROGRAMS "${CMAKE_BINARY_DIR}/libexec/rankscope/rankscope-view" DESTINATION libexec/rankscope COMPONENT gui OPTIONAL)
# Pages that the program wrote, and those written by hand.
foreach(part IN ITEMS man bash-completion zsh fish)
  install(DIRECTORY "${CMAKE_BINARY_DIR}/share/${part}" DESTINATION share COMPONENT documentation OPTIONAL)
endforeach()
file(GLOB _man CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/man/*.1")
install(FILES ${_man} DESTINATION share/man/man1 COMPONENT documentation)
install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" DESTINATION share/doc/rankscope RENAME copyright COMPONENT documentation)

# cpack -G DEB: rankscope and rankscope-gui, stripped, with their debug information in packages of its own beside them.
set(CPACK_PACKAGE_NAME rankscope)
set(CPACK_PACKAGE_VENDOR "The Rankscope developers")
# Of a package's maintainer dpkg needs the name only, and the project has no address: reports go to its repository (SECURITY.md).
set(CPACK_PACKAGE_CONTACT "The Rankscope developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "finds out what holds the ranks of a distributed training job back")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL rankscope documentation)
set(CPACK_COMPONENT_RANKSCOPE_GROUP rankscope)
set(CPACK_COMPONENT_DOCUMENTATION_GROUP rankscope)
if(TARGET rankscope_view)
  list(APPEND CPACK_COMPONENTS_ALL gui desktop)
  set(CPACK_COMPONENT_GUI_GROUP gui)
  set(CPACK_COMPONENT_DESKTOP_GROUP gui)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The virtual GPUs answer for CUDA's and NCCL's libraries, which no package needs to bring.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/lib/rankscope/vgpu")
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_RANKSCOPE_PACKAGE_NAME rankscope)
set(CPACK_DEBIAN_RANKSCOPE_PACKAGE_RECOMMENDS rankscope-gui)
set(CPACK_DEBIAN_RANKSCOPE_PACKAGE_SUGGESTS py-spy)
set(CPACK_DEBIAN_GUI_PACKAGE_NAME rankscope-gui)
set(CPACK_DEBIAN_GUI_PACKAGE_DEPENDS "rankscope (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_GUI_PACKAGE_DESCRIPTION "the timeline of Rankscope: all ranks of a job on one clock, with its findings")
include(CPack)
