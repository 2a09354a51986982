# fourfold_embed(<output> <file>...): makes <output>, which defines embedded_files()
# (embedded.hpp) with the files' bytes, and makes it again when one of them changes. File names are
# relative to the calling directory. The same script, run with cmake -P, does the work at build time.

if(CMAKE_SCRIPT_MODE_FILE)
  # Bytes, not string literals: no length limit, no delimiter that a text could contain.
  string(REPLACE "|" ";" files "${FILES}")
  list(SORT files)
  set(arrays "")
  set(rows "")
  set(index 0)
  foreach(path IN LISTS files)
    file(READ "${FOLDER}/${path}" bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND arrays
           "// ${path}\nconstexpr char file_${index}[] = {\n${bytes}'\\0'};\n")
    string(APPEND rows
           "    {\"${path}\", {file_${index}, sizeof(file_${index}) - 1}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(WRITE "${OUTPUT}" "// Made by embed.cmake from the YAML files in scenarios/.
#include \"scenarios/embedded.hpp\"

namespace fourfold {
namespace {

${arrays}
constexpr EmbeddedFile files[] = {
${rows}};

}  // namespace

std::span<const EmbeddedFile> embedded_files() { return files; }

}  // namespace fourfold
")
  return()
endif()

set(fourfold_embed_script ${CMAKE_CURRENT_LIST_FILE})

function(fourfold_embed output)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE inputs)
  list(JOIN ARGN "|" files)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}
            "-DFILES=${files}" -P ${fourfold_embed_script}
    DEPENDS ${inputs} ${fourfold_embed_script}
    COMMENT "Embedding the catalog"
    VERBATIM)
endfunction()
