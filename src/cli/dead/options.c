/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the commands on dead letters; their rows stand in main.c. */
#include "cli/dead/dead.h"
#include "cli/options.h"

#define STATUS_OPTION(default_status)                                                                        \
    {                                                                                                        \
        .name = "status", .kind = HK_CLI_CHOICE, .value = "STATUS",                                          \
        .choices = "failed retrying resolved discarded any", .help = "(default: " default_status ")"         \
    }
#define FILTER_OPTIONS FILTER_OPTIONS_BY("failed, which is open")
#define FILTER_OPTIONS_BY(default_status)                                                                    \
    {.name = "filter",                                                                                       \
     .kind = HK_CLI_TEXT,                                                                                    \
     .value = "TERMS",                                                                                       \
     .help = "which: 'reason:HTTP_422 payload.customer.id:42' (docs/filters.md)"},                           \
        {.name = "destination", .kind = HK_CLI_TEXT, .value = "NAME", .help = "only for this one"},          \
        {.name = "event-type",                                                                               \
         .kind = HK_CLI_TEXT,                                                                                \
         .value = "PATTERN",                                                                                 \
         .help = "only of this type; * stands for any text"},                                                \
        {.name = "reason-code", .kind = HK_CLI_TEXT, .value = "CODE", .help = "only that died of this"},     \
        {.name = "class",                                                                                    \
         .kind = HK_CLI_CHOICE,                                                                              \
         .value = "CLASS",                                                                                   \
         .choices = "transient rate_limit auth permanent unknown",                                           \
         .help = "only of this failure class"},                                                              \
        STATUS_OPTION(default_status),                                                                       \
        {.name = "group",                                                                                    \
         .kind = HK_CLI_TEXT,                                                                                \
         .value = "GROUP",                                                                                   \
         .help = "only of this group (dead groups)"},                                                        \
        {.name = "older", .kind = HK_CLI_TEXT, .value = "AGE", .help = "last failed longer ago: 2h"},        \
        {.name = "newer", .kind = HK_CLI_TEXT, .value = "AGE", .help = "last failed since: 7d"},             \
    {                                                                                                        \
        .name = "text", .kind = HK_CLI_TEXT, .value = "TEXT", .help = "found in error, ids or payload"       \
    }
#define REVEAL_OPTIONS                                                                                       \
    {.name = "reveal", .help = "show what is masked; who and why is recorded first"}, HK_ACTOR_OPTIONS
#define BULK_OPTIONS                                                                                         \
    {.name = "dry-run", .help = "say how many, change nothing"},                                             \
    {                                                                                                        \
        .name = "yes", .help = "do not ask"                                                                  \
    }
const struct hk_cli_option hk_dead_show_options[] = {
    {.name = "curl", .help = "print the request as a curl command instead"}, HK_END_OF_OPTIONS};

const struct hk_cli_option hk_dead_reasons_options[] = {
    {.name = "markdown", .help = "as docs/reasons.md has it"}, HK_END_OF_OPTIONS};
