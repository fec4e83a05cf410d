# Ends the configuration with one sentence where the library cannot be built. Without it, the build
# would end at a header that the system lacks. src/os/platform.h and slabyard/base.h say the same to
# programs that compile the sources themselves.
set(SLABYARD_SYSTEMS Linux Android Darwin iOS FreeBSD OpenBSD NetBSD DragonFly Windows WASI Emscripten)
if(NOT CMAKE_C_COMPILER_ID MATCHES "GNU|Clang|IntelLLVM")
    message(FATAL_ERROR "Slabyard needs gcc or clang, not ${CMAKE_C_COMPILER_ID}: see docs/platforms.md.")
endif()
if(NOT CMAKE_SYSTEM_NAME IN_LIST SLABYARD_SYSTEMS AND NOT SLABYARD_PORTABLE)
    message(FATAL_ERROR "Slabyard does not know the system ${CMAKE_SYSTEM_NAME}; "
        "-DSLABYARD_PORTABLE=ON needs a C11 library alone: see docs/platforms.md.")
endif()
