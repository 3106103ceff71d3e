/* SPDX-License-Identifier: Apache-2.0 */
/* Is the terminal known? A file of its own, since <term.h> takes common words (lines, columns) for itself. */
#include <ncurses.h>
#include <stdbool.h>
#include <term.h>
#include <unistd.h>

#include "cli/top/screen_term.h"

bool hk_screen_term_known(void)
{
    int found = 0;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    (void)del_curterm(cur_term);
    return true;
}
