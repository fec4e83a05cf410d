# Functions that run during an installation (cmake/install.cmake): they build the man pages, write
# the manifest, which scripts/uninstall reads, and print where the files were installed.
#
# Each line of the manifest is a path: an installed file, or, with a slash at the end, a folder that
# did not exist before. Paths are relative to the prefix, so the manifest stays valid if the prefix
# is moved. The lines of an earlier manifest are kept, so scripts/uninstall also removes the files
# of earlier versions.
cmake_minimum_required(VERSION 3.21)

# slabyard_begin_manifest(folder...): stores which of these folders and of their parents do not
# exist yet.
function(slabyard_begin_manifest)
    set(absent)
    foreach(folder IN LISTS ARGN)
        while(folder)
            if(NOT EXISTS "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${folder}")
                list(APPEND absent "${folder}/")
            endif()
            list(APPEND known "${folder}")
            cmake_path(GET folder PARENT_PATH folder)
        endwhile()
    endforeach()
    set(SLABYARD_ABSENT_FOLDERS "${absent}" PARENT_SCOPE)
    set(SLABYARD_KNOWN_FOLDERS "${known}" PARENT_SCOPE)
endfunction()

# Writes the manifest, after all files were installed.
function(slabyard_end_manifest manifest)
    set(lines ${SLABYARD_ABSENT_FOLDERS})
    set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${manifest}")
    if(EXISTS "${file}")
        file(STRINGS "${file}" earlier)
        list(APPEND lines ${earlier})
    endif()
    foreach(path IN LISTS CMAKE_INSTALL_MANIFEST_FILES ITEMS "${CMAKE_INSTALL_PREFIX}/${manifest}")
        cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
        list(APPEND lines "${path}")
        # Folders below those given to slabyard_begin_manifest belong to Slabyard, so they are
        # listed.
        cmake_path(GET path PARENT_PATH path)
        while(path AND NOT path IN_LIST SLABYARD_KNOWN_FOLDERS)
            list(APPEND lines "${path}/")
            cmake_path(GET path PARENT_PATH path)
        endwhile()
    endforeach()
    list(REMOVE_DUPLICATES lines)
    list(SORT lines)
    list(JOIN lines "\n" text)
    file(WRITE "${file}" "${text}\n")
endfunction()

# Builds the man pages of a checkout in the folder `manual`, if Sphinx is installed.
function(slabyard_make_manual source manual)
    execute_process(COMMAND ${source}/scripts/site man ${manual}
        RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(result EQUAL 3)
        file(REMOVE_RECURSE ${manual})
    elseif(NOT result EQUAL 0)
        message(FATAL_ERROR "The man pages cannot be built: ${said}")
    endif()
    set(SLABYARD_MANUAL_RESULT ${result} PARENT_SCOPE)
endfunction()

function(slabyard_say_installed version include lib man doc)
    set(pages "a page for each function (man sy_cache_alloc)")
    if(SLABYARD_MANUAL_RESULT EQUAL 3)
        set(pages "no man pages, because Sphinx is not installed: run make manual, then install again")
    endif()
    set(place "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
    set(hints "")
    if(NOT "$ENV{DESTDIR}" STREQUAL "")
        # A package: its own scripts do what follows.
    elseif(CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$")
        set(hints "Before you start programs that link a shared library: run ldconfig\n")
    else()
        string(JOIN "\n" hints
            "For pkg-config: export PKG_CONFIG_PATH=${place}/${lib}/pkgconfig"
            "For programs that link a shared library: link them with -Wl,-rpath,${place}/${lib}"
            "")
    endif()
    string(JOIN "\n" text
        "Slabyard ${version} is installed in ${place}:"
        "  ${include}/slabyard: headers"
        "  ${lib}: libraries, shared and static; packages for pkg-config and CMake"
        "  ${man}: ${pages}"
        "  ${doc}: licence, guides, examples"
        "${hints}How to link: ${place}/${doc}/docs/install.md. How to remove it: make uninstall with the same PREFIX.")
    execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${text}")
endfunction()
