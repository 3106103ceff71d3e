/* SPDX-License-Identifier: Apache-2.0 */
/* Options that many commands have, as items of their lists. */
#ifndef HK_CLI_OPTIONS_H
#define HK_CLI_OPTIONS_H

#define HK_END_OF_OPTIONS                                                                                    \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

#define HK_JSON_OPTION                                                                                       \
    {                                                                                                        \
        .name = "json", .help = "print JSON"                                                                 \
    }

#define HK_REASON_OPTION                                                                                     \
    {                                                                                                        \
        .name = "reason", .kind = HK_CLI_TEXT, .value = "TEXT",                                              \
        .help = "why; the audit keeps it (a terminal asks for it)"                                           \
    }
#define HK_ACTOR_OPTION                                                                                      \
    {                                                                                                        \
        .name = "actor", .kind = HK_CLI_TEXT, .value = "NAME",                                               \
        .help = "who, for the audit (default: $HIKYAKU_ACTOR, else user@host)"                               \
    }
#define HK_ACTOR_OPTIONS HK_REASON_OPTION, HK_ACTOR_OPTION

#define HK_BACKGROUND_OPTION                                                                                 \
    {                                                                                                        \
        .name = "background", .help = "start it as a job, which a relay carries out; do not wait for it"     \
    }

#define HK_REVEAL_OPTION                                                                                     \
    {                                                                                                        \
        .name = "reveal", .help = "show masked values; the audit first records who and why"                  \
    }

#endif
