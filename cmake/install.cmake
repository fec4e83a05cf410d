# What `cmake --install` and `make install` lay down: headers, libraries, a .pc file for each way to
# link, and the CMake package, all relocatable.
file(RELATIVE_PATH SLABYARD_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" SLABYARD_PC_UP ${SLABYARD_PC_UP})
function(slabyard_pc library flags)
    set(SLABYARD_LIBRARY ${library})
    set(SLABYARD_FLAGS "${flags}")
    configure_file(cmake/slabyard.pc.in ${library}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${library}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
slabyard_pc(slabyard "")
if(SLABYARD_DLOPEN)
    slabyard_pc(slabyard-dlopen " -DSY_DLOPEN")
endif()

set(SLABYARD_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/slabyard)
configure_package_config_file(cmake/slabyard-config.cmake.in slabyard-config.cmake
    INSTALL_DESTINATION ${SLABYARD_CMAKE_DIR})
write_basic_package_version_file(slabyard-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS ${SLABYARD_LIBRARIES} EXPORT slabyard-targets)
install(EXPORT slabyard-targets NAMESPACE slabyard:: DESTINATION ${SLABYARD_CMAKE_DIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/slabyard-config-version.cmake DESTINATION ${SLABYARD_CMAKE_DIR})
install(DIRECTORY include/slabyard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY compat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/slabyard
    FILES_MATCHING PATTERN "*.h")

# The manual is made from the headers when it is installed.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
    set(manual ${CMAKE_CURRENT_BINARY_DIR}/manual)
    install(CODE "execute_process(COMMAND ${Python3_EXECUTABLE}
        ${CMAKE_CURRENT_SOURCE_DIR}/scripts/manual ${manual} COMMAND_ERROR_IS_FATAL ANY)")
    install(DIRECTORY ${manual}/man3 ${manual}/man7 DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(DIRECTORY ${manual}/html DESTINATION ${CMAKE_INSTALL_DOCDIR})
else()
    message(STATUS "Python 3 is not here: no man pages will be installed")
endif()
