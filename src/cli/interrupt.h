/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C while a command works through many: it ends between two transactions and says what it has done. A second Ctrl-C ends the
 * process at once. */
#ifndef HK_CLI_INTERRUPT_H
#define HK_CLI_INTERRUPT_H

#include <stdbool.h>

void hk_interrupt_catch(void);     /* from now on, to the end of the process */
bool hk_interrupted(void *unused); /* as struct hk_caller asks */

#endif
