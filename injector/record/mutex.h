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

/// Holds a mutex. The thread takes no signal and no cancellation meanwhile: a handler of the job may leave by exit or
/// by longjmp, and would leave the mutex locked behind it.
class Lock {
  public:
    explicit Lock(Mutex& mutex) noexcept : m_mutex(mutex) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &m_cancelState);
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &m_signals);
        m_mutex.lock();
    }
    ~Lock() {
        m_mutex.unlock();
        pthread_sigmask(SIG_SETMASK, &m_signals, nullptr);
        pthread_setcancelstate(m_cancelState, nullptr);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    Mutex& m_mutex;
    sigset_t m_signals;
    int m_cancelState = 0;
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
