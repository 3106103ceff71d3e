/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>

#include "cli/interrupt.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Calls that wait go on: a transaction that was sent must be heard of. */
void hk_interrupt_catch(void)
{
    struct sigaction first = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &first, NULL);
    (void)sigaction(SIGTERM, &first, NULL);
}

bool hk_interrupted(void *unused)
{
    (void)unused;
    return interrupted != 0;
}
