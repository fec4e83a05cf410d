# Declares what `cpack` makes of a build: an archive of the installed tree (-G TGZ), which may be
# unpacked anywhere, and a Debian package with all libraries (-G DEB). packaging/debian makes the
# packages that a distribution would have. With SOURCE_DATE_EPOCH set, the same build gives the same
# bytes.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME slabyard)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Memory allocator for programs with many objects of the same kind")
set(CPACK_PACKAGE_VENDOR "the Slabyard project")
set(CPACK_PACKAGE_CONTACT "${CPACK_PACKAGE_VENDOR}")
set(CPACK_PACKAGE_FILE_NAME slabyard-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)

# Files that name the prefix (gdb's auto-load) must name the one that the package is installed in, so
# cpack installs with DESTDIR. The root of an archive is its prefix.
set(CPACK_SET_DESTDIR ON)
file(CONFIGURE OUTPUT archives-prefix.cmake @ONLY CONTENT [[
if(CPACK_GENERATOR STREQUAL DEB)
    set(CPACK_INSTALL_PREFIX /usr)
else()
    set(CPACK_INSTALL_PREFIX /)
endif()
]])
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_BINARY_DIR}/archives-prefix.cmake)

set(CPACK_DEBIAN_PACKAGE_NAME slabyard-library)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_CONFLICTS "libslabyard1, libslabyard-dev, libslabyard-malloc1")
find_program(SLABYARD_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(SLABYARD_SHLIBDEPS)
if(SLABYARD_SHLIBDEPS)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
