/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal output that the commands on dead letters share. */
#ifndef HK_CLI_DEAD_DEAD_H
#define HK_CLI_DEAD_DEAD_H

#include "cli/ask.h"

/* ", 12 may have arrived"; nothing for 0. Of letters whose last attempts had no clear outcome. */
void hk_dead_maybe(struct hk_buf *out, uint64_t n);

/* Asked on a terminal, or --yes. HK_EXIT_OK, or said that it was not done. */
int hk_dead_confirm(const struct hk_cli *cli, const char *question);

#endif
