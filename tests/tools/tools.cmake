# Tests under AddressSanitizer, ThreadSanitizer and Valgrind. Each tests/tools/*.c is built with the
# sanitizer of its modes and linked with the static library, the same with the shared library, and
# without a sanitizer, for Valgrind (for Helgrind and DRD with the shared library). The library
# itself is built without a sanitizer. The program's first comment has a line for each mode in which
# the program is run (tests/tools/tools.h).
find_program(VALGRIND valgrind)

# tools_program(name source library option...): builds a program. The options are for the compiler
# and the linker.
function(tools_program name source library)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${library})
    target_compile_options(${name} PRIVATE -O1 -fno-omit-frame-pointer ${SLABYARD_WARNINGS} ${ARGN})
    target_link_options(${name} PRIVATE ${ARGN})
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(READ ${source} text)
    string(REGEX REPLACE "[*]/.*" "" text "${text}")
    string(REGEX MATCHALL " (asan|memcheck|tsan|helgrind|drd)(-malloc)?: " modes "${text}")
    list(TRANSFORM modes REPLACE " ([a-z-]+): " "\\1")
    tools_program(tools_${name}_plain ${source} slabyard_static)
    set(sanitizer address)
    if("tsan" IN_LIST modes)
        set(sanitizer thread)
    endif()
    tools_program(tools_${name}_static ${source} slabyard_static -fsanitize=${sanitizer})
    tools_program(tools_${name}_shared ${source} slabyard -fsanitize=${sanitizer})
    if("helgrind" IN_LIST modes)
        tools_program(tools_${name}_plain_shared ${source} slabyard)
    endif()
    foreach(mode ${modes})
        set(builds static shared)
        if(mode MATCHES "memcheck|helgrind|drd")
            set(builds plain)
            if(mode MATCHES "helgrind|drd")
                set(builds plain_shared)
            endif()
            if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU") # Valgrind runs for gcc only
                continue()
            endif()
        endif()
        foreach(build ${builds})
            sy_test(tools.${name}.${mode}.${build} tools 120 1 ${CMAKE_CURRENT_LIST_DIR}/run.sh
                ${source} ${mode} $<TARGET_FILE:tools_${name}_${build}>)
        endforeach()
    endforeach()
endforeach()
if(NOT VALGRIND)
    message(WARNING "Valgrind is not installed: the tests tools.*.memcheck* will fail")
endif()
