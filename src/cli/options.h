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

#define HK_ACTOR_OPTIONS                                                                                     \
    {.name = "reason",                                                                                       \
     .kind = HK_CLI_TEXT,                                                                                    \
     .value = "TEXT",                                                                                        \
     .help = "why; kept with who (asked for on a terminal)"},                                                \
    {                                                                                                        \
        .name = "actor", .kind = HK_CLI_TEXT, .value = "NAME",                                               \
        .help = "who (default: $HIKYAKU_ACTOR, else user@host)"                                              \
    }

#endif
