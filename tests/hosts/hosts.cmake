# Tests of the library as a guest in unusual processes ("hosts"): small stacks, sandboxes, limits,
# signals, cancelled threads. Each host_*.c is an ordinary program, which knows nothing of Slabyard.
# It is built and run twice: with the drop-in malloc preloaded, and linked statically with the object
# slabyard-malloc.o. A program whose name ends with _dynamic is not linked statically. Each
# library_*.c uses the public interface, and is linked with the static library. Exit status 77: this
# machine or this kernel cannot be the host.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/host_*.c ${CMAKE_CURRENT_LIST_DIR}/library_*.c)
foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set(ways preloaded static)
    if(name MATCHES "^library_")
        set(ways library)
    elseif(name MATCHES "_dynamic$")
        set(ways preloaded)
    endif()
    string(REGEX REPLACE "^host_" "" entry ${name})
    foreach(way ${ways})
        set(target hosts_${name}_${way})
        add_executable(${target} ${source})
        target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
        target_compile_options(${target} PRIVATE ${user_warnings} -Wno-pedantic -fno-builtin
            $<$<COMPILE_LANG_AND_ID:C,GNU>:-Wno-use-after-free>)
        target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
        if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT SLABYARD_DEBUG)
            target_compile_definitions(${target} PRIVATE HOSTS_OPTIMISED)
        endif()
        sy_test(hosts.${entry}.${way} hosts 120 2 $<TARGET_FILE:${target}>)
        set_tests_properties(hosts.${entry}.${way} PROPERTIES SKIP_RETURN_CODE 77)
        if(way STREQUAL library)
            target_link_libraries(${target} PRIVATE slabyard_static)
        elseif(way STREQUAL preloaded)
            set_property(TEST hosts.${entry}.${way} APPEND PROPERTY ENVIRONMENT
                LD_PRELOAD=$<TARGET_FILE:slabyard_malloc>)
            add_dependencies(${target} slabyard_malloc)
        else()
            target_sources(${target} PRIVATE ${SLABYARD_MALLOC_OBJECT})
            add_dependencies(${target} slabyard_malloc_object)
            target_link_options(${target} PRIVATE -static)
            target_compile_definitions(${target} PRIVATE LINKED_STATICALLY)
        endif()
    endforeach()
endforeach()

# hosts_program(name): compiles a program that a test below runs with arguments.
function(hosts_program name)
    add_executable(hosts_${name} ${CMAKE_CURRENT_SOURCE_DIR}/hosts/${name}.c)
    target_include_directories(hosts_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_options(hosts_${name} PRIVATE ${user_warnings} -Wno-pedantic)
    target_link_libraries(hosts_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# A host that closes its plug-in while threads use it. The plug-in is linked with the static library.
# tests/install/rust.sh runs the host with plug-ins in Rust.
add_library(hosts_plugin MODULE ${root}/tests/install/plugin.c)
target_link_libraries(hosts_plugin PRIVATE slabyard_static)
target_link_options(hosts_plugin PRIVATE -Wl,--exclude-libs,ALL)
hosts_program(closes)
add_dependencies(hosts_closes hosts_plugin)
sy_test(hosts.closes hosts 120 2 $<TARGET_FILE:hosts_closes> $<TARGET_FILE:hosts_plugin>)

# A program under a debugger, strace and Valgrind.
hosts_program(debugged)
add_dependencies(hosts_debugged slabyard_malloc)
sy_test(hosts.debugged hosts 300 2 ${CMAKE_CURRENT_LIST_DIR}/debugged.sh
    $<TARGET_FILE:hosts_debugged> $<TARGET_FILE:slabyard_malloc>)
set_tests_properties(hosts.debugged PROPERTIES SKIP_RETURN_CODE 77)

# A program that loads libraries, and is audited.
foreach(name loaded loaded_static auditor)
    add_library(hosts_${name} MODULE ${CMAKE_CURRENT_LIST_DIR}/loaded.c)
    target_compile_options(hosts_${name} PRIVATE ${user_warnings} -Wno-pedantic -fno-builtin)
endforeach()
target_compile_definitions(hosts_auditor PRIVATE AUDITS)
target_compile_definitions(hosts_loaded_static PRIVATE IN_STATIC_BLOCK)
hosts_program(loads)
add_dependencies(hosts_loads hosts_loaded hosts_loaded_static hosts_auditor slabyard_malloc)
sy_test(hosts.loads hosts 120 2 $<TARGET_FILE:hosts_loads> $<TARGET_FILE:hosts_loaded>
    $<TARGET_FILE:hosts_loaded_static> $<TARGET_FILE:hosts_auditor>)
set_property(TEST hosts.loads APPEND PROPERTY ENVIRONMENT
    LD_PRELOAD=$<TARGET_FILE:slabyard_malloc>)
