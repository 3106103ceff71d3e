/* SPDX-License-Identifier: Apache-2.0 */
/* A part of screen.c. */
#ifndef HK_CLI_TOP_SCREEN_TERM_H
#define HK_CLI_TOP_SCREEN_TERM_H

#include <stdbool.h>

bool hk_screen_term_known(void); /* what $TERM names */

#endif
