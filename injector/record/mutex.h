// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace rankscope::injector {

/// A mutex that a forked child can make new. Not for the hot path.
class Mutex {
  public:
    constexpr Mutex() = default;
    void lock() noexcept { pthread_mutex_lock(&m_mutex); }
    bool tryLock() noexcept { return pthread_mutex_trylock(&m_mutex) == 0; }
    void unlock() noexcept { pthread_mutex_unlock(&m_mutex); }
    /// In a forked child, where the owner may be a thread that no longer exists.
    void renew() noexcept { m_mutex = PTHREAD_MUTEX_INITIALIZER; }

  private:
    pthread_mutex_t m_mutex = PTHREAD_MUTEX_INITIALIZER;
};

/// While it lives the thread takes no signal and no cancellation: a handler of the job may leave by exit or by longjmp,
/// or come here once more. (sigprocmask is the calling thread's alone in Linux, and of libc in every version.)
class Undisturbed {
  public:
    Undisturbed() noexcept {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &m_cancelState);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &m_signals);
    }
    ~Undisturbed() {
        sigprocmask(SIG_SETMASK, &m_signals, nullptr);
        pthread_setcancelstate(m_cancelState, nullptr);
    }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

  private:
    sigset_t m_signals;
    int m_cancelState = 0;
};

/// Holds a mutex, undisturbed: who leaves in the middle would leave it locked behind.
class Lock {
  public:
    explicit Lock(Mutex& mutex) noexcept : m_mutex(mutex) { m_mutex.lock(); }
    ~Lock() { m_mutex.unlock(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    Undisturbed m_undisturbed;  // begins before the mutex is locked, and ends behind it
    Mutex& m_mutex;
};

/// Takes back the SIGXFSZ that a write of ours over the job's file size limit has raised. Inside a Lock, where it is
/// blocked.
inline void discardFileSizeSignal() noexcept {
    sigset_t signal;
    sigemptyset(&signal);
    sigaddset(&signal, SIGXFSZ);
    const timespec now{0, 0};
    const int error = errno;
    sigtimedwait(&signal, nullptr, &now);
    errno = error;
}

}  // namespace rankscope::injector
