/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that jq.c and the two sides of the starter share. */
#ifndef HK_JQ_IMPL_H
#define HK_JQ_IMPL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hikyaku/error.h>

#include "jq/starter.h"

int64_t hk_jq_now_ms(void);

/* Runs `helper` with `socket` as its standard input and output. 0, or an errno. */
int hk_jq_spawn(const char *helper, int socket, pid_t *out_pid);

/* ---- the starter ----
 *
 * A request is one packet on the control socket: the byte below, and with it two descriptors. The first one becomes the helper's
 * standard input and output. The second one is the helper's lease, a stream socket: the starter writes one int on it, 0 or an errno
 * (EAGAIN: HK_JQ_STARTER_MOST helpers run), and kills the helper when the other end is closed. So a request can end no helper but
 * its own, and a helper never outlives whoever asked for it. The starter writes one int on the control socket as well: 0, when it is
 * ready. */
#define HK_JQ_REQUEST     'S'
#define HK_JQ_REQUEST_FDS 2

#define HK_JQ_NO_STARTER "the process that starts jq has ended: restart the relay"

/* Any thread. On HK_OK the helper runs until the caller closes `*out_lease`. HK_BUSY, HK_UNAVAILABLE. */
enum hk_code hk_jq_starter_ask(const struct hk_jq_starter *starter, int socket, int *out_lease,
                               struct hk_err *err) HK_MUSTCHECK;
/* Any thread. Once a helper has died along with its starter, this is false. */
bool hk_jq_starter_runs(const struct hk_jq_starter *starter);

/* The starter's own process, to its end. `parent`: the process that forked it. */
_Noreturn void hk_jq_starter_main(const char *helper, int control, pid_t parent);

#endif
