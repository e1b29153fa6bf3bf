// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/bootstrap.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/link/fabric/settings.hpp"
#include "rmem/ring/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rmem::fabric {

namespace {

constexpr const char* kFirstLine = "rmem fabric 1";
constexpr std::size_t kMaxFileBytes = 1024;

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::optional<std::string> content_of(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat facts {};
    if (file.get() < 0 || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
        return std::nullopt;
    std::array<char, kMaxFileBytes> content{};
    const ssize_t size = ::read(file.get(), content.data(), content.size());
    if (size <= 0) return std::nullopt;
    return std::string(content.data(), static_cast<std::size_t>(size));
}

}  // namespace

Bootstrap::Bootstrap(std::string directory, std::string ring, std::string provider)
    : directory_(std::move(directory)), ring_(std::move(ring)), provider_(std::move(provider)) {}

std::string Bootstrap::path_of(unsigned node) const {
    return fmt::format("{}/{}.node-{}", directory_, ring_, node);
}

std::string Bootstrap::text_of(const Name& name) const {
    std::string hex;
    for (const std::byte byte : name) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return fmt::format("{}\nprovider {}\nname {}\n", kFirstLine, provider_, hex);
}

void Bootstrap::publish(unsigned node, const Name& name) {
    const std::string aside = fmt::format("{}.{}", path_of(node), ::getpid());
    const std::string text = text_of(name);
    const Descriptor file(
        ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
    const bool is_written =
        file.get() >= 0 &&
        ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        ::rename(aside.c_str(), path_of(node).c_str()) == 0;
    if (is_written) return;
    const int error = errno;
    ::unlink(aside.c_str());
    throw Error(Errc::bad_environment,
                fmt::format("RMEM_GROUP is the directory '{}': node {}'s address cannot be written "
                            "there ({}); give one that all nodes can write to",
                            directory_, node, std::strerror(error)));
}

bool Bootstrap::is_published(unsigned node, const Name& name) const {
    return content_of(path_of(node)) == text_of(name);
}

void Bootstrap::withdraw(unsigned node, const Name& name) noexcept {
    try {
        if (is_published(node, name)) ::unlink(path_of(node).c_str());
    } catch (const std::exception&) {  // no memory: an old name stays, which disturbs nobody
    }
}

void Bootstrap::forget(const std::string& segment) noexcept {
    try {
        const std::size_t at = segment.rfind('@');
        if (at == std::string::npos || segment.find('/') != std::string::npos) return;
        const char* const group = environment_variable("RMEM_GROUP");
        const auto place = group == nullptr || *group == '\0'
                               ? fmt::format("{}{}", kOwnDirectory, ::getuid())
                               : std::string(group);
        const auto path =
            fmt::format("{}/{}.node-{}", place, segment.substr(0, at), segment.substr(at + 1));
        if (content_of(path).value_or("").starts_with(kFirstLine)) ::unlink(path.c_str());
    } catch (const std::exception&) {  // no memory: as above
    }
}

std::optional<Bootstrap::Name> Bootstrap::find(unsigned node) const {
    const auto text = content_of(path_of(node));
    const std::string before = fmt::format("{}\nprovider {}\nname ", kFirstLine, provider_);
    if (!text || !text->starts_with(before) || !text->ends_with('\n')) return std::nullopt;
    const std::string hex = text->substr(before.size(), text->size() - before.size() - 1);
    if (hex.empty() || hex.size() % 2 != 0 || hex.size() > 2 * kMaxProviderNameBytes)
        return std::nullopt;
    Name name;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        const int high = digit_of(hex[i]), low = digit_of(hex[i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        name.push_back(static_cast<std::byte>(high * 16 + low));
    }
    return name;
}

}  // namespace rmem::fabric
