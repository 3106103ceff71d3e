/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal output that the commands on dead letters share. */
#include <stdio.h>
#include <unistd.h>

#include "base/show.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"

void hk_dead_maybe(struct hk_buf *out, uint64_t n)
{
    char number[HK_SHOW_NUMBER];
    if (n > 0)
        (void)hk_buf_addf(out, ", %s may have arrived", hk_show_count(n, number));
}

int hk_dead_confirm(const struct hk_cli *cli, const char *question)
{
    char answer[16] = "";
    if (hk_args_flag(cli, "yes"))
        return HK_EXIT_OK;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return hk_out_error(HK_EXIT_USAGE, "%s Give --yes to continue, or --dry-run to see", question);
    (void)fprintf(stderr, "%s [y/N] ", question);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return HK_EXIT_OK;
    return hk_out_error(HK_EXIT_FAILURE, "nothing was changed");
}
