# Tests of the drop-in malloc. Each malloc_*.c and malloc_*.cpp is an ordinary program, which is
# built and run in four ways: with the library preloaded, linked with the library, linked with the
# object slabyard-malloc.o, and linked statically with this object. Other tests run real programs.
add_library(malloc_plugin MODULE ${CMAKE_CURRENT_LIST_DIR}/plugin.c)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/malloc_*.c
    ${CMAKE_CURRENT_LIST_DIR}/malloc_*.cpp)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set(ways preloaded linked object static)
    foreach(way ${ways})
        set(target ${name}_${way})
        add_executable(${target} ${source})
        target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
        target_compile_features(${target} PRIVATE cxx_std_17)
        target_compile_options(${target} PRIVATE ${user_warnings} -Wno-pedantic
            $<$<COMPILE_LANG_AND_ID:C,GNU>:-Wno-use-after-free>
            $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fsized-deallocation>
            $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-sized-deallocation> -fno-builtin)
        target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
        sy_test(malloc.${name}.${way} malloc 120 1 $<TARGET_FILE:${target}>)
    endforeach()
    set_property(TEST malloc.${name}.preloaded APPEND PROPERTY ENVIRONMENT
        LD_PRELOAD=$<TARGET_FILE:slabyard_malloc>)
    target_link_libraries(${name}_linked PRIVATE slabyard_malloc)
    foreach(way object static)
        target_sources(${name}_${way} PRIVATE ${SLABYARD_MALLOC_OBJECT})
        add_dependencies(${name}_${way} slabyard_malloc_object)
    endforeach()
    target_link_options(${name}_static PRIVATE -static)
    target_compile_definitions(${name}_object PRIVATE LINKED_WITH_OBJECT)
    target_compile_definitions(${name}_static PRIVATE LINKED_STATICALLY)
endforeach()
foreach(way preloaded linked object)
    sy_test(malloc.plugin.${way} malloc 120 2
        $<TARGET_FILE:malloc_life_${way}> $<TARGET_FILE:malloc_plugin>)
    set_tests_properties(malloc.plugin.${way} PROPERTIES
        PASS_REGULAR_EXPRESSION "the last destructor has run")
endforeach()
set_property(TEST malloc.plugin.preloaded APPEND PROPERTY ENVIRONMENT
    LD_PRELOAD=$<TARGET_FILE:slabyard_malloc>)
# Exceptions and ends of threads pass through the drop-in malloc, which has an unwinder of its own.
add_executable(malloc_callbacks ${CMAKE_CURRENT_SOURCE_DIR}/cpp/cpp_callbacks.cpp)
add_executable(malloc_ends ${CMAKE_CURRENT_LIST_DIR}/ends.c)
foreach(name callbacks ends)
    target_compile_features(malloc_${name} PRIVATE cxx_std_17)
    target_include_directories(malloc_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_options(malloc_${name} PRIVATE ${user_warnings} -Wno-pedantic)
    target_link_libraries(malloc_${name} PRIVATE slabyard_malloc Threads::Threads ${CMAKE_DL_LIBS})
    sy_test(malloc.${name} malloc 120 1 $<TARGET_FILE:malloc_${name}>)
endforeach()
set_property(TEST malloc.callbacks malloc.ends APPEND PROPERTY ENVIRONMENT
    SLABYARD=tools=off,sample=off)
# The same programs with checks.
foreach(name malloc_names malloc_jemalloc malloc_life malloc_signals malloc_operators malloc_replaced)
    sy_test(malloc.${name}.checked malloc 300 1 $<TARGET_FILE:${name}_preloaded>)
    set_property(TEST malloc.${name}.checked APPEND PROPERTY ENVIRONMENT
        LD_PRELOAD=$<TARGET_FILE:slabyard_malloc>
        SLABYARD=tools=off,check,redzone$<$<NOT:$<STREQUAL:${name},malloc_life>>:,poison,quarantine>)
endforeach()
# The same programs with each allocation of up to one page guarded.
foreach(name malloc_names malloc_jemalloc malloc_life malloc_signals malloc_operators malloc_replaced)
    sy_test(malloc.${name}.sampled malloc 300 1 $<TARGET_FILE:${name}_preloaded>)
    set_property(TEST malloc.${name}.sampled APPEND PROPERTY ENVIRONMENT
        LD_PRELOAD=$<TARGET_FILE:slabyard_malloc>
        SLABYARD=tools=off,sample=all,guard-slots=65536)
endforeach()
# The workloads of `make bench ARGS=programs`, with little work. They check their blocks.
file(GLOB sources CONFIGURE_DEPENDS ${root}/rust/bench/programs/*.c)
list(FILTER sources EXCLUDE REGEX "/(start|small)\\.c$")
if(CMAKE_SIZEOF_VOID_P EQUAL 4) # they are written for 64 bits
    set(sources)
endif()
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(workload_${name} ${source})
    target_compile_options(workload_${name} PRIVATE ${user_warnings} -Wno-pedantic)
    target_link_libraries(workload_${name} PRIVATE Threads::Threads)
    foreach(way plain checked)
        sy_test(malloc.workload.${name}.${way} malloc 120 2 $<TARGET_FILE:workload_${name}> 2)
        set_property(TEST malloc.workload.${name}.${way} APPEND PROPERTY ENVIRONMENT
            LD_PRELOAD=$<TARGET_FILE:slabyard_malloc>
            SLABYARD=tools=off$<$<STREQUAL:${way},checked>:,check,redzone,poison>)
    endforeach()
endforeach()
# The mistakes that are noticed are those that docs/malloc.md lists.
add_executable(malloc_mistakes ${CMAKE_CURRENT_LIST_DIR}/mistakes.cpp)
target_compile_features(malloc_mistakes PRIVATE cxx_std_17)
target_compile_options(malloc_mistakes PRIVATE -fno-builtin -w
    $<$<CXX_COMPILER_ID:Clang>:-fsized-deallocation>)
sy_test(malloc.mistakes malloc 300 1 ${CMAKE_CURRENT_LIST_DIR}/mistakes.py
    $<TARGET_FILE:malloc_mistakes> $<TARGET_FILE:slabyard_malloc>)
sy_test(malloc.sampled malloc 120 1 ${CMAKE_CURRENT_LIST_DIR}/sampled.sh
    $<TARGET_FILE:slabyard_malloc>)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64") # elsewhere, stacks are taken at once
    sy_test(malloc.stacks malloc 300 1 ${CMAKE_CURRENT_LIST_DIR}/stacks.sh
        $<TARGET_FILE:slabyard_malloc>)
endif()
sy_test(malloc.profiled malloc 120 1 ${CMAKE_CURRENT_LIST_DIR}/profiled.sh
    $<TARGET_FILE:slabyard_malloc>)
sy_test(malloc.asked malloc 120 1 ${CMAKE_CURRENT_LIST_DIR}/asked.sh
    $<TARGET_FILE:slabyard_malloc>)
# The library's file in memory, in KiB: 12 pages of symbols and constants, 16 of code, 4 of data, and
# 4 more for what comes. The lists in first.ld are for optimized code: other builds may have all, and
# some pages of variables more. So does clang, one page.
set(file_kib 999)
set(more_kib 16)
if(SLABYARD_CAN_ORDER AND CMAKE_BUILD_TYPE STREQUAL Release AND NOT SLABYARD_DEBUG)
    set(file_kib 144)
    set(more_kib 0)
    if(CMAKE_C_COMPILER_ID MATCHES Clang)
        set(more_kib 4)
    endif()
endif()
sy_test(malloc.small malloc 120 1 ${CMAKE_CURRENT_LIST_DIR}/small.sh
    $<TARGET_FILE:slabyard_malloc> ${file_kib} ${more_kib})
set_tests_properties(malloc.small PROPERTIES SKIP_RETURN_CODE 77)
sy_test(malloc.programs malloc 300 1 ${CMAKE_CURRENT_LIST_DIR}/programs.sh
    $<TARGET_FILE:slabyard_malloc>)
sy_test(malloc.programs_run malloc 600 1 ${CMAKE_CURRENT_LIST_DIR}/programs_run.sh
    $<TARGET_FILE:slabyard_malloc>)
sy_test(malloc.process malloc 120 1 ${CMAKE_CURRENT_LIST_DIR}/process.sh
    $<TARGET_FILE:slabyard_malloc> $<TARGET_FILE:malloc_life_preloaded>)
sy_test(malloc.loaded malloc 120 1 ${CMAKE_CURRENT_LIST_DIR}/loaded.sh
    $<TARGET_FILE:slabyard_malloc>)
sy_test(malloc.messages malloc 60 1 ${CMAKE_CURRENT_LIST_DIR}/messages.sh
    $<TARGET_FILE:slabyard_malloc>)
add_executable(malloc_swing ${CMAKE_CURRENT_LIST_DIR}/swing.c)
target_compile_options(malloc_swing PRIVATE ${user_warnings} -fno-builtin)
target_link_libraries(malloc_swing PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
sy_test(malloc.limited malloc 300 2 ${CMAKE_CURRENT_LIST_DIR}/limited.sh
    $<TARGET_FILE:slabyard_malloc> $<TARGET_FILE:malloc_swing>)
set_tests_properties(malloc.limited PROPERTIES SKIP_RETURN_CODE 77)
add_executable(malloc_scopes ${CMAKE_CURRENT_LIST_DIR}/scopes.c)
target_compile_options(malloc_scopes PRIVATE ${user_warnings} -fno-builtin)
target_include_directories(malloc_scopes PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(malloc_scopes PRIVATE slabyard_malloc Threads::Threads)
sy_test(malloc.scopes malloc 60 1 $<TARGET_FILE:malloc_scopes>)
