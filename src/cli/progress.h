/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a search through many dead letters: one line on a terminal, which disappears at the end. */
#ifndef HK_CLI_PROGRESS_H
#define HK_CLI_PROGRESS_H

#include "cli/ask.h"

/* hk_ask_also, and tells. */
int hk_looking_also(struct hk_ask *ask, const struct hk_op *op, const void *request, void *result);
/* hk_ask_once, and tells. */
int hk_looking_once(const struct hk_cli *cli, hk_print_fn *print);
/* For hk_caller.progress of an act on many: how many it has changed. `arg`: a bool, set when a line was written. */
void hk_tell_changed(void *arg, const struct hk_progress *progress);

#endif
