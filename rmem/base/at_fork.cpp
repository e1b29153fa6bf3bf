// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/at_fork.hpp"

#include <pthread.h>

#include <mutex>
#include <vector>

namespace rmem {

namespace {

/// Leaked on purpose, since fork handlers may run during exit.
struct AtForkList {
    std::mutex mutex;
    std::vector<AtFork*> members;

    static AtForkList& get() {
        static AtForkList* list = [] {
            auto* made = new AtForkList;
            ::pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                             [] {
                                 for (AtFork* member : get().members) member->in_child();
                                 get().mutex.unlock();
                             });
            return made;
        }();
        return *list;
    }
};

}  // namespace

AtFork::AtFork() {
    AtForkList& list = AtForkList::get();
    const std::lock_guard lock(list.mutex);
    list.members.push_back(this);
}

AtFork::~AtFork() {
    AtForkList& list = AtForkList::get();
    const std::lock_guard lock(list.mutex);
    std::erase(list.members, this);
}

}  // namespace rmem
