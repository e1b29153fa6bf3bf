// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/provider.hpp"

#include "rmem/link/fabric/kept_signals.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>

namespace rmem::fabric {

namespace {

/// Ours, by which MPI reaches a ring: a ring is not carried by itself.
constexpr const char* kOwnProvider = "bbp";

std::string text(const char* name) {
    return name == nullptr ? "" : name;
}

bool is_internet(const fi_info& info) {
    return info.addr_format == FI_SOCKADDR_IN && info.src_addr != nullptr &&
           info.src_addrlen >= sizeof(sockaddr_in);
}

udp::Ip ip_of(const fi_info& info) {
    sockaddr_in address{};
    std::memcpy(&address, info.src_addr, sizeof address);
    return ntohl(address.sin_addr.s_addr);
}

/// `is_wish`: with what a ring needs; else all endpoints without a connection, to say what they
/// lack.
Info hints_for(const std::string& provider, bool is_wish) {
    Info hints(library().dupinfo(nullptr));
    if (!hints) throw std::bad_alloc();
    hints->ep_attr->type = FI_EP_RDM;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    if (!provider.empty()) hints->fabric_attr->prov_name = ::strdup(provider.c_str());
    if (!is_wish) return hints;
    hints->caps = FI_MSG | FI_MULTI_RECV;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = FI_AV_TABLE;
    return hints;
}

/// Null if there is none.
Info ask(const fi_info* hints, const char* node, const char* service) {
    const KeptSignals kept;
    fi_info* found = nullptr;
    const bool is_given = node != nullptr;
    const int error =
        library().getinfo(kApi, node, service, is_given ? FI_SOURCE : 0, hints, &found);
    return Info(error == 0 ? found : nullptr);
}

/// Of a list the first that fits, alone; of a way over TCP the preferred one that fits. Null: none.
Info first(const fi_info* list, const std::function<bool(const fi_info&)>& fits) {
    const auto find = [&](const std::string& provider) -> const fi_info* {
        for (; list != nullptr; list = list->next) {
            const std::string its = text(list->fabric_attr->prov_name);
            if (its != kOwnProvider && (provider.empty() || its == provider) && fits(*list))
                return list;
        }
        return nullptr;
    };
    const fi_info* chosen = find("");
    if (chosen == nullptr) return nullptr;
    if (is_over_tcp(text(chosen->fabric_attr->prov_name))) {
        const fi_info* const preferred = find(kOverTcp.front());
        if (preferred != nullptr) chosen = preferred;
    }
    Info one(library().dupinfo(chosen));
    if (!one) throw std::bad_alloc();
    return one;
}

std::vector<std::string> names_here() {
    std::vector<std::string> names;
    for (const Offer& offer : offers()) {
        if (offer.lack.empty() && std::count(names.begin(), names.end(), offer.provider) == 0)
            names.push_back(offer.provider);
    }
    return names;
}

[[noreturn]] void refuse(const Settings& settings, const std::string& where) {
    const std::string asked =
        settings.provider.empty()
            ? "libfabric has no provider"
            : fmt::format("RMEM_PROVIDER is '{}': there is none", settings.provider);
    std::string lack;
    for (const Offer& offer : offers(settings.provider)) {
        if (!settings.provider.empty() && !offer.lack.empty())
            lack = fmt::format(" ({} has {})", offer.provider, offer.lack);
    }
    const auto names = names_here();
    throw Error(Errc::no_fabric,
                fmt::format("{} that can carry a ring {}{}; this host has: {}", asked, where, lack,
                            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace

bool is_over_tcp(std::string_view provider) noexcept {
    return std::any_of(kOverTcp.begin(), kOverTcp.end(),
                       [&](std::string_view way) { return provider.starts_with(way); });
}

std::string lack_of(const fi_info& info) {
    if (info.ep_attr->type != FI_EP_RDM) return "no endpoints that reach all nodes (RDM)";
    if ((info.caps & FI_MSG) == 0) return "no messages";
    if ((info.tx_attr->msg_order & FI_ORDER_SAS) == 0 ||
        (info.rx_attr->msg_order & FI_ORDER_SAS) == 0)
        return "no order between the messages of one node (FI_ORDER_SAS)";
    if ((info.caps & FI_MULTI_RECV) == 0) return "no buffers for several messages (FI_MULTI_RECV)";
    if (info.domain_attr->resource_mgmt == FI_RM_DISABLED)
        return "no care for full queues (FI_RM_ENABLED)";
    return "";
}

Info choose_provider(const Settings& settings, unsigned node) {
    const Info hints = hints_for(settings.provider, true);
    if (!settings.nodes.empty()) {
        const udp::Address& own = settings.nodes.at(node);
        hints->addr_format = FI_SOCKADDR_IN;
        const std::string where =
            fmt::format("at {}, node {}'s address in RMEM_GROUP", udp::to_text(own), node);
        const Info found =
            ask(hints.get(), udp::to_text(own.ip).c_str(), fmt::format("{}", own.port).c_str());
        if (auto chosen = first(found.get(), is_internet)) return chosen;
        refuse(settings, where);
    }
    const Info found = ask(hints.get(), nullptr, nullptr);
    auto chosen = first(found.get(), [&](const fi_info& one) {
        // It reaches no other host: only where it is asked for by name.
        if (text(one.fabric_attr->prov_name) == "shm" && settings.provider.empty()) return false;
        return settings.interface.empty() || one.src_addr == nullptr ||
               one.addr_format == FI_ADDR_STR ||
               (is_internet(one) &&
                udp::is_named(text(one.domain_attr->name), ip_of(one), settings.interface));
    });
    if (chosen) return chosen;
    refuse(settings, settings.interface.empty()
                         ? std::string("here")
                         : fmt::format("on '{}' (RMEM_INTERFACE)", settings.interface));
}

std::vector<Offer> offers(const std::string& provider) {
    std::vector<Offer> all;
    const Info hints = hints_for(provider, false);
    const Info found = ask(hints.get(), nullptr, nullptr);
    for (const fi_info* one = found.get(); one != nullptr; one = one->next) {
        Offer offer{text(one->fabric_attr->prov_name), text(one->fabric_attr->name),
                    text(one->domain_attr->name), lack_of(*one), one->tx_attr->inject_size};
        const bool is_known = std::any_of(all.begin(), all.end(), [&](const Offer& other) {
            return other.provider == offer.provider && other.fabric == offer.fabric &&
                   other.domain == offer.domain;
        });
        if (!is_known && offer.provider != kOwnProvider) all.push_back(std::move(offer));
    }
    return all;
}

}  // namespace rmem::fabric
