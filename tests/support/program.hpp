#pragma once

// Runs the built program as a user does.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace fourfold {

/// A folder of this process's own that goes with it.
class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "fourfold-XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] std::string file(const std::string& name) const {
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

inline std::string read_text(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::string& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
}

struct Finished {
    int exit_code;
    std::string out, err;
};

/// `arguments` as in a shell, from the project's root.
inline Finished run_program(const std::string& arguments) {
    const Folder folder;
    const std::string command = "cd '" FOURFOLD_SOURCE_DIR "' && '" FOURFOLD_BINARY "' " +
                                arguments + " >'" + folder.file("out") + "' 2>'" +
                                folder.file("err") + "' </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder.file("out")),
            read_text(folder.file("err"))};
}

}  // namespace fourfold
