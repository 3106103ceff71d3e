/* SPDX-License-Identifier: Apache-2.0 */
/* `--background`, for all commands that have it. */
#ifndef HK_CLI_JOB_H
#define HK_CLI_JOB_H

#include "cli/ask.h"

/* Starts the command's operation as a job, and says how to follow it. HK_EXIT_OK, or said what is wrong. */
int hk_job_start_and_say(struct hk_ask *ask);

#endif
