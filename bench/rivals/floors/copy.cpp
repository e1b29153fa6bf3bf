// SPDX-License-Identifier: Apache-2.0
//
// memcpy of one process, from memory and to memory that it has used just now: in `stream` and
// `window`, what a message's bytes take when nobody else has to see them.
#include "../method.hpp"

namespace {

using namespace rivals;

class CopyChannel {
public:
    CopyChannel(int rank, Meeting& meeting) : rank_(rank), meeting_(meeting), copy_(most_bytes) {}

    void send(const void* data, std::size_t size) {
        std::memcpy(copy_.data(), data, size);
        asm volatile("" : : "r"(copy_.data()) : "memory");  // it is used
    }
    void receive(void*, std::size_t) {}

    void share(void* data, std::size_t size) {
        const std::string theirs =
            meeting_.exchange(rank_, std::string(static_cast<const char*>(data), size));
        if (rank_ == 1) std::memcpy(data, theirs.data(), size);
    }

private:
    int rank_;
    Meeting& meeting_;
    std::vector<std::byte> copy_;
};

}  // namespace

int main(int argc, char** argv) {
    return guarded("copy", [&] {
        const Options options = parse_options(argc, argv, "memcpy of one process");
        const System system{"copy", "1"};
        return measure_pair(system, options,
                            [](int rank, Meeting& meeting) { return CopyChannel(rank, meeting); });
    });
}
