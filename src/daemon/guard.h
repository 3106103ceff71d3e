/* SPDX-License-Identifier: Apache-2.0 */
/* Rights that the relay's process gives up when it starts: root's identity, core dumps (its memory contains secrets), and, once it is
 * set up, the system calls that it does not need. An attacker who takes it over through a parser then can run no program, mount no
 * file system and trace no process. */
#ifndef HK_DAEMON_GUARD_H
#define HK_DAEMON_GUARD_H

#include <stdbool.h>

#include <hikyaku/error.h>

/* Becomes "user" or "user:group", with that user's groups; for good. Before anything is opened, so that what can be read
 * at the start can be read when it is reloaded, too. HK_INVALID: there is no such user, or we are not root. */
enum hk_code hk_guard_become(const char *who, struct hk_err *err) HK_MUSTCHECK;
bool hk_guard_is_root(void);

/* Neither a core dump nor a debugger of the same user sees this process. */
enum hk_code hk_guard_forbid_dumps(struct hk_err *err) HK_MUSTCHECK;

/* From now on only what a relay at work needs: threads, files, sockets of the internet, of this machine and for asking
 * about addresses. Anything else fails as it would on a kernel that does not know it, and nothing is killed for it. For
 * all threads, and for good: no program can be run afterwards. HK_UNSUPPORTED: the kernel refuses, or it was built
 * without; nothing has changed then. */
enum hk_code hk_guard_lock(struct hk_err *err) HK_MUSTCHECK;
bool hk_guard_can_lock(void); /* it was built with it, and the kernel has it */

#endif
