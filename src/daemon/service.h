/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the service manager (systemd, or who speaks as it does) how we are: a datagram to the socket that it named. */
#ifndef HK_DAEMON_SERVICE_H
#define HK_DAEMON_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>

struct hk_service {
    int fd; /* -1 = nobody wants to know */
};

/* `where`: NOTIFY_SOCKET, a path or @ and an abstract name; NULL or "" is nobody. HK_INVALID for anything else. */
enum hk_code hk_service_open(struct hk_service *service, const char *where, struct hk_err *err) HK_MUSTCHECK;
void hk_service_close(struct hk_service *service);
/* Lines of NAME=VALUE. Never blocks; what cannot be sent is lost. */
void hk_service_tell(struct hk_service *service, const char *state);
/* WATCHDOG_USEC and WATCHDOG_PID as milliseconds; 0 = nobody watches us. */
uint64_t hk_service_watchdog_ms(const char *usec, const char *pid, int64_t own_pid);

#endif
