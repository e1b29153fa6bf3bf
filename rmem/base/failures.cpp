// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/failures.hpp"

#include "rmem/base/kept_sentence.hpp"
#include "rmem/base/process_state.hpp"

#include <fmt/format.h>

#include <utility>

namespace rmem {

namespace {

thread_local KeptSentence sentence_of_last_failure;

void exchange_sentence(KeptSentence& sentence) noexcept {
    std::swap(sentence_of_last_failure, sentence);
}

[[maybe_unused]] const bool registered = sim::exchanges_by<KeptSentence, exchange_sentence>();

}  // namespace

int fail(int code, std::string_view sentence) {
    sentence_of_last_failure.keep(sentence);
    return code;
}

const char* last_error() noexcept {
    return sentence_of_last_failure.c_str();
}

int no_node() {
    return fail(RMEM_EINVAL, "the node is a null pointer; give one that rmem_open has stored");
}

int no_place(const char* what) {
    return fail(RMEM_EINVAL,
                fmt::format("the place for {} is a null pointer; give an address", what));
}

const char* meaning_of(int code) noexcept {
    switch (code) {
        case RMEM_OK: return "success";
        case RMEM_EAGAIN: return "would have to wait";
        case RMEM_EINVAL: return "an invalid argument or setting";
        case RMEM_ERANK: return "no such rank or node";
        case RMEM_ESIZE: return "larger than the buffer, or too large to send";
        case RMEM_EPEER: return "a rank that the call needs is dead or has left";
        case RMEM_ETIMEDOUT: return "the deadline passed";
        case RMEM_ENOMEM: return "out of memory";
        case RMEM_ESYS: return "the system refused";
        case RMEM_ECORRUPT: return "shared memory holds values that no rank of this library writes";
        case RMEM_EVERSION: return "a ring of another version or layout";
        case RMEM_EBUSY: return "a live process has claimed this rank";
        default: return code > 0 ? "success" : "not a code of this library";
    }
}

int code_of(Errc error) noexcept {
    switch (error) {
        case Errc::bad_rank: return RMEM_ERANK;
        case Errc::version_mismatch: return RMEM_EVERSION;
        case Errc::foreign_segment: return RMEM_ECORRUPT;
        case Errc::no_space: return RMEM_ENOMEM;
        case Errc::rank_taken: return RMEM_EBUSY;
        case Errc::timed_out: return RMEM_ETIMEDOUT;
        case Errc::not_permitted:
        case Errc::no_such_ring:
        case Errc::no_fabric:
        case Errc::bad_recording:  // no C call reads one
        case Errc::system: return RMEM_ESYS;
        case Errc::invalid_argument:
        case Errc::bad_environment:
        case Errc::bad_size:
        case Errc::bad_node_count:
        case Errc::bad_profile:
        case Errc::bad_fault:
        case Errc::bad_key:
        case Errc::bad_map:
        case Errc::unknown_link:
        case Errc::config_mismatch: return RMEM_EINVAL;
    }
    return RMEM_ESYS;
}

int failed_with(std::exception_ptr thrown) noexcept {
    try {
        std::rethrow_exception(std::move(thrown));
    } catch (const Error& e) {
        return fail(code_of(e.code()), e.what());
    } catch (const std::bad_alloc&) {
        return fail(RMEM_ENOMEM, "out of private memory");
    } catch (const std::exception& e) {
        return fail(RMEM_ESYS, e.what());
    } catch (...) {
        return fail(RMEM_ESYS, "a callback has thrown something that is no exception");
    }
}

}  // namespace rmem
