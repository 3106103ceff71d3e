/* SPDX-License-Identifier: Apache-2.0 */
/* Ports for servers that cannot choose one themselves: tests/e2e/ports.py says why, and follows the same rule. */
#ifndef HK_TESTS_PORTS_H
#define HK_TESTS_PORTS_H

/* A port where nobody listens, and where nobody will but the caller. It stays reserved until the process ends. */
int free_port(void);

#endif
