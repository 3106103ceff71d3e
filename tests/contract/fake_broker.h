/* SPDX-License-Identifier: Apache-2.0 */
/* A broker for tests: it takes connections on a loopback port and gives each to a function on a thread of its own. */
#ifndef HK_TESTS_FAKE_BROKER_H
#define HK_TESTS_FAKE_BROKER_H

#include <stdbool.h>
#include <stddef.h>

struct fake_broker;

/* Serves one connection: reads and writes, and returns when it is over. */
typedef void fake_serve_fn(int fd, void *arg);

struct fake_broker *fake_broker_start(fake_serve_fn *serve, void *arg);
void fake_broker_stop(struct fake_broker *broker); /* ends all connections, waits for their threads */
int fake_broker_port(const struct fake_broker *broker);
unsigned fake_broker_connections(struct fake_broker *broker); /* so far */

/* False: the other side is gone. */
bool fake_read(int fd, void *room, size_t len);
bool fake_write(int fd, const void *bytes, size_t len);

#endif
