# Declares what `cmake --install` and `make install` install: headers, libraries, a .pc file for
# each way to link, the CMake package, commands for gdb, the man pages, the licence, guides and
# examples. The prefix can be moved afterwards. A manifest lists the files, so that scripts/uninstall
# can remove them.
set(SLABYARD_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/slabyard)
install(CODE "include(${CMAKE_CURRENT_SOURCE_DIR}/cmake/manifest.cmake)")
if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_INSTALL_MESSAGE NEVER) # manifest.cmake prints a summary instead of each file
    install(CODE "slabyard_begin_manifest(${CMAKE_INSTALL_LIBDIR}/pkgconfig ${SLABYARD_CMAKE_DIR}
            ${CMAKE_INSTALL_INCLUDEDIR}/slabyard ${CMAKE_INSTALL_MANDIR}/man1
            ${CMAKE_INSTALL_MANDIR}/man3 ${CMAKE_INSTALL_MANDIR}/man7 ${CMAKE_INSTALL_DOCDIR}
            ${CMAKE_INSTALL_DATADIR}/gdb/auto-load)")
endif()

file(RELATIVE_PATH SLABYARD_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" SLABYARD_PC_UP ${SLABYARD_PC_UP})
function(slabyard_pc name libraries flags)
    set(SLABYARD_PC_NAME ${name})
    set(SLABYARD_PC_LIBRARIES ${libraries})
    set(SLABYARD_PC_FLAGS "${flags}")
    configure_file(cmake/slabyard.pc.in ${name}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
if(WIN32)
    set(unwinder ${SLABYARD_UNWINDER})
    list(TRANSFORM unwinder PREPEND " -l")
    slabyard_pc(slabyard "-L\${libdir} -lslabyard" " -DSY_DLL")
    slabyard_pc(slabyard-static "\${libdir}/libslabyard.a -pthread${unwinder}" "")
else()
    slabyard_pc(slabyard "-L\${libdir} -lslabyard" "")
    slabyard_pc(slabyard-static "\${libdir}/libslabyard.a -pthread" "")
endif()
if(SLABYARD_DLOPEN)
    slabyard_pc(slabyard-dlopen "-L\${libdir} -lslabyard-dlopen" " -DSY_DLOPEN")
endif()

if(TARGET slabyard_malloc)
    slabyard_pc(slabyard-malloc "-L\${libdir} -lslabyard-malloc" "")
    slabyard_pc(slabyard-malloc-static "\${libdir}/slabyard-malloc.o -pthread" "")
    install(FILES ${SLABYARD_MALLOC_OBJECT} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

configure_package_config_file(cmake/slabyard-config.cmake.in slabyard-config.cmake
    INSTALL_DESTINATION ${SLABYARD_CMAKE_DIR})
write_basic_package_version_file(slabyard-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS ${SLABYARD_LIBRARIES} EXPORT slabyard-targets)
install(EXPORT slabyard-targets NAMESPACE slabyard:: DESTINATION ${SLABYARD_CMAKE_DIR})
# For projects that use a build that is not installed: -Dslabyard_DIR=BUILD_FOLDER.
export(EXPORT slabyard-targets NAMESPACE slabyard::)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config-version.cmake DESTINATION ${SLABYARD_CMAKE_DIR})
install(DIRECTORY include/slabyard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY compat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/slabyard
    FILES_MATCHING PATTERN "*.h")

# gdb loads NAME-gdb.py with the library NAME, from below its folder auto-load, where the file has
# the library's whole path. The prefix is known only when Slabyard is installed.
if(CMAKE_SYSTEM_NAME STREQUAL Linux)
    foreach(library slabyard slabyard_malloc slabyard_dlopen)
        if(TARGET ${library})
            install(FILES tools/gdb/slabyard.py RENAME $<TARGET_FILE_NAME:${library}>-gdb.py
                DESTINATION
                ${CMAKE_INSTALL_DATADIR}/gdb/auto-load\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR})
        endif()
    endforeach()
endif()

install(FILES tools/grafana/slabyard.json DESTINATION ${CMAKE_INSTALL_DATADIR}/slabyard)

# The documents are installed with the folders of the repository, so their relative links work.
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md SECURITY.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md"
    PATTERN "*.svg" PATTERN "_*" EXCLUDE PATTERN site EXCLUDE PATTERN reference EXCLUDE REGEX "/docs/index\\.md$" EXCLUDE)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.c"
    PATTERN "*.cpp" PATTERN "*.zig" PATTERN "*.go" PATTERN "*.py")

# The man pages. A release has them in manual/. In a checkout, the installation builds them, if
# Sphinx is installed (scripts/install.sh site).
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/manual/man3)
    set(manual ${CMAKE_CURRENT_SOURCE_DIR}/manual)
else()
    set(manual ${CMAKE_CURRENT_BINARY_DIR}/manual)
    install(CODE "slabyard_make_manual(${CMAKE_CURRENT_SOURCE_DIR} ${manual})")
endif()
install(DIRECTORY ${manual}/man1 ${manual}/man3 ${manual}/man7
    DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)

if(PROJECT_IS_TOP_LEVEL)
    install(CODE "slabyard_end_manifest(${CMAKE_INSTALL_DATADIR}/slabyard/installed.txt)
        slabyard_say_installed(${PROJECT_VERSION} ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_LIBDIR}
            ${CMAKE_INSTALL_MANDIR} ${CMAKE_INSTALL_DOCDIR})")
endif()
